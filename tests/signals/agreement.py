# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares a timeline of `signals` with the truth of the lab, weighted by time."""
import collections
import json

PHASES = ["unknown", "data_loading", "gpu_compute", "nccl_collective", "optimizer_step"]
OPERATIONS = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "send", "recv"]
ROLES = ["other", "launcher", "sync_waiter", "loader", "collective_helper", "feeder_path"]
REPORTED_AS = {"feeder_path": "critical"}  # roles of the truth that Zernel has no name for: what it must report for them
MOST_LINKS = 8  # length of a chain of waits
WORK_KERNEL, WORK_COPY = 0, 1  # lab/truth/truth.h


class Truth:
    """The records of `truth dump`: phases, roles and waits of every thread, launches and copies of every process."""

    def __init__(self, path):
        self.phases, self.threads = collections.defaultdict(list), {}
        self.roles, self.waits = collections.defaultdict(list), collections.defaultdict(list)
        self.launches, self.copies = collections.Counter(), collections.Counter()
        self.launch_spans = collections.defaultdict(list)
        counts = {WORK_KERNEL: self.launches, WORK_COPY: self.copies}
        with open(path, encoding="ascii") as stream:
            for record in map(json.loads, stream):
                thread, span = (record["pid"], record["tid"]), (record["start_ns"], record["end_ns"])
                if record["kind"] == "phase":
                    self.phases[thread].append((*span, PHASES[record["sub"]]))
                elif record["kind"] == "thread":
                    self.threads[thread] = (*span, ROLES[record["sub"]])
                elif record["kind"] == "role":
                    self.roles[thread].append((*span, ROLES[record["sub"]]))
                elif record["kind"] == "wait":
                    self.waits[record["tid"]].append((*span, record["a"]))
                elif record["kind"] == "launch" and record["sub"] in counts:
                    counts[record["sub"]][record["pid"]] += 1
                    if record["sub"] == WORK_KERNEL:
                        self.launch_spans[record["pid"]].append(span)

    def launch_quantile(self, pid, count, quantile):
        """Returns a quantile of the first `count` launches, in ns."""
        durations = sorted(end - start for start, end in sorted(self.launch_spans[pid])[:count])
        return durations[min(int(quantile * len(durations)), len(durations) - 1)]


class Collectives:
    """By process and operation: (time from the call to the return of the sync that covers it, bytes), in order."""

    def __init__(self, path):
        calls, syncs = collections.defaultdict(list), collections.defaultdict(list)
        self.done = collections.defaultdict(list)
        with open(path, encoding="ascii") as stream:
            for record in map(json.loads, stream):
                if record["kind"] == "collective":
                    calls[record["pid"], OPERATIONS[record["sub"]]].append((record["start_ns"], record["b"]))
                elif record["kind"] == "sync":
                    syncs[record["pid"]].append((record["start_ns"], record["end_ns"]))
        for (pid, operation), made in calls.items():
            covering = iter(sorted(syncs[pid]))
            start, end = next(covering)
            for entered, size in sorted(made):
                while start < entered:
                    start, end = next(covering)
                self.done[pid, operation].append((end - entered, size))


def quantile(durations, share):
    ordered = sorted(durations)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Timeline:
    """Phase changes by process and role changes by thread, sorted by time."""

    def __init__(self, path):
        self.phases, self.roles = collections.defaultdict(list), collections.defaultdict(list)
        self.taken_back = collections.defaultdict(list)
        with open(path, encoding="ascii") as stream:
            for line in stream:
                kind, tgid, tid, time, *label = line.split()
                # A wait that turns out not to be for data is revoked: it ends at its own start.
                if kind == "phase" and self.phases[int(tgid)][-1:] == [(int(time), "data_loading")]:
                    self.taken_back[int(tgid)].append(int(time))
                if kind == "phase":
                    self.phases[int(tgid)].append((int(time), label[0]))
                elif kind == "role":
                    self.roles[int(tid)].append((int(time), label[0]))
                elif kind == "exit":  # also at exec, after which the thread has no role
                    self.roles[int(tid)].append((int(time), "other"))
        for changes in (*self.phases.values(), *self.roles.values()):
            changes.sort(key=lambda change: change[0])

    def transitions(self, pid, until=None):
        """Returns how many phase changes were final, up to a time in ns, and how many were revoked."""
        changes, backs = ([time for time in times if until is None or time <= until]
                          for times in ([time for time, _ in self.phases[pid]], self.taken_back[pid]))
        return len(changes) - 2 * len(backs), len(backs)


def confusion(spans, changes, before):
    """Returns the time in ns by (truth, detected) over the spans; `before` is the value before the first change."""
    matrix = collections.Counter()
    edges = sorted({t for s in spans for t in s[:2]} | {t for t, _ in changes})
    seen, next_change, span = before, 0, 0
    spans = sorted(spans)
    for start, end in zip(edges, edges[1:]):
        while next_change < len(changes) and changes[next_change][0] <= start:
            seen = changes[next_change][1]
            next_change += 1
        while span < len(spans) and spans[span][1] <= start:
            span += 1
        if span < len(spans) and spans[span][0] <= start:
            matrix[spans[span][2], seen] += end - start
    return matrix


def show(where, matrix, what="phase", labels=tuple(PHASES)):
    """Prints the time in ms: one row for each true label, one column for each detected label."""
    reported = [REPORTED_AS.get(label, label) for label in labels]
    print(f"# {where}: {'time in ms':>30}" + "".join(f"{'detected ' + seen:>27}" for seen in reported))
    for truth in labels:
        row = [matrix[truth, seen] / 1e6 for seen in reported]
        if any(row):
            print(f"# {where}: {f'true {what} {truth}':>30}" + "".join(f"{ms:27.1f}" for ms in row))


def share(matrix):
    """Returns the share of the time in which both agree; 0 for an empty matrix."""
    total = sum(matrix.values())
    return sum(ns for (truth, seen), ns in matrix.items() if truth == seen) / total if total else 0.0


def of_phases(truth, timeline):
    """(pid, role) -> confusion matrix. A process is in the phase of its launcher, or of its only thread."""
    result = {}
    for (pid, tid), spans in sorted(truth.phases.items()):
        role = truth.threads[pid, tid][2]
        if role == "launcher" or pid == tid:
            result[pid, role] = confusion(spans, timeline.phases[pid], "unknown")
    return result


def of_roles(truth, timeline):
    """(pid, tid, role) -> confusion matrix. A thread whose role changed has the last one as its key."""
    return {(pid, tid, life[2]): confusion(truth.roles.get((pid, tid), [life]), timeline.roles[tid], "other")
            for (pid, tid), life in sorted(truth.threads.items())}


def as_reported(matrix):
    """Replaces the roles of the truth that Zernel has no name for."""
    result = collections.Counter()
    for (truth, seen), ns in matrix.items():
        result[REPORTED_AS.get(truth, truth), seen] += ns
    return result


def share_of_roles(matrix):
    return share(as_reported(matrix))


def merged(spans):
    """Returns the union of the spans, sorted."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def critical_of(truth):
    """tid -> spans in which the task was on the critical path: a launcher, or a task on that path, waited for it."""
    found, left = collections.defaultdict(list), []
    for (_, tid), (*life, role) in truth.threads.items():
        if role == "launcher":
            left.append((tid, *life, MOST_LINKS))
    while left:
        waiter, start, end, links = left.pop()
        for wait_start, wait_end, ender in truth.waits[waiter]:
            span = max(start, wait_start), min(end, wait_end)
            if span[0] < span[1] and links:
                found[ender].append(span)
                left.append((ender, *span, links - 1))
    return {tid: merged(spans) for tid, spans in found.items()}


def of_critical(truth, timeline):
    """The roles, as `of_roles`, of all threads together, while they were on the critical path of a launcher."""
    matrix, critical = collections.Counter(), critical_of(truth)
    for (pid, tid), life in truth.threads.items():
        roles = truth.roles.get((pid, tid), [life])
        spans = [(max(start, since), min(end, until), role) for start, end in critical.get(tid, ())
                 for since, until, role in roles if max(start, since) < min(end, until)]
        if spans:
            matrix += confusion(spans, timeline.roles[tid], "other")
    return matrix
