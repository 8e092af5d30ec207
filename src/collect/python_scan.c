/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/python_scan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/library_file.h"

/* Addresses of a process are below this one. */
#define ADDRESS_MAX (1ULL << 56)
/* Files that are opened. A process can have a file of any name mapped. */
#define FILES_MAX   8

struct scan {
	const char *proc;
	pid_t pid;
	u64 exe_inode;
	u32 nr_files;
	struct python_cost *cost;
	struct mapping file; /* the file of the interpreter */
	u64 at;		     /* the runtime in the file */
	struct python_scan result;
	int err;
};

struct file {
	int fd;
	struct python_cost *cost;
};

static ssize_t read_file(void *ctx, void *buffer, size_t size, u64 offset)
{
	const struct file *file = ctx;
	ssize_t n = file_read_at(file->fd, (off_t)offset, buffer, size);

	file->cost->nr_bytes += n > 0 ? (u64)n : 0;
	return n;
}

/* Where the runtime and the version are in the file; 0: no symbol. */
static int find_symbols(const struct elf_source *source, u64 *ret_runtime, u64 *ret_version)
{
	static const char *const names[] = { "Py_Version", "_PyRuntime" };
	struct elf_query query = { .names = names, .nr_names = ARRAY_SIZE(names), .of_data = true };
	struct elf_symbols found;
	int err = elf_find_symbols(source, &query, &found);

	*ret_runtime = *ret_version = 0;
	if (err < 0)
		return err;
	for (u32 i = 0; i < found.nr; i++)
		*(found.symbol[i].name ? ret_runtime : ret_version) = found.symbol[i].offset;
	/* A file without symbols has the section for debuggers. */
	return *ret_runtime ? 0 : elf_find_section(source, ".PyRuntime", ret_runtime);
}

/* Without a symbol, the version is the second number of the runtime, from 3.13 on. */
static int read_interpreter(struct file *file, u64 *ret_at, struct python_scan *ret)
{
	const struct elf_source source = { .read = read_file, .ctx = file };
	u8 head[PYTHON_HEAD_BYTES];
	u64 version_at;
	int err = find_symbols(&source, ret_at, &version_at);
	ssize_t n;

	if (err < 0)
		return err;
	n = read_file(file, head, sizeof(head), *ret_at);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(head))
		return -ENOENT;
	memcpy(&ret->version, head + sizeof(u64), sizeof(ret->version));
	if (version_at) {
		n = read_file(file, &ret->version, sizeof(ret->version), version_at);
		if (n != sizeof(ret->version))
			return n < 0 ? (int)n : -ENOENT;
	}
	return python_offsets_of(ret->version, head, sizeof(head), &ret->offsets);
}

static bool may_be_interpreter(const struct scan *scan, const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return mapping->is_code && (mapping->inode == scan->exe_inode ||
				    !strncmp(slash + 1, "libpython3", strlen("libpython3")));
}

/* Stops at the first interpreter. */
static int find_file(void *ctx, const struct mapping *mapping)
{
	struct scan *scan = ctx;
	CLEANUP_FD int fd = -EBADF;
	int err;

	if (!may_be_interpreter(scan, mapping))
		return 0;
	if (++scan->nr_files > FILES_MAX)
		return -E2BIG;
	scan->cost->nr_files++;
	fd = library_open_mapped(scan->proc, scan->pid, mapping);
	err = fd < 0 ? fd
		     : read_interpreter(&(struct file){ fd, scan->cost }, &scan->at, &scan->result);
	if (err == 0)
		scan->file = *mapping;
	/* A file that has an interpreter of an unknown version says more than one that has none. */
	if (scan->err == -ENOENT || err == 0)
		scan->err = err == -ENOEXEC ? -ENOENT : err;
	return err == 0 ? -EEXIST : 0;
}

/* The runtime is data, so its mapping is writable. */
static int find_address(void *ctx, const struct mapping *mapping)
{
	struct scan *scan = ctx;
	const struct mapping *file = &scan->file;

	if (mapping->inode != file->inode || mapping->major != file->major ||
	    mapping->minor != file->minor || !mapping->is_writable || scan->at < mapping->offset ||
	    scan->at - mapping->offset >= mapping->end - mapping->start)
		return 0;
	scan->result.runtime = mapping->start + (scan->at - mapping->offset);
	return -EEXIST;
}

int python_scan(const char *proc, pid_t pid, struct python_cost *cost, struct python_scan *ret)
{
	struct scan scan = { .proc = proc, .pid = pid, .cost = cost, .err = -ENOENT };
	char path[PATH_MAX];
	struct stat st;
	int err;

	snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
	if (stat(path, &st) == 0)
		scan.exe_inode = st.st_ino;
	err = maps_read(proc, pid, find_file, &scan);
	if (err != -EEXIST)
		return err < 0 ? err : scan.err;
	err = maps_read(proc, pid, find_address, &scan);
	if (err != -EEXIST)
		return err < 0 ? err : -ENOENT;
	*ret = scan.result;
	return 0;
}

bool python_scan_is_valid(const struct python_scan *scan)
{
	return scan->runtime && scan->runtime < ADDRESS_MAX && scan->pad == 0 &&
	       python_offsets_are_valid(&scan->offsets);
}
