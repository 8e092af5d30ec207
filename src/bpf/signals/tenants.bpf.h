/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The tenants of a process: see tenants.bpf.c. */
#include "abi/signals.h"
#include "bpf/kernel.h"
#include "core/tenant.h"

/* Hidden, which is static for the verifier: see threads.bpf.c. */
__hidden int tenant_has_room(u32 uid, u64 group);
__hidden int tenant_add(u32 uid, u64 group, s32 nr);
__hidden int tenant_has_memory(u32 uid, u64 group);
__hidden int tenant_add_memory(u32 uid, u64 group, s32 nr);
__hidden int tenant_has_stacks(u32 uid, u64 group);
__hidden int tenant_add_stacks(u32 uid, u64 group, s32 nr);
__hidden int tenant_has_sequences(u32 uid, u64 group);
__hidden int tenant_add_sequences(u32 uid, u64 group, s32 nr);
__hidden int tenant_has_kernels(u32 uid, u64 group);
__hidden int tenant_add_kernels(u32 uid, u64 group, s32 nr);

static inline u32 tenant_user(struct task_struct *p)
{
	return BPF_CORE_READ(p, cred, uid.val);
}

/* 0 for the root cgroup, and on a kernel whose cgroups do not list their ancestors (6.0). */
static inline u64 tenant_group(struct task_struct *p)
{
	struct cgroup *cgroup = BPF_CORE_READ(p, cgroups, dfl_cgrp);
	int level = BPF_CORE_READ(cgroup, level);

	if (level <= 0 || !bpf_core_field_exists(cgroup->ancestors))
		return 0;
	if (level > TENANT_GROUP_LEVELS)
		cgroup = BPF_CORE_READ(cgroup, ancestors[TENANT_GROUP_LEVELS]);
	return BPF_CORE_READ(cgroup, kn, id);
}

/* Whether both are of the same user and in the same cgroup. */
static inline bool is_one_tenant(struct task_struct *p, struct task_struct *other)
{
	return tenant_user(p) == tenant_user(other) &&
	       BPF_CORE_READ(p, cgroups, dfl_cgrp) == BPF_CORE_READ(other, cgroups, dfl_cgrp);
}
