# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the steps that `signals` finds in the lab's framework jobs with the steps that the jobs log.

Runs on the machine's own kernel and watches the calls of the jobs only. A step is found if exactly one end was
reported between the logged ends of the step before and of the step itself. More ends in this time are wrong.
"""
import bisect
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from compare.results import Tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
STEPS = 60
# The probes are attached while the job sleeps, so that no step is missed.
STARTUP_MS = 2000
MIN_FOUND = 0.99
TRAINING = ("async", "async-starved", "launch-bound", "limiter", "autograd", "overlap-ddp", "pipeline", "graphs",
            "accumulate", "moe", "item10")
# job -> basis of its steps
JOBS = dict.fromkeys(TRAINING, "optimizer") | {"serve-async": "iteration"}


def follow(work, job):
    """Returns the ends of the true steps and of those that were found, and the basis of the latter, by process."""
    command = [BUILD / "tests/signals/signals", "--json", "--calls", "--every", "100", "--timeline", work / "timeline", "--",
               BUILD / "lab/framework/framework", job, "--steps", str(STEPS), "--startup-ms", str(STARTUP_MS),
               "--truth", work / "truth"]
    reports = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    dump = subprocess.run([BUILD / "lab/truth/truth", "dump", *(work / "truth").glob("framework.*.truth")],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    true, found, bases = collections.defaultdict(list), collections.defaultdict(list), {}
    for record in map(json.loads, dump.splitlines()):
        if record["kind"] == "step":
            true[record["pid"]].append(record["end_ns"])
    for kind, tgid, _, time, *_ in map(str.split, (work / "timeline").read_text().splitlines()):
        if kind == "step":
            found[int(tgid)].append(int(time))
    for report in map(json.loads, reports.splitlines()):
        bases |= {process["pid"]: process["step_basis"] for process in report["processes"]}
    return true, found, bases


def judge(tap, job, true, found, bases):
    tap.check(len(true) > 0, f"{job}: {len(true)} processes logged steps")
    for pid, ends in sorted(true.items()):
        # Index of the step that each found end belongs to; the last one is after all steps.
        steps = [bisect.bisect_left(ends, time) for time in found[pid]]
        hits = len(set(steps) - {len(ends)})
        tap.check(len(ends) == STEPS and hits >= MIN_FOUND * len(ends) and hits >= MIN_FOUND * len(steps),
                  f"{job}: process {pid}: {hits} of {len(ends)} steps were found, {len(steps) - hits} more were reported")
        tap.check(bases[pid] == JOBS[job], f"{job}: the basis of the steps is {bases[pid]}")


def main(jobs):
    tap = Tap()
    for job in jobs or JOBS:
        with tempfile.TemporaryDirectory() as work:
            judge(tap, job, *follow(pathlib.Path(work), job))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
