# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency: a daemon and kernel threads beside a node full of pods."""
import contextlib
import os
import pathlib
import struct
import time

from compare import stats

from . import groups
from .cases import Case, Figure, at_least, at_most, at_most_eevdf, like_eevdf

PODS = {"kubepods.slice": {"weight": 5000}, "kubepods.slice/pod": {"weight": 2500},
        "kubepods.slice/pod/container": {"weight": 2500}}
# A read of this file runs a work item on each CPU, in a kernel thread that is bound to it, and waits for all.
ON_EACH_CPU = pathlib.Path("/proc/sys/vm/stat_refresh")
KTHREAD_PERIOD_SECONDS = 0.05
FLOOR_MS = 10  # daemons and kernel threads are served within this time
ON_CPU_1 = ("taskset", "2")
ARRIVALS = 40
ALONE_SECONDS = 0.1


@contextlib.contextmanager
def busy_pods(number=8):
    with groups.tree(PODS) as (_, _, container):
        container.start_hogs(number)
        time.sleep(groups.SETTLE_SECONDS)
        yield


def daemon(seconds):
    """A daemon in system.slice needs 1 ms every 50 ms."""
    with busy_pods(), groups.tree({"system.slice": {}}) as (service,):
        report = service.periodic(1000, 50000, 2 * seconds)
    late = [report["took"][quantile] - 1 for quantile in ("p50_ms", "p99_ms")]
    return *late, report["woke_late"]["p99_ms"]


def kernel_threads(seconds):
    took = []
    with busy_pods():
        for _ in range(int(seconds / KTHREAD_PERIOD_SECONDS)):
            begin = time.monotonic()
            ON_EACH_CPU.read_bytes()
            took.append(1000 * (time.monotonic() - begin))
            time.sleep(KTHREAD_PERIOD_SECONDS)
    took.sort()
    return stats.quantile(took, 50), stats.quantile(took, 99)


def arrival_ms():
    """Starts a task that moves to CPU 1, and returns how long it then waits there."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        begin = time.monotonic()
        os.sched_setaffinity(0, {1})
        os.write(writer, struct.pack("d", time.monotonic() - begin))
        os._exit(0)
    os.close(writer)
    waited, = struct.unpack("d", os.read(reader, 8))
    os.close(reader)
    os.waitpid(pid, 0)
    return 1000 * waited


def arrivals(_):
    """A hog has been alone on its CPU for a while when another task arrives."""
    waits = []
    with groups.tree({"pod": {}}) as (pod,):
        pod.start_hogs(1, cpus={1})
        for _ in range(ARRIVALS):
            time.sleep(ALONE_SECONDS)
            waits.append(arrival_ms())
    waits.sort()
    return stats.quantile(waits, 50), waits[-1]


def light_sleepers(seconds):
    """On one CPU: 4 daemons of weight 10 that want 2 ms every 4 ms, beside a hog of weight 1000."""
    with groups.tree({"light": {"weight": 10}, "heavy": {"weight": 1000}}) as (light, heavy):
        heavy.start_hogs(1, cpus={1})
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                started = light.start_periodic(2000, 4000, seconds + 60, ON_CPU_1)
                stack.callback(stack.enter_context(started).kill)
            return groups.shares([light, heavy], seconds, settle=2)[:1]


def light_wakeups(seconds):
    """On one CPU: a daemon of nice 19 that needs less than its share, beside a hog of nice 0."""
    with groups.tree({"pod": {}}) as (pod,):
        pod.start_hogs(1, cpus={1})
        return pod.periodic(100, 20000, seconds, ("nice", "-n", 19, *ON_CPU_1))["woke_late"]["p50_ms"],


CASES = (
    Case("daemon", daemon, (Figure("lateness of system.slice beside 8 hogs, p50, ms"),
                            Figure("the same, p99, ms", at_most_eevdf()),
                            Figure("first served after, p99, ms", at_most(FLOOR_MS)))),
    Case("kernel-threads", kernel_threads, (Figure("work on each CPU beside 8 hogs, p50, ms"),
                                            Figure("the same, p99, ms", at_most(FLOOR_MS)))),
    Case("arrival", arrivals, (Figure("wait of a task that arrives at a lone hog, p50, ms"),
                               Figure("the same, worst of 40, ms", at_most(FLOOR_MS)))),
    Case("light-sleepers", light_sleepers, (Figure("share of light sleepers beside a heavy hog, %", like_eevdf(2)),)),
    # A wakeup at any time of a slice of the hog waits for half of it on average. A wakeup that preempts waits for nothing.
    Case("light-wakeups", light_wakeups, (Figure("wait of nice 19 beside a hog of nice 0, p50, ms", at_least(1)),)),
)
