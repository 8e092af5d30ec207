/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel types and functions that Zernel uses. Each type declares only the
 * members that are read, and CO-RE relocates them on the running kernel. The
 * build therefore needs no kernel tree and no generated header.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "abi/types.h"

#define PF_FORKNOEXEC 0x00000040 /* forked and has not called exec since */
#define PF_EXITING    0x00000004
#define PF_KTHREAD    0x00200000
#define SCHED_IDLE    5 /* linux/sched.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/*
 * Defined although no member is read: a forward declaration does not match a
 * kfunc prototype.
 */
struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
	kuid_t suid;
	kuid_t euid;
};

struct super_block {
	u32 s_dev;
	struct {
		u8 b[16];
	} s_uuid;
};

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_rdev;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	u32 f_mode;
	struct inode *f_inode;
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
	unsigned long start_code;
	unsigned long end_data; /* the data of the executable file is behind its code */
};

struct gendisk {
	char disk_name[32];
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct block_device *bi_bdev;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup {
	int level; /* 0 is the root */
	struct kernfs_node *kn;
	struct cgroup *ancestors[]; /* 6.1 */
};

struct task_group {
	int idle;
	struct task_group *parent;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct upid {
	int nr;
};

/* `numbers` has one for each namespace, the innermost last. Sizes differ between kernels. */
struct pid {
	unsigned int level;
	struct upid numbers[];
};

struct task_struct {
	u32 __state;
	u32 flags;
	unsigned in_iowait : 1;
	unsigned in_memstall : 1;
	int pid;
	int tgid;
	u64 start_time; /* monotonic, as bpf_ktime_get_ns() */
	u64 start_boottime;
	char comm[COMM_LEN];
	struct mm_struct *mm;
	const struct cred *cred;
	struct css_set *cgroups;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct pid *thread_pid;
	u32 policy;
	struct sched_entity se;
	struct task_group *sched_task_group;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct sched_ext_entity scx;
};

/* Values differ between kernels. Read them only with bpf_core_enum_value(). */
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 1ULL << 63 | 2,
	SCX_DSQ_LOCAL_ON = 1ULL << 63 | 1ULL << 62,
};

enum scx_exit_code {
	SCX_ECODE_RSN_HOTPLUG = 1ULL << 32,
	SCX_ECODE_ACT_RESTART = 1ULL << 48,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1,
	SCX_ENQ_PREEMPT = 1ULL << 32,
};

enum scx_ops_flags {
	SCX_OPS_ENQ_LAST = 2,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
};

struct scx_dump_ctx {
	u64 at_ns;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us; /* 6.17 */
	u64 bw_quota_us;
	u64 bw_burst_us;
};

/* libbpf matches the members by name, so a subset in any order is sufficient. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgroup, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgroup);
	void (*cgroup_set_weight)(struct cgroup *cgroup, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgroup, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

/* The state of an iteration over a DSQ. */
struct bpf_iter_scx_dsq {
	u64 __opaque[6];
};

#pragma clang attribute pop

/* Kfuncs whose prototype has not changed since 6.12, the first kernel with sched_ext. */
extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym __weak;
extern s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				  bool *is_idle) __ksym __weak;
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym __weak;
extern bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym __weak;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym __weak;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym __weak;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym __weak;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym __weak;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym __weak;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym __weak;
extern void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym __weak;
extern void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data,
			      u32 data__sz) __ksym __weak;
extern struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level) __ksym __weak;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym __weak;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym __weak;
extern u32 bpf_cpumask_first(const struct cpumask *cpumask) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
