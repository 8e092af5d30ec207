/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * DRM drivers report the use of each open descriptor in /proc/PID/fdinfo. This source
 * therefore sees only the processes in `pids`: the utilization of a GPU is the sum of these
 * processes, and a GPU that none of them used is unknown.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/gpu_fdinfo_clients.h"

/* A process can have a million descriptors; it opens GPUs early. */
#define MAX_DESCRIPTORS 4096

struct source {
	char *procfs;
	char *sysfs;
	struct drm_clients *clients;
};

static void source_close(void *opened)
{
	struct source *source = opened;

	if (!source)
		return;
	drm_clients_free(source->clients);
	free(source->procfs);
	free(source->sysfs);
	free(source);
}

static void source_cleanup(struct source **source)
{
	source_close(*source);
}

static int source_open(const struct gpu_config *config, void **ret)
{
	CLEANUP(source_cleanup) struct source *source = calloc(1, sizeof(*source));
	int err;

	if (!source)
		return -ENOMEM;
	source->procfs = strdup(config->procfs);
	source->sysfs = strdup(config->sysfs);
	if (!source->procfs || !source->sysfs)
		return -ENOMEM;
	err = drm_clients_new(source->sysfs, &source->clients);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(source);
	return 0;
}

/* Files in /proc have no size. A text longer than the buffer is truncated. */
static ssize_t read_text(int dir_fd, const char *name, char *buffer, size_t size)
{
	/* Only regular files are expected; the open must not block on any other file. */
	CLEANUP_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? -errno : file_read_fd(fd, buffer, size);
}

static void dir_cleanup(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* A process can exit at any point; it then has no descriptors left. */
static void scan(struct source *source, pid_t pid, struct gpu_samples *samples)
{
	CLEANUP(dir_cleanup) DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_MAX];
	u32 nr = 0;

	snprintf(path, sizeof(path), "%s/%d/fdinfo", source->procfs, pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char text[FDINFO_MAX_BYTES];
		struct fdinfo info;
		ssize_t size;

		if (entry->d_name[0] == '.')
			continue;
		if (++nr > MAX_DESCRIPTORS) {
			samples->nr_dropped++;
			return;
		}
		size = read_text(dirfd(dir), entry->d_name, text, sizeof(text));
		if (size > 0 && fdinfo_parse(text, (size_t)size, &info) == 0)
			drm_clients_add(source->clients, (u32)pid, &info);
	}
}

static int source_sample(void *opened, const pid_t *pids, size_t nr_pids, u64 now_ns,
			 struct gpu_samples *samples)
{
	struct source *source = opened;

	drm_clients_begin(source->clients, now_ns);
	for (size_t i = 0; i < nr_pids; i++)
		scan(source, pids[i], samples);
	drm_clients_end(source->clients, samples);
	return 0;
}

const struct gpu_source_ops gpu_fdinfo_ops = {
	.name = "fdinfo",
	.open = source_open,
	.sample = source_sample,
	.close = source_close,
};
