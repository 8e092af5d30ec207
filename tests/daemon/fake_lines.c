/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A fake of the BPF programs that watch a process for a client, for fake_kernel.c: each process has
 * one stack with two frames, of which one has a name. The begin and the end are in the log.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel.h"

#define CODE   0x1000
#define KERNEL 0x2000

static u32 sampled; /* the process; 0: none */

static void note(const char *what, u32 tgid)
{
	char path[256];
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", getenv("FAKE_KERNEL"));
	log = fopen(path, "ae");
	if (!log)
		abort();
	fprintf(log, "%s %u\n", what, tgid);
	fclose(log);
}

static u32 pid_of(int pidfd)
{
	char path[64], line[128];
	u32 pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Pid: %u", &pid);
	if (file)
		fclose(file);
	return pid;
}

/* A further line of the file `processes`: a process that no snapshot has. */
static bool read_further(u32 pid, struct process_state *process)
{
	char path[256];
	u32 at = 0, uid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/processes", getenv("FAKE_KERNEL"));
	file = fopen(path, "re");
	while (file && at != pid && fscanf(file, "%u %u %*s", &at, &uid) == 2)
		;
	if (file)
		fclose(file);
	process->task.pid = process->launcher_tid = pid;
	process->uid = uid;
	return at == pid;
}

int kernel_read_process(const struct kernel *kernel, int pidfd, struct process_state *ret)
{
	struct kernel_snapshot snapshot;
	u32 pid = pid_of(pidfd);
	int err = -ENOENT;

	if (kernel_snapshot_read((struct kernel *)kernel, &snapshot) < 0)
		return err;
	for (u32 i = 0; i < snapshot.nr_processes; i++)
		if (snapshot.processes[i].task.pid == pid) {
			*ret = snapshot.processes[i];
			err = 0;
		}
	if (err < 0) {
		*ret = snapshot.processes[0];
		err = read_further(pid, ret) ? 0 : err;
	}
	kernel_snapshot_done(&snapshot);
	return err;
}

int kernel_begin_lines(struct kernel *kernel, u32 tgid, const struct lines_process *process)
{
	if (sampled == tgid)
		return -EEXIST;
	sampled = tgid;
	note(process->runtime ? "sample-python" : "sample", tgid);
	return 0;
}

void kernel_end_lines(struct kernel *kernel, u32 tgid)
{
	sampled = 0;
	note("sampled", tgid);
}

void kernel_vary_lines(struct kernel *kernel)
{
}

struct lines_counts kernel_lines_counts(const struct kernel *kernel, u32 tgid)
{
	return (struct lines_counts){ .nr_samples = sampled == tgid ? 3 : 0 };
}

int kernel_read_lines(struct kernel *kernel, u32 tgid, kernel_lines_fn fn, void *ctx)
{
	const struct lines_sum_key key = { .tgid = tgid,
					   .tid = tgid,
					   .stack = { .hash = 1, .tgid = tgid },
					   .cause = IDLE_CPU,
					   .role = ROLE_LAUNCHER };
	struct lines_sum_key unreadable = key, inside = key;
	const struct lines_sum sum = { .done_ns = 70, .open_ns = 5, .nr_samples = 2 };
	int err = fn(ctx, &key, &sum);

	unreadable.stack.hash = 0;
	unreadable.after = KERNEL;
	unreadable.before = GAP_GRAPH;
	inside.after = KERNEL + 1;
	inside.before = KERNEL;
	inside.call = CALL_CUDA_cudaMallocHost + 1;
	err = err < 0 ? err : fn(ctx, &unreadable, &sum);
	return err < 0 ? err : fn(ctx, &inside, &sum);
}

int kernel_read_stack(struct kernel *kernel, const struct lines_stack_key *key,
		      struct python_stack *ret)
{
	ret->nr = 2;
	ret->is_cut = 1;
	ret->frames[0] = (struct python_frame){ .code = CODE, .instruction = 2 };
	ret->frames[1] = (struct python_frame){ .code = CODE + 1 };
	return 0;
}

int kernel_read_code(struct kernel *kernel, const struct lines_stack_key *stack,
		     const struct python_frame *frame, u32 part, struct python_code *ret)
{
	static const u8 table[] = { 0x80 | 0 << 3, 0, 0x80 | 11 << 3, 0, 0 };

	if (frame->code != CODE || part)
		return -ENOENT;
	*ret = (struct python_code){ .first_line = 141,
				     .table_bytes = sizeof(table),
				     .part_bytes = sizeof(table) };
	ret->name = (struct python_text){ .width = 1, .length = 7 };
	ret->file = (struct python_text){ .width = 1, .length = 8, .is_cut = 1 };
	memcpy(ret->name_bytes, "collate", 7);
	memcpy(ret->file_bytes, "train.py", 8);
	memcpy(ret->table, table, sizeof(table));
	return 0;
}

/* The bytes are those of a process: no text, and no end. */
int kernel_read_gpu_kernel(const struct kernel *kernel, const struct gpu_kernel_key *key,
			   struct gpu_kernel *ret)
{
	if (key->handle != KERNEL)
		return -ENOENT;
	memset(ret, 'x', sizeof(*ret));
	memcpy(ret->name, "gemm\xff\"", 6);
	ret->is_cut = 1;
	return 0;
}

int kernel_begin_usage(struct kernel *kernel, u32 tgid, const struct usage_process *process)
{
	note("use", tgid);
	return 0;
}

void kernel_end_usage(struct kernel *kernel, u32 tgid)
{
	note("used", tgid);
}

/* Each process has two reports about its first GPU, early in its time. */
int kernel_read_usage(const struct kernel *kernel, const struct usage_key *key, struct usage *ret)
{
	if (key->device)
		return -ENOENT;
	*ret = (struct usage){};
	ret->parts[1] = (struct usage_part){ .nr = 2,
					     .allocated_bytes = 5,
					     .reserved_bytes = 8,
					     .allocated_most = 7,
					     .reserved_then = 9 };
	return 0;
}

/* The interpreter that was set last, and its process. */
static struct oom_python python_set;
static u32 python_pid;

int kernel_set_python(struct kernel *kernel, int pidfd, const struct oom_python *python)
{
	python_set = *python;
	python_pid = pid_of(pidfd);
	note("python", python_pid);
	return 0;
}

int kernel_read_python(const struct kernel *kernel, int pidfd, struct oom_python *ret)
{
	if (!python_pid || pid_of(pidfd) != python_pid)
		return -ENOENT;
	*ret = python_set;
	return 0;
}

int kernel_copy_python(struct kernel *kernel, int parent, int child)
{
	return 0;
}

/* Every error has the frames of that stack. */
int kernel_take_oom_frame(struct kernel *kernel, const struct process_state *process, u32 index,
			  struct oom_frame *ret)
{
	struct python_stack stack;

	if (index >= 2)
		return -ENOENT;
	kernel_read_stack(kernel, NULL, &stack);
	*ret = (struct oom_frame){ .frame = stack.frames[index], .nr_frames = 40 };
	ret->is_named = kernel_read_code(kernel, NULL, &ret->frame, 0, &ret->code) == 0;
	return 0;
}

void kernel_release_oom_frames(struct kernel *kernel, const struct process_state *process, u32 nr)
{
}
