/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that the kernel refuses: which features are left out, and the error. */
#include "signals/native.h"

#include <stdarg.h>

static const char *refused; /* the program, while it is loaded; NULL: none */
static int error;
static u32 nr_lines;

int __real_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton);

__attribute__((format(printf, 2, 3))) static void say(libbpf_print_fn_t print, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	print(LIBBPF_WARN, format, args);
	va_end(args);
}

/* As libbpf does: it names the program that fails. */
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	const struct bpf_program *prog =
		refused ? bpf_object__find_program_by_name(*skeleton->obj, refused) : NULL;
	libbpf_print_fn_t printer;

	if (!error)
		return __real_bpf_object__load_skeleton(skeleton);
	if (refused && !bpf_program__autoload(prog))
		return 0;
	printer = libbpf_set_print(NULL);
	libbpf_set_print(printer);
	if (refused)
		say(printer, "libbpf: prog '%s': failed to load: %d\n", refused, error);
	return error;
}

static void count_line(const char *text)
{
	nr_lines++;
}

static int load_with(const char *program, int err, u32 *ret_refused)
{
	struct kernel *kernel = NULL;
	int result;

	refused = program;
	error = err;
	nr_lines = 0;
	result = kernel_new(count_line, &kernel);
	if (result == 0) {
		(void)kernel_lacks(kernel, ret_refused);
		kernel_free(kernel);
	}
	error = 0;
	return result;
}

static void essential_program(void **state)
{
	u32 left_out;

	assert_int_equal(load_with("thread_switch", -EACCES, &left_out), -ENOEXEC);
	assert_int_equal(nr_lines, 1);
}

static void lack_of_privilege(void **state)
{
	u32 left_out;

	assert_int_equal(load_with("thread_switch", -EPERM, &left_out), -EPERM);
}

static void program_of_a_feature(void **state)
{
	u32 left_out = 0;

	assert_int_equal(load_with("lines_switch", -EACCES, &left_out), 0);
	assert_int_equal(left_out, 1U << FEATURE_LINES);
	assert_int_equal(nr_lines, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(essential_program),
		cmocka_unit_test(lack_of_privilege),
		cmocka_unit_test(program_of_a_feature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
