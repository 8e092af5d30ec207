/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

static const char *const thread_programs[THREAD_PROGRAMS_NR] = { "thread_switch", "thread_waking",
								 "thread_fork",	  "thread_exec",
								 "thread_exit",	  "thread_reads",
								 "comms_exec",	  "comms_exit" };

int kernel_attach_threads(struct kernel *kernel)
{
	for (u32 i = 0; i < THREAD_PROGRAMS_NR; i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(kernel->skel->obj, thread_programs[i]);
		struct bpf_link *link;

		/* Attached by an earlier attempt that failed later, or left out. */
		if (kernel->threads[i] || !prog || bpf_program__fd(prog) < 0)
			continue;
		link = bpf_program__attach(prog);
		if (!link)
			return -errno;
		kernel->threads[i] = link;
	}
	return 0;
}

void kernel_close_signals(struct kernel *kernel)
{
	for (u32 i = 0; i < THREAD_PROGRAMS_NR; i++)
		bpf_link__destroy(kernel->threads[i]);
	ring_buffer__free(kernel->events);
	free(kernel->gone.items);
}

static void forget_sequences(struct kernel *kernel, const struct process_state *process)
{
	struct sequence_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };
	struct listed_process gone = { .uid = process->uid, .group = process->group };

	for (; key.comm < COMMS_MAX; key.comm++)
		if (process->sequences >> key.comm & 1 &&
		    bpf_map__delete_elem(kernel->skel->maps.sequences, &key, sizeof(key), 0) == 0)
			gone.nr[TENANT_SEQUENCES]++;
	kernel_release_entries(kernel, &gone);
}

/* Deletes the data of an exited process outside of its task storage. */
static void forget_process(struct kernel *kernel, const struct process_state *process)
{
	struct hist_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };

	for (key.kind = 0; key.kind < HIST_KIND_NR; key.kind++)
		bpf_map__delete_elem(kernel->skel->maps.hists, &key, sizeof(key), 0);
	forget_sequences(kernel, process);
	/*
	 * Few processes have more entries, and deleting them is a walk. On -ENOMEM, a sweep does it
	 * later.
	 */
	if (process->task.has_gpu || process->launcher_tid || process->oom.nr)
		kernel_note_gone(kernel, process);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct kernel *kernel = ctx;
	const struct event *event = data;

	if (size < sizeof(*event))
		return 0;
	if (event->kind == EVENT_GPU) {
		/* Its first use of a GPU: the process may have inherited the open device. */
		(void)kernel_look_at_files(kernel, (pid_t)event->tgid);
		return 0;
	}
	if (event->kind == EVENT_LAUNCHER) {
		kernel->loaders_wanted = true;
		return 0;
	}
	kernel->on_event(kernel->event_ctx, event);
	if (event->kind == EVENT_EXIT && size >= sizeof(struct exit_event))
		forget_process(kernel, &((const struct exit_event *)data)->process);
	return 0;
}

int kernel_open_events(struct kernel *kernel, bool timeline, kernel_event_fn on_event, void *ctx)
{
	kernel->on_event = on_event;
	kernel->event_ctx = ctx;
	kernel_set_timeline(kernel, timeline);
	kernel->events =
		ring_buffer__new(bpf_map__fd(kernel->skel->maps.events), on_record, kernel, NULL);
	if (!kernel->events)
		return -errno;
	return ring_buffer__add(kernel->events, bpf_map__fd(kernel->skel->maps.reports), on_record,
				kernel);
}

void kernel_set_timeline(struct kernel *kernel, bool timeline)
{
	kernel->skel->bss->timeline_wanted = timeline;
}

int kernel_events_fd(const struct kernel *kernel)
{
	return ring_buffer__epoll_fd(kernel->events);
}

/*
 * The program writes nothing, so one read runs it on all tasks. If that fails, a loader is found
 * when it delivers data.
 */
static void find_loaders(struct kernel *kernel)
{
	CLEANUP_FD int fd = kernel_open_iterator(kernel->skel->progs.loaders_find, NULL);
	char byte;

	/* The kernel ends a read after a million tasks. */
	while (fd >= 0 && read(fd, &byte, sizeof(byte)) < 0 && errno == EAGAIN)
		;
}

int kernel_read_events(struct kernel *kernel)
{
	int err = ring_buffer__consume(kernel->events);

	if (kernel->loaders_wanted)
		find_loaders(kernel);
	kernel->loaders_wanted = false;
	kernel_forget_gone(kernel);
	return err;
}

static u64 nr_runs_missed(const struct kernel *kernel)
{
	u64 nr = 0;

	for (u32 i = 0; i < THREAD_PROGRAMS_NR; i++) {
		struct bpf_prog_info info = {};
		u32 size = sizeof(info);
		struct bpf_program *prog =
			bpf_object__find_program_by_name(kernel->skel->obj, thread_programs[i]);

		if (prog && !bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			nr += info.recursion_misses;
	}
	return nr;
}

struct kernel_drops kernel_drops(const struct kernel *kernel)
{
	return (struct kernel_drops){
		.nr_events = kernel->skel->bss->nr_dropped_events,
		.nr_processes = kernel->skel->bss->nr_dropped_processes +
				kernel->skel->bss->nr_capped_processes,
		.nr_frames = kernel->skel->bss->nr_dropped_frames,
		.nr_ledger = kernel->skel->bss->nr_dropped_ledger,
		.nr_launchers = kernel->skel->bss->nr_dropped_consumers,
		.nr_samples = kernel->skel->bss->nr_dropped_samples,
		.nr_bpf_program_runs = nr_runs_missed(kernel),
		.nr_comms = kernel->skel->bss->nr_dropped_comms,
		.nr_memory = kernel->skel->bss->nr_dropped_memory,
		.nr_observations = kernel->skel->bss->nr_dropped_observations,
		.nr_torn = kernel->nr_torn,
		.nr_stacks = kernel->skel->bss->nr_dropped_stacks,
		.nr_kernels = kernel->skel->bss->nr_dropped_kernels,
	};
}

void kernel_set_phase_config(struct kernel *kernel, const struct phase_config *config)
{
	kernel->skel->data->phase_config = *config;
}

void kernel_set_gpu_utilization(struct kernel *kernel, u32 gpu, u32 percent)
{
	if (gpu < GPU_MAX)
		kernel->skel->bss->gpu_utilization[gpu] = (u8)((percent < 100 ? percent : 100) + 1);
}

void kernel_forget_gpu_utilization(struct kernel *kernel, u32 gpu)
{
	if (gpu < GPU_MAX)
		kernel->skel->bss->gpu_utilization[gpu] = 0;
}

void kernel_set_gpu_node(struct kernel *kernel, u32 gpu, u32 node)
{
	if (gpu < GPU_MAX && node < UINT8_MAX)
		kernel->skel->bss->gpu_node[gpu] = (u8)(node + 1);
}

int kernel_set_collective(struct kernel *kernel, int pidfd, bool is_mapped)
{
	const struct bpf_map *map = kernel->skel->maps.collective_mappings;
	u32 value = 1;

	if (!is_mapped)
		return bpf_map__delete_elem(map, &pidfd, sizeof(pidfd), 0);
	return bpf_map__update_elem(map, &pidfd, sizeof(pidfd), &value, sizeof(value), BPF_ANY);
}

int kernel_set_python(struct kernel *kernel, int pidfd, const struct oom_python *python)
{
	return bpf_map__update_elem(kernel->skel->maps.pythons, &pidfd, sizeof(pidfd), python,
				    sizeof(*python), BPF_ANY);
}

int kernel_read_python(const struct kernel *kernel, int pidfd, struct oom_python *ret)
{
	return bpf_map__lookup_elem(kernel->skel->maps.pythons, &pidfd, sizeof(pidfd), ret,
				    sizeof(*ret), 0);
}

int kernel_copy_python(struct kernel *kernel, int parent, int child)
{
	struct oom_python python;
	int err = kernel_read_python(kernel, parent, &python);

	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return err;
	/* The child begins with a budget of its own, and none of its threads reads its stack. */
	return kernel_set_python(
		kernel, child,
		&(struct oom_python){ .runtime = python.runtime, .offsets = python.offsets });
}

int kernel_take_oom_frame(struct kernel *kernel, const struct process_state *process, u32 index,
			  struct oom_frame *ret)
{
	const struct bpf_map *map = kernel->skel->maps.oom_frames;
	struct oom_frame_key key = {
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.index = index,
	};
	int err = bpf_map__lookup_and_delete_elem(map, &key, sizeof(key), ret, sizeof(*ret), 0);

	if (err < 0)
		return err;
	/* A frame of a later error belongs to the next state of the process. */
	if (ret->time_ns > process->oom.time_ns &&
	    bpf_map__update_elem(map, &key, sizeof(key), ret, sizeof(*ret), BPF_NOEXIST) == 0)
		return -ENOENT;
	return ret->time_ns == process->oom.time_ns ? 0 : -ESTALE;
}

void kernel_release_oom_frames(struct kernel *kernel, const struct process_state *process, u32 nr)
{
	kernel_release_entries(kernel, &(struct listed_process){ .uid = process->uid,
								 .group = process->group,
								 .nr[TENANT_STACKS] = (s32)nr });
}

int kernel_read_hist(struct kernel *kernel, const struct process_state *process, u32 kind,
		     struct hist *ret)
{
	struct hist_key key = {
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.kind = kind,
	};
	struct shared_hist shared;
	int err = bpf_map__lookup_elem(kernel->skel->maps.hists, &key, sizeof(key), &shared,
				       sizeof(shared), 0);

	if (err < 0)
		return err;
	*ret = hist_of_shared(&shared);
	return 0;
}
