# SPDX-License-Identifier: GPL-2.0-or-later
"""A fake zerneld with one job. The state of the scheduler decides how long a step takes."""
import math
import os
import random
import time

from fake_zerneld import FakeZerneld

PID = 4711
JOB = "slurm 12"
NS = 1_000_000_000


def slot_of(ns):
    """As in src/core/hist.h."""
    return max(0, math.ceil(4 * math.log2(ns / NS)) + 120)


class FakeJob(FakeZerneld):
    """Step times in ms without and with the scheduler; 0: no step ends. The GPU is busy for half of each step."""

    def __init__(self, path, without_ms, with_ms, state="off", by_nice=False):
        super().__init__(path, {})
        self.step_ms = {"off": without_ms, "attached": with_ms, "ejected": without_ms}
        self.state = state
        self.by_nice = by_nice  # the nice actuator acts, so the scheduler itself stays off
        self.may = ["read", "change"]
        self.refused = None    # why the scheduler cannot be attached
        self.gone = False      # the job has ended
        self.switches = []     # all requests to switch
        self.random = random.Random(7)
        self.count, self.sum, self.busy = 0, 0, 0
        self.buckets = {}
        self.simulated = time.monotonic_ns()

    def _step_ns(self):
        mean = self.step_ms[self.state]
        return round(mean * 1e6 * self.random.uniform(0.98, 1.02)) if mean else 0

    def _simulate(self):
        """Simulates steps until now. A step keeps the duration of the state in which it started."""
        now = time.monotonic_ns()
        while True:
            step = self._step_ns()
            if not step:
                self.simulated = now
                return
            if self.simulated + step > now:
                return
            self.simulated += step
            self.count += 1
            self.sum += step
            self.busy += step // 2
            self.buckets[slot_of(step)] = self.buckets.get(slot_of(step), 0) + 1

    def current(self):
        self._simulate()
        idle = (self.sum - self.busy)
        process = {"pid": PID, "comm": "python3", "job": 1, "start_ns": 5, "phase": "gpu_compute", "launcher_tid": PID,
                   "steps": self.count, "busy_ns": self.busy, "idle_ns": {"loader_cpu": idle}, "memory": [], "culprits": [],
                   "phase_ns": {},
                   "hists": {"step": {"count": self.count, "sum": self.sum, "min": 1, "max": 60 * NS,
                                      "buckets": sorted(map(list, self.buckets.items()))}}}
        scheduler = {"state": self.state, "reason": "stalled" if self.state == "ejected" else "", "classes": {}}
        if self.by_nice:
            scheduler |= {"state": "off", "actuator": "nice" if self.state == "attached" else "none"}
        return {"version": 2, "time_ms": int(time.time() * 1000), "monotonic_ns": time.monotonic_ns(),
                "jobs": [{"name": JOB, "cgroup": "/slurm/job_12", "gone": {}}],
                "processes": [] if self.gone else [process], "threads": [], "gpus": [], "gone": {},
                "scheduler": scheduler}

    def _switch(self, method):
        self._simulate()
        self.switches.append(method)
        if method == "scheduler.attach" and self.refused:
            return {"error": {"code": "failed", "message": self.refused}}
        self.state = "attached" if method == "scheduler.attach" else "off"
        return {"result": {"state": self.state}}

    def _answer(self, client, state, request):
        if self.silent:
            return
        method = request["method"]
        if method == "hello":
            reply = {"result": {"version": 2, "server": "fake", "snapshot_version": 2, "may": self.may}}
        elif method == "snapshot":
            reply = {"result": self.current()}
        else:
            reply = self._switch(method)
        self._send(client, {"id": request["id"], **reply})


def in_directory(directory, *arguments, **options):
    """Starts a fake zerneld with a new socket in the directory."""
    name = f"{len(os.listdir(directory))}.sock"
    return FakeJob(os.path.join(directory, name), *arguments, **options).start()
