/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/process.h"

static const char *const role_labels[ROLE_NR] = {
	[ROLE_OTHER] = "other",
	[ROLE_LAUNCHER] = "launcher",
	[ROLE_SYNC_WAITER] = "sync_waiter",
	[ROLE_LOADER] = "loader",
	[ROLE_COLLECTIVE_HELPER] = "collective_helper",
	[ROLE_CRITICAL] = "critical",
};

static const char *const operation_labels[COLLECTIVE_NR] = {
	[DETAIL_ALL_REDUCE - COLLECTIVE_FIRST] = "all_reduce",
	[DETAIL_BROADCAST - COLLECTIVE_FIRST] = "broadcast",
	[DETAIL_REDUCE - COLLECTIVE_FIRST] = "reduce",
	[DETAIL_ALL_GATHER - COLLECTIVE_FIRST] = "all_gather",
	[DETAIL_REDUCE_SCATTER - COLLECTIVE_FIRST] = "reduce_scatter",
	[DETAIL_SEND - COLLECTIVE_FIRST] = "send",
	[DETAIL_RECV - COLLECTIVE_FIRST] = "recv",
	[DETAIL_BARRIER - COLLECTIVE_FIRST] = "barrier",
};

static const char *const doing_labels[THREAD_DOING_NR] = {
	[THREAD_UNKNOWN] = "unknown",	[THREAD_RUNNING] = "running",
	[THREAD_SLEEPING] = "sleeping", [THREAD_UNINTERRUPTIBLE] = "uninterruptible",
	[THREAD_STOPPED] = "stopped",
};

static const char *const symbols[CALL_NR] = {
#define CALL(runtime, symbol, ...) [CALL_##runtime##_##symbol] = #symbol,
#include "abi/runtimes.def"
};

bool process_is_whole(const struct process_state *process)
{
	return process->nr_writes_done == process->nr_writes_begun;
}

u64 process_nr_transitions(const struct process_state *process)
{
	return process->task.nr_transitions - process_may_take_back(process);
}

const char *role_label(u32 role)
{
	return role_labels[role < ROLE_NR ? role : ROLE_OTHER];
}

const char *operation_label(u32 operation)
{
	return operation < COLLECTIVE_NR ? operation_labels[operation] : "unknown";
}

const char *thread_doing_label(u32 doing)
{
	return doing_labels[doing < THREAD_DOING_NR ? doing : THREAD_UNKNOWN];
}

const char *call_symbol(u32 call)
{
	return call < CALL_NR ? symbols[call] : "";
}
