/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/cpu_limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "base/cleanup.h"
#include "base/file.h"

#define MOUNTS_MAX	 2 /* version 1 and version 2 */
#define MOUNT_LINES_MAX	 16384
#define HIERARCHIES_SIZE 16384
#define FILE_TEXT_LEN	 256
/* The name of the cgroup namespace of a machine, a constant of the kernel. */
#define FIRST_NAMESPACE	 "cgroup:[4026531835]"

struct cpu_limits_scan {
	struct cpu_limits_config config;
	struct cpu_limits found;
	struct cgroup_mount mounts[MOUNTS_MAX];
	u32 nr_mounts;
	u32 mount; /* the next one, or the one after that of the open directories */
	dev_t device;
	DIR *open[CPU_LIMITS_DEPTH_MAX]; /* from the mount point to the current directory */
	size_t path_length[CPU_LIMITS_DEPTH_MAX];
	u32 depth;
	char path[CPU_LIMITS_PATH_LEN]; /* of the current directory, below the mount point */
	bool is_done;
};

static void set_where(struct cpu_limits_scan *scan, const char *where)
{
	snprintf(scan->found.where, sizeof(scan->found.where), "%s", where);
}

/* Only the first one is named. The scan continues: a limit is a better answer. */
static void skip(struct cpu_limits_scan *scan, const char *where)
{
	scan->found.nr_skipped++;
	if (scan->found.limit != CPU_LIMIT_NONE)
		return;
	scan->found.limit = CPU_LIMIT_UNVERIFIED;
	set_where(scan, where);
}

static void finish_with(struct cpu_limits_scan *scan, enum cpu_limit limit)
{
	scan->found.limit = limit;
	set_where(scan, *scan->path ? scan->path : "/");
	scan->is_done = true;
}

static void root_path(const struct cpu_limits_scan *scan, const char *path, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s", scan->config.root, path);
}

/* In a cgroup namespace of a container, only a part of the tree is visible. */
static bool sees_all_cgroups(const struct cpu_limits_scan *scan)
{
	char path[CPU_LIMITS_PATH_LEN], name[64];
	ssize_t length;

	root_path(scan, "/proc/self/ns/cgroup", path, sizeof(path));
	length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return false;
	name[length] = '\0';
	return strcmp(name, FIRST_NAMESPACE) == 0;
}

static int read_hierarchies(const struct cpu_limits_scan *scan, struct cgroup_hierarchies *ret)
{
	CLEANUP_FREE char *text = malloc(HIERARCHIES_SIZE);
	char path[CPU_LIMITS_PATH_LEN];
	ssize_t length;

	if (!text)
		return -ENOMEM;
	root_path(scan, "/proc/self/cgroup", path, sizeof(path));
	length = file_read_text(path, text, HIERARCHIES_SIZE);
	if (length < 0)
		return (int)length;
	return length + 1 < HIERARCHIES_SIZE ? cgroup_hierarchies_parse(text, ret) : -EFBIG;
}

/* Adds a mount of a hierarchy unless another mount shows the same hierarchy as a whole. */
static void add_mount(struct cpu_limits_scan *scan, const struct cgroup_mount *mount)
{
	for (u32 i = 0; i < scan->nr_mounts; i++) {
		if (scan->mounts[i].v1_cpu != mount->v1_cpu)
			continue;
		if (!scan->mounts[i].is_whole)
			scan->mounts[i] = *mount;
		return;
	}
	scan->mounts[scan->nr_mounts++] = *mount;
}

static int read_mounts(struct cpu_limits_scan *scan, const struct cgroup_hierarchies *wanted)
{
	CLEANUP_FREE char *line = NULL;
	char path[CPU_LIMITS_PATH_LEN];
	struct cgroup_mount mount;
	size_t room = 0;
	u32 nr_lines = 0;
	int err = 0;
	FILE *file;

	root_path(scan, "/proc/self/mountinfo", path, sizeof(path));
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (err == 0 && getline(&line, &room, file) > 0) {
		if (++nr_lines > MOUNT_LINES_MAX)
			err = -E2BIG;
		/* A line that is not understood hides a hierarchy, which is then missing. */
		else if (cgroup_mount_parse(line, &mount) == 0 &&
			 (mount.v1_cpu ? wanted->v1_cpu : wanted->v2))
			add_mount(scan, &mount);
	}
	fclose(file);
	return err;
}

/* Finds what to scan. Anything that cannot be found is skipped. */
static void begin(struct cpu_limits_scan *scan)
{
	struct cgroup_hierarchies wanted = {};
	u32 nr_wanted;

	if (read_hierarchies(scan, &wanted) < 0) {
		skip(scan, "/proc/self/cgroup");
		return;
	}
	wanted.v2 &= !scan->config.honors_cpu_max;
	nr_wanted = wanted.v1_cpu + wanted.v2;
	if (nr_wanted == 0)
		return;
	if (!sees_all_cgroups(scan))
		skip(scan, "cgroups outside of the cgroup namespace of zerneld");
	if (read_mounts(scan, &wanted) < 0)
		skip(scan, "/proc/self/mountinfo");
	else if (scan->nr_mounts < nr_wanted)
		skip(scan, "a hierarchy that is not mounted here");
	for (u32 i = 0; i < scan->nr_mounts; i++)
		if (!scan->mounts[i].is_whole)
			skip(scan, scan->mounts[i].path);
}

int cpu_limits_scan_new(const struct cpu_limits_config *config, struct cpu_limits_scan **ret)
{
	struct cpu_limits_scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	scan->config = *config;
	begin(scan);
	*ret = scan;
	return 0;
}

struct cpu_limits_scan *cpu_limits_scan_free(struct cpu_limits_scan *scan)
{
	if (!scan)
		return NULL;
	while (scan->depth > 0)
		closedir(scan->open[--scan->depth]);
	free(scan);
	return NULL;
}

/* The errors of a cgroup that was just removed. */
static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV;
}

/* Reads a small file of a cgroup. Opens nothing that could block or lead elsewhere. */
static int read_text(int directory, const char *name, char ret[static FILE_TEXT_LEN])
{
	CLEANUP_FD int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t length;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	length = file_read_fd(fd, ret, FILE_TEXT_LEN - 1);
	if (length < 0)
		return (int)length;
	ret[length] = '\0';
	/* No file of the kernel contains a zero. */
	return strlen(ret) == (size_t)length ? 0 : -EINVAL;
}

static bool may_have_tasks(int directory)
{
	char text[FILE_TEXT_LEN];
	int err = read_text(directory, "cgroup.events", text);

	return !is_gone(err) && (err < 0 || cgroup_may_have_tasks(text));
}

/*
 * Examines one cgroup. Returns true if cgroups below it can have a limit. Where the file is absent,
 * the controller is disabled, also for all cgroups below. Only the topmost cgroup of version 2
 * never has the file. Limits of version 1 count also in a cgroup without tasks, because it does not
 * show cheaply whether it has any.
 */
static bool examine(struct cpu_limits_scan *scan, int directory, bool v1, bool is_top)
{
	char text[FILE_TEXT_LEN];
	int err = read_text(directory, v1 ? "cpu.cfs_quota_us" : "cpu.max", text);
	enum cpu_quota quota;

	if (is_gone(err))
		return is_top && !v1;
	quota = err < 0 ? CPU_QUOTA_INVALID : v1 ? cpu_quota_of_cfs(text) : cpu_quota_of_max(text);
	if (quota == CPU_QUOTA_INVALID)
		skip(scan, *scan->path ? scan->path : "/");
	if (quota != CPU_QUOTA_FINITE)
		return true;
	if (!v1 && !may_have_tasks(directory))
		return false;
	finish_with(scan, v1 ? CPU_LIMIT_CGROUP_V1 : CPU_LIMIT_CPU_MAX);
	return false;
}

/* Appends a name to the path. A path that is too long is truncated; it is only shown. */
static void append_name(struct cpu_limits_scan *scan, const char *name)
{
	size_t length = strlen(scan->path);

	snprintf(scan->path + length, sizeof(scan->path) - length, "/%s", name);
}

static void leave(struct cpu_limits_scan *scan)
{
	closedir(scan->open[--scan->depth]);
	if (scan->depth > 0)
		scan->path[scan->path_length[scan->depth - 1]] = '\0';
}

/* Keeps a directory open whose children are next. */
static void enter(struct cpu_limits_scan *scan, int *fd)
{
	DIR *dir = fdopendir(*fd);

	if (!dir) {
		skip(scan, *scan->path ? scan->path : "/");
		return;
	}
	(void)TAKE_FD(*fd);
	scan->open[scan->depth] = dir;
	scan->path_length[scan->depth++] = strlen(scan->path);
}

/*
 * Opens a directory of the same file system, or reports it as skipped. A directory of cgroups with
 * two links has no directories in it, which saves a third of the time of a scan.
 */
static int open_child(struct cpu_limits_scan *scan, int parent, const char *name, bool *ret_is_leaf)
{
	CLEANUP_FD int fd =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;
	struct stat st;

	if (err == -ENOTDIR || err == -ELOOP || is_gone(err))
		return -ENOENT;
	if (err < 0 || fstat(fd, &st) < 0 || st.st_dev != scan->device ||
	    scan->depth == CPU_LIMITS_DEPTH_MAX) {
		skip(scan, scan->path);
		return -EIO;
	}
	*ret_is_leaf = st.st_nlink == 2;
	return TAKE_FD(fd);
}

/* Counts a cgroup. False at the bound, which ends the scan. */
static bool count(struct cpu_limits_scan *scan)
{
	if (scan->found.nr_examined < scan->config.nr_cgroups_max) {
		scan->found.nr_examined++;
		return true;
	}
	skip(scan, "more than the maximum number of cgroups");
	scan->is_done = true;
	return false;
}

static void visit_child(struct cpu_limits_scan *scan, const char *name)
{
	size_t length = strlen(scan->path);
	u32 depth = scan->depth;
	CLEANUP_FD int fd = -EBADF;
	bool is_leaf;

	if (!count(scan))
		return;
	append_name(scan, name);
	fd = open_child(scan, dirfd(scan->open[depth - 1]), name, &is_leaf);
	if (fd >= 0 && examine(scan, fd, scan->mounts[scan->mount - 1].v1_cpu, false) && !is_leaf)
		enter(scan, &fd);
	if (scan->depth == depth)
		scan->path[length] = '\0';
}

static void visit_mount(struct cpu_limits_scan *scan)
{
	const struct cgroup_mount *mount = &scan->mounts[scan->mount++];
	char path[CPU_LIMITS_PATH_LEN + CGROUP_MOUNT_PATH_LEN];
	CLEANUP_FD int fd = -EBADF;
	struct stat st;

	if (!count(scan))
		return;
	scan->path[0] = '\0';
	root_path(scan, mount->path, path, sizeof(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Another file system can be mounted on top. */
	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) != mount->major ||
	    minor(st.st_dev) != mount->minor) {
		skip(scan, mount->path);
		return;
	}
	scan->device = st.st_dev;
	if (examine(scan, fd, mount->v1_cpu, true))
		enter(scan, &fd);
}

/* Continues with the next directory. */
static void advance(struct cpu_limits_scan *scan)
{
	struct dirent *entry;

	if (scan->depth == 0) {
		if (scan->mount == scan->nr_mounts)
			scan->is_done = true;
		else
			visit_mount(scan);
		return;
	}
	errno = 0;
	entry = readdir(scan->open[scan->depth - 1]);
	if (!entry && errno && !is_gone(-errno))
		skip(scan, scan->path);
	if (!entry)
		leave(scan);
	else if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		 strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
		visit_child(scan, entry->d_name);
}

bool cpu_limits_scan_step(struct cpu_limits_scan *scan, u32 nr, struct cpu_limits *ret)
{
	u32 first = scan->found.nr_examined;

	while (!scan->is_done && scan->found.nr_examined - first < nr)
		advance(scan);
	if (scan->is_done)
		*ret = scan->found;
	return scan->is_done;
}
