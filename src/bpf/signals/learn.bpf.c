// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Learning: observes the behavior of a thread, and predicts the behavior of a new
 * thread from its profile.
 *
 * The averages and the tier are in core/learner.h. This file identifies a thread,
 * looks up its prediction, and reports observations to user space. A profile is
 * for an executable in a role. The executable is identified by its file: file
 * system, inode, and the name that it was started by. Two programs with the same
 * name have two profiles. A program that changes its own name has one profile.
 * The lookup happens when a task begins (at fork, with the executable of its
 * parent), at exec, and when its role changes. After each of these, the earlier
 * behavior of the task no longer counts.
 *
 * Kernel threads are not learned: they have no executable and get the default
 * tier.
 *
 * The scheduler keeps the averages (sched/task.bpf.h) and reports the behavior of
 * each task (sched.bpf.c).
 */
#include "bpf/compat.bpf.h"
#include "bpf/signals/learn.bpf.h"
#include "bpf/signals/state.bpf.h"
#include "core/learner.h"

#define EXE_NAME_WORDS 4

/* Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PREDICTIONS_MAX);
	__type(key, struct procdb_key);
	__type(value, struct procdb_record);
} predictions SEC(".maps");

/* User space reads it several times per second. It has room for 2,900 observations. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} observations SEC(".maps");

u64 nr_dropped_observations;

/* The UUID of a file system is the same after a reboot; its device number may change. */
static u64 file_system_id(struct super_block *sb)
{
	u64 uuid[2] = {};

	bpf_core_read(uuid, sizeof(uuid), &sb->s_uuid);
	if (!uuid[0] && !uuid[1])
		return BPF_CORE_READ(sb, s_dev);
	return learn_identity(uuid[0], uuid[1]);
}

/* 0 if the task has no executable. */
static u64 exe_id_of(struct task_struct *p)
{
	struct file *file = BPF_CORE_READ(p, mm, exe_file);
	u64 name[EXE_NAME_WORDS] = {}, id;
	struct inode *inode;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	id = learn_identity(file_system_id(BPF_CORE_READ(inode, i_sb)),
			    BPF_CORE_READ(inode, i_ino));
	for (u32 i = 0; i < EXE_NAME_WORDS; i++)
		id = learn_identity(id, name[i]);
	return id;
}

static const struct procdb_record *prediction_for(struct task_struct *p, u64 exe_id, u32 role)
{
	struct procdb_key key = { .exe_id = exe_id, .role = role };
	struct procdb_record *found = exe_id ? bpf_map_lookup_elem(&predictions, &key) : NULL;

	if (found)
		return found;
	key.exe_id = 0;
	key.role = 0;
	bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), p->comm);
	return bpf_map_lookup_elem(&predictions, &key);
}

static u32 role_of(struct task_struct *p)
{
	struct thread_state *thread = ml_seen ? thread_find(p) : NULL;

	return thread ? thread->role : ROLE_OTHER;
}

__noinline u32 learn_task_begins(struct task_struct *p __arg_trusted,
				 struct learner *l __arg_nonnull)
{
	u32 role = role_of(p);
	u64 exe_id;

	if (p->flags & PF_KTHREAD) {
		learn_begin(l, 0, role, 0, NULL);
		return l->tier;
	}
	exe_id = exe_id_of(p);
	learn_begin(l, exe_id, role, BPF_CORE_READ(p, cred, uid.val),
		    prediction_for(p, exe_id, role));
	return l->tier;
}

static void tell(struct task_struct *p, struct learner *l, u64 now)
{
	struct procdb_observation *seen = bpf_ringbuf_reserve(&observations, sizeof(*seen), 0);

	if (!seen) {
		__sync_fetch_and_add(&nr_dropped_observations, 1);
		return;
	}
	*seen = (struct procdb_observation){
		.key = { .exe_id = l->exe_id, .role = l->role },
		.record = learn_tell(l, now),
		.owner = l->owner,
	};
	bpf_probe_read_kernel_str(seen->key.comm, sizeof(seen->key.comm), p->comm);
	/* No wakeup during a context switch: user space polls the buffer. */
	bpf_ringbuf_submit(seen, BPF_RB_NO_WAKEUP);
}

__noinline u32 learn_task_stops(struct task_struct *p __arg_trusted,
				struct learner *l __arg_nonnull, u64 ran_ns, bool sleeps, u64 now)
{
	bool news;

	if (p->flags & PF_KTHREAD)
		return TIER_DEFAULT;
	if (l->role != role_of(p))
		learn_task_begins(p, l);
	news = learn_ran(l, ran_ns, sleeps, now);
	if (!news && p->flags & PF_EXITING)
		news = learn_ended(l, now);
	if (news)
		tell(p, l, now);
	return l->tier;
}
