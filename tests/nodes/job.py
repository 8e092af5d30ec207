# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of a training job on several nodes, and a fake zerneld that reports one of its ranks."""
import copy
import threading
import time

from fake_zerneld import FakeZerneld

# The parts of a step in ms, except for the compute time and the wait for other ranks.
LOAD_MS, REDUCE_MS, UPDATE_MS = 4, 20, 6
COMPUTE_MS = 150
HANG_NS = 60 * 10 ** 9


class Job:
    """Steps of all ranks: each rank computes; the collective ends for all when the last rank enters it."""

    def __init__(self, nr_ranks):
        self.load_ms = LOAD_MS
        self.compute_ms = [COMPUTE_MS] * nr_ranks
        self.spent_ms = [dict.fromkeys(("data_loading", "gpu_compute", "nccl_collective", "optimizer_step"), 0)
                         for _ in range(nr_ranks)]
        self.nr_steps = 0
        self.missing = None  # the rank that the others wait for; none of them has steps then
        self.begin = time.monotonic()
        self.age_ms = 0
        self.lock = threading.Lock()

    def _step(self):
        last_ms = max(self.compute_ms)
        for compute_ms, spent in zip(self.compute_ms, self.spent_ms):
            spent["data_loading"] += self.load_ms
            spent["gpu_compute"] += compute_ms
            spent["nccl_collective"] += last_ms - compute_ms + REDUCE_MS
            spent["optimizer_step"] += UPDATE_MS
        self.nr_steps += 1
        self.age_ms += self.load_ms + last_ms + REDUCE_MS + UPDATE_MS

    def slow_down(self, rank, factor):
        with self.lock:
            self.compute_ms[rank] = COMPUTE_MS * factor

    def hang(self, rank):
        """Stops all ranks. All except `rank` have entered one more collective."""
        with self.lock:
            self.missing = rank

    def starve(self, load_ms):
        """Lets all ranks wait for data for so long in each step."""
        with self.lock:
            self.load_ms = load_ms

    def now(self, rank):
        """The number of steps until now, and the time of a rank per phase, in ms."""
        with self.lock:
            while self.missing is None and self.age_ms < (time.monotonic() - self.begin) * 1000:
                self._step()
            return self.nr_steps, dict(self.spent_ms[rank])


class RankZerneld(FakeZerneld):
    """A fake zerneld of the node of one rank; `snapshot` is a snapshot of a node with one rank."""

    def __init__(self, path, snapshot, job, rank):
        super().__init__(path, copy.deepcopy(snapshot))
        self.first = snapshot
        self.job, self.rank = job, rank

    @staticmethod
    def _count(counted, nr_steps, spent_ms):
        """The GPU works except while the rank loads data or waits for others."""
        counted["steps"] = nr_steps
        counted["busy_ns"] = (spent_ms["gpu_compute"] + spent_ms["optimizer_step"]) * 1000000
        counted["idle_ns"]["loader_cpu"] = spent_ms["data_loading"] * 1000000
        counted["idle_ns"]["collective"] = spent_ms["nccl_collective"] * 1000000

    def _measure(self, nr_steps):
        """Each step adds the samples of the printed snapshot once more, except waits for a CPU: they would be an alert."""
        for now, first in zip(self.snapshot["processes"], self.first["processes"]):
            for kind, hist in first["hists"].items():
                if kind != "runqueue_wait":
                    now["hists"][kind].update(count=hist["count"] * (nr_steps + 1), sum=hist["sum"] * (nr_steps + 1),
                                              buckets=[[slot, nr * (nr_steps + 1)] for slot, nr in hist["buckets"]])

    def _enter(self, process, nr_steps):
        """One collective in each step. A rank that hangs entered its last one long ago."""
        world = next(comm for comm in self.snapshot["communicators"] if comm["pid"] == process["pid"])
        hangs = self.job.missing is not None
        when_ns = self.snapshot["monotonic_ns"] - HANG_NS * hangs
        world.update(rank=self.rank, nr_ranks=process["nr_ranks"], entered=nr_steps + (hangs and self.rank != self.job.missing))
        world["calls"][0]["entered_ns"] = process["stepped_ns"] = when_ns

    def current(self):
        nr_steps, spent_ms = self.job.now(self.rank)
        self._measure(nr_steps)
        process = next(p for p in self.snapshot["processes"] if p["nr_ranks"])
        process.pop("task", None)  # has the same values, but of the printed snapshot
        process["rank"] = self.rank
        process["nr_ranks"] = len(self.job.compute_ms)
        for phase, ms in spent_ms.items():
            process["phase_ns"][phase] = ms * 1000000
        process["stepped_ns"] = self.snapshot["monotonic_ns"]
        self._count(process["counted"], nr_steps, spent_ms)
        self._enter(process, nr_steps)
        return super().current()
