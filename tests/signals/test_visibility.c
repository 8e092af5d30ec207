/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A certain change must be visible to a BPF reader within 10 us. The reader is a probe on
 * marker(), which the program calls right after a launch or a sync, with the time that it
 * took itself: right before the launch, right after the sync. The result is an upper bound
 * of the delay, because it includes the call and both probes.
 */
#include "signals/native.h"

#include "support/timing.h"
#include "signals/reader.h"
#include "reader.skel.h"
#include "vgpu/include/vgpu_cudart.h"

#define NR_STEPS       10000
#define MAX_VISIBLE_NS 10000

static const char *cudart;

void marker(u64 since_ns, u32 phase);

__attribute__((noinline)) void marker(u64 since_ns, u32 phase)
{
	__asm__ volatile("" : : "r"(since_ns), "r"(phase));
}

static struct reader *reader_open(struct kernel *kernel)
{
	struct reader *reader = reader__open();

	assert_non_null(reader);
	assert_int_equal(bpf_map__reuse_fd(reader->maps.processes,
					   bpf_map__fd(kernel->skel->maps.processes)),
			 0);
	assert_int_equal(reader__load(reader), 0);
	return reader;
}

static void steps_run(void)
{
	const dim3 one = { 1, 1, 1 };
	u64 kernel_ns = 0, now;
	void *args[] = { &kernel_ns };

	for (u32 i = 0; i < NR_STEPS; i++) {
		now = time_of_ns(CLOCK_MONOTONIC);
		cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, NULL);
		marker(now, PHASE_GPU_COMPUTE);
		cudaDeviceSynchronize();
		now = time_of_ns(CLOCK_MONOTONIC);
		marker(now, PHASE_OPTIMIZER);
	}
}

/* Returns the larger p99 of the two changes. */
static u64 sightings_show(const struct reader *reader)
{
	static u64 seen[MAX_SIGHTINGS];
	u64 worst = 0;

	for (u32 phase = PHASE_GPU_COMPUTE; phase <= PHASE_OPTIMIZER; phase++) {
		u32 nr = 0;

		for (u32 i = 0; i < reader->bss->nr_sightings; i++)
			if (reader->bss->sightings[i].phase == phase)
				seen[nr++] = reader->bss->sightings[i].seen_ns;
		if (!nr)
			continue;
		print_message("# %s visible after: p50 %.2f us, p90 %.2f, p99 %.2f, p99.9 %.2f, "
			      "max %.2f (%u changes)\n",
			      phase_label(phase), (double)native_quantile(seen, nr, 500) / 1e3,
			      (double)native_quantile(seen, nr, 900) / 1e3,
			      (double)native_quantile(seen, nr, 990) / 1e3,
			      (double)native_quantile(seen, nr, 999) / 1e3,
			      (double)native_quantile(seen, nr, 1000) / 1e3, nr);
		if (native_quantile(seen, nr, 990) > worst)
			worst = native_quantile(seen, nr, 990);
	}
	return worst;
}

static void test_change_is_visible_at_once(void **state)
{
	static const char *syms[] = { "marker" };
	LIBBPF_OPTS(bpf_uprobe_multi_opts, at_marker, .syms = syms, .cnt = 1);
	struct kernel *kernel = native_kernel();
	struct library library = native_library(cudart, RUNTIME_CUDA, -1);
	struct reader *reader = reader_open(kernel);
	struct bpf_link *link;
	u64 worst;

	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	link = bpf_program__attach_uprobe_multi(reader->progs.marker_seen, getpid(),
						"/proc/self/exe", NULL, &at_marker);
	assert_non_null(link);
	steps_run();
	assert_int_equal(reader->bss->nr_wrong_phase, 0);
	assert_int_equal(reader->bss->nr_sightings, 2 * NR_STEPS);
	worst = sightings_show(reader);
	timing_assert(worst <= MAX_VISIBLE_NS);
	bpf_link__destroy(link);
	reader__destroy(reader);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change_is_visible_at_once),
	};

	if (argc != 2)
		return 2;
	cudart = argv[1];
	return cmocka_run_group_tests_name("visibility", tests, NULL, NULL);
}
