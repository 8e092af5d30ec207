/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/snapshot_fields.h"
#include "core/feature.h"
#include "core/process.h"

#define AT(type, member)   offsetof(struct type, member)
#define TASK(member)	   AT(snapshot_process, task.member)
#define TEXT(type, member) FIELD_TEXT, AT(type, member), sizeof(((struct type *)0)->member)

/* clang-format off */
const struct field snapshot_fields[] = {
	{ "time_ms",      FIELD_U64,      AT(snapshot, time_ms) },
	{ "monotonic_ns", FIELD_U64,      AT(snapshot, monotonic_ns) },
	{ "host",         TEXT(snapshot, host) },
	{ "zernel",       TEXT(snapshot, version) },
	{ "kernel",       TEXT(snapshot, kernel) },
	{ "own",          FIELD_BOOL,     AT(snapshot, is_own) },
	{ "lacks",        FIELD_LABELS,   AT(snapshot, lacks), FEATURE_NR, feature_label },
	{ "refused",      FIELD_LABELS,   AT(snapshot, refused), FEATURE_NR, feature_label },
	{ "roles",        FIELD_COUNTS32, AT(snapshot, nr_role), ROLE_NR, role_label },
	{ "dropped",      FIELD_COUNTS,   AT(snapshot, nr_dropped), DROP_NR, snapshot_drop_label },
	{ "restarts",     FIELD_U64,      AT(snapshot, nr_restarts) },
	{ "gpu_conflicts", FIELD_U64,     AT(snapshot, nr_gpu_conflicts) },
	{ "gone_collectives", FIELD_COUNTS, AT(snapshot, gone_collectives.nr), COLLECTIVE_NR, operation_label },
	{ "gone_collective_bytes", FIELD_COUNTS, AT(snapshot, gone_collectives.bytes), COLLECTIVE_NR,
	  operation_label },
	{ "phase_transitions", FIELD_U64, AT(snapshot, nr_transitions) },
	{},
};

const struct field job_fields[] = {
	{ "name",   TEXT(snapshot_job, name) },
	{ "cgroup", TEXT(snapshot_job, cgroup) },
	{ "kind",   FIELD_LABEL, AT(snapshot_job, kind), JOB_KIND_NR, job_kind_label },
	{ "container", TEXT(snapshot_job, container) },
	{ "namespace", TEXT(snapshot_job, names.namespace) },
	{ "pod",       TEXT(snapshot_job, names.pod) },
	{ "container_name", TEXT(snapshot_job, names.container_name) },
	{ "uid",       FIELD_UID, AT(snapshot_job, uid) },
	{ "claimed_name",    TEXT(snapshot_job, names.claimed_name) },
	{ "claimed_account", TEXT(snapshot_job, names.claimed_account) },
	{ "claimed_array",   TEXT(snapshot_job, names.claimed_array) },
	{ "started_ms", FIELD_U64, AT(snapshot_job, started_ms) },
	{ "ended_ms",   FIELD_U64, AT(snapshot_job, ended_ms) },
	{ "peak_bytes", FIELD_U64, AT(snapshot_job, peak_bytes) },
	{ "processes_left_out", FIELD_U64, AT(snapshot_job, nr_left_out) },
	{ "gone_collectives", FIELD_COUNTS, AT(snapshot_job, gone_collectives.nr), COLLECTIVE_NR, operation_label },
	{ "gone_collective_bytes", FIELD_COUNTS, AT(snapshot_job, gone_collectives.bytes), COLLECTIVE_NR,
	  operation_label },
	{},
};

const struct field rank_fields[] = {
	{ "known",   FIELD_BOOL,   AT(snapshot_rank, is_known) },
	{ "rank",    FIELD_S32,    AT(snapshot_rank, rank) },
	{},
};

const struct field account_fields[] = {
	{ "steps",   FIELD_U64,    AT(snapshot_account, nr_steps) },
	{ "busy_ns", FIELD_U64,    AT(snapshot_account, busy_ns) },
	{ "open_ns", FIELD_U64,    AT(snapshot_account, open_ns) },
	{ "idle_ns", FIELD_COUNTS, AT(snapshot_account, idle_ns), IDLE_CAUSE_NR, idle_cause_label },
	{},
};

const struct field process_fields[] = {
	{ "pid",          FIELD_U32,    AT(snapshot_process, pid) },
	{ "comm",         TEXT(snapshot_process, comm) },
	{ "job",          FIELD_U32,    AT(snapshot_process, job) },
	{ "job_step",     TEXT(snapshot_process, step) },
	{ "uid",          FIELD_UID,    AT(snapshot_process, uid) },
	{ "start_ns",     FIELD_U64,    AT(snapshot_process, start_ns) },
	{ "nr_ranks",     FIELD_U32,    AT(snapshot_process, nr_ranks) },
	{ "rank",         FIELD_S32,    AT(snapshot_process, rank) },
	{ "phase",        FIELD_LABEL,  AT(snapshot_process, phase), PHASE_NR, phase_label },
	{ "launcher_tid", FIELD_U32,    AT(snapshot_process, launcher_tid) },
	{ "launcher_state", FIELD_LABEL, AT(snapshot_process, launcher_doing), THREAD_DOING_NR,
	  thread_doing_label },
	{ "launcher_call", TEXT(snapshot_process, launcher_call) },
	{ "launcher_call_since_ns", FIELD_U64, AT(snapshot_process, launcher_call_since_ns) },
	{ "consumer_pid", FIELD_U32,    AT(snapshot_process, consumer_pid) },
	{ "phase_ns",     FIELD_COUNTS, AT(snapshot_process, phase_ns), PHASE_NR, phase_label },
	{ "transitions",  FIELD_U64,    AT(snapshot_process, nr_transitions) },
	{ "steps",        FIELD_U64,    AT(snapshot_process, nr_steps) },
	{ "step_basis",   FIELD_LABEL,  AT(snapshot_process, step_basis), STEP_BASIS_NR,
	  step_basis_label },
	{ "gpu_evidence", FIELD_LABEL,  AT(snapshot_process, gpu_evidence), GPU_EVIDENCE_NR,
	  gpu_evidence_label },
	{ "busy_ns",      FIELD_U64,    AT(snapshot_process, busy_ns) },
	{ "idle_ns",      FIELD_COUNTS, AT(snapshot_process, idle_ns), IDLE_CAUSE_NR,
	  idle_cause_label },
	{ "open_ns",      FIELD_COUNTS, AT(snapshot_process, open_ns), IDLE_CAUSE_NR,
	  idle_cause_label },
	{ "blocked_ns",   FIELD_U64,    AT(snapshot_process, blocked_ns) },
	{ "stepped_ns",   FIELD_U64,    AT(snapshot_process, stepped_ns) },
	{ "collectives", FIELD_COUNTS, AT(snapshot_process, collectives.nr), COLLECTIVE_NR, operation_label },
	{ "collective_bytes", FIELD_COUNTS, AT(snapshot_process, collectives.bytes), COLLECTIVE_NR,
	  operation_label },
	{},
};

const struct field task_fields[] = {
	{ "pid",                   FIELD_U32,      AT(snapshot_process, pid) },
	{ "is_ml_process",         FIELD_BOOL,     TASK(is_ml) },
	{ "current_phase",         FIELD_LABEL,    AT(snapshot_process, phase), PHASE_NR, phase_name },
	{ "gpu_utilization",       FIELD_U32,      TASK(gpu_utilization) },
	{ "last_gpu_sync_ns",      FIELD_U64,      TASK(last_sync_ns) },
	{ "cpu_burst_duration_ns", FIELD_U64,      TASK(burst_ns) },
	{ "io_wait_fraction",      FIELD_PERMILLE, TASK(io_wait_permille) },
	{ "nccl_active",           FIELD_BOOL,     TASK(collective_mapped) },
	{ "futex_wait_count",      FIELD_U32,      TASK(nr_futex_waits) },
	{ "gpu_id",                FIELD_GPU,      TASK(gpu) },
	{ "gpu_instance",          FIELD_GPU,      TASK(gpu_instance) },
	{ "compute_instance",      FIELD_GPU,      TASK(compute_instance) },
	{ "gpu_basis",             FIELD_LABEL,    TASK(gpu_basis), GPU_BASIS_NR, gpu_basis_label },
	{ "phase_start_ns",        FIELD_U64,      TASK(phase_since_ns) },
	{ "phase_time_ns",         FIELD_COUNTS,   AT(snapshot_process, phase_ns), PHASE_NR,
	  phase_name },
	{},
};

const struct field memory_fields[] = {
	{ "gpu",           FIELD_GPU, AT(snapshot_memory, gpu) },
	{ "current_bytes", FIELD_U64, AT(snapshot_memory, book.current_bytes) },
	{ "peak_bytes",    FIELD_U64, AT(snapshot_memory, book.peak_bytes) },
	{ "allocs",        FIELD_U64, AT(snapshot_memory, book.nr_allocs) },
	{ "frees",         FIELD_U64, AT(snapshot_memory, book.nr_frees) },
	{},
};

const struct field culprit_fields[] = {
	{ "cause", FIELD_LABEL, AT(snapshot_culprit, cause), IDLE_CAUSE_NR, idle_cause_label },
	{ "ns",    FIELD_U64,   AT(snapshot_culprit, ns) },
	{ "name",  TEXT(snapshot_culprit, name) },
	{},
};

const struct field oom_fields[] = {
	{ "errors",          FIELD_U64, AT(snapshot_oom, nr) },
	{ "time_ns",         FIELD_U64, AT(snapshot_oom, time_ns) },
	{ "time_ms",         FIELD_U64, AT(snapshot_oom, time_ms) },
	{ "gpu",             FIELD_GPU, AT(snapshot_oom, gpu) },
	{ "tid",             FIELD_U32, AT(snapshot_oom, tid) },
	{ "asked_bytes",     FIELD_U64, AT(snapshot_oom, asked_bytes) },
	{ "allocated_bytes", FIELD_U64, AT(snapshot_oom, allocated_bytes) },
	{ "reserved_bytes",  FIELD_U64, AT(snapshot_oom, reserved_bytes) },
	{ "others_ns",       FIELD_U64, AT(snapshot_oom, others_ns) },
	{ "others_bytes",    FIELD_U64, AT(snapshot_oom, others_bytes) },
	{ "nr_others",       FIELD_U32, AT(snapshot_oom, nr_holders) },
	{},
};

const struct field oom_other_fields[] = {
	{ "pid",   FIELD_U32, AT(snapshot_oom_other, pid) },
	{ "uid",   FIELD_UID, AT(snapshot_oom_other, uid) },
	{ "comm",  TEXT(snapshot_oom_other, comm) },
	{ "bytes", FIELD_U64, AT(snapshot_oom_other, bytes) },
	{},
};

const struct field thread_fields[] = {
	{ "tid",  FIELD_U32,   AT(snapshot_thread, tid) },
	{ "pid",  FIELD_U32,   AT(snapshot_thread, pid) },
	{ "role", FIELD_LABEL, AT(snapshot_thread, role), ROLE_NR, role_label },
	{ "comm", TEXT(snapshot_thread, comm) },
	{},
};

const struct field comm_fields[] = {
	{ "pid",      FIELD_U32,  AT(snapshot_comm, pid) },
	{ "identity", TEXT(snapshot_comm, identity) },
	{ "nr_ranks", FIELD_U32,  AT(snapshot_comm, nr_ranks) },
	{ "rank",     FIELD_U32,  AT(snapshot_comm, rank) },
	{ "world",    FIELD_BOOL, AT(snapshot_comm, is_world) },
	{ "made_ns",  FIELD_U64,  AT(snapshot_comm, made_ns) },
	{ "entered",  FIELD_U64,  AT(snapshot_comm, nr) },
	{},
};

const struct field call_fields[] = {
	{ "op",          FIELD_LABEL, AT(snapshot_call, operation), COLLECTIVE_NR, operation_label },
	{ "bytes",       FIELD_U64,   AT(snapshot_call, bytes) },
	{ "entered_ns",  FIELD_U64,   AT(snapshot_call, entered_ns) },
	{ "returned_ns", FIELD_U64,   AT(snapshot_call, returned_ns) },
	{},
};

const struct field quota_fields[] = {
	{ "uid",       FIELD_U32, AT(snapshot_quota, uid) },
	{ "processes", FIELD_U64, AT(snapshot_quota, nr_processes) },
	{ "memory",    FIELD_U64, AT(snapshot_quota, nr_memory) },
	{ "scans",     FIELD_U64, AT(snapshot_quota, nr_scans) },
	{},
};

const struct field gpu_fields[] = {
	{ "gpu",  FIELD_U32, AT(snapshot_gpu, gpu) },
	{ "uuid", TEXT(snapshot_gpu, uuid) },
	{ "model", TEXT(snapshot_gpu, model) },
	{},
};

const struct optional_field gpu_optional_fields[GPU_OPTIONAL_NR] = {
	{ SNAPSHOT_GPU_BUSY,
	  { "busy_percent", FIELD_U32, AT(snapshot_gpu, busy_percent) } },
	{ SNAPSHOT_GPU_MEMORY_USED,
	  { "memory_used_bytes", FIELD_U64, AT(snapshot_gpu, memory_used_bytes) } },
	{ SNAPSHOT_GPU_MEMORY_TOTAL,
	  { "memory_total_bytes", FIELD_U64, AT(snapshot_gpu, memory_total_bytes) } },
	{ SNAPSHOT_GPU_ACTIVE,
	  { "active_ns", FIELD_U64, AT(snapshot_gpu, active_ns) } },
	{ SNAPSHOT_GPU_ACTIVE,
	  { "active_at_ns", FIELD_U64, AT(snapshot_gpu, active_at_ns) } },
	{ SNAPSHOT_GPU_BUSY_TIME,
	  { "busy_ns", FIELD_U64, AT(snapshot_gpu, busy_ns) } },
	{ SNAPSHOT_GPU_BUSY_TIME,
	  { "busy_since_ns", FIELD_U64, AT(snapshot_gpu, busy_since_ns) } },
	{ SNAPSHOT_GPU_BUSY_TIME,
	  { "busy_at_ns", FIELD_U64, AT(snapshot_gpu, busy_at_ns) } },
	{ SNAPSHOT_GPU_BUSY_TIME,
	  { "busy_period_ns", FIELD_U64, AT(snapshot_gpu, busy_period_ns) } },
	{ SNAPSHOT_GPU_BUSY_TIME,
	  { "busy_counter", FIELD_LABEL, AT(snapshot_gpu, busy_counter), GPU_COUNTER_NR,
	    gpu_counter_label } },
	{ SNAPSHOT_GPU_NUMA_NODE,
	  { "numa_node", FIELD_U32, AT(snapshot_gpu, numa_node) } },
};

const struct field phase_detection_fields[] = {
	{ "io_wait_threshold",      FIELD_PERMILLE, AT(phase_config, io_wait_threshold) },
	{ "optimizer_burst_max_ns", FIELD_U64,      AT(phase_config, optimizer_burst_max_ns) },
	{ "gpu_idle_threshold",     FIELD_U32,      AT(phase_config, gpu_idle_threshold) },
	{ "gpu_active_threshold",   FIELD_U32,      AT(phase_config, gpu_active_threshold) },
	{ "phase_stability_count",  FIELD_U32,      AT(phase_config, phase_stability_count) },
	{ "nccl_detection_enabled", FIELD_BOOL,     AT(phase_config, nccl_detection_enabled) },
	{},
};

const struct field sched_fields[] = {
	{ "state",            FIELD_LABEL, AT(snapshot_sched, state), SCHED_STATE_NR,
	  snapshot_sched_state_label },
	{ "reason",           TEXT(snapshot_sched, reason) },
	{ "limit",            FIELD_LABEL, AT(snapshot_sched, limit), CPU_LIMIT_NR, cpu_limit_label },
	{ "actuator",         FIELD_LABEL, AT(snapshot_sched, actuator), ACTUATOR_NR,
	  snapshot_actuator_label },
	{ "ejections",        FIELD_U64,   AT(snapshot_sched, nr_ejected) },
	{ "rules_off",        FIELD_U32,   AT(snapshot_sched, rules_off) },
	{ "reserved_percent", FIELD_U32,   AT(snapshot_sched, reserved_percent) },
	{ "slice_ns",         FIELD_U64,   AT(snapshot_sched, slice_ns) },
	{ "max_wait_ms",      FIELD_U64,   AT(snapshot_sched, max_wait_ms) },
	{ "groups_left_out",  FIELD_U64,   AT(snapshot_sched, nr_groups_left_out) },
	{ "nice_threads",     FIELD_U64,   AT(snapshot_sched, nr_nice_threads) },
	{ "nice_changes",     FIELD_U64,   AT(snapshot_sched, nr_nice_changes) },
	{ "nice_dropped",     FIELD_U64,   AT(snapshot_sched, nr_nice_dropped) },
	{ "nice_lost",        FIELD_U64,   AT(snapshot_sched, nr_nice_lost) },
	{},
};

const struct field class_fields[] = {
	{ "decisions", FIELD_COUNTS, AT(snapshot_class, nr), DECISION_NR, sched_decision_label },
	{ "ran_ns",    FIELD_U64,    AT(snapshot_class, ran_ns) },
	{},
};

const struct field learning_fields[] = {
	{ "profiles",     FIELD_U64, AT(snapshot_learning, nr_profiles) },
	{ "confident",    FIELD_U64, AT(snapshot_learning, nr_confident) },
	{ "observations", FIELD_U64, AT(snapshot_learning, nr_observations) },
	{},
};

const struct field probes_fields[] = {
	{ "libraries", FIELD_U64, AT(snapshot_probes, nr_libraries) },
	{ "probes",    FIELD_U64, AT(snapshot_probes, nr_probes) },
	{ "processes", FIELD_U64, AT(snapshot_probes, nr_processes) },
	{ "failed",    FIELD_U64, AT(snapshot_probes, nr_failed) },
	{ "libraries_left_out",   FIELD_U64, AT(snapshot_probes, nr_libraries_left_out) },
	{ "processes_left_out",   FIELD_U64, AT(snapshot_probes, nr_processes_left_out) },
	{ "single_stepped",       FIELD_U64, AT(snapshot_probes, nr_stepped) },
	{ "single_stepped_names", TEXT(snapshot_probes, stepped) },
	{},
};

const struct field cost_fields[] = {
	{ "cpu_ns",     FIELD_U64, AT(snapshot_cost, cpu_ns) },
	{ "rss_bytes",  FIELD_U64, AT(snapshot_cost, rss_bytes) },
	{ "bpf_run_ns", FIELD_U64, AT(snapshot_cost, bpf_run_ns) },
	{ "loop_longest_ns", FIELD_U64, AT(snapshot_cost, loop_longest_ns) },
	{},
};

const struct field hist_fields[] = {
	{ "count", FIELD_U64, AT(hist, count) },
	{ "sum",   FIELD_U64, AT(hist, sum) },
	{ "min",   FIELD_U64, AT(hist, min) },
	{ "max",   FIELD_U64, AT(hist, max) },
	{},
};
/* clang-format on */
