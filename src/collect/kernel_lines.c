/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Idle time by stack. The events that sample running threads are opened with the programs, because
 * the kernel may refuse them after zerneld has dropped its capabilities, and are disabled until a
 * client wants lines. Until then no program is attached.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

#define KEY_BYTES_MAX 64

/* Returns a negative errno if the CPU is offline or the kernel refuses. */
static int open_event(int cpu, int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = LINES_PERIOD_NS,
		.disabled = 1,
	};
	CLEANUP_FD int fd =
		(int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) < 0)
		return -errno;
	return TAKE_FD(fd);
}

void kernel_open_lines(struct kernel *kernel)
{
	int prog = bpf_program__fd(kernel->skel->progs.lines_tick);
	int nr_cpus = libbpf_num_possible_cpus();
	struct kernel_sampling *sampling = &kernel->sampling;

	if (prog < 0 || nr_cpus < 0)
		return;
	sampling->events = calloc((size_t)nr_cpus, sizeof(*sampling->events));
	sampling->random = calloc((size_t)nr_cpus, sizeof(*sampling->random));
	if (!sampling->events || !sampling->random)
		return;
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		int fd = open_event(cpu, prog);

		if (fd >= 0)
			sampling->events[sampling->nr_events++] = fd;
	}
}

static void tick(const struct kernel_sampling *sampling, unsigned long request)
{
	for (u32 i = 0; i < sampling->nr_events; i++)
		ioctl(sampling->events[i], request, 0);
}

/* A new period begins with a wait of its length, so a change takes half a period on average. */
void kernel_vary_lines(struct kernel *kernel)
{
	const struct kernel_sampling *sampling = &kernel->sampling;
	size_t bytes = sampling->nr_events * sizeof(*sampling->random);

	if (!sampling->nr_wanted ||
	    getrandom(sampling->random, bytes, GRND_NONBLOCK) != (ssize_t)bytes)
		return;
	for (u32 i = 0; i < sampling->nr_events; i++) {
		u64 period_ns = LINES_PERIOD_NS / 2 + sampling->random[i] % LINES_PERIOD_NS;

		ioctl(sampling->events[i], PERF_EVENT_IOC_PERIOD, &period_ns);
	}
}

static void stop(struct kernel *kernel)
{
	tick(&kernel->sampling, PERF_EVENT_IOC_DISABLE);
	bpf_link__destroy(kernel->sampling.link);
	kernel->sampling.link = NULL;
}

void kernel_close_lines(struct kernel *kernel)
{
	stop(kernel);
	for (u32 i = 0; i < kernel->sampling.nr_events; i++)
		close(kernel->sampling.events[i]);
	free(kernel->sampling.events);
	free(kernel->sampling.random);
}

/* Deletes the entries whose key has this owner at `offset`; 0: all entries. */
static void delete_entries(const struct bpf_map *map, size_t offset, u32 owner)
{
	size_t size = bpf_map__key_size(map);
	u8 key[KEY_BYTES_MAX], next[KEY_BYTES_MAX];
	int err = bpf_map__get_next_key(map, NULL, next, size);

	while (err == 0) {
		u32 found;

		memcpy(key, next, size);
		memcpy(&found, key + offset, sizeof(found));
		/* The next key is found before this one is gone. */
		err = bpf_map__get_next_key(map, key, next, size);
		if (!owner || found == owner)
			bpf_map__delete_elem(map, key, size, 0);
	}
}

/* Deletes all that is known of a process; 0: of all processes. */
static void forget(struct kernel *kernel, u32 owner)
{
	const struct {
		const struct bpf_map *map;
		size_t owner;
	} tables[] = {
		{ kernel->skel->maps.lines_sums, offsetof(struct lines_sum_key, tgid) },
		{ kernel->skel->maps.lines_stacks, offsetof(struct lines_stack_key, owner) },
		{ kernel->skel->maps.lines_codes, offsetof(struct lines_code_key, owner) },
		{ kernel->skel->maps.lines_threads, offsetof(struct lines_thread_key, owner) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		delete_entries(tables[i].map, tables[i].owner, owner);
}

/* Attached after the programs that follow threads, and therefore run after them. */
static int start(struct kernel *kernel)
{
	if (!kernel_has(kernel, FEATURE_LINES) || !kernel->sampling.nr_events)
		return -EOPNOTSUPP;
	kernel->sampling.link = bpf_program__attach(kernel->skel->progs.lines_switch);
	if (!kernel->sampling.link)
		return -errno;
	kernel_vary_lines(kernel);
	tick(&kernel->sampling, PERF_EVENT_IOC_ENABLE);
	return 0;
}

int kernel_begin_lines(struct kernel *kernel, u32 tgid, const struct lines_process *process)
{
	int err = bpf_map__update_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid),
				       process, sizeof(*process), BPF_NOEXIST);

	if (err < 0)
		return err;
	kernel->skel->bss->nr_lines_wanted = ++kernel->sampling.nr_wanted;
	if (kernel->sampling.nr_wanted == 1)
		err = start(kernel);
	if (err < 0)
		kernel_end_lines(kernel, tgid);
	return err;
}

void kernel_end_lines(struct kernel *kernel, u32 tgid)
{
	bool is_last;

	/* Programs that were loaded again do not know the process. */
	if (bpf_map__delete_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid), 0) < 0)
		return;
	kernel->skel->bss->nr_lines_wanted = --kernel->sampling.nr_wanted;
	is_last = kernel->sampling.nr_wanted == 0;
	if (is_last)
		stop(kernel);
	/* A program that still ran may have left an entry. The last process leaves none. */
	forget(kernel, is_last ? 0 : tgid);
}

struct lines_counts kernel_lines_counts(const struct kernel *kernel, u32 tgid)
{
	struct lines_process process = {};

	bpf_map__lookup_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid), &process,
			     sizeof(process), 0);
	return process.counts;
}

/* No launch has followed the latest time yet. */
static int read_waiting(const struct kernel *kernel, u32 tgid, kernel_lines_fn fn, void *ctx)
{
	struct lines_process process = {};
	int result = 0;

	bpf_map__lookup_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid), &process,
			     sizeof(process), 0);
	for (u32 i = 0; i < process.gap.nr_waiting && i < LINES_WAITING && result == 0; i++) {
		struct lines_waiting *waiting = &process.gap.waiting[i];

		waiting->key.before = GAP_UNKNOWN;
		result = fn(ctx, &waiting->key, &waiting->sum);
	}
	return result;
}

int kernel_read_lines(struct kernel *kernel, u32 tgid, kernel_lines_fn fn, void *ctx)
{
	const struct bpf_map *map = kernel->skel->maps.lines_sums;
	struct lines_sum_key key, next;
	int err = bpf_map__get_next_key(map, NULL, &next, sizeof(next)), result = 0;

	while (err == 0 && result == 0) {
		struct lines_sum sum;

		key = next;
		if (key.tgid == tgid &&
		    bpf_map__lookup_elem(map, &key, sizeof(key), &sum, sizeof(sum), 0) == 0)
			result = fn(ctx, &key, &sum);
		err = bpf_map__get_next_key(map, &key, &next, sizeof(next));
	}
	return result == 0 ? read_waiting(kernel, tgid, fn, ctx) : result;
}

int kernel_read_stack(struct kernel *kernel, const struct lines_stack_key *key,
		      struct python_stack *ret)
{
	struct lines_stack_value value;
	int err = bpf_map__lookup_elem(kernel->skel->maps.lines_stacks, key, sizeof(*key), &value,
				       sizeof(value), 0);

	if (err == 0)
		*ret = value.stack;
	return err;
}

int kernel_read_code(struct kernel *kernel, const struct lines_stack_key *stack,
		     const struct python_frame *frame, u32 part, struct python_code *ret)
{
	struct lines_code_key key = { .code = frame->code,
				      .lines = frame->lines,
				      .tgid = stack->tgid,
				      .part = part,
				      .owner = stack->owner };

	return bpf_map__lookup_elem(kernel->skel->maps.lines_codes, &key, sizeof(key), ret,
				    sizeof(*ret), 0);
}

int kernel_read_gpu_kernel(const struct kernel *kernel, const struct gpu_kernel_key *key,
			   struct gpu_kernel *ret)
{
	return bpf_map__lookup_elem(kernel->skel->maps.gpu_kernels, key, sizeof(*key), ret,
				    sizeof(*ret), 0);
}
