# SPDX-License-Identifier: GPL-2.0-only
"""Holds what the kernel said (a timeline of `signals`) against what the lab logged.

    compare.py TIMELINE TRUTH-TOOL TRUTH-DIR

Prints, for every process that has a launcher, the share of its time in which
both name the same phase, the confusion matrix in ms, and the share of thread
time with the right role. Speaks TAP; the bounds are those of the specification.
"""
import collections
import glob
import json
import subprocess
import sys

PHASES = ["unknown", "data_loading", "gpu_compute", "nccl_collective", "optimizer_step"]
ROLES = ["other", "launcher", "sync_waiter", "loader", "collective_helper"]
MIN_PHASE, MIN_ROLE = 0.97, 0.99


def read_truth(tool, folder):
    phases, threads = collections.defaultdict(list), {}
    for path in sorted(glob.glob(f"{folder}/*.truth")):
        lines = subprocess.run([tool, "dump", path], check=True, capture_output=True, text=True).stdout
        for line in lines.splitlines():
            record = json.loads(line)
            span = (record["start_ns"], record["end_ns"])
            if record["kind"] == "phase":
                phases[record["pid"], record["tid"]].append((*span, PHASES[record["sub"]]))
            elif record["kind"] == "thread":
                threads[record["pid"], record["tid"]] = (*span, ROLES[record["sub"]])
    return phases, threads


def read_timeline(path):
    """(tgid) -> phase changes; (tid) -> role changes; each sorted by time."""
    phases, roles = collections.defaultdict(list), collections.defaultdict(list)
    for line in open(path, encoding="ascii"):
        kind, tgid, tid, time, *label = line.split()
        if kind == "phase":
            phases[int(tgid)].append((int(time), label[0]))
        elif kind == "role":
            roles[int(tid)].append((int(time), label[0]))
    for changes in (*phases.values(), *roles.values()):
        changes.sort()
    return phases, roles


def confusion(spans, changes, before):
    """Time in ns by (truth, seen) over the spans; `before` is what holds until the first change."""
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


def agreement(matrix):
    total = sum(matrix.values())
    return sum(ns for (truth, seen), ns in matrix.items() if truth == seen) / total if total else 0.0


def main(timeline, tool, folder):
    truth_phases, threads = read_truth(tool, folder)
    seen_phases, seen_roles = read_timeline(timeline)
    results = []
    for (pid, tid), spans in sorted(truth_phases.items()):
        if threads[pid, tid][2] != "launcher":
            continue
        matrix = confusion(spans, seen_phases[pid], "unknown")
        results.append((f"process {pid}: phases agree for {agreement(matrix):.4f} of the time",
                        agreement(matrix) >= MIN_PHASE))
        for (truth, seen), ns in sorted(matrix.items()):
            print(f"# process {pid}: {truth:>15} seen as {seen:<15} {ns / 1e6:10.1f} ms")
    right = total = 0
    for (pid, tid), (start, end, role) in sorted(threads.items()):
        matrix = confusion([(start, end, role)], seen_roles[tid], "other")
        right += agreement(matrix) * (end - start)
        total += end - start
        print(f"# thread {tid} of {pid}: {role}, right for {agreement(matrix):.4f} of its life")
    share = right / total if total else 0.0
    results.append((f"roles are right for {share:.4f} of thread time", share >= MIN_ROLE))
    print(f"1..{len(results)}")
    for number, (text, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    return not all(good for _, good in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
