/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * DRM drivers report the use of each open descriptor in /proc/PID/fdinfo. This source
 * therefore sees only the processes in `pids`: the utilization of a GPU is the sum of these
 * processes. The GPUs are numbered in the order of their PCI addresses, because the order in
 * which processes use them tells nothing. For AMD, KFD tells on which GPUs a process computes;
 * processes open all GPUs that they can.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/gpu_drm.h"
#include "collect/gpu_fdinfo_clients.h"

/* A process can have a million descriptors; it opens GPUs early. */
#define MAX_DESCRIPTORS 4096

struct source {
	char *procfs;
	char *sysfs;
	struct drm_clients *clients;
	u32 nr_kfd;
	struct kfd_gpu kfd[GPU_MAX_DEVICES];
	u32 kfd_index[GPU_MAX_DEVICES];
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

/* KFD's order is another one, so it comes second. */
static int number_gpus(struct source *source)
{
	struct drm_gpu gpus[GPU_MAX_DEVICES];
	u32 nr = drm_gpus_list(source->sysfs, gpus);

	for (u32 i = 0; i < nr; i++) {
		struct gpu_sample identity = { .valid = GPU_HAS_RENDER_FILE,
					       .render_file = gpus[i].render_file };

		if (drm_clients_device(source->clients, gpus[i].address, &identity) < 0)
			return -ENOSPC;
	}
	source->nr_kfd = kfd_gpus_list(source->sysfs, source->kfd);
	for (u32 i = 0; i < source->nr_kfd; i++) {
		struct gpu_sample identity = {};
		int index;

		/* As ROCm writes it. */
		snprintf(identity.uuid, sizeof(identity.uuid), "GPU-%016llx",
			 source->kfd[i].unique_id);
		if (source->kfd[i].unique_id)
			identity.valid = GPU_HAS_UUID;
		index = drm_clients_device(source->clients, source->kfd[i].address, &identity);
		if (index < 0)
			return index;
		source->kfd_index[i] = (u32)index;
	}
	return 0;
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
	if (err == 0)
		err = number_gpus(source);
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

/* A process can exit at any point; it then has no descriptors left. */
static void scan(struct source *source, pid_t pid, struct gpu_samples *samples)
{
	CLEANUP_DIR DIR *dir = NULL;
	const struct dirent *entry;
	struct tenant tenant;
	char path[PATH_MAX];
	u32 nr = 0;

	snprintf(path, sizeof(path), "%s/%d/fdinfo", source->procfs, pid);
	tenant = tenant_of(source->procfs, pid);
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
			drm_clients_add(source->clients, (u32)pid, &tenant, &info);
	}
}

struct listing {
	const struct source *source;
	struct gpu_samples *samples;
	u32 pid;
	u64 now_ns;
	bool is_listed[GPU_MAX_DEVICES]; /* by index */
};

static void on_queue(void *ctx, u32 gpu_id)
{
	struct listing *listing = ctx;
	const struct source *source = listing->source;
	struct gpu_process_sample *process;
	u32 i = 0;

	while (i < source->nr_kfd && source->kfd[i].gpu_id != gpu_id)
		i++;
	if (i == source->nr_kfd) {
		listing->samples->nr_unlisted++;
		return;
	}
	if (listing->is_listed[source->kfd_index[i]])
		return;
	listing->is_listed[source->kfd_index[i]] = true;
	process = gpu_samples_add_process(listing->samples);
	if (!process) {
		listing->samples->nr_unlisted++;
		return;
	}
	process->pid = listing->pid;
	process->gpu = source->kfd_index[i];
	process->is_listed = 1;
	process->at_ns = listing->now_ns;
}

static void list_queues(const struct source *source, u32 pid, u64 now_ns,
			struct gpu_samples *samples)
{
	struct listing listing = { source, samples, pid, now_ns, {} };

	if (!kfd_queues_list(source->sysfs, pid, on_queue, &listing))
		samples->nr_unlisted++;
}

static int source_sample(void *opened, const pid_t *pids, size_t nr_pids, u64 now_ns,
			 struct gpu_samples *samples)
{
	struct source *source = opened;

	/* First, so that open descriptors take no room from what KFD lists. */
	for (size_t i = 0; source->nr_kfd && i < nr_pids; i++)
		list_queues(source, (u32)pids[i], now_ns, samples);
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
