/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Evidence that a process uses a GPU: see devices.bpf.c. */
#include <errno.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"

/* Maximum number of open files of a process that are looked at, and the size of a read. */
#define FILES_MAX 4096

static int attach(struct bpf_program *prog, struct bpf_link **ret)
{
	struct bpf_link *link = *ret ? NULL : bpf_program__attach(prog);

	if (link)
		*ret = link;
	return *ret ? 0 : -errno;
}

/* Without the first program, the opens are found late, by looking at the open files. */
int kernel_attach_devices(struct kernel *kernel)
{
	if (kernel_has(kernel, FEATURE_DEVICE_OPENS))
		(void)attach(kernel->skel->progs.device_opened, &kernel->device_opened);
	return attach(kernel->skel->progs.device_exec, &kernel->device_exec);
}

void kernel_close_devices(struct kernel *kernel)
{
	bpf_link__destroy(kernel->device_opened);
	bpf_link__destroy(kernel->device_exec);
}

void kernel_set_gpu_devices(struct kernel *kernel, const struct gpu_devices *devices)
{
	kernel->skel->bss->gpu_devices = *devices;
}

/* Runs the program on the open files of a process, or of all processes with a `pid` of 0. */
int kernel_look_at_files(struct kernel *kernel, pid_t pid)
{
	union bpf_iter_link_info info = { .task.pid = (u32)pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	CLEANUP_FD int fd = kernel_open_iterator(kernel->skel->progs.device_holders, &opts);
	char bytes[FILES_MAX];
	ssize_t nr;

	if (fd < 0)
		return fd;
	do
		nr = read(fd, bytes, sizeof(bytes));
	while ((nr > 0 && !pid) || (nr < 0 && errno == EAGAIN));
	return nr < 0 ? -errno : 0;
}

int kernel_find_holders(struct kernel *kernel)
{
	return kernel_look_at_files(kernel, 0);
}

bool kernel_holds_gpu(struct kernel *kernel, pid_t pid, int pidfd)
{
	struct gpu_opened value;

	(void)kernel_look_at_files(kernel, pid);
	return bpf_map__lookup_elem(kernel->skel->maps.gpu_holders, &pidfd, sizeof(pidfd), &value,
				    sizeof(value), 0) == 0;
}
