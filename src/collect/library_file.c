/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/library_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/insn.h"

/* Minimum length of the tag in file names of Python wheels, which is part of a hash. */
#define WHEEL_TAG_MIN 6
/* Number of bytes of a function that are read to place its probe. */
#define ENTRY_BYTES   16

static const char *const prefixes[RUNTIME_NR] = {
#define RUNTIME(id, label, level, prefix) [RUNTIME_##id] = prefix,
#include "abi/runtimes.def"
};

static const char *const symbols[CALL_NR] = {
#define CALL(runtime, symbol, ...) [CALL_##runtime##_##symbol] = #symbol,
#include "abi/runtimes.def"
};

#define CALL(runtime, symbol, ...)                                                                 \
	_Static_assert(sizeof(#symbol) <= ELF_NAME_BYTES, "symbol name too long: " #symbol);
#include "abi/runtimes.def"

/* Matches the stem of the prefix, an optional tag, ".so", and then the end or a version. */
static bool name_matches(const char *name, const char *prefix)
{
	size_t stem = (size_t)(strrchr(prefix, '.') - prefix), tag;

	if (strncmp(name, prefix, stem))
		return false;
	name += stem;
	if (*name == '-') {
		tag = strspn(name + 1, "0123456789abcdef");
		if (tag < WHEEL_TAG_MIN)
			return false;
		name += 1 + tag;
	}
	return !strncmp(name, ".so", 3) && (!name[3] || name[3] == '.');
}

int library_runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (int runtime = 0; runtime < RUNTIME_NR; runtime++)
		if (name_matches(name, prefixes[runtime]))
			return runtime;
	/* The libmpi.so of Debian's MPICH is a link, and maps name the file. */
	return name_matches(name, "libmpich.so") ? RUNTIME_MPI : -ENOENT;
}

const char *library_symbol(enum call call)
{
	return symbols[call];
}

bool library_is_collective(const char *path)
{
	static const char *const names[] = { "libnccl", "librccl" };
	static const char buffers[] = "/dev/shm/nccl-"; /* RCCL uses the same name */
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])) && strstr(name, ".so"))
			return true;
	return !strncmp(path, buffers, strlen(buffers));
}

/*
 * Opening a device or a pipe can have side effects, so only regular files are opened for
 * reading.
 */
static int open_regular(int path_fd)
{
	char path[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	/* Without O_NONBLOCK, an owner with a lease on the file could delay this for 45 s. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_link(const char *path)
{
	CLEANUP_FD int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : open_regular(fd);
}

/* Symbolic links in the root of the process must be resolved inside that root. */
static int open_in_root(const char *proc, pid_t pid, const struct mapping *mapping)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP_FD int root = -EBADF, fd = -EBADF;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d/root", proc, pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, mapping->path, &how, sizeof(how));
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != mapping->inode || st.st_dev != makedev(mapping->major, mapping->minor))
		return -ESTALE;
	return open_regular(fd);
}

int library_open_mapped(const char *proc, pid_t pid, const struct mapping *mapping)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/map_files/%llx-%llx", proc, pid, mapping->start,
		 mapping->end);
	fd = open_link(path);
	return fd >= 0 ? fd : open_in_root(proc, pid, mapping);
}

int library_open_executable(const char *proc, pid_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
	return open_link(path);
}

int library_identify(int fd, struct library_id *ret)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	*ret = (struct library_id){ .device = st.st_dev, .inode = st.st_ino };
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC) {
		ret->device = 0;
		ret->changed_ns = (u64)st.st_ctim.tv_sec * NSEC_PER_SEC + (u64)st.st_ctim.tv_nsec;
	}
	return 0;
}

struct file {
	int fd;
	u64 *nr_bytes;
};

static ssize_t read_file(void *ctx, void *buffer, size_t size, u64 offset)
{
	const struct file *file = ctx;
	ssize_t n = file_read_at(file->fd, (off_t)offset, buffer, size);

	*file->nr_bytes += n > 0 ? (u64)n : 0;
	return n;
}

static int compare_calls(const void *a, const void *b)
{
	const u32 *left = a, *right = b;

	return strcmp(symbols[*left], symbols[*right]);
}

static u32 calls_of(enum runtime runtime, u32 *calls)
{
	u32 nr = 0;

	for (u32 call = 0; call < CALL_NR; call++)
		if (call_rows[call].runtime == runtime)
			calls[nr++] = call;
	qsort(calls, nr, sizeof(*calls), compare_calls);
	return nr;
}

static struct library_probe place_probe(const struct elf_source *source,
					const struct elf_symbol *symbol, u32 call)
{
	size_t size = symbol->size && symbol->size < ENTRY_BYTES ? symbol->size : ENTRY_BYTES;
	u8 code[ENTRY_BYTES];
	ssize_t n = source->read(source->ctx, code, size, symbol->offset);
	u64 skip = n > 0 ? insn_skip_entry(INSN_NATIVE, code, (size_t)n) : 0;

	return (struct library_probe){
		.offset = symbol->offset + skip,
		.call = call,
		.is_stepped = n > 0 && insn_is_stepped(INSN_NATIVE, code + skip, (size_t)n - skip),
	};
}

int library_resolve(int fd, enum runtime runtime, bool with_symtab, struct library_probes *ret,
		    u64 *nr_bytes)
{
	struct file file = { fd, nr_bytes };
	const struct elf_source source = { .read = read_file, .ctx = &file };
	const char *names[CALL_NR];
	u32 calls[CALL_NR];
	struct elf_query query = {
		.names = names,
		.nr_names = calls_of(runtime, calls),
		.with_symtab = with_symtab,
	};
	struct elf_symbols found;
	int err;

	for (u32 i = 0; i < query.nr_names; i++)
		names[i] = symbols[calls[i]];
	err = elf_find_symbols(&source, &query, &found);
	if (err < 0)
		return err;

	ret->nr = found.nr;
	ret->nr_dropped = found.nr_dropped;
	for (u32 i = 0; i < found.nr; i++)
		ret->probe[i] = place_probe(&source, &found.symbol[i], calls[found.symbol[i].name]);
	return 0;
}
