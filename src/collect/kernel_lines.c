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
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

/* Returns a negative errno if the CPU is offline or the kernel refuses. */
static int open_event(int cpu, int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = LINES_RATE * LINES_TICKS,
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
	if (!sampling->events)
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
}

/* Deletes the entries whose key has this number at `offset`; 0: all entries. */
static void delete_entries(const struct bpf_map *map, size_t key_size, size_t offset, u32 wanted)
{
	u8 key[64], next[64];
	int err = bpf_map__get_next_key(map, NULL, next, key_size);

	while (err == 0) {
		u32 number;

		memcpy(key, next, key_size);
		memcpy(&number, key + offset, sizeof(number));
		/* The next key is found before this one is gone. */
		err = bpf_map__get_next_key(map, key, next, key_size);
		if (!wanted || number == wanted)
			bpf_map__delete_elem(map, key, key_size, 0);
	}
}

static void forget_all(struct kernel *kernel)
{
	delete_entries(kernel->skel->maps.lines_sums, sizeof(struct lines_sum_key), 0, 0);
	delete_entries(kernel->skel->maps.lines_stacks, sizeof(struct lines_stack_key), 0, 0);
	delete_entries(kernel->skel->maps.lines_codes, sizeof(struct lines_code_key), 0, 0);
	delete_entries(kernel->skel->maps.lines_threads, sizeof(u32), 0, 0);
}

/* Attached after the programs that follow threads, and therefore run after them. */
static int start(struct kernel *kernel)
{
	if (!kernel_has(kernel, FEATURE_LINES) || !kernel->sampling.nr_events)
		return -EOPNOTSUPP;
	kernel->sampling.link = bpf_program__attach(kernel->skel->progs.lines_switch);
	if (!kernel->sampling.link)
		return -errno;
	tick(&kernel->sampling, PERF_EVENT_IOC_ENABLE);
	return 0;
}

int kernel_begin_lines(struct kernel *kernel, u32 tgid, const struct lines_process *process)
{
	int err = bpf_map__update_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid),
				       process, sizeof(*process), BPF_NOEXIST);

	if (err < 0)
		return err;
	delete_entries(kernel->skel->maps.lines_sums, sizeof(struct lines_sum_key),
		       offsetof(struct lines_sum_key, tgid), tgid);
	if (kernel->sampling.nr_wanted++ == 0)
		err = start(kernel);
	if (err < 0)
		kernel_end_lines(kernel, tgid);
	return err;
}

void kernel_end_lines(struct kernel *kernel, u32 tgid)
{
	/* Programs that were loaded again do not know the process. */
	if (bpf_map__delete_elem(kernel->skel->maps.lines_processes, &tgid, sizeof(tgid), 0) < 0 ||
	    --kernel->sampling.nr_wanted > 0)
		return;
	stop(kernel);
	forget_all(kernel);
}

struct lines_counts kernel_lines_counts(const struct kernel *kernel)
{
	return kernel->skel->bss->lines_counts;
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
	return result;
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

int kernel_read_code(struct kernel *kernel, u32 tgid, const struct python_frame *frame, u32 part,
		     struct python_code *ret)
{
	struct lines_code_key key = {
		.code = frame->code, .lines = frame->lines, .tgid = tgid, .part = part
	};

	return bpf_map__lookup_elem(kernel->skel->maps.lines_codes, &key, sizeof(key), ret,
				    sizeof(*ret), 0);
}
