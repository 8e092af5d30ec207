// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state of ML processes, as the signal programs keep it. The simulator has no runtime whose
 * calls could be traced, so its jobs call these functions instead. The state itself, and how a
 * call changes it, is that of the signal programs (bpf/signals/state.bpf.h, core/).
 */
#include "bpf/signals/consumers.bpf.h"
#include "sim/ml.h"

#define LAUNCHES_PER_STEP 20

struct thread_map threads;
struct process_map processes;
struct collective_map collectives;
struct hist_map hists;
struct consumer_map consumers;
struct event_map events;
struct gpu_numbers_map gpu_numbers;
struct gpu_holder_map gpu_holders;
u64 nr_dropped_events, nr_dropped_processes, nr_dropped_samples, nr_dropped_consumers;
struct new_roles new_roles;
bool ml_seen, timeline_wanted;
struct phase_config phase_config = PHASE_CONFIG_DEFAULT;

extern u8 gpu_node[GPU_MAX];

int tenant_has_room(u32 uid, u64 group)
{
	return true;
}

int tenant_add(u32 uid, u64 group, s32 nr)
{
	return 0;
}

static void role_set(struct task_struct *p, u32 role)
{
	thread_get(p)->role = role;
	new_roles.nr_found++;
}

void ml_launcher_begins(struct task_struct *p, u32 gpu, u32 node)
{
	struct process_state *process = process_get(p);
	struct process_key key = { .start_ns = process->start_ns, .tgid = process->task.pid };
	struct gpu_numbers numbers = { .of = { (u8)(gpu + 1) } };

	role_set(p, ROLE_LAUNCHER);
	thread_get(p)->has_fed = 1;
	process->launcher_tid = (u32)p->pid;
	bpf_task_storage_get(&gpu_holders, p->group_leader, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	consumer_begins(p, thread_get(p), process);
	consumer_feeds(thread_get(p), process, bpf_ktime_get_ns());
	process->task.has_gpu = 1;
	bpf_map_update_elem(&gpu_numbers, &key, &numbers, BPF_ANY);
	gpu_node[gpu] = (u8)(node + 1);
}

void ml_loader_begins(struct task_struct *p, struct task_struct *launcher)
{
	struct thread_state *thread = thread_get(p);

	role_set(p, ROLE_LOADER);
	role_prove(&thread->evidence, 1, bpf_ktime_get_ns());
	thread->consumer = thread_get(launcher)->consumer;
	consumer_at(&thread->consumer)->has_loaders = true;
	process_get(p)->consumer_tgid = (u32)launcher->tgid;
	task_transition(&process_get(p)->task, PHASE_DATA_LOADING, bpf_ktime_get_ns());
}

void ml_helper_begins(struct task_struct *p)
{
	role_set(p, ROLE_COLLECTIVE_HELPER);
}

void ml_launches(struct task_struct *launcher)
{
	struct process_state *process = process_find(launcher);

	process->nr_launches[LEVEL_DRIVER] += LAUNCHES_PER_STEP;
	process_cross(launcher, process, BOUNDARY_LAUNCH, bpf_ktime_get_ns());
}

void ml_collective(struct task_struct *launcher)
{
	process_cross(launcher, process_find(launcher), BOUNDARY_COLLECTIVE, bpf_ktime_get_ns());
}

void ml_sync_begins(struct task_struct *launcher)
{
	struct thread_state *thread = thread_find(launcher);

	thread->frames[0].call = CALL_CUDA_DRIVER_cuCtxSynchronize;
	thread->depth = 1;
}

void ml_sync_ends(struct task_struct *launcher)
{
	struct process_state *process = process_find(launcher);

	thread_find(launcher)->depth = 0;
	process->task.signals.last_sync_ns = bpf_ktime_get_ns();
	process_cross(launcher, process, BOUNDARY_SYNC_DONE, bpf_ktime_get_ns());
}

void ml_waits_for_data(struct task_struct *launcher)
{
	data_wait_begins(launcher, process_find(launcher), bpf_ktime_get_ns());
}

void ml_brings_data(struct task_struct *launcher)
{
	process_find(launcher)->woken_with_data = 1;
	consumer_at(&thread_find(launcher)->consumer)->waited_ns = bpf_ktime_get_ns();
}

void ml_has_data(struct task_struct *launcher)
{
	data_wait_ends(launcher, process_find(launcher), bpf_ktime_get_ns());
}

void ml_critical_begins(struct task_struct *p, struct task_struct *launcher)
{
	role_set(p, ROLE_CRITICAL);
	thread_get(p)->consumer = thread_get(launcher)->consumer;
}

void ml_asks(struct task_struct *p, struct task_struct *launcher)
{
	role_ask(&thread_find(p)->evidence, process_launches(process_find(launcher)), 0,
		 bpf_ktime_get_ns());
}

void ml_rests(struct task_struct *p)
{
	thread_find(p)->evidence.asked = 0;
}

void ml_polls(struct task_struct *launcher)
{
	struct thread_state *thread = thread_find(launcher);

	role_turn(&thread->evidence, true, true);
	consumer_polls(thread, process_find(launcher), bpf_ktime_get_ns());
}

void ml_feeds(struct task_struct *launcher)
{
	struct thread_state *thread = thread_find(launcher);

	thread->evidence.nr_yields = 0;
	consumer_feeds(thread, process_find(launcher), bpf_ktime_get_ns());
}
