# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits: cpu.max, its burst, its changes, and tasks that leave a throttled cgroup."""
import contextlib
import statistics
import time

from compare import run, scenarios

from .. import machine
from . import groups
from .cases import Case, Figure, at_least, at_most, at_most_eevdf, near

HUNDREDTH = "1000 1000000"  # after 1 ms of CPU time the group is throttled for nearly a second
RELEASES = 5
KILLS = 10
SOON_SECONDS = 0.2


def hog(seconds):
    with groups.tree({"limited": {"max": "20000 100000"}}) as (limited,):
        limited.start_hogs(1)
        return groups.cpus_used([limited], seconds)


def nested(seconds):
    with groups.tree({"outer": {"max": "30000 100000"}, "outer/inner": {"max": "50000 100000"}}) as (_, inner):
        inner.start_hogs(1)
        return groups.cpus_used([inner], seconds)


def siblings(seconds):
    """The parent limits both children; one child has a lower limit of its own."""
    with groups.tree({"outer": {"max": "80000 100000"}, "outer/low": {"max": "20000 100000"}, "outer/free": {}}) as made:
        outer, low, free = made
        low.start_hogs(2)
        free.start_hogs(2)
        return groups.cpus_used([outer, low], seconds)


def threads(seconds):
    with groups.tree({"limited": {"max": "50000 100000"}}) as (limited,):
        limited.start_hogs(8)
        return groups.cpus_used([limited], seconds)


def beside_hogs(seconds):
    with groups.tree({"limited": {"max": "40000 100000"}, "free": {}}) as (limited, free):
        limited.start_hogs(4)
        free.start_hogs(4)
        used = groups.cpus_used([limited, free], seconds)
        return used[0], sum(used)


def burst(seconds):
    """A job that needs 35 ms of CPU time every 400 ms has saved enough to finish at once; a hog saves nothing."""
    files = {"max": "20000 100000", "max.burst": "20000"}
    with groups.tree({"limited": files}) as (limited,):
        took = limited.periodic(35000, 400000, seconds)["took"]["p50_ms"]
    with groups.tree({"limited": files}) as (limited,):
        limited.start_hogs(1)
        return took, *groups.cpus_used([limited], seconds, settle=1)


def change(seconds):
    with groups.tree({"limited": {"max": "20000 100000"}}) as (limited,):
        limited.start_hogs(2)
        used = []
        for quota in (20000, 60000, 10000):
            limited.set(max=f"{quota} 100000")
            used += groups.cpus_used([limited], seconds)
        return used


def ran_soon(throttled, release):
    """Returns the CPU time of a throttled task in the time after its release, in ms: the median of a few tries."""
    got = []
    for _ in range(RELEASES):
        throttled.set(max=HUNDREDTH)
        task, = throttled.start_hogs(1)
        time.sleep(SOON_SECONDS)
        before = task.cpu_seconds()
        release(task)
        time.sleep(SOON_SECONDS)
        got.append(1000 * (task.cpu_seconds() - before))
        throttled.hogs.remove(task)
        task.end()
    return statistics.median(got), min(got)


def removed(_):
    with groups.tree({"limited": {}}) as (limited,):
        return ran_soon(limited, lambda task: limited.set(max="max 100000"))


def moved(_):
    """The task moves out of a throttled cgroup, which is then empty and can be removed."""
    with groups.tree({"free": {}}) as (free,):
        def release(task):
            free.add(task.pid)
            machine.wait_for(lambda: "populated 0" in (limited.path / "cgroup.events").read_text(), SOON_SECONDS)
            limited.path.rmdir()
            limited.path.mkdir()

        with groups.tree({"limited": {}}) as (limited,):
            return ran_soon(limited, release)


def killed(_):
    """Kills throttled hogs. The kernel does not ask the scheduler about tasks that exit."""
    took = []
    for _ in range(KILLS):
        with groups.tree({"limited": {"max": "5000 100000"}}) as (limited,):
            limited.start_hogs(8)
            time.sleep(SOON_SECONDS)
            begin = time.monotonic()
        took.append(1000 * (time.monotonic() - begin))
    return statistics.median(took), max(took)


@contextlib.contextmanager
def lab_groups(limit):
    """Gives the cgroups of the lab the cpu controller, and the first job a limit."""
    job = run.cgroup(scenarios.BY_NAME["noisy"].jobs[0].name)
    groups.control(groups.ROOT)
    groups.control(run.CGROUP)
    (job / "cpu.max").write_text(limit)
    try:
        yield
    finally:
        (job / "cpu.max").write_text("max 100000")


def job_inside(seconds):
    """A training job that needs more CPU time than its limit, beside 8 hogs."""
    plan, scenario = {"build": str(machine.BUILD), "seconds": seconds}, scenarios.BY_NAME["noisy"]
    run.WORK.mkdir(exist_ok=True)
    with lab_groups("50000 100000"), run.noise(plan, scenario, 0) as noise:
        finished, _ = run.run_jobs(plan, scenario, machine.EEVDF, noise)
    job, truth, summary = finished[0]
    steps = run.durations_ms(job, truth)
    return summary["cpu_share"] * scenarios.CPUS, statistics.mean(steps)


CASES = (
    Case("quota", hog, (Figure("CPUs of a hog under 20 %", near(0.2, 5)),)),
    Case("quota-nested", nested, (Figure("CPUs under 50 % below a parent of 30 %", near(0.3, 5)),)),
    Case("quota-siblings", siblings, (Figure("CPUs of the parent of 80 %", near(0.8, 5)),
                                      Figure("CPUs of the child of 20 %", near(0.2, 5)))),
    Case("quota-threads", threads, (Figure("CPUs of 8 hogs under 50 %", near(0.5, 5)),)),
    Case("quota-beside", beside_hogs, (Figure("CPUs of 4 hogs under 40 % beside 4 hogs", near(0.4, 5)),
                                       Figure("CPUs of both groups", at_least(1.96)))),
    Case("quota-burst", burst, (Figure("time for 35 ms of saved CPU time, ms", at_most_eevdf(1.25)),
                                Figure("CPUs of a hog with a burst", near(0.2, 5)))),
    Case("quota-change", change, (Figure("CPUs under 20 %", near(0.2, 5)), Figure("CPUs after a change to 60 %", near(0.6, 5)),
                                  Figure("CPUs after a change to 10 %", near(0.1, 5)))),
    Case("quota-removed", removed, (Figure("ms of CPU in 200 ms after `max`, median", at_least(150)),
                                    Figure("the same, worst of 5", at_least(100)))),
    Case("quota-moved", moved, (Figure("ms of CPU in 200 ms after a move, median", at_least(150)),
                                Figure("the same, worst of 5", at_least(100)))),
    Case("quota-killed", killed, (Figure("ms until 8 killed hogs under 5 % are gone, median"),
                                  Figure("the same, worst of 10", at_most(3000)))),
    Case("quota-job", job_inside, (Figure("CPUs of a training job under 50 %", at_most(0.525)),
                                   Figure("its mean step, ms"))),
)
