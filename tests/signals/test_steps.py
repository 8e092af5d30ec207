# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the steps that `signals` finds in the lab's framework jobs with the steps that the jobs log.

Runs on the machine's own kernel and watches the calls of the jobs only. A step is found if an end was reported
between the logged ends of the step before and of the step itself. Further ends in this time are wrong.
"""
import bisect
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from compare.results import Tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
SCRIPTS = pathlib.Path(__file__).parents[2] / "lab/framework"
STEPS = 60
# The probes are attached while the job sleeps, so that no step is missed.
STARTUP_MS = 2000
MIN_FOUND = 0.99
TRAINING = ("async", "async-starved", "launch-bound", "limiter", "autograd", "overlap-ddp", "pipeline", "graphs",
            "accumulate", "moe", "item10")
# With the real PyTorch beside the virtual GPU. Its import takes long enough for the probes to be attached.
REAL = ("torch_accumulate", "torch_async_starved")
# job -> basis of its steps
JOBS = dict.fromkeys(TRAINING + REAL, "optimizer") | dict.fromkeys(("serve-async", "idle-server"), "iteration")
OPTIONS = {"idle-server": ("--rate", "40")}
# Python of the jobs with the real PyTorch, if it is another one: `./dev real forky`
OTHER_PYTHON = os.environ.get("JOB_PYTHON", "").split()


def watch(work, *command):
    """Returns the ends of the steps that were found and their basis, by process, and what the command printed."""
    done = subprocess.run([BUILD / "tests/signals/signals", "--json", "--calls", "--every", "100",
                           "--timeline", work / "timeline", "--", *command], check=True, capture_output=True, text=True)
    found, bases = collections.defaultdict(list), {}
    for kind, tgid, _, time, *_ in map(str.split, (work / "timeline").read_text().splitlines()):
        if kind == "step":
            found[int(tgid)].append(int(time))
    for report in map(json.loads, done.stdout.splitlines()):
        bases |= {process["pid"]: process["step_basis"] for process in report["processes"]}
    return found, bases, done.stderr


def follow(work, job):
    """Returns the ends of the true steps and of those that were found, and the basis of the latter, by process."""
    if job in REAL:
        found, bases, printed = watch(work, *(OTHER_PYTHON or [sys.executable]), SCRIPTS / f"{job}.py",
                                      "--vgpu", BUILD / "lab/vgpu", "--steps", str(STEPS))
        own = next(json.loads(line) for line in printed.splitlines() if line.startswith("{"))
        print(f"# {job}: Python {own['python']}, PyTorch {own['torch']}, loaders by {own['start_method']}")
        return {own["pid"]: own["step_ends_ns"]}, found, bases
    found, bases, _ = watch(work, BUILD / "lab/framework/framework", job, "--steps", str(STEPS), "--startup-ms",
                            str(STARTUP_MS), "--truth", work / "truth", *OPTIONS.get(job, ()))
    dump = subprocess.run([BUILD / "lab/truth/truth", "dump", *(work / "truth").glob("framework.*.truth")],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    true = collections.defaultdict(list)
    for record in map(json.loads, dump.splitlines()):
        if record["kind"] == "step":
            true[record["pid"]].append(record["end_ns"])
    return true, found, bases


def judge(tap, job, true, found, bases):
    tap.check(len(true) > 0, f"{job}: {len(true)} processes logged steps")
    for pid, ends in sorted(true.items()):
        # Index of the step that each found end belongs to; the last one is after all steps.
        steps = [bisect.bisect_left(ends, time) for time in found[pid]]
        hits = len(set(steps) - {len(ends)})
        tap.check(len(ends) == STEPS and hits >= MIN_FOUND * len(ends) and hits >= MIN_FOUND * len(steps),
                  f"{job}: process {pid}: {hits} of {len(ends)} steps were found, {len(steps) - hits} more were reported")
        basis = bases.get(pid, "none")
        tap.check(basis == JOBS[job], f"{job}: the basis of the steps is {basis}")


def main(jobs):
    tap = Tap()
    for job in jobs or JOBS:
        if job in REAL and not OTHER_PYTHON and not importlib.util.find_spec("torch"):
            print(f"# {job}: skipped, PyTorch is not installed: run tools/root layer torch")
            continue
        with tempfile.TemporaryDirectory() as work:
            judge(tap, job, *follow(pathlib.Path(work), job))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
