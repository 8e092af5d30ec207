/* SPDX-License-Identifier: GPL-2.0-or-later */
/* truth: prints truth logs and checks that they are consistent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "truth/check.h"
#include "truth/summary.h"

static const char *const kind_names[TRUTH_NR] = {
	[TRUTH_NONE] = "none",
	[TRUTH_THREAD] = "thread",
	[TRUTH_PHASE] = "phase",
	[TRUTH_STEP] = "step",
	[TRUTH_LOAD] = "load",
	[TRUTH_REQUEST] = "request",
	[TRUTH_CHECKPOINT] = "checkpoint",
	[TRUTH_BUSY] = "busy",
	[TRUTH_ALLOC] = "alloc",
	[TRUTH_FREE] = "free",
	[TRUTH_COLLECTIVE] = "collective",
	[TRUTH_SYNC] = "sync",
	[TRUTH_LAUNCH] = "launch",
	[TRUTH_IDLE] = "idle",
	[TRUTH_BLOCKED] = "blocked",
	[TRUTH_DID] = "did",
	[TRUTH_TOKEN] = "token",
	[TRUTH_ROLE] = "role",
	[TRUTH_WAIT] = "wait",
};

static int fail(const char *what, int r)
{
	fprintf(stderr, "truth: %s: %s\n", what, strerror(-r));
	return 2;
}

static void dump_file(const struct truth_file *file)
{
	for (u64 i = 0; i < file->nr_records; i++) {
		const struct truth_record *rec = &file->records[i];

		printf("{\"pid\":%u,\"tid\":%u,\"kind\":\"%s\",\"sub\":%u,\"start_ns\":%" PRIu64
		       ",\"end_ns\":%" PRIu64 ",\"a\":%" PRIu64 ",\"b\":%" PRIu64 ",\"c\":%" PRIu64
		       "}\n",
		       file->header.pid, rec->tid,
		       rec->kind < TRUTH_NR ? kind_names[rec->kind] : "unknown", rec->sub,
		       (uint64_t)rec->start_ns, (uint64_t)rec->end_ns, (uint64_t)rec->a,
		       (uint64_t)rec->b, (uint64_t)rec->c);
	}
}

static int cmd_dump(int nr, char **paths)
{
	for (int i = 0; i < nr; i++) {
		struct truth_file file;
		int r = truth_read(paths[i], &file);

		if (r < 0)
			return fail(paths[i], r);
		dump_file(&file);
		truth_file_done(&file);
	}
	return 0;
}

static int cmd_check(int nr, char **args)
{
	struct truth_dir dir;
	s64 faults;
	int r = truth_dir_read(args[0], &dir);

	if (r < 0)
		return fail(args[0], r);
	faults = truth_check(&dir);
	truth_dir_done(&dir);
	if (faults < 0)
		return fail(args[0], (int)faults);
	return faults > 0;
}

static void print_quantiles(const char *name, const struct truth_quantiles *q)
{
	printf(",\"%s\":{\"count\":%" PRIu64 ",\"mean_ms\":%.6f,\"p50_ms\":%.6f,\"p99_ms\":%.6f}",
	       name, (uint64_t)q->nr, q->mean_ms, q->p50_ms, q->p99_ms);
}

static void print_summary(const struct truth_summary *summary)
{
	printf("{\"pid\":%u", summary->pid);
	print_quantiles("steps", &summary->steps);
	print_quantiles("ttft", &summary->ttft);
	printf(",\"gpu_busy\":");
	truth_print_busy(summary);
	printf(",\"phase_ms\":{");
	for (u32 i = 0; i < PHASE_NR; i++)
		printf("%s\"%s\":%.6f", i ? "," : "", phase_label(i),
		       (double)summary->phase_ns[i] / NSEC_PER_MSEC);
	printf("}}");
}

static int cmd_summary(int nr, char **args)
{
	struct truth_summary *summaries;
	struct truth_dir dir;
	u64 nr_summaries;
	int r = truth_dir_read(args[0], &dir);

	if (r < 0)
		return fail(args[0], r);
	r = truth_summarise(&dir, &summaries, &nr_summaries);
	truth_dir_done(&dir);
	if (r < 0)
		return fail(args[0], r);
	printf("{\"processes\":[");
	for (u64 i = 0; i < nr_summaries; i++) {
		if (i)
			putchar(',');
		print_summary(&summaries[i]);
	}
	printf("]}\n");
	free(summaries);
	return 0;
}

static const struct command {
	const char *name;
	const char *args;
	const char *last; /* required last argument, or NULL */
	int min, max;
	int (*run)(int nr, char **args);
	const char *help;
} commands[] = {
	{ "dump", "FILE...", NULL, 1, 1 << 20, cmd_dump, "print each record as a line of JSON" },
	{ "check", "DIR", NULL, 1, 1, cmd_check,
	  "exit with 1 if the truth of a run is inconsistent" },
	{ "summary", "DIR --json", "--json", 2, 2, cmd_summary,
	  "print steps, times to first token, GPU use and phases" },
};

int main(int argc, char **argv)
{
	const struct command *command;

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++) {
		command = &commands[i];
		if (strcmp(argv[1], command->name) == 0 && argc - 2 >= command->min &&
		    argc - 2 <= command->max &&
		    (!command->last || strcmp(argv[argc - 1], command->last) == 0))
			return command->run(argc - 2, argv + 2);
	}
	fprintf(stderr, "Usage:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, "  truth %-8s %-12s %s\n", commands[i].name, commands[i].args,
			commands[i].help);
	return 2;
}
