/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Probes on the calls of runtime libraries. One multi-uprobe link attaches a program to all calls
 * of a kind. Kernels before 6.6 have no such links: there, each call is a perf event
 * (kernel_opener.c).
 */
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
	[CALL_KIND_DEVICE_ID] = { "call_enter", "device_id_return" },
	[CALL_KIND_CTX_NEW] = { "call_enter", "context_new_return" },
	[CALL_KIND_CTX_SET] = { "call_enter", "context_set_return" },
	[CALL_KIND_CTX_FREE] = { "context_free_enter", "context_free_return" },
	[CALL_KIND_COLLECTIVE] = { "collective_enter", "collective_return" },
	[CALL_KIND_COMM_INIT] = { "comm_enter", "comm_return" },
	[CALL_KIND_COMM_RANK] = { "call_enter", "comm_told_return" },
	[CALL_KIND_COMM_SIZE] = { "call_enter", "comm_told_return" },
	[CALL_KIND_SCOPE_ENTER] = { "call_enter", "scope_return" },
	[CALL_KIND_SCOPE_LEAVE] = { .enter = "scope_leave" },
	[CALL_KIND_OOM] = { .enter = "oom_enter" },
	[CALL_KIND_USAGE] = { .enter = "usage_enter" },
	[CALL_KIND_KERNEL] = { "call_enter", "kernel_return" },
	[CALL_KIND_COMM_FREE] = { .enter = "comm_free_enter" },
	[CALL_KIND_GROUP_START] = { .enter = "group_start_enter" },
	[CALL_KIND_GROUP_END] = { "call_enter", "group_end_return" },
};

static void detach_links(struct call_links *links)
{
	bpf_link__destroy(links->all);
	for (u32 i = 0; i < links->nr; i++)
		close(links->each[i]);
	free(links->each);
	*links = (struct call_links){};
}

static void detach_entries(struct library_links *links, u32 kind)
{
	detach_links(&links->enter[kind]);
	if (links->session[kind])
		close(links->session[kind] - 1);
	links->session[kind] = 0;
}

static void detach_slot(struct kernel *kernel, u32 slot)
{
	struct library_links *links = &kernel->libraries[slot];

	for (u32 kind = 0; kind < CALL_KIND_NR; kind++) {
		detach_entries(links, kind);
		detach_links(&links->leave[kind]);
	}
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

static int attach_all(const struct bpf_program *prog, const struct library *library,
		      const struct places *places, bool returns, struct call_links *ret)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = places->offsets,
		    .cookies = places->cookies, .cnt = places->nr, .retprobe = returns);

	ret->all = bpf_program__attach_uprobe_multi(prog, -1, library->path, NULL, &opts);
	return ret->all ? 0 : -errno;
}

/* Returns the descriptor of the link, which keeps the perf event. */
static int attach_one(struct kernel *kernel, const struct bpf_program *prog, int file,
		      const struct places *places, u32 i, bool returns)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = places->cookies[i]);
	CLEANUP_FD int event = opener_open(kernel->opener, file, places->offsets[i], returns);

	if (event < 0)
		return event;
	return bpf_link_create(bpf_program__fd(prog), event, BPF_PERF_EVENT, &opts);
}

static int attach_each(struct kernel *kernel, const struct bpf_program *prog, int file,
		       const struct places *places, bool returns, struct call_links *ret)
{
	ret->each = calloc(places->nr, sizeof(*ret->each));
	if (!ret->each)
		return -ENOMEM;
	for (u32 i = 0; i < places->nr; i++) {
		int link = attach_one(kernel, prog, file, places, i, returns);

		if (link < 0)
			return link;
		ret->each[ret->nr++] = link;
	}
	return 0;
}

static bool is_loaded(const struct kernel *kernel, const char *name)
{
	const struct bpf_program *prog =
		name ? bpf_object__find_program_by_name(kernel->skel->obj, name) : NULL;

	return !name || bpf_program__fd(prog) >= 0;
}

/* A kind whose feature is left out: an entry without its return would stay open. */
static bool is_left_out(const struct kernel *kernel, u32 kind)
{
	return !is_loaded(kernel, programs[kind].enter) || !is_loaded(kernel, programs[kind].leave);
}

/* Attaches to all calls of one kind in a library, at their entries or returns. */
static int attach_kind(struct kernel *kernel, const struct library *library, u32 kind,
		       const char *name, bool returns, struct call_links *ret)
{
	struct bpf_program *prog;
	struct places places;

	if (!name || is_left_out(kernel, kind))
		return 0;
	find_places(library, kind, &places);
	if (!places.nr)
		return 0;
	prog = bpf_object__find_program_by_name(kernel->skel->obj, name);
	if (!prog)
		return -ENOENT;
	return kernel->opener ? attach_each(kernel, prog, library->fd, &places, returns, ret)
			      : attach_all(prog, library, &places, returns, ret);
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

static int attach_entries(struct kernel *kernel, const struct library *library, u32 kind)
{
	struct library_links *links = &kernel->libraries[library->slot];

	if (programs[kind].session && kernel_has(kernel, FEATURE_LAUNCH_TIMES))
		return attach_session(kernel, library, kind, &links->session[kind]);
	return attach_kind(kernel, library, kind, programs[kind].enter, false, &links->enter[kind]);
}

int kernel_set_extra(struct kernel *kernel, const struct library *library)
{
	u32 kind = library_extra(library->runtime);

	detach_entries(&kernel->libraries[library->slot], kind);
	return library->has_extra ? attach_entries(kernel, library, kind) : 0;
}

/* Calls count although they may not be probed at all times: library_extra(). */
u32 kernel_library_fds(const struct kernel *kernel, const struct library_probes *probes)
{
	u32 nr_calls[CALL_KIND_NR] = {}, nr = 0;

	for (u32 i = 0; i < probes->nr; i++)
		nr_calls[call_rows[probes->probe[i].call].kind]++;
	for (u32 kind = 0; kind < CALL_KIND_NR; kind++) {
		u32 nr_links = kernel->opener ? nr_calls[kind] : nr_calls[kind] > 0;

		nr += nr_links * (1 + (programs[kind].leave != NULL));
	}
	return nr;
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
		err = kind == library_extra(library->runtime)
			      ? kernel_set_extra(kernel, library)
			      : attach_entries(kernel, library, kind);
	if (err < 0)
		detach_slot(kernel, library->slot);
	return err;
}

void kernel_detach_library(struct kernel *kernel, const struct library *library)
{
	detach_slot(kernel, library->slot);
}

void kernel_close_probes(struct kernel *kernel)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		detach_slot(kernel, slot);
	kernel->opener = opener_free(kernel->opener);
}
