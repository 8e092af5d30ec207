# SPDX-License-Identifier: GPL-2.0-or-later
"""A node as zerneld would report it at any moment: a training job whose third rank lacks a CPU, and a server.

All counters are functions of the time, so that two snapshots always differ by what happened between them.
"""
import json
import math
import pathlib

FIXTURE = pathlib.Path(__file__).parents[1] / "golden/fixture/snapshot.json"
CAUSES = ["cpu", "runqueue", "loader_cpu", "loader_runqueue", "loader_disk", "loader_other", "collective", "disk",
          "memory", "lock", "other"]
PHASES = ["unknown", "data_loading", "gpu_compute", "nccl_collective", "optimizer_step"]
PHASE_NAMES = ["Unknown", "DataLoading", "GpuCompute", "NcclCollective", "OptimizerStep"]
SECOND = 10**9
UPTIME = 5 * 3600
STEP_S = 0.25
HOSTILE = "<img src=x onerror=alert(1)>\u202e\U0001f525\x07&amp;"

# Shares of the time: busy, then causes. The largest cause gets what is left.
TRAIN = {"cpu": 0.04, "loader_disk": 0.03, "loader_cpu": 0.03, "runqueue": 0.01, "lock": 0.005}
STRAGGLER = {"runqueue": 0.22, "loader_runqueue": 0.08, "cpu": 0.05, "loader_cpu": 0.02}
SERVER = {"other": 0.7, "cpu": 0.02}
# The buckets of step times, as shares of all steps.
BUCKETS = [(109, 0.02), (110, 0.08), (111, 0.3), (112, 0.38), (113, 0.14), (114, 0.05), (115, 0.02), (116, 0.01)]


def hist(count, mean_ns):
    """A distribution of `count` values around the slot of the fixture's shape."""
    shift = round(4 * math.log2(mean_ns / (STEP_S * SECOND)))
    buckets = [[slot + shift, int(count * share)] for slot, share in BUCKETS]
    buckets[3][1] += count - sum(nr for _, nr in buckets)
    return {"count": count, "sum": int(count * mean_ns), "min": int(mean_ns * 0.6), "max": int(mean_ns * 2.1),
            "p50": int(mean_ns), "p99": int(mean_ns * 1.8), "buckets": [each for each in buckets if each[1] > 0]}


class Scene:
    """`ranks` is the size of the training job, `hostile` replaces names by such that a page must not execute."""

    def __init__(self, ranks=8, hostile=False, dropped=0):
        self.fixture = FIXTURE.read_text()  # parsed for each use: nothing is shared between snapshots
        self.one = json.dumps(json.loads(self.fixture)["processes"][0])
        self.job = json.dumps(json.loads(self.fixture)["jobs"][0])
        self.ranks = ranks
        self.hostile = hostile
        self.dropped = dropped
        self.start_ms = 0  # since the epoch, at time 0; set by the caller

    def name(self, text):
        return HOSTILE[:15 if text == "comm" else None] if self.hostile else text

    def straggler(self):
        return min(3, self.ranks - 1)

    def shares(self, rank, at):
        """Busy share and causes around a moment; they swing slowly, each rank at its own phase."""
        causes = dict(STRAGGLER if rank == self.straggler() else TRAIN)
        if rank != self.straggler():
            causes["collective"] = 0.16
        return causes

    @staticmethod
    def swing(rank, at):
        """The integral over time of a swing between -0.05 and 0.05."""
        period = 90 + 7 * (rank % 5)
        return 0.05 * period / (2 * math.pi) * (1 - math.cos(2 * math.pi * at / period))

    def account(self, causes, rank, at):
        largest = max(causes, key=causes.get)
        moved = self.swing(rank, at)
        idle = {cause: int(SECOND * causes.get(cause, 0) * at) for cause in CAUSES}
        idle[largest] += int(SECOND * moved)
        return int(SECOND * at) - sum(idle.values()), idle

    def process(self, pid, rank, at, causes):
        process = json.loads(self.one)
        busy, idle = self.account(causes, max(rank, 0), at)
        steps = int(at / STEP_S)
        process.update(pid=pid, comm=self.name("python3") if rank >= 0 else self.name("llama-server"), start_ns=SECOND + pid,
                       rank=rank, nr_ranks=self.ranks if rank >= 0 else 0, phase=PHASES[2 if rank >= 0 else 0], launcher_tid=pid,
                       busy_ns=busy, idle_ns=idle, open_ns={cause: 0 for cause in CAUSES}, steps=steps if rank >= 0 else int(at * 4),
                       step_basis="optimizer" if rank >= 0 else "iteration", gpu_evidence="device",
                       stepped_ns=int(at * SECOND))
        process["counted"] = {"steps": process["steps"], "busy_ns": busy, "open_ns": 0, "idle_ns": idle}
        split = {"data_loading": 0.12, "gpu_compute": 0.66, "nccl_collective": 0.14, "optimizer_step": 0.08}
        if rank == self.straggler():
            split = {"data_loading": 0.3, "gpu_compute": 0.58, "nccl_collective": 0.02, "optimizer_step": 0.1}
        if rank < 0:
            split = {"gpu_compute": 0.28, "unknown": 0.72}
        process["phase_ns"] = {phase: int(SECOND * at * split.get(phase, 0)) for phase in PHASES}
        step_ns = STEP_S * SECOND
        waits = hist(steps * 12, 90e3 if rank != self.straggler() else 4.1e6)
        process["hists"] = {"step": hist(process["steps"], step_ns), "runqueue_wait": waits,
                            "sync_wait": hist(steps, 0.6 * step_ns), "launch": hist(steps * 300, 14e3)}
        process["culprits"] = []
        if rank == self.straggler():
            process["culprits"] = [{"cause": "runqueue", "ns": int(idle["runqueue"] * 0.8), "name": self.name("cc1plus")},
                                   {"cause": "runqueue", "ns": int(idle["runqueue"] * 0.15), "name": "backup"},
                                   {"cause": "loader_runqueue", "ns": int(idle["loader_runqueue"] * 0.7), "name": self.name("cc1plus")}]
        elif rank >= 0:
            process["culprits"] = [{"cause": "loader_disk", "ns": int(idle["loader_disk"] * 0.9), "name": "nvme0n1"}]
        gpu = max(rank, 0) % 8 if rank >= 0 else 7
        process["memory"] = [{"gpu": gpu, "current_bytes": (61 << 30) - (rank << 28) if rank >= 0 else 9 << 30,
                              "peak_bytes": 66 << 30 if rank >= 0 else 10 << 30, "allocs": 300 + steps, "frees": 100 + steps}]
        process["collectives"]["all_reduce"] = steps * 3 if rank >= 0 else 0
        process["task"]["phase_time_ns"] = dict(zip(PHASE_NAMES, process["phase_ns"].values()))
        process["task"].update(pid=pid, gpu_id=gpu, gpu_basis="runtime", current_phase="GpuCompute", gpu_utilization=70)
        return process

    def loader(self, pid, consumer):
        process = json.loads(self.one)
        process.update(pid=pid, comm=self.name("loader 0"), start_ns=SECOND + pid, rank=0, nr_ranks=0, launcher_tid=0, consumer_pid=consumer,
                       phase="unknown", steps=0, step_basis="none", busy_ns=0, stepped_ns=0, culprits=[], memory=[], hists={})
        for key in ("idle_ns", "open_ns"):
            process[key] = {cause: 0 for cause in CAUSES}
        process["phase_ns"] = {phase: 0 for phase in PHASES}
        process["counted"] = {"steps": 0, "busy_ns": 0, "open_ns": 0, "idle_ns": process["idle_ns"]}
        process["task"]["pid"] = pid
        process["task"]["gpu_id"] = None
        return process

    def jobs(self):
        train, pod = (json.loads(self.job) for _ in range(2))
        train.update(name=self.name("slurm-4711"), cgroup=self.name("/slurm/job_4711"), claimed_name=self.name("llama-70b"),
                     started_ms=self.start_ms, peak_bytes=66 << 30)
        pod.update(name="pod-0a1b", cgroup="/kubepods/pod0a1b", kind="pod", namespace="chat", pod=self.name("llama-serve-7d9f"), claimed_name="",
                   claimed_account="", container_name="server", uid=2000, started_ms=self.start_ms, peak_bytes=10 << 30)
        return [train, pod]

    def snapshot(self, at):
        """The state `at` seconds after the jobs started."""
        s = json.loads(self.fixture)
        pids = [4000 + 10 * rank for rank in range(self.ranks)]
        s.update(time_ms=self.start_ms + int(1000 * at), monotonic_ns=int(SECOND * (UPTIME + at)), host="node7", jobs=self.jobs())
        s["dropped"]["events"] = self.dropped
        s["processes"] = [self.process(pid, rank, at, self.shares(rank, at)) for rank, pid in enumerate(pids)]
        for process in s["processes"]:
            process["job"] = 1
        server = self.process(9000, -1, at, SERVER)
        server.update(job=2, rank=0)
        s["processes"] += [server, *({**self.loader(pid + 5, pid), "job": 1} for pid in pids)]
        s["threads"] = [thread for pid in [*pids, 9000] for thread in (
            {"tid": pid, "pid": pid, "role": "launcher", "comm": self.name("python3")},
            {"tid": pid + 1, "pid": pid, "role": "collective_helper", "comm": "nccl"},
            {"tid": pid + 2, "pid": pid, "role": "other", "comm": "pt_pin_memory"})]
        s["threads"] += [{"tid": pid + 5, "pid": pid + 5, "role": "loader", "comm": self.name("loader 0")} for pid in pids]
        s["gpus"] = [{"gpu": gpu, "uuid": f"GPU-{gpu:04}", "model": "H100 80GB HBM3", "busy_percent": 62 + (7 * gpu + int(at)) % 30,
                      "memory_used_bytes": (62 << 30) - (gpu << 28), "memory_total_bytes": 80 << 30, "numa_node": gpu // 4} for gpu in range(8)]
        for name, each in s["scheduler"]["classes"].items():
            weight = {"ordinary": 900, "feeder": 240, "wanted_loader": 180, "loader": 60, "system": 40}.get(name, 4)
            each["decisions"] = {kind: int(at * weight * share) for kind, share in
                                 {"idle_cpu": 0.5, "queued": 0.4, "preempted": 0.06, "promoted": 0.2 if name != "ordinary" else 0, "overdue": 0,
                                  "slice_extended": 0.01, "capped": 0, "throttled": 0}.items()}
            each["ran_ns"] = int(at * SECOND * weight / 100)
            each["runqueue_wait"] = hist(int(at * weight), 70e3 if name != "ordinary" else 900e3)
        s["scheduler"].update(state="attached", actuator="sched_ext")
        s["cost"] = {"cpu_ns": int(at * 6e6), "rss_bytes": 31 << 20, "bpf_run_ns": int(at * 11e6), "loop_longest_ns": 8_300_000}
        return s

    def events(self, since, until):
        """Changes of phase and steps between two moments, as zerneld sends them to a recorder."""
        events = []
        for rank in range(self.ranks):
            pid, late = 4000 + 10 * rank, rank == self.straggler()
            for step in range(int(since / STEP_S), int(until / STEP_S) + 1):
                for part, kind, value in ((0, "phase", "data_loading"), (0.3 if late else 0.12, "phase", "gpu_compute"),
                                          (0.88 if late else 0.78, "phase", "nccl_collective"), (0.9, "phase", "optimizer_step"),
                                          (0.99, "step", step + 1)):
                    moment = (step + part) * STEP_S
                    if since < moment <= until:
                        events.append([int(SECOND * (UPTIME + moment)), kind, pid, pid, value])
        return sorted(events)

    def ended(self, at):
        """The snapshot with the ended jobs: one that ended a minute ago."""
        s = self.snapshot(at)
        busy, idle = self.account(dict(TRAIN), 0, 1800)
        job = {**s["jobs"][0], "name": "slurm-4600", "cgroup": "/slurm/job_4600", "claimed_name": "warmup", "started_ms": self.start_ms,
               "ended_ms": self.start_ms + int(1000 * (at - 60)),
               "gone_ranks": [{"known": True, "rank": 0, "steps": 7200, "busy_ns": busy, "open_ns": 0, "idle_ns": idle}]}
        return {**s, "jobs": [job], "processes": [], "threads": []}

    def life(self, at):
        """The ended job with its processes, as their counters were at the end."""
        s = self.ended(at)
        processes = [{**self.process(3000 + rank, rank, at - 60, self.shares(rank, at)), "job": 1} for rank in range(self.ranks)]
        return {**s, "processes": processes}
