/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/library_scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include "base/cleanup.h"

#define BARREN_SLOTS 1024
/*
 * Four times LIBRARY_MAX, so that files seldom replace each other. A container sees the files of an
 * image under a device number of its own. An entry is a page, which takes no memory until it is
 * used.
 */
#define KNOWN_WAYS   4
#define KNOWN_SETS   512

/*
 * A file that was searched for the calls of a runtime. A change of its content changes its ctime.
 * The runtime follows from a name that any user can give to the file, so the result says nothing
 * about other runtimes.
 */
struct searched {
	enum runtime runtime;
	bool is_executable; /* functions that are not exported were searched too */
	dev_t device;
	ino_t inode;
	struct timespec changed;
	off_t size;
};

struct known {
	struct searched file;
	u64 used; /* when it was last used; 0: free */
	struct library_probes probes;
};

struct library_scanner {
	char *proc;
	const struct library_scan_handler *handler;
	void *ctx;
	/* Indexed by hash; a newer file replaces an older one. */
	struct searched barren[BARREN_SLOTS]; /* files without calls */
	struct known known[KNOWN_SETS][KNOWN_WAYS];
	u64 nr_uses; /* of known files */
};

struct scan {
	struct library_scanner *scanner;
	pid_t pid;
	bool has_owner;
	struct tenant owner;
	/* The mapped files that were opened. */
	u32 nr_opened;
	struct {
		u32 major, minor;
		u64 inode;
		int runtime;
	} opened[LIBRARY_FOUND_MAX - 1]; /* and the executable */
	struct library_scanned result;
};

static struct searched searched_of(const struct stat *st, enum runtime runtime, bool is_executable)
{
	return (struct searched){ .runtime = runtime,
				  .is_executable = is_executable,
				  .device = st->st_dev,
				  .inode = st->st_ino,
				  .changed = st->st_ctim,
				  .size = st->st_size };
}

static u64 hash_of(const struct searched *file)
{
	u64 value = (file->inode * 31 + file->device) * RUNTIME_NR + file->runtime;

	return value * 0x9e3779b97f4a7c15ULL >> 40;
}

static bool is_same(const struct searched *a, const struct searched *b)
{
	return a->runtime == b->runtime && a->is_executable == b->is_executable &&
	       a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool is_barren(const struct library_scanner *scanner, const struct searched *file)
{
	return is_same(&scanner->barren[hash_of(file) % BARREN_SLOTS], file);
}

/* The entry of a file, or the one that it may replace. */
static struct known *known_at(struct library_scanner *scanner, const struct searched *file)
{
	struct known *ways = scanner->known[hash_of(file) % KNOWN_SETS], *oldest = ways;

	for (u32 i = 0; i < KNOWN_WAYS; i++) {
		if (ways[i].used && is_same(&ways[i].file, file))
			return &ways[i];
		if (ways[i].used < oldest->used)
			oldest = &ways[i];
	}
	return oldest;
}

/* Searches a file for traced calls, unless the result is known. -ENOENT: it has none. */
static int examine(struct scan *scan, int fd, struct library_found *found)
{
	struct library_scanner *scanner = scan->scanner;
	struct searched file;
	struct known *known;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	file = searched_of(&st, found->runtime, found->is_executable);
	if (is_barren(scanner, &file))
		return -ENOENT;
	known = known_at(scanner, &file);
	if (known->used && is_same(&known->file, &file)) {
		known->used = ++scanner->nr_uses;
		found->probes = known->probes;
		return 0;
	}
	scan->result.nr_examined++;
	err = library_resolve(fd, found->runtime, found->is_executable, &found->probes,
			      &scan->result.nr_bytes);
	if (err == -ENOEXEC || (!err && !found->probes.nr)) {
		scanner->barren[hash_of(&file) % BARREN_SLOTS] = file;
		return -ENOENT;
	}
	if (!err)
		*known = (struct known){ file, ++scanner->nr_uses, found->probes };
	return err;
}

/* Few processes have a library, so the owner is read when the first one is found. */
static struct tenant owner_of(struct scan *scan)
{
	if (!scan->has_owner)
		scan->owner = tenant_of(scan->scanner->proc, scan->pid);
	scan->has_owner = true;
	return scan->owner;
}

/* `path` is NULL for the executable. */
static int scan_file(struct scan *scan, int fd, enum runtime runtime, const char *path)
{
	struct library_scanner *scanner = scan->scanner;
	struct library_found found = { .runtime = runtime, .is_executable = !path };
	int err = library_identify(fd, &found.id);

	if (err == 0)
		err = examine(scan, fd, &found);
	if (err < 0)
		return err;
	found.owner = owner_of(scan);
	snprintf(found.name, sizeof(found.name), "%s",
		 path ? strrchr(path, '/') + 1 : "executable");
	scanner->handler->on_found(scanner->ctx, &found, fd);
	return 0;
}

/* An error concerns only one file, so the scan continues. */
static void note_result(struct scan *scan, int err)
{
	if (err == 0 || err == -ENOENT)
		return;
	scan->result.nr_unreadable++;
	scan->result.is_partial = true;
}

/* Whether a mapped file must be opened: a process can map a file 65,000 times. */
static bool is_new(struct scan *scan, const struct mapping *mapping, int runtime)
{
	for (u32 i = 0; i < scan->nr_opened; i++)
		if (scan->opened[i].inode == mapping->inode &&
		    scan->opened[i].major == mapping->major &&
		    scan->opened[i].minor == mapping->minor && scan->opened[i].runtime == runtime)
			return false;
	if (scan->nr_opened == ARRAY_SIZE(scan->opened)) {
		note_result(scan, -E2BIG);
		return false;
	}
	scan->opened[scan->nr_opened].inode = mapping->inode;
	scan->opened[scan->nr_opened].major = mapping->major;
	scan->opened[scan->nr_opened].minor = mapping->minor;
	scan->opened[scan->nr_opened++].runtime = runtime;
	return true;
}

static int on_mapping(void *ctx, const struct mapping *mapping)
{
	struct scan *scan = ctx;
	int runtime = library_runtime_of(mapping->path);
	CLEANUP_FD int fd = -EBADF;

	scan->result.has_collective |= library_is_collective(mapping->path);
	if (runtime < 0 || !mapping->is_code || !is_new(scan, mapping, runtime))
		return 0;
	fd = library_open_mapped(scan->scanner->proc, scan->pid, mapping);
	note_result(scan, fd < 0 ? fd : scan_file(scan, fd, (enum runtime)runtime, mapping->path));
	return 0;
}

/* Kernel threads and processes that just exited have no executable. */
static void scan_executable(struct scan *scan)
{
	CLEANUP_FD int fd = library_open_executable(scan->scanner->proc, scan->pid);

	if (fd >= 0)
		note_result(scan, scan_file(scan, fd, RUNTIME_CUDA, NULL));
}

/* Many programs start, and very few contain a runtime. Returns 1 if this one does not. */
static int has_barren_executable(const struct library_scanner *scanner, pid_t pid)
{
	char path[PATH_MAX];
	struct searched file;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d/exe", scanner->proc, pid);
	if (stat(path, &st) < 0)
		return -errno;
	file = searched_of(&st, RUNTIME_CUDA, true);
	return is_barren(scanner, &file);
}

int library_scan(struct library_scanner *scanner, pid_t pid, enum library_scan_kind kind)
{
	struct scan scan = { .scanner = scanner, .pid = pid, .result.pid = pid };
	int err = kind == LIBRARY_SCAN_EXEC ? has_barren_executable(scanner, pid) : 0;

	if (err == 0) {
		scan_executable(&scan);
		err = maps_read(scanner->proc, pid, on_mapping, &scan);
	}
	scan.result.error = err < 0 ? err : 0;
	scanner->handler->on_scanned(scanner->ctx, &scan.result);
	return scan.result.error;
}

int library_scan_list(const struct library_scanner *scanner, void (*fn)(void *ctx, pid_t pid),
		      void *ctx)
{
	DIR *directory = opendir(scanner->proc);
	struct dirent *entry;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0)
			fn(ctx, pid);
	}
	closedir(directory);
	return 0;
}

int library_scanner_new(const char *proc, const struct library_scan_handler *handler, void *ctx,
			struct library_scanner **ret)
{
	CLEANUP(library_scanner_free_cleanup)
	struct library_scanner *scanner = calloc(1, sizeof(*scanner));

	if (!scanner)
		return -ENOMEM;
	scanner->handler = handler;
	scanner->ctx = ctx;
	scanner->proc = strdup(proc);
	if (!scanner->proc)
		return -ENOMEM;
	*ret = TAKE_PTR(scanner);
	return 0;
}

struct library_scanner *library_scanner_free(struct library_scanner *scanner)
{
	if (!scanner)
		return NULL;
	free(scanner->proc);
	free(scanner);
	return NULL;
}
