# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares: cpu.weight at each level, its changes, nice inside a group, and idle tasks."""
import os

from . import groups
from .cases import Bound, Case, Figure, at_most, like_eevdf, ratio_of_eevdf

STALL_SECONDS = 14  # longer than the watchdog of sched_ext waits for a task
SOME = Bound("> 0", lambda eevdf, zernel: zernel > 0)


def one_and_eight(seconds):
    with groups.tree({"one": {}, "eight": {}}) as (one, eight):
        one.start_hogs(1)
        eight.start_hogs(8)
        return groups.shares([one, eight], seconds)[:1]


def levels(seconds):
    tree = {"a": {"weight": 100}, "a/a1": {"weight": 100}, "a/a2": {"weight": 300}, "b": {"weight": 200}}
    with groups.tree(tree) as (_, a1, a2, b):
        a1.start_hogs(6)
        a2.start_hogs(4)
        b.start_hogs(4)
        return groups.shares([a1, a2, b], seconds)


def change(seconds):
    with groups.tree({"a": {}, "b": {}}) as (a, b):
        a.start_hogs(2)
        b.start_hogs(4)
        before = groups.shares([a, b], seconds)
        a.set(weight=400)
        return before[0], groups.shares([a, b], seconds)[0]


def nice(seconds):
    """On one CPU: nice 0 and nice 5 in one group, three hogs in another group of the same weight."""
    with groups.tree({"mixed": {}, "other": {}}) as (mixed, other):
        first, = mixed.start_hogs(1, cpus={1})
        second, = mixed.start_hogs(1, nice=5, cpus={1})
        other.start_hogs(3, cpus={1})
        share = groups.shares([mixed, other], seconds)[0]
        return share, first.cpu_seconds() / second.cpu_seconds()


def idle_group(seconds):
    with groups.tree({"idle": {"idle": 1}, "busy": {}}) as (idle, busy):
        idle.start_hogs(2)
        busy.start_hogs(2)
        return groups.shares([idle, busy], max(seconds, STALL_SECONDS))[:1] * 2


def idle_task(seconds):
    def be_idle():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    with groups.tree({"pod": {}}) as (pod,):
        idle = pod.start_hogs(1, cpus={1}, prepare=be_idle)[0]
        pod.start_hogs(1, cpus={1})
        groups.cpus_used([pod], 0)
        before = idle.cpu_seconds(), pod.cpu_seconds()
        groups.cpus_used([pod], max(seconds, STALL_SECONDS))
        after = idle.cpu_seconds(), pod.cpu_seconds()
    share = 100 * (after[0] - before[0]) / (after[1] - before[1])
    return share, share


CASES = (
    Case("shares", one_and_eight, (Figure("share of 1 hog beside a group of 8, %", like_eevdf(5)),)),
    Case("shares-levels", levels, (Figure("share of A1: 100 in A of 100, 6 hogs, %", like_eevdf(5)),
                                   Figure("share of A2: 300 in A of 100, 4 hogs, %", like_eevdf(5)),
                                   Figure("share of B: 200, 4 hogs, %", like_eevdf(5)))),
    Case("shares-change", change, (Figure("share of 2 hogs beside 4 of equal weight, %", like_eevdf(5)),
                                   Figure("share after a change of 100 to 400, %", like_eevdf(5)))),
    Case("shares-nice", nice, (Figure("share of nice 0 and 5 beside 3 hogs, %", like_eevdf(5)),
                               Figure("nice 0 / nice 5 inside the group", ratio_of_eevdf(0.9, 1.1)))),
    Case("idle-group", idle_group, (Figure("share of cpu.idle, 2 hogs beside 2, %", at_most(3)),
                                    Figure("the same", SOME))),
    Case("idle-task", idle_task, (Figure("share of SCHED_IDLE on one CPU, %", at_most(3)),
                                  Figure("the same", SOME))),
)
