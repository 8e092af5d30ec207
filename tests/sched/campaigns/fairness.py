# SPDX-License-Identifier: GPL-2.0-only
"""Who gets how much."""
import os
import statistics

from . import machine
from .machine import check

JOB_HOGS = 4
NICE = (-5, 0, 5, 10)
OVERSUBSCRIBED = 20


def equal_jobs(seconds):
    with machine.attached(), machine.hogs([machine.Hog] * (2 * JOB_HOGS)) as hogs:
        got = machine.cpu_time_of(hogs, seconds)
    # Every other one, as they were started: neither job is the older.
    one, other = sum(got[::2]), sum(got[1::2])
    apart = abs(one - other) / max(one, other)
    yield f"two jobs of {JOB_HOGS} hogs: {one:.2f} s and {other:.2f} s of CPU in {seconds} s, {apart:.1%} apart"
    check(apart <= 0.05, "equal jobs are more than 5 % apart")


def nice_shares(scheduler, seconds):
    """What each level got over what level 0 got, on one CPU."""
    with machine.attached(scheduler), machine.hogs(
            [lambda nice=nice: machine.Hog(nice, cpus={1}) for nice in NICE]) as hogs:
        got = dict(zip(NICE, machine.cpu_time_of(hogs, seconds)))
    return {nice: got[nice] / got[0] for nice in NICE}


def nice_weights(seconds):
    eevdf, ours = (nice_shares(scheduler, seconds) for scheduler in (machine.EEVDF, machine.ZERNEL))
    yield "nice | share of nice 0's: EEVDF | zernel | over EEVDF's"
    for nice in NICE:
        yield f"{nice:4} | {eevdf[nice]:26.3f} | {ours[nice]:6.3f} | {ours[nice] / eevdf[nice]:.3f}"
    check(all(abs(ours[nice] / eevdf[nice] - 1) <= 0.1 for nice in NICE), "more than 10 % off EEVDF's ratios")


def oversubscribed(seconds):
    number = OVERSUBSCRIBED * os.cpu_count()
    with machine.attached(), machine.hogs([machine.Hog] * number) as hogs, machine.Waits() as waits:
        got = machine.cpu_time_of(hogs, seconds)
    yield (f"{number} hogs on {os.cpu_count()} CPUs in {seconds} s: {min(got):.2f} to {max(got):.2f} s, "
           f"median {statistics.median(got):.2f} s; {waits}")
    check(min(got) >= statistics.median(got) / 2, "somebody starves")


def fairness(seconds):
    """Equal jobs, nice levels, 20 hogs a CPU."""
    for part in (equal_jobs, nice_weights, oversubscribed):
        yield from part(seconds)
