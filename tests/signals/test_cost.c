/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures the cost of a probed launch for the program. Rounds without a probe, with an
 * empty probe and with Zernel's probes alternate within milliseconds, and the cheapest
 * round of each counts, because other work on the machine only makes rounds slower.
 * Zernel's probes are those that zerneld attaches, including return probes.
 *
 * In a guest with virtual time a duration is a number of instructions, so a few rounds suffice
 * and the machine may be busy. On the machine's own kernel only a quiet machine is judged.
 */
#include "signals/native.h"

#include "signals/reader.h"
#include "support/timing.h"
#include "reader.skel.h"
#include "vgpu/include/vgpu_cudart.h"

/* Short rounds, because the shortest one counts: on a busy machine few are undisturbed. */
#define MAX_ROUNDS	100
#define CALLS_PER_ROUND 1000
#define ENDBR64_BYTES	4

static const char *cudart, *protected_lib;
static u32 nr_rounds;
static double max_ratio;

/* One way to probe the launch. */
struct variant {
	const char *name;
	bool (*attach)(void *ctx);
	void (*detach)(void *ctx);
	void *ctx;
	u64 ns_per_round[MAX_ROUNDS];
};

static void launch_vgpu(void)
{
	static const dim3 one = { 1, 1, 1 };
	static u64 kernel_ns = 0;
	void *args[] = { &kernel_ns };

	cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, NULL);
}

static u64 round_run(void (*call)(void))
{
	u64 begin = time_of_ns(CLOCK_THREAD_CPUTIME_ID);

	for (u32 i = 0; i < CALLS_PER_ROUND; i++)
		call();
	return time_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void rounds_run(struct variant *variants, u32 nr, void (*call)(void))
{
	for (u32 round = 0; round < nr_rounds; round++) {
		for (u32 i = 0; i < nr; i++) {
			struct variant *variant = &variants[i];

			assert_true(!variant->attach || variant->attach(variant->ctx));
			call(); /* the first call after an attach is slower */
			variant->ns_per_round[round] = round_run(call);
			if (variant->detach)
				variant->detach(variant->ctx);
		}
	}
	for (u32 i = 0; i < nr; i++) {
		u64 *ns = variants[i].ns_per_round;

		print_message("# %-24s ns per call: min %5.0f, p25 %5.0f, p50 %5.0f, p75 %5.0f\n",
			      variants[i].name,
			      (double)native_quantile(ns, nr_rounds, 0) / CALLS_PER_ROUND,
			      (double)native_quantile(ns, nr_rounds, 250) / CALLS_PER_ROUND,
			      (double)native_quantile(ns, nr_rounds, 500) / CALLS_PER_ROUND,
			      (double)native_quantile(ns, nr_rounds, 750) / CALLS_PER_ROUND);
	}
}

/* Returns the ns that a variant adds to a call, from the cheapest rounds (the first ones). */
static double added_ns(const struct variant *variant, const struct variant *bare)
{
	return ((double)variant->ns_per_round[0] - (double)bare->ns_per_round[0]) / CALLS_PER_ROUND;
}

/* A BPF program at one place of a file. */
struct place {
	struct bpf_program *prog;
	const char *path;
	unsigned long offset;
	bool returns;
	struct bpf_link *link;
};

static bool place_attach(void *ctx)
{
	struct place *place = ctx;
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = &place->offset, .cnt = 1,
		    .retprobe = place->returns);

	place->link = bpf_program__attach_uprobe_multi(place->prog, -1, place->path, NULL, &opts);
	return place->link;
}

static void place_detach(void *ctx)
{
	bpf_link__destroy(((struct place *)ctx)->link);
}

/* Zernel's probes on a library. */
struct ours {
	struct kernel *kernel;
	const struct library *library;
};

static bool ours_attach(void *ctx)
{
	struct ours *ours = ctx;

	return kernel_attach_library(ours->kernel, ours->library) == 0;
}

static void ours_detach(void *ctx)
{
	struct ours *ours = ctx;

	kernel_detach_library(ours->kernel, ours->library);
}

/* The same, while a client wants the lines of this process, without the programs that sample. */
static bool wanted_attach(void *ctx)
{
	const struct ours *ours = ctx;
	struct lines_process process = {};
	u32 tgid = (u32)getpid();

	ours->kernel->skel->bss->nr_lines_wanted = 1;
	bpf_map__update_elem(ours->kernel->skel->maps.lines_processes, &tgid, sizeof(tgid),
			     &process, sizeof(process), BPF_ANY);
	return ours_attach(ctx);
}

static void wanted_detach(void *ctx)
{
	ours_detach(ctx);
	((struct ours *)ctx)->kernel->skel->bss->nr_lines_wanted = 0;
}

static void test_probe_costs_little_more_than_an_empty_probe(void **state)
{
	struct kernel *kernel = native_kernel();
	struct library library = native_library(cudart, RUNTIME_CUDA, CALL_CUDA_cudaLaunchKernel);
	struct reader *reader = reader__open_and_load();
	struct place entry, at_return;
	struct ours ours = { kernel, &library };
	static struct variant variants[] = {
		{ "no probe" },
		{ "an empty probe", place_attach, place_detach },
		{ "Zernel's probes", ours_attach, ours_detach },
		{ "an empty return probe", place_attach, place_detach },
		{ "while lines are wanted", wanted_attach, wanted_detach },
	};
	double ratio;

	assert_non_null(reader);
	entry = (struct place){ reader->progs.empty, library.path, library.probes.probe[0].offset };
	at_return = entry;
	at_return.returns = true;
	variants[1].ctx = &entry;
	variants[2].ctx = &ours;
	variants[3].ctx = &at_return;
	variants[4].ctx = &ours;
	rounds_run(variants, ARRAY_SIZE(variants), launch_vgpu);
	ratio = added_ns(&variants[2], &variants[0]) / added_ns(&variants[1], &variants[0]);
	print_message(
		"# Zernel's probes add %.0f ns per launch, an empty probe %.0f ns: ratio %.3f\n",
		added_ns(&variants[2], &variants[0]), added_ns(&variants[1], &variants[0]), ratio);
	print_message("# while a client wants lines, they add %.0f ns\n",
		      added_ns(&variants[4], &variants[0]));
	/* The probes counted every call meanwhile. */
	assert_int_equal(native_state(kernel, getpid()).nr_launches[LEVEL_RUNTIME],
			 2 * nr_rounds * (CALLS_PER_ROUND + 1));
	assert_true(ratio > 0);
	timing_assert(ratio <= max_ratio);
	reader__destroy(reader);
	kernel_free(kernel);
}

int protected_launch(int stream);

static void launch_protected(void)
{
	protected_launch(1);
}

/* Uses a function as vendors compile it: endbr64, then a push. */
static void test_past_endbr64_is_cheaper(void **state)
{
	struct library library =
		native_library(protected_lib, RUNTIME_CUDA, CALL_CUDA_cudaLaunchKernel);
	struct reader *reader = reader__open_and_load();
	struct place past, start;
	static struct variant variants[] = { { "no probe" },
					     { "empty, after endbr64", place_attach, place_detach },
					     { "empty, on endbr64", place_attach, place_detach } };
	double factor;

	assert_non_null(reader);
	past = (struct place){ reader->progs.empty, library.path, library.probes.probe[0].offset };
	start = past;
	start.offset -= ENDBR64_BYTES;
	variants[1].ctx = &past;
	variants[2].ctx = &start;
	rounds_run(variants, 3, launch_protected);
	factor = added_ns(&variants[2], &variants[0]) / added_ns(&variants[1], &variants[0]);
	print_message("# a probe on endbr64 costs %.1f times as much as a probe after it\n",
		      factor);
	assert_true(factor > 1);
	reader__destroy(reader);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_costs_little_more_than_an_empty_probe),
		cmocka_unit_test(test_past_endbr64_is_cheaper),
	};

	if (argc != 5)
		return 2;
	cudart = argv[1];
	protected_lib = argv[2];
	nr_rounds = (u32)strtoul(argv[3], NULL, 10);
	max_ratio = strtod(argv[4], NULL);
	if (!nr_rounds || nr_rounds > MAX_ROUNDS)
		return 2;
	return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
