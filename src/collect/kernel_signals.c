/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

/* The BPF programs of each kind of call. A session replaces the others on kernels that have it. */
static const struct {
	const char *enter;
	const char *leave;
	const char *session;
} programs[CALL_KIND_NR] = {
	[CALL_KIND_LAUNCH] = { .enter = "launch_enter", .session = "launch_session" },
	[CALL_KIND_COPY] = { .enter = "copy_enter", .session = "copy_session" },
	[CALL_KIND_COPY_WAIT] = { "copy_wait_enter", "copy_wait_return" },
	[CALL_KIND_WORK] = { .enter = "work_enter", .session = "work_session" },
	[CALL_KIND_SYNC] = { "sync_enter", "sync_return" },
	[CALL_KIND_QUERY] = { "query_enter", "query_return" },
	[CALL_KIND_EVENT] = { .enter = "event_enter" },
	[CALL_KIND_WAIT] = { .enter = "stream_wait_enter" },
	[CALL_KIND_CAPTURE] = { .enter = "capture_enter" },
	[CALL_KIND_CAPTURE_END] = { .enter = "capture_end_enter" },
	[CALL_KIND_ALLOC] = { "call_enter", "alloc_return" },
	[CALL_KIND_ALLOC_LATE] = { "alloc_late_enter", "alloc_return" },
	[CALL_KIND_FREE] = { "free_enter", "free_return" },
	[CALL_KIND_MEM_HOLD] = { "call_enter", "hold_return" },
	[CALL_KIND_MEM_MAP] = { "call_enter", "map_return" },
	[CALL_KIND_MEM_UNMAP] = { .enter = "unmap_enter" },
	[CALL_KIND_DEVICE_SET] = { "call_enter", "device_return" },
	[CALL_KIND_CTX_NEW] = { "call_enter", "context_new_return" },
	[CALL_KIND_CTX_SET] = { "call_enter", "context_set_return" },
	[CALL_KIND_CTX_FREE] = { "context_free_enter", "context_free_return" },
	[CALL_KIND_COLLECTIVE] = { "collective_enter", "collective_return" },
	[CALL_KIND_COMM_INIT] = { "comm_enter", "comm_return" },
	[CALL_KIND_COMM_RANK] = { "call_enter", "comm_told_return" },
	[CALL_KIND_COMM_SIZE] = { "call_enter", "comm_told_return" },
	[CALL_KIND_SCOPE_ENTER] = { "call_enter", "scope_return" },
	[CALL_KIND_SCOPE_LEAVE] = { .enter = "scope_leave" },
	[CALL_KIND_COMM_FREE] = { .enter = "comm_free_enter" },
	[CALL_KIND_GROUP_START] = { .enter = "group_start_enter" },
	[CALL_KIND_GROUP_END] = { "call_enter", "group_end_return" },
};

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

		if (kernel->threads[i])
			continue; /* attached by an earlier attempt that failed later */
		link = prog ? bpf_program__attach(prog) : NULL;
		if (!link)
			return -errno;
		kernel->threads[i] = link;
	}
	return 0;
}

static void detach_links(struct call_links *links)
{
	for (u32 i = 0; i < links->nr; i++)
		bpf_link__destroy(links->link[i]);
	free(links->link);
	*links = (struct call_links){};
}

static void detach_slot(struct kernel *kernel, u32 slot)
{
	struct library_links *links = &kernel->libraries[slot];

	for (u32 kind = 0; kind < CALL_KIND_NR; kind++) {
		detach_links(&links->enter[kind]);
		detach_links(&links->leave[kind]);
		if (links->session[kind])
			close(links->session[kind] - 1);
	}
	memset(links, 0, sizeof(*links));
}

/* The offsets of a library's calls of one kind, and the cookie of each for the BPF programs. */
struct places {
	unsigned long offsets[ELF_SYMBOLS_MAX];
	__u64 cookies[ELF_SYMBOLS_MAX];
	u32 nr;
};

static void find_places(const struct library *library, u32 kind, struct places *ret)
{
	ret->nr = 0;
	for (u32 i = 0; i < library->probes.nr; i++) {
		const struct library_probe *probe = &library->probes.probe[i];

		if (call_rows[probe->call].kind != kind)
			continue;
		ret->offsets[ret->nr] = probe->offset;
		ret->cookies[ret->nr++] = probe->call;
	}
}

static struct bpf_link *attach_all(const struct bpf_program *prog, const struct library *library,
				   const struct places *places, bool returns)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = places->offsets,
		    .cookies = places->cookies, .cnt = places->nr, .retprobe = returns);

	return bpf_program__attach_uprobe_multi(prog, -1, library->path, NULL, &opts);
}

static struct bpf_link *attach_one(const struct bpf_program *prog, const struct library *library,
				   const struct places *places, u32 i, bool returns)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = places->cookies[i], .retprobe = returns,
		    .attach_mode = PROBE_ATTACH_MODE_LINK);

	return bpf_program__attach_uprobe_opts(prog, -1, library->path, places->offsets[i], &opts);
}

/* Attaches to all calls of one kind in a library, at their entries or returns. */
static int attach_kind(struct kernel *kernel, const struct library *library, u32 kind,
		       const char *name, bool returns, struct call_links *ret)
{
	struct bpf_program *prog;
	struct places places;
	u32 nr;

	if (!name)
		return 0;
	find_places(library, kind, &places);
	if (!places.nr)
		return 0;
	prog = bpf_object__find_program_by_name(kernel->skel->obj, name);
	if (!prog)
		return -ENOENT;
	nr = kernel->has_multi_uprobes ? 1 : places.nr;
	ret->link = calloc(nr, sizeof(struct bpf_link *));
	if (!ret->link)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		ret->link[i] = kernel->has_multi_uprobes
				       ? attach_all(prog, library, &places, returns)
				       : attach_one(prog, library, &places, i, returns);
		if (!ret->link[i])
			return -errno;
		ret->nr++;
	}
	return 0;
}

/* Attaches to entry and return at once. Uses the system call, for libbpf before 1.6. */
static int attach_session(struct kernel *kernel, const struct library *library, u32 kind, int *ret)
{
	struct bpf_program *prog =
		bpf_object__find_program_by_name(kernel->skel->obj, programs[kind].session);
	struct places places;
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = prog ? (u32)bpf_program__fd(prog) : 0,
			.attach_type = kernel->session_type,
			.uprobe_multi = {
				.path = (u64)(uintptr_t)library->path,
				.offsets = (u64)(uintptr_t)places.offsets,
				.cookies = (u64)(uintptr_t)places.cookies,
			},
		},
	};
	int fd;

	if (!prog)
		return -ENOENT;
	find_places(library, kind, &places);
	if (!places.nr)
		return 0;
	attr.link_create.uprobe_multi.cnt = places.nr;
	fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	*ret = fd + 1;
	return 0;
}

static void detach_launches(struct library_links *links)
{
	detach_links(&links->enter[CALL_KIND_LAUNCH]);
	if (links->session[CALL_KIND_LAUNCH])
		close(links->session[CALL_KIND_LAUNCH] - 1);
	links->session[CALL_KIND_LAUNCH] = 0;
}

static int attach_entries(struct kernel *kernel, const struct library *library, u32 kind)
{
	struct library_links *links = &kernel->libraries[library->slot];

	if (programs[kind].session && kernel->session_type)
		return attach_session(kernel, library, kind, &links->session[kind]);
	return attach_kind(kernel, library, kind, programs[kind].enter, false, &links->enter[kind]);
}

int kernel_set_launches(struct kernel *kernel, const struct library *library)
{
	detach_launches(&kernel->libraries[library->slot]);
	return library->launches_below ? 0 : attach_entries(kernel, library, CALL_KIND_LAUNCH);
}

/* Attaches returns first: a call whose return is not traced yet would stay open. */
int kernel_attach_library(struct kernel *kernel, const struct library *library)
{
	struct library_links *links = &kernel->libraries[library->slot];
	int err = 0;

	for (u32 kind = 0; kind < CALL_KIND_NR && err == 0; kind++)
		err = attach_kind(kernel, library, kind, programs[kind].leave, true,
				  &links->leave[kind]);
	for (u32 kind = 0; kind < CALL_KIND_NR && err == 0; kind++)
		err = kind == CALL_KIND_LAUNCH ? kernel_set_launches(kernel, library)
					       : attach_entries(kernel, library, kind);
	if (err < 0)
		detach_slot(kernel, library->slot);
	return err;
}

void kernel_detach_library(struct kernel *kernel, const struct library *library)
{
	detach_slot(kernel, library->slot);
}

void kernel_close_signals(struct kernel *kernel)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		detach_slot(kernel, slot);
	for (u32 i = 0; i < THREAD_PROGRAMS_NR; i++)
		bpf_link__destroy(kernel->threads[i]);
	ring_buffer__free(kernel->events);
	free(kernel->gone.keys);
}

/* Deletes the data of an exited process outside of its task storage. */
static void forget_process(struct kernel *kernel, const struct process_state *process)
{
	struct hist_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };

	for (key.kind = 0; key.kind < HIST_KIND_NR; key.kind++)
		bpf_map__delete_elem(kernel->skel->maps.hists, &key, sizeof(key), 0);
	/*
	 * Few processes have more entries, and deleting them is a walk. On -ENOMEM, a sweep does it
	 * later.
	 */
	if (process->task.has_gpu || process->launcher_tid)
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
		if (size >= sizeof(struct gpu_event))
			kernel_learn_gpus(kernel, data);
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
	return kernel->events ? 0 : -errno;
}

void kernel_set_timeline(struct kernel *kernel, bool timeline)
{
	kernel->skel->bss->timeline_wanted = timeline;
}

int kernel_events_fd(const struct kernel *kernel)
{
	return ring_buffer__epoll_fd(kernel->events);
}

int kernel_read_events(struct kernel *kernel)
{
	int err = ring_buffer__consume(kernel->events);

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
		.nr_samples = kernel->skel->bss->nr_dropped_samples,
		.nr_bpf_program_runs = nr_runs_missed(kernel),
		.nr_comms = kernel->skel->bss->nr_dropped_comms,
		.nr_memory = kernel->skel->bss->nr_dropped_memory,
		.nr_observations = kernel->skel->bss->nr_dropped_observations,
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

int kernel_read_hist(struct kernel *kernel, const struct process_state *process, u32 kind,
		     struct hist *ret)
{
	struct hist_key key = {
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.kind = kind,
	};
	int nr_cpus = libbpf_num_possible_cpus(), err;
	CLEANUP_FREE struct hist *each = NULL;

	if (nr_cpus < 0)
		return nr_cpus;
	each = calloc((size_t)nr_cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	err = bpf_map__lookup_elem(kernel->skel->maps.hists, &key, sizeof(key), each,
				   (size_t)nr_cpus * sizeof(*each), 0);
	if (err < 0)
		return err;
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		hist_add(ret, &each[cpu]);
	return 0;
}
