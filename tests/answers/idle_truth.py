# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the lab's truth of a rank: the causes of idle time, and its steps."""
import bisect
import collections

from compare import run

CAUSES = ("cpu", "runqueue", "loader_cpu", "loader_runqueue", "loader_disk", "loader_other", "other")
PHASE_DATA_LOADING, BUSY_PHASES, PHASE_OPTIMIZER = 1, (2, 3), 4  # src/core/phase.h
KIND_PHASE, KIND_STEP, KIND_LOAD, KIND_SYNC, KIND_LAUNCH, KIND_IDLE = 2, 3, 4, 11, 12, 13  # lab/truth/truth.h
LOAD_IO = 0
LATE_NS = 200_000
BATCH_MASK = (1 << 32) - 1


class Rank:
    """All records of one launcher, sorted by time."""

    def __init__(self):
        self.phases, self.idle, self.steps, self.syncs, self.launches = [], [], [], [], []
        self.number = 0

    @property
    def first_launch_ns(self):
        return next(start for start, _, phase in self.phases if phase in BUSY_PHASES)

    def since_sync(self, idle):
        """A launcher may be preempted between the end of a sync and its own time stamp: count that time."""
        start, end, phase, cpu, delay = idle
        place = bisect.bisect_right(self.syncs, start) - 1
        late = start - self.syncs[place] if phase == PHASE_OPTIMIZER and place >= 0 else 0
        return (start - late, end, phase, cpu, delay + late) if late > LATE_NS else idle

    def until_launch(self, idle):
        """The same for a launcher that is preempted between its own time stamp and the launch."""
        start, end, phase, cpu, delay = idle
        place = bisect.bisect_left(self.launches, end)
        following = bisect.bisect_left(self.idle, (end,))
        if place == len(self.launches) or (following < len(self.idle) and self.idle[following][0] <= self.launches[place]):
            return idle
        late = self.launches[place] - end
        return (start, end + late, phase, cpu, delay + late) if late > LATE_NS else idle

    def step_at(self, time_ns):
        place = bisect.bisect_right(self.steps, time_ns, key=lambda step: step[0]) - 1
        return place if place >= 0 and time_ns <= self.steps[place][1] else None


def logged(folder):
    """Yields the pid and the record of all truth logs of one job."""
    for path in sorted(folder.glob("*.truth")):
        pid = int(path.name.split(".")[1])
        for record in run.records(path):
            yield pid, record


class Truth:
    """The truth of one job whose steps end in a sync."""

    def __init__(self, folder):
        self.ranks = collections.defaultdict(Rank)
        self.loads = collections.defaultdict(list)  # (rank, batch) -> actions of its loader
        launchers = set()
        for pid, record in logged(folder):
            self.add(pid, record, launchers)
        self.ranks = {pid: rank for pid, rank in self.ranks.items() if pid in launchers}
        for rank in self.ranks.values():
            rank.phases.sort()
            rank.idle.sort()
            rank.steps.sort()
            rank.syncs.sort()
            rank.launches.sort()

    def add(self, pid, record, launchers):
        start, end, a, b, c, _, sub, kind = record
        rank = self.ranks[pid]
        if kind == KIND_PHASE:
            rank.phases.append((start, end, sub))
        elif kind == KIND_IDLE:
            rank.idle.append((start, end, sub, a, b))
        elif kind == KIND_SYNC:
            rank.syncs.append(end)
        elif kind == KIND_LAUNCH:
            rank.launches.append(start)
        elif kind == KIND_STEP:
            launchers.add(pid)
            rank.number = b
            rank.steps.append((start, end))
        elif kind == KIND_LOAD:
            self.loads[a >> 32, a & BATCH_MASK].append((start, end, sub, b, c))

    def loader_parts(self, rank, batch, start, end, slept):
        """Returns the time of the loader by cause from `start` to `end`, while the launcher slept for `slept` ns."""
        parts = collections.Counter()
        for begin, finish, what, cpu, delay in self.loads[rank.number, batch]:
            overlap = min(end, finish) - max(start, begin)
            if overlap <= 0:
                continue
            share = overlap / (finish - begin)
            parts["loader_cpu"] += cpu * share
            parts["loader_runqueue"] += delay * share
            if what == LOAD_IO:
                parts["loader_disk"] += (finish - begin - cpu - delay) * share
        known = sum(parts.values())
        if known > slept:
            parts = collections.Counter({cause: ns * slept / known for cause, ns in parts.items()})
        parts["loader_other"] = max(0, slept - known)
        return parts

    def idle_ns(self, rank, begin, finish):
        """Idle time by cause from `begin` to `finish`. An interval across a boundary counts with its share inside."""
        causes = collections.Counter()
        for start, end, phase, cpu, delay in map(rank.until_launch, map(rank.since_sync, rank.idle)):
            inside = min(end, finish) - max(start, begin)
            if inside <= 0:
                continue
            share = inside / (end - start)
            causes["cpu"] += cpu * share
            causes["runqueue"] += delay * share
            slept = inside - (cpu + delay) * share
            if phase == PHASE_DATA_LOADING:
                begin_wait = max(start, begin)
                causes.update(self.loader_parts(rank, rank.step_at(begin_wait), begin_wait, min(end, finish), slept))
            else:
                causes["other"] += slept
        return causes
