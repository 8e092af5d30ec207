# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the task states of one process in snapshots with the truth of the lab and with /proc."""
import collections
import json
import pathlib
import re
import statistics
import subprocess

PHASES = "Unknown", "DataLoading", "GpuCompute", "NcclCollective", "OptimizerStep"  # as enum phase
FIELDS = {"pid", "is_ml_process", "current_phase", "gpu_utilization", "last_gpu_sync_ns", "cpu_burst_duration_ns",
          "io_wait_fraction", "nccl_active", "futex_wait_count", "gpu_id", "gpu_instance", "compute_instance", "gpu_basis", "phase_start_ns", "phase_time_ns"}
WORK_KERNEL = 0  # lab/truth/truth.h
# An emulated CPU can pause between the log entry of the job and the probe.
LATE_NS = 50_000_000
MOST = 0.7  # of all samples
LOADER_CHECK_NS = 1_000_000_000  # lab/train/step.c


class Look:
    """A sample: the state of a task, and the data of /proc just after it."""

    def __init__(self, now_ns, start_ns, task):
        proc = pathlib.Path(f"/proc/{task['pid']}")
        self.now_ns, self.start_ns, self.task = now_ns, start_ns, task
        self.cpu_ns = int((proc / "schedstat").read_text().split()[0])
        self.nr_sleeps = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (proc / "status").read_text(), re.M)[1])
        self.has_collectives = bool(re.search(r"lib[nr]ccl", (proc / "maps").read_text()))
        self.total_ns = sum(task["phase_time_ns"].values())
        self.first_ns = now_ns - self.total_ns  # when its first phase began


class Truth:
    """The log of the process itself: spans of its phases, its syncs and its kernels on the GPU."""

    def __init__(self, tool, folder, pid):
        self.phases, self.syncs, self.kernels = [], [], []
        dump = subprocess.run([tool, "dump", *sorted(folder.glob("*.truth"))], capture_output=True, text=True, check=True)
        for record in map(json.loads, dump.stdout.splitlines()):
            span = record["start_ns"], record["end_ns"]
            if record["pid"] != pid:
                continue
            if record["kind"] == "phase" and record["tid"] == pid:
                self.phases.append((*span, PHASES[record["sub"]]))
            elif record["kind"] == "sync":
                self.syncs.append(span[1])
            elif record["kind"] == "busy" and record["sub"] == WORK_KERNEL:
                self.kernels.append(span)

    def fractions(self, begin, end):
        """The share of each phase between two times."""
        total = collections.Counter()
        for start, stop, phase in self.phases:
            total[phase] += max(0, min(stop, end) - max(start, begin))
        return {phase: total[phase] / total.total() for phase in PHASES}

    def doubtful(self, begin, end):
        """
        The share of waits for data that only a timer ended. After one second, the launcher of the lab checks its loader,
        so the BPF programs do not see a wait for data. Emulated CPUs can be this slow.
        """
        spans = (stop - start for start, stop, phase in self.phases if phase == "DataLoading" and begin <= start < end)
        return sum(span // LOADER_CHECK_NS * LOADER_CHECK_NS for span in spans) / (end - begin)

    def has_phase(self, phase, start_ns):
        return any(is_late(start, start_ns) for start, _, name in self.phases if name == phase)

    def is_last_sync(self, look):
        before = [end for end in self.syncs if end <= look.task["last_gpu_sync_ns"]]
        missed = [end for end in self.syncs if look.task["last_gpu_sync_ns"] < end < look.now_ns - LATE_NS]
        return before and not missed and is_late(max(before), look.task["last_gpu_sync_ns"])

    def busy_percent(self, begin, end):
        return 100 * sum(max(0, min(stop, end) - max(start, begin)) for start, stop in self.kernels) / (end - begin)


def is_late(truth_ns, seen_ns):
    return -1_000_000 <= seen_ns - truth_ns <= LATE_NS


def share(values):
    values = list(values)
    return sum(map(bool, values)) / len(values)


def verdicts(looks, truth, gpu):
    """Yields (is correct, description) for each field of the task state."""
    tasks = [look.task for look in looks]
    first, last = looks[0], looks[-1]
    phases = share(truth.has_phase(task["current_phase"], task["phase_start_ns"]) for task in tasks)
    syncs = share(truth.is_last_sync(look) for look in looks)
    seen, busy = statistics.mean(task["gpu_utilization"] for task in tasks), truth.busy_percent(first.now_ns, last.now_ns)
    bursts = [task["cpu_burst_duration_ns"] for task in tasks]
    futexes = [task["futex_wait_count"] for task in tasks]
    fractions, exact = last.task["phase_fraction"], truth.fractions(last.first_ns, last.now_ns)
    off = max(abs(fractions[phase] - exact[phase]) for phase in PHASES)
    doubtful = truth.doubtful(last.first_ns, last.now_ns)
    age_ns = last.now_ns - last.start_ns
    yield all(set(task) == FIELDS | {"phase_fraction"} for task in tasks), "all fields exist, and no other field"
    yield len({task["pid"] for task in tasks}) == 1 and truth.phases, "pid: the process that wrote the truth"
    yield all(task["is_ml_process"] is True for task in tasks), "is_ml_process"
    yield phases >= MOST and {"DataLoading", "GpuCompute"} <= {task["current_phase"] for task in tasks}, \
        f"current_phase, phase_start_ns: {phases:.0%} match a phase of the truth and its start"
    yield all(look.first_ns <= look.task["phase_start_ns"] <= look.now_ns for look in looks), \
        "phase_start_ns is within the lifetime of the process"
    yield abs(seen - busy) <= 20 and all(0 <= task["gpu_utilization"] <= 100 for task in tasks), \
        f"gpu_utilization: {seen:.0f}, truth {busy:.0f}"
    yield syncs >= MOST, f"last_gpu_sync_ns: {syncs:.0%} match the end of the last sync of the truth"
    yield max(bursts) > 0 and all(burst <= look.cpu_ns for burst, look in zip(bursts, looks)), \
        f"cpu_burst_duration_ns: up to {max(bursts) / 1e6:.1f} ms, its CPU time is {last.cpu_ns / 1e6:.0f} ms"
    yield all(task["io_wait_fraction"] == 0 for task in tasks), "io_wait_fraction: 0, because the process reads no files"
    yield all(look.has_collectives for look in looks if look.task["nccl_active"]), \
        "nccl_active: only if the collective library is mapped"
    yield max(futexes) > 0 and all(nr <= look.nr_sleeps for nr, look in zip(futexes, looks)), \
        f"futex_wait_count: up to {max(futexes)} in a sample, the process slept {last.nr_sleeps} times"
    yield {task["gpu_id"] for task in tasks} == {gpu}, f"gpu_id: {tasks[0]['gpu_id']}"
    yield len({look.first_ns for look in looks}) == 1, "phase_time_ns: the sum grows with elapsed time"
    yield 0 <= age_ns - last.total_ns <= 1e9, \
        f"phase_time_ns: {last.total_ns / 1e9:.3f} s in total, age of the process {age_ns / 1e9:.3f} s"
    yield off <= 0.05 + doubtful and abs(sum(fractions.values()) - 1) < 1e-9, \
        f"phase_fraction: largest error {off:.3f}, {doubtful:.3f} uncertain"
