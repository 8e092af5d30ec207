/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/library.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "collect/library_internal.h"

/* Single-stepped functions that are named. */
#define LIBRARY_STEPPED_NAMES 5
/* Descriptors that libraries may not use: the socket, its clients, BPF maps and programs. */
#define RESERVED_FDS	      512
/* Events of mappings. */
#define RESERVED_FDS_OF_CPU   2
/* More would be of no use to LIBRARY_MAX libraries. */
#define FDS_MAX		      (LIBRARY_MAX * (1 + 2 * ELF_SYMBOLS_MAX))
/* Minimum and maximum time between two scans of a process. */
#define LOOK_MIN_NS	      NSEC_PER_SEC
#define LOOK_MAX_NS	      (64 * NSEC_PER_SEC)

int library_open_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

static bool id_equal(const struct library_id *a, const struct library_id *b)
{
	return a->device == b->device && a->inode == b->inode && a->changed_ns == b->changed_ns;
}

/*
 * A file that is being detached is attached again in another slot. A file with the names of two
 * runtimes has a slot for each.
 */
static int find_slot(const struct library_set *set, const struct library_id *id,
		     enum runtime runtime)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		const struct library *library = set->library[slot];

		if (library && library->state != LIBRARY_DETACHING && library->runtime == runtime &&
		    id_equal(&library->id, id))
			return (int)slot;
	}
	return -ENOENT;
}

/* The position of a process in the sorted array, or the position to insert it at. */
static u32 process_position(const struct library_set *set, pid_t pid)
{
	u32 low = 0, high = set->nr_processes;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (set->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct process *process_find(const struct library_set *set, pid_t pid)
{
	u32 position = process_position(set, pid);

	return position < set->nr_processes && set->processes[position].pid == pid
		       ? &set->processes[position]
		       : NULL;
}

/* Whether the list of processes has room for one more process of this owner. */
static bool has_room(const struct library_set *set, const struct tenant *owner)
{
	struct tenant_count count = {};

	for (u32 i = 0; i < set->nr_processes; i++)
		tenant_count(&count, owner, &set->processes[i].owner, 1);
	return set->nr_processes < LIBRARY_PROCESS_MAX &&
	       tenant_has_room(&count, 1, LIBRARY_PROCESS_MAX);
}

static struct process *process_add(struct library_set *set, pid_t pid, const struct tenant *owner)
{
	u32 position = process_position(set, pid);
	struct process *process = &set->processes[position];

	if (set->nr_processes == LIBRARY_PROCESS_MAX)
		return NULL;
	memmove(process + 1, process, (set->nr_processes - position) * sizeof(*process));
	set->nr_processes++;
	*process = (struct process){ .pid = pid, .owner = *owner };
	return process;
}

static void process_remove(struct library_set *set, struct process *process)
{
	u32 position = (u32)(process - set->processes);

	set->nr_processes--;
	memmove(process, process + 1, (set->nr_processes - position) * sizeof(*process));
}

/* New uses are counted before old ones are removed, so that a library in use is never detached. */
static void process_change(struct library_set *set, struct process *process,
			   const struct uses *uses)
{
	library_count_uses(set, uses, 1);
	library_count_uses(set, &process->uses, -1);
	if (process->wants_usage) {
		library_count_watch(set, uses, 1);
		library_count_watch(set, &process->uses, -1);
	}
	process->uses = *uses;
	if (uses_none(uses))
		process_remove(set, process);
}

static void process_update(struct library_set *set, pid_t pid, const struct tenant *owner,
			   const struct uses *uses)
{
	struct process *process = process_find(set, pid);

	if (!process && !uses_none(uses))
		process = process_add(set, pid, owner);
	if (process)
		process_change(set, process, uses);
	library_attach_new(set);
	library_change_extras(set);
}

void library_forget_users(struct library_set *set, u32 slot)
{
	/* Backwards, because a process without other uses is removed from the list. */
	for (u32 i = set->nr_processes; i-- > 0;) {
		struct uses uses = set->processes[i].uses;

		if (!uses_has(&uses, slot))
			continue;
		uses_remove(&uses, slot);
		process_change(set, &set->processes[i], &uses);
	}
}

void library_set_done(struct library_set *set, u32 slot, int err)
{
	struct library *library = set->library[slot];
	bool tries_again = err == 0 || library->state == LIBRARY_ATTACHING;

	library_finish(set, library, err);
	/* After a failure here, the next change of a process tries again. */
	if (tries_again)
		library_change_extras(set);
}

/*
 * The pidfd was opened before the scan, so it cannot belong to a later process with the
 * same pid.
 */
static void process_mark(struct library_set *set, pid_t pid, int pidfd, bool has_collective)
{
	struct process *process = process_find(set, pid);

	if (!process)
		return;
	if (!process->holds_gpu)
		process->holds_gpu = set->ops->holds_gpu(set->ctx, pid, pidfd);
	if (process->has_collective == has_collective)
		return;
	process->has_collective = has_collective;
	set->ops->collective(set->ctx, pidfd, has_collective);
}

static bool maps_torch(const struct library_set *set, const struct process *process)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		if (uses_has(&process->uses, slot) && set->library[slot] &&
		    set->library[slot]->runtime == RUNTIME_C10)
			return true;
	return false;
}

static bool needs_torch(const struct library_set *set, const struct process *process)
{
	return set->ops->torch && !process->torch_is_known && maps_torch(set, process);
}

/* Again with each scan, until there is an answer: once for each program. */
static void find_torch(struct library_set *set, pid_t pid)
{
	const struct process *process = process_find(set, pid);

	if (process && needs_torch(set, process))
		set->ops->torch(set->ctx, pid);
}

void library_set_know_torch(struct library_set *set, pid_t pid)
{
	struct process *process = process_find(set, pid);

	if (process)
		process->torch_is_known = true;
}

/*
 * A child has the program of its parent at the same addresses, so it is not searched again: a job
 * with many loaders would use up what its user may have searched.
 */
static void inherit_torch(struct library_set *set, pid_t parent, pid_t child, int child_pidfd)
{
	struct process *process = process_find(set, child);
	CLEANUP_FD int pidfd = -EBADF;

	if (!process || !set->ops->torch_inherited)
		return;
	pidfd = library_open_process(parent);
	if (pidfd >= 0 && set->ops->torch_inherited(set->ctx, pidfd, child_pidfd) == 0)
		process->torch_is_known = true;
}

/* Adds a file to the uses of the scan. */
static int add_found(struct library_set *set, const struct library_found *found, int fd)
{
	struct scan *scan = &set->scan;
	int slot = find_slot(set, &found->id, found->runtime);

	if (!scan->has_owner) {
		scan->owner = found->owner;
		scan->has_room = has_room(set, &scan->owner);
		scan->has_owner = true;
	}
	/* A process that does not fit in the list would never detach the library. */
	if (!scan->has_room) {
		scan->is_excess = true;
		return 0;
	}
	if (slot < 0) {
		struct library library = { .id = found->id,
					   .nr_fds = 1 + set->ops->nr_fds(set->ctx, &found->probes),
					   .runtime = found->runtime,
					   .owner = scan->owner,
					   .is_executable = found->is_executable,
					   .probes = found->probes };

		memcpy(library.name, found->name, sizeof(library.name));
		slot = library_add(set, fd, &library);
	}
	if (slot < 0)
		return slot;
	uses_add(&scan->uses, (u32)slot);
	return 0;
}

void library_set_begin(struct library_set *set, pid_t pid, int pidfd)
{
	const struct process *known = process_find(set, pid);

	set->scan = (struct scan){
		.pid = pid,
		.pidfd = pidfd,
		.owner = known ? known->owner : (struct tenant){},
		.has_owner = known,
		.has_room = known,
	};
}

void library_set_found(struct library_set *set, const struct library_found *found, int fd)
{
	int err = add_found(set, found, fd);

	if (err == 0 || err == -ENOENT)
		return;
	set->counts.nr_unreadable++;
	set->scan.is_partial = true;
}

void library_set_scanned(struct library_set *set, const struct library_scanned *scanned)
{
	struct scan *scan = &set->scan;
	const struct process *known = process_find(set, scan->pid);

	set->counts.nr_examined += scanned->nr_examined;
	set->counts.nr_unreadable += scanned->nr_unreadable;
	/* Files that could not be read are assumed to be unchanged. */
	if (!scanned->error && (scanned->is_partial || scan->is_partial) && known)
		uses_merge(&scan->uses, &known->uses);
	if (scanned->error < 0)
		scan->uses = (struct uses){};
	set->counts.nr_processes_excess += scan->is_excess;
	process_update(set, scan->pid, &scan->owner, &scan->uses);
	process_mark(set, scan->pid, scan->pidfd, scanned->has_collective);
	find_torch(set, scan->pid);
}

static void on_found(void *ctx, const struct library_found *found, int fd)
{
	library_set_found(ctx, found, fd);
}

static void on_scanned(void *ctx, const struct library_scanned *scanned)
{
	library_set_scanned(ctx, scanned);
}

static int scan_now(struct library_set *set, pid_t pid, enum library_scan_kind kind)
{
	CLEANUP_FD int pidfd = -EBADF;

	if (set->ops->scan) {
		set->ops->scan(set->ctx, pid, kind);
		return 0;
	}
	pidfd = library_open_process(pid);
	library_set_begin(set, pid, pidfd);
	return library_scan(set->scanner, pid, kind);
}

int library_set_scan_process(struct library_set *set, pid_t pid)
{
	return scan_now(set, pid, LIBRARY_SCAN_MAPS);
}

void library_set_look_again(struct library_set *set, u64 now_ns)
{
	/* Backwards, because a scan may remove its own process from the list. */
	for (u32 i = set->nr_processes; i-- > 0;) {
		struct process *process = &set->processes[i];
		bool is_new = !process->look_after_ns;

		if (now_ns < process->look_ns ||
		    (process->has_collective && process->holds_gpu && !needs_torch(set, process)))
			continue;
		process->look_after_ns = is_new ? LOOK_MIN_NS : 2 * process->look_after_ns;
		if (process->look_after_ns > LOOK_MAX_NS)
			process->look_after_ns = LOOK_MAX_NS;
		process->look_ns = now_ns + process->look_after_ns;
		if (!is_new)
			(void)library_set_scan_process(set, process->pid);
	}
}

int library_set_exec_process(struct library_set *set, pid_t pid)
{
	struct process *process = process_find(set, pid);

	if (!process)
		return scan_now(set, pid, LIBRARY_SCAN_EXEC);
	process->holds_gpu = process->torch_is_known = false;
	process->look_ns = process->look_after_ns = 0;
	return scan_now(set, pid, LIBRARY_SCAN_MAPS);
}

static void scan_unknown(void *ctx, pid_t pid)
{
	struct library_set *set = ctx;

	if (!process_find(set, pid))
		(void)library_set_scan_process(set, pid);
}

int library_set_scan_all(struct library_set *set)
{
	/* Backwards, because a scan may remove its own process from the list. */
	for (u32 i = set->nr_processes; i-- > 0;)
		(void)library_set_scan_process(set, set->processes[i].pid);
	if (!set->ops->scan_all)
		return library_scan_list(set->scanner, scan_unknown, set);
	set->ops->scan_all(set->ctx);
	return 0;
}

int library_set_fork_process(struct library_set *set, pid_t parent, pid_t child)
{
	const struct process *process = process_find(set, parent);
	CLEANUP_FD int pidfd = -EBADF;
	bool has_collective, torch_is_known;
	struct tenant owner;
	struct uses uses;

	if (!process)
		return 0;
	owner = process->owner;
	if (!process_find(set, child) && !has_room(set, &owner)) {
		set->counts.nr_processes_excess++;
		return -ENOSPC;
	}
	uses = process->uses;
	has_collective = process->has_collective;
	torch_is_known = process->torch_is_known;
	process_update(set, child, &owner, &uses);
	pidfd = library_open_process(child);
	process_mark(set, child, pidfd, has_collective);
	if (torch_is_known)
		inherit_torch(set, parent, child, pidfd);
	return 0;
}

int library_set_want_usage(struct library_set *set, pid_t pid, bool wanted)
{
	struct process *process = process_find(set, pid);

	if (!process || (wanted && !maps_torch(set, process)))
		return -ENOENT;
	if (process->wants_usage != wanted)
		library_count_watch(set, &process->uses, wanted ? 1 : -1);
	process->wants_usage = wanted;
	library_change_extras(set);
	return 0;
}

static bool reports_usage(const struct library *library)
{
	for (u32 i = 0; i < library->probes.nr; i++)
		if (call_rows[library->probes.probe[i].call].kind == CALL_KIND_USAGE)
			return true;
	return false;
}

int library_set_has_usage(const struct library_set *set, pid_t pid)
{
	const struct process *process = process_find(set, pid);
	int result = -ENOENT;

	for (u32 slot = 0; process && slot < LIBRARY_MAX; slot++) {
		const struct library *library = set->library[slot];

		if (!library || library->runtime != RUNTIME_C10 || !uses_has(&process->uses, slot))
			continue;
		if (!reports_usage(library)) {
			result = result == 1 ? 1 : -ENODATA;
			continue;
		}
		if (library->state != LIBRARY_ATTACHED)
			return 0;
		if (!library->has_extra || !process->wants_usage)
			return -EIO;
		result = 1;
	}
	return result;
}

bool library_set_has_process(const struct library_set *set, pid_t pid)
{
	return process_find(set, pid);
}

void library_set_forget_process(struct library_set *set, pid_t pid)
{
	if (process_find(set, pid))
		process_update(set, pid, &(struct tenant){}, &(struct uses){});
}

/* Adds a name to the list, unless it is there or there is no room. */
static void name_stepped(const char *name, struct library_counts *counts)
{
	size_t used = strlen(counts->stepped), length = strlen(name);
	const char *known = strstr(counts->stepped, name);

	if (known && (!known[length] || known[length] == ','))
		return;
	if (used + length + 3 <= sizeof(counts->stepped))
		snprintf(counts->stepped + used, sizeof(counts->stepped) - used, "%s%s",
			 used ? ", " : "", name);
}

static void count_probes(const struct library *library, struct library_counts *counts)
{
	counts->nr_libraries++;
	counts->nr_probes += library->probes.nr;
	for (u32 i = 0; i < library->probes.nr; i++) {
		const struct library_probe *probe = &library->probes.probe[i];

		if (!probe->is_stepped)
			continue;
		if (counts->nr_stepped++ < LIBRARY_STEPPED_NAMES)
			name_stepped(library_symbol(probe->call), counts);
	}
}

static bool is_probed(const struct library *library)
{
	return library->state == LIBRARY_ATTACHED || library->state == LIBRARY_CHANGING;
}

struct library_counts library_set_count(const struct library_set *set)
{
	struct library_counts counts = set->counts;

	counts.nr_processes = set->nr_processes;
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		if (set->library[slot] && is_probed(set->library[slot]))
			count_probes(set->library[slot], &counts);
	return counts;
}

u32 library_set_nr_processes(const struct library_set *set)
{
	return set->nr_processes;
}

const struct library *library_set_at(const struct library_set *set, u32 slot)
{
	return slot < LIBRARY_MAX ? set->library[slot] : NULL;
}

static u32 max_fds(void)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	u64 reserved = RESERVED_FDS + RESERVED_FDS_OF_CPU * (u64)(nr_cpus > 0 ? nr_cpus : 1);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FDS_MAX + reserved)
		return FDS_MAX;
	return limit.rlim_cur > reserved ? (u32)(limit.rlim_cur - reserved) : 0;
}

int library_set_new(const char *proc, const struct library_ops *ops, void *ctx,
		    struct library_set **ret)
{
	static const struct library_scan_handler handler = { on_found, on_scanned };
	CLEANUP(library_set_free_cleanup) struct library_set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return -ENOMEM;
	set->ops = ops;
	set->ctx = ctx;
	set->max_fds = max_fds();
	set->processes = calloc(LIBRARY_PROCESS_MAX, sizeof(*set->processes));
	if (!set->processes)
		return -ENOMEM;
	err = library_scanner_new(proc, &handler, set, &set->scanner);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(set);
	return 0;
}

struct library_set *library_set_free(struct library_set *set)
{
	if (!set)
		return NULL;
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		if (set->library[slot])
			library_remove(set, set->library[slot]);
	free(set->processes);
	library_scanner_free(set->scanner);
	free(set);
	return NULL;
}
