# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how CPU time is shared between tasks and jobs."""
import contextlib
import os
import pathlib
import statistics
import time
from dataclasses import replace

from compare import run, scenarios

from . import machine
from .machine import check

JOB_HOGS = 4
NICE = (-5, 0, 5, 10)
OVERSUBSCRIBED = 20
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUP_WEIGHTS = (300, 100)


def equal_jobs(seconds):
    with machine.attached(), machine.hogs([machine.Hog] * (2 * JOB_HOGS)) as hogs:
        got = machine.cpu_time_of(hogs, seconds)
    # Tasks belong to the jobs alternately, in the order of their start, so that neither job is older.
    one, other = sum(got[::2]), sum(got[1::2])
    apart = abs(one - other) / max(one, other)
    yield f"two jobs of {JOB_HOGS} hogs: {one:.2f} s and {other:.2f} s of CPU time in {seconds} s, difference {apart:.1%}"
    check(apart <= 0.05, f"the CPU times of equal jobs differ by {apart:.1%}, more than 5 %")


def nice_shares(scheduler, seconds):
    """Returns the CPU time of each nice level divided by that of nice 0, on one CPU."""
    with machine.attached(scheduler), machine.hogs(
            [lambda nice=nice: machine.Hog(nice, cpus={1}) for nice in NICE]) as hogs:
        got = dict(zip(NICE, machine.cpu_time_of(hogs, seconds)))
    return {nice: got[nice] / got[0] for nice in NICE}


def nice_weights(seconds):
    eevdf, ours = (nice_shares(scheduler, seconds) for scheduler in (machine.EEVDF, machine.ZERNEL))
    yield "nice | CPU time / that of nice 0, EEVDF | CPU time / that of nice 0, Zernel | Zernel / EEVDF"
    for nice in NICE:
        yield f"{nice:4} | {eevdf[nice]:32.3f} | {ours[nice]:33.3f} | {ours[nice] / eevdf[nice]:.3f}"
        check(all(abs(ours[nice] / eevdf[nice] - 1) <= 0.1 for nice in NICE),
              "the ratios of the nice levels differ from those of EEVDF by more than 10 %")


@contextlib.contextmanager
def weighted_groups():
    """Creates a cgroup for each weight."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    groups = [CGROUPS / f"weight-{weight}" for weight in CGROUP_WEIGHTS]
    for group, weight in zip(groups, CGROUP_WEIGHTS):
        group.mkdir()
        (group / "cpu.weight").write_text(str(weight))
    try:
        yield groups
    finally:
        for group in groups:
            machine.wait_for(lambda group=group: "populated 0" in (group / "cgroup.events").read_text(),
                             machine.BACK_SECONDS)
            group.rmdir()


def shares_of_groups(scheduler, groups, seconds):
    """Returns the CPU time of one hog in each group, on one CPU."""
    made = [lambda group=group: machine.Hog(cpus={1}, prepare=lambda: (group / "cgroup.procs").write_text("0"))
            for group in groups]
    with machine.attached(scheduler), machine.hogs(made) as hogs:
        return machine.cpu_time_of(hogs, seconds)


def weights(seconds):
    """Run one hog in a cgroup of weight 300 and one in a cgroup of weight 100, on one CPU."""
    with weighted_groups() as groups:
        for scheduler in (machine.EEVDF, machine.ZERNEL):
            heavy, light = shares_of_groups(scheduler, groups, seconds)
            yield (f"weight {CGROUP_WEIGHTS[0]}: {heavy:.2f} s, weight {CGROUP_WEIGHTS[1]}: {light:.2f} s of CPU time "
                   f"in {seconds} s: {heavy / light:.2f} : 1 under {scheduler.name}")
    wanted = CGROUP_WEIGHTS[0] / CGROUP_WEIGHTS[1]
    check(abs(heavy / light / wanted - 1) <= 0.1, f"the ratio differs from {wanted:.0f} : 1 by more than 10 %")


def starved(job):
    """
    Returns the same job with loaders that need more CPU time than there is, and without collectives, because a
    rank that waits in a collective polls.
    """
    args = job.args.replace("--load-cpu-us 4000", "--load-cpu-us 30000").replace("--allreduce-bytes 4194304", "")
    return replace(job, args=args)


def shares_of_jobs(scheduler, jobs, seconds):
    with machine.attached(scheduler), contextlib.ExitStack() as stack:
        groups = []
        for job in jobs:
            group = run.cgroup(job.name)
            process = run.start([str(machine.BUILD / f"lab/{job.program}/{job.program}"), *job.args.split(),
                                 "--seconds", str(seconds + 10)], group, 0, {**dict(job.env), "VGPU_SHM": run.SHM})
            stack.callback(process.wait)
            stack.callback(process.kill)
            groups.append(group)
        time.sleep(3)
        before = [run.cpu_seconds(group) for group in groups]
        time.sleep(seconds)
        return [run.cpu_seconds(group) - was for group, was in zip(groups, before)]


def gpu_shares(seconds):
    """Two jobs that need more CPU time than there is, with one process for each GPU."""
    jobs = [starved(scenarios.THREE_GPUS), starved(scenarios.ONE_GPU)]
    for scheduler in (machine.EEVDF, machine.ZERNEL):
        three, one = shares_of_jobs(scheduler, jobs, seconds)
        yield (f"job with 3 GPUs: {three:.2f} s, job with 1 GPU: {one:.2f} s of CPU time in {seconds} s: "
               f"{three / one:.2f} : 1 under {scheduler.name}")
        check(abs(three / one / 3 - 1) <= 0.1, "the ratio differs from 3 : 1 by more than 10 %")


def oversubscribed(seconds):
    number = OVERSUBSCRIBED * os.cpu_count()
    with machine.attached(), machine.hogs([machine.Hog] * number) as hogs, machine.Waits() as waits:
        got = machine.cpu_time_of(hogs, seconds)
    yield (f"{number} hogs on {os.cpu_count()} CPUs in {seconds} s: {min(got):.2f} to {max(got):.2f} s of CPU time each, "
           f"median {statistics.median(got):.2f} s; {waits}")
    check(min(got) >= statistics.median(got) / 2, "a hog got less than half of the median CPU time")


def fairness(seconds):
    """Compare equal jobs, nice levels, jobs with 3 and with 1 GPU, and 20 hogs per CPU."""
    for part in (equal_jobs, nice_weights, gpu_shares, oversubscribed):
        yield from part(seconds)
