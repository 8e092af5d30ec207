/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verified OBJECT: loads all BPF programs together, as zerneld does. Prints for each
 * program the figures of the verifier that veristat prints. veristat opens the
 * object again for each program, which takes many minutes on an emulated CPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>

#define LOG_STATS 4 /* BPF_LOG_STATS: figures, no trace */
#define LOG_BYTES 4096

static int say_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* Returns the last match, because newer kernels print the parts of a sum before the sum. */
static unsigned number_after(const char *text, const char *word)
{
	unsigned number = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		number = (unsigned)strtoul(text, NULL, 10);
	}
	return number;
}

/* A program that was not loaded has no figures; the first such program was refused. */
static void print_program(const struct bpf_program *prog)
{
	size_t size;
	const char *log = bpf_program__log_buf(prog, &size);

	printf("%-24s | %12u | %6u | %11u\n", bpf_program__name(prog),
	       number_after(log, "processed "), number_after(log, "total_states "),
	       number_after(log, "peak_states "));
	if (!strstr(log, "processed "))
		fputs(log, stdout);
}

/* Their type, probe or session, is set by zerneld (choose_sessions()). */
static const char *const sessions[] = { "launch_session", "copy_session", "work_session" };

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_level = LOG_STATS);
	struct bpf_program *prog;
	struct bpf_object *object;
	int err;

	libbpf_set_print(say_nothing);
	object = argc == 2 ? bpf_object__open_file(argv[1], &opts) : NULL;
	if (!object) {
		fputs("Usage: verified OBJECT\n", stderr);
		return 2;
	}
	bpf_object__for_each_program(prog, object)
		bpf_program__set_log_buf(prog, calloc(1, LOG_BYTES), LOG_BYTES);
	for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
		prog = bpf_object__find_program_by_name(object, sessions[i]);
		if (prog)
			bpf_program__set_autoload(prog, false);
	}
	err = bpf_object__load(object);
	puts("BPF program              | instructions | states | peak states");
	bpf_object__for_each_program(prog, object)
		print_program(prog);
	return err < 0;
}
