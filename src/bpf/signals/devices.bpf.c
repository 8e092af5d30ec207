// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Evidence that a process uses a GPU: it has opened a GPU's device file. Calls of a
 * GPU runtime are no evidence, because any file can have the name of a runtime, and
 * any program can call it. The scheduler promotes only processes with evidence.
 *
 * An open is seen when it happens, so that a process has its evidence before its
 * first launch. Files that were opened before zerneld started, that were inherited
 * or that another process passed on are found by iterating over the open files of a
 * process. The number of the device decides, never its name. A file that was opened
 * with O_PATH needs no permission on the device, and is no evidence.
 *
 * The evidence is in the task storage of the process leader. It ends with the
 * process and at an exec. It does not end when the file is closed: a process that
 * may open the device could as well keep it open. Which files were opened is a part of
 * the evidence: it can tell the GPU of the process (core/gpu_identity.h).
 */
#include "bpf/signals/state.bpf.h"
#include "core/gpu_device.h"

/* From the kernel's fs.h and stat.h, which have no enumerators for BTF. */
#define FMODE_PATH (1U << 14)
#define S_IFMT	   0170000
#define S_IFCHR	   0020000

#define MINOR_BITS 20

struct gpu_holder_map gpu_holders SEC(".maps");

/* Set by user space at any time: a decision during the update may use an old range. */
struct gpu_devices gpu_devices;

/* `number`: the device number of a character device. Returns NULL if it is no GPU. */
static struct gpu_opened *note_opened(struct task_struct *p, u32 number)
{
	struct task_struct *leader = p->group_leader; /* first: see process_led_by() */
	struct gpu_file file = gpu_devices_find_file(&gpu_devices, number >> MINOR_BITS,
						     number & ((1U << MINOR_BITS) - 1));
	struct gpu_opened *opened;
	u32 kind = file.kind;

	if (kind == GPU_FILE_NONE || !leader)
		return NULL;
	opened = bpf_task_storage_get(&gpu_holders, leader, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!opened) {
		__sync_fetch_and_add(&nr_dropped_processes, 1);
		return NULL;
	}
	barrier_var(kind);
	__sync_fetch_and_or(&opened->files[kind & (GPU_FILE_NR - 1)], gpu_file_bits(&file));
	return opened;
}

SEC("fexit/chrdev_open")
int BPF_PROG(device_opened, struct inode *inode, struct file *file, int ret)
{
	struct gpu_opened *opened =
		ret == 0 ? note_opened(bpf_get_current_task_btf(), inode->i_rdev) : NULL;

	if (opened && !opened->since_ns) {
		opened->since_ns = bpf_ktime_get_ns();
		new_roles.opened_ns = opened->since_ns;
		__sync_fetch_and_add(&new_roles.nr_found, 1);
	}
	return 0;
}

/* After exec the task is a different program. User space looks for files that stayed open. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(device_exec, struct task_struct *p)
{
	bpf_task_storage_delete(&gpu_holders, p);
	return 0;
}

/* Writes a byte for each file, so that the size of a read limits the files that it looks at. */
SEC("iter/task_file")
int device_holders(struct bpf_iter__task_file *ctx)
{
	static const u8 byte = 0;
	struct task_struct *p = ctx->task;
	struct file *file = ctx->file;
	struct gpu_opened *opened;

	if (!p || !file)
		return 0;
	bpf_seq_write(ctx->meta->seq, (void *)&byte, sizeof(byte));
	if ((file->f_mode & FMODE_PATH) || (file->f_inode->i_mode & S_IFMT) != S_IFCHR)
		return 0;
	opened = note_opened(p, file->f_inode->i_rdev);
	if (opened && !opened->since_ns)
		opened->since_ns = OPENED_LONG_AGO;
	return 0;
}
