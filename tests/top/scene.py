# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots with known values, one for each second of a fake node."""
START_MS = 12 * 3600 * 1000  # 12:00:00 UTC
SECOND_NS = 1_000_000_000
MS = 1_000_000
GIB = 1 << 30
PHASES = ("unknown", "data_loading", "gpu_compute", "nccl_collective", "optimizer_step")
PATTERN = "DGGCGGOGD."  # phases of rank 0, one per second; each further rank is one second behind
LETTERS = dict(zip(".DGCO", PHASES))


def hist(nr, slot, ns):
    return {"count": nr, "sum": nr * ns, "min": ns if nr else 0, "max": ns if nr else 0,
            "buckets": [[slot, nr]] if nr else []}


def phase_at(second, behind):
    return LETTERS[PATTERN[(second - behind) % len(PATTERN)]]


def process(pid, second, job=1, rank=None, comm="python3", cause="runqueue", idle=20, consumer=0, gpu=0):
    """20 steps per second, 50 ms each. The GPU is idle `idle` % of the time, mostly because of `cause`."""
    behind = rank or 0
    phase_ns = dict.fromkeys(PHASES, 0)
    for each in range(1, second + 1):
        phase_ns[phase_at(each, behind)] += SECOND_NS
    waits = 100 * second
    described = {
        "pid": pid, "comm": comm, "job": job, "start_ns": pid, "nr_ranks": 0 if rank is None else 1, "rank": rank or 0,
        "phase": phase_at(second, behind), "launcher_tid": pid, "consumer_pid": consumer, "phase_ns": phase_ns,
        "memory": [{"gpu": gpu, "current_bytes": (3 + gpu) * GIB, "peak_bytes": 9 * GIB, "allocs": 1, "frees": 0}],
        "hists": {"runqueue_wait": hist(waits, 84 + 4 * behind, MS << behind)}}
    if idle is not None:
        described["busy_ns"] = (100 - idle) * second * SECOND_NS // 100
        described["idle_ns"] = {cause: idle * second * SECOND_NS // 125, "cpu": idle * second * SECOND_NS // 500}
        described["steps"] = 20 * second
        described["step_basis"] = "optimizer"
        described["hists"]["step"] = hist(20 * second, 106, 50 * MS)
    return described


def thread(tid, pid, role, comm="python3"):
    return {"tid": tid, "pid": pid, "role": role, "comm": comm}


def gpu(number, busy):
    return {"gpu": number, "uuid": f"GPU-{number}", "busy_percent": busy, "memory_used_bytes": (3 + number) * GIB,
            "memory_total_bytes": 24 * GIB}


def empty(second):
    """A node without GPU processes."""
    return {
        "version": 2, "time_ms": START_MS + 1000 * second, "monotonic_ns": 1000 * SECOND_NS + second * SECOND_NS,
        "host": "node7", "zernel": "0.1.0", "kernel": "6.18.15", "jobs": [], "processes": [], "threads": [],
        "gpus": [gpu(0, 0)],
        "scheduler": {"state": "attached", "reserved_percent": 30, "classes": {
            "ordinary": {"decisions": {"idle_cpu": 900 * second, "queued": 100 * second}},
            "feeder": {"decisions": {"idle_cpu": 120 * second}}}},
        "cost": {"cpu_ns": second * 4 * MS, "rss_bytes": 20 << 20, "bpf_run_ns": second * 2 * MS},
        "dropped": {"events": 0}}


def node(second):
    """A job of four ranks, a server, and a process without a job. The GPU of rank 2 has the most idle time."""
    snapshot = empty(second)
    snapshot["jobs"] = [{"name": "slurm 4711", "cgroup": "/slurm/job_4711"}, {"name": "pod 0a1b", "cgroup": "/kubepods/0a1b"}]
    for rank in range(4):
        pid = 1000 + 10 * rank
        snapshot["processes"].append(process(pid, second, rank=rank, gpu=rank, idle=(20, 10, 60, 30)[rank],
                                             cause=("runqueue", "collective", "loader_disk", "loader_cpu")[rank]))
        snapshot["threads"] += [thread(pid, pid, "launcher"), thread(pid + 1, pid, "collective_helper", "nccl"),
                                thread(pid + 2, pid, "other", "pt_pin_memory")]
    snapshot["processes"].append(process(1003, second, comm="loader 0", idle=None, consumer=1000, gpu=0))
    snapshot["threads"].append(thread(1003, 1003, "loader", "loader 0"))
    snapshot["processes"].append(process(2000, second, job=2, comm="llama-server", idle=None))
    snapshot["processes"].append(process(3000, second, job=0, comm="tr\u00e4ning \u8a9e", cause="other", idle=0))
    snapshot["gpus"] = [gpu(number, (80, 90, 40, 70)[number]) for number in range(4)]
    return snapshot


def large(second):
    """A large node: 64 ranks on 8 GPUs."""
    snapshot = empty(second)
    snapshot["jobs"] = [{"name": "slurm 1", "cgroup": "/slurm/job_1"}]
    snapshot["processes"] = [process(5000 + rank, second, rank=rank, gpu=rank % 8, idle=rank) for rank in range(64)]
    # process() doubles the wait with each rank; use the same wait for all ranks.
    for each in snapshot["processes"]:
        each["hists"]["runqueue_wait"] = hist(100 * second, 84, MS)
    snapshot["threads"] = [thread(100000 + 8 * rank + i, 5000 + rank, "loader") for rank in range(64) for i in range(8)]
    snapshot["gpus"] = [gpu(number, 10 * number) for number in range(8)]
    return snapshot


def hostile(second):
    """Names that contain control sequences."""
    snapshot = empty(second)
    snapshot["host"] = "evil\u001b]0;owned\u0007"
    snapshot["jobs"] = [{"name": "job\u009b31m\u202e", "cgroup": "/x"}]
    snapshot["processes"] = [process(666, second, comm="\u001b[2J%s%n\n")]
    return snapshot
