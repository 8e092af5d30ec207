# SPDX-License-Identifier: GPL-2.0-or-later
"""ML jobs: a job and its noise in two pods, and a process that only pretends to use a GPU."""
import contextlib
import os
import pathlib
import shlex
import statistics
import time

from compare import run, scenarios, stats

from .. import machine
from . import groups
from .cases import Case, Derived, Figure, at_least, at_least_eevdf, at_most, like_eevdf, near

DEVICE_FILE = "/dev/zernel-vgpu0"
# Percent of all CPUs: `promotion_percent` of the share that its weight gives it, and 5 % of that.
PROMOTED_AT_MOST = 2 * 25 * 1.05
# A launch and a sync after every 50 ms of CPU time: even with a small share, at least every 0.9 s.
FAKE = "--launches 1 --kernel-us 10 --copy-bytes 0 --loaders 0 --optimizer-us 50000 --sync block".split()
# The same, but the launcher never sleeps: its sync spins, and nothing else waits.
SLEEPLESS = "--launches 1 --kernel-us 10 --copy-bytes 0 --loaders 0 --optimizer-us 20000 --sync spin".split()
RESERVED_PERCENT = 30  # of each CPU, for ordinary tasks
LAUNCHERS = 6
RIVAL_USERS = 8
RIVALS_EACH = int(os.environ.get("CAMPAIGN_SIZE") or 64)
RIVALS_START_SECONDS = 600
RIVALS_SETTLE_SECONDS = 60  # until all of them have initialized, and count as feeders
RIVALS_END_SECONDS = 300  # of hundreds of killed tasks on two emulated CPUs
RIVALS_WINDOWS = 4  # with 130 tasks on 2 CPUs, a turn of all of them takes a second, and the share in some seconds differs
FAKE_SETTLE_SECONDS = 2.5  # until the probes are attached, and each process has synced


def steps(scenario, seconds):
    """Returns the mean step, its p99 and the CPU time of the noise as a share of all CPUs."""
    plan = {"build": str(machine.BUILD), "seconds": seconds}
    run.WORK.mkdir(exist_ok=True)
    run.cgroup("noise")
    groups.control(groups.ROOT)
    groups.control(run.CGROUP)  # from now on the job and the noise are groups of equal weight
    with run.noise(plan, scenario, 0) as noise:
        finished, share = run.run_jobs(plan, scenario, machine.EEVDF, noise)
    job, truth, _ = finished[0]
    values = sorted(run.durations_ms(job, truth))
    return statistics.mean(values), stats.quantile(values, 99), share and 100 * share


def pods(name):
    def measure(seconds):
        scenario = scenarios.BY_NAME[name]
        quiet = steps(scenarios.twin_of(scenario), seconds)
        noisy = steps(scenario, seconds)
        return *noisy[:2], *quiet[:2], noisy[2]
    return measure


def fake(device_file, used):
    def measure(seconds):
        """Two processes in a group of weight 100 beside 8 hogs in a group of weight 300."""
        shm = pathlib.Path("/dev/shm/fake-gpu")
        shm.unlink(missing_ok=True)
        env = {"VGPU_SHM": str(shm), "VGPU_DEVICE_FILE": device_file}
        command = [machine.BUILD / "lab/train/train", *FAKE, "--seconds", seconds + 10]
        with groups.tree({"fake": {"weight": 100}, "honest": {"weight": 300}}) as (pretender, honest):
            with contextlib.ExitStack() as stack:
                for _ in range(2):
                    process = stack.enter_context(pretender.start(command, env))
                    stack.callback(process.kill)
                honest.start_hogs(8)
                return used([pretender, honest], seconds, FAKE_SETTLE_SECONDS)[:1]
    return measure


def launchers(seconds):
    """Launchers of one group, which together use more than its promotion. They may preempt the other tasks of their group."""
    shm = pathlib.Path("/dev/shm/launchers")
    shm.unlink(missing_ok=True)
    env = {"VGPU_SHM": str(shm), "VGPU_DEVICE_FILE": DEVICE_FILE}
    command = [machine.BUILD / "lab/train/train", *FAKE, "--seconds", seconds + 10]
    with groups.tree({"launchers": {"weight": 100}, "hogs": {"weight": 300}}) as (group, hogs), contextlib.ExitStack() as stack:
        for _ in range(LAUNCHERS):
            stack.callback(stack.enter_context(group.start(command, env)).kill)
        hogs.start_hogs(2)
        time.sleep(FAKE_SETTLE_SECONDS)
        with machine.Waits() as waits:
            time.sleep(seconds)
    return 1000 * waits.longest_seconds,


def sleepless(seconds):
    """On one CPU, beside an idle one that runs everything else: a launcher that never sleeps and a hog, in one group."""
    shm = pathlib.Path("/dev/shm/sleepless")
    shm.unlink(missing_ok=True)
    env = {"VGPU_SHM": str(shm), "VGPU_DEVICE_FILE": DEVICE_FILE}
    with groups.tree({"both": {}}) as (both,), both.start(
            ["taskset", "-c", 1, machine.BUILD / "lab/train/train", *SLEEPLESS, "--seconds", seconds + 10], env) as launcher:
        hog = both.start_hogs(1, cpus={1})
        time.sleep(FAKE_SETTLE_SECONDS)
        with machine.Waits() as waits:
            got, = machine.cpu_time_of(hog, seconds)
        launcher.kill()
    return 100 * got / seconds, 1000 * waits.longest_seconds


def rivals(seconds):
    """Processes of 8 users that feed a GPU without using it, beside a job in a group of the same weight as each of them."""
    command = shlex.join(map(str, (machine.BUILD / "lab/train/train", *FAKE, "--seconds", 3600)))
    users = {f"user{i}": {} for i in range(RIVAL_USERS)}
    with groups.tree({"job": {}, **users}, RIVALS_END_SECONDS) as made, contextlib.ExitStack() as stack:
        sizes = [2, *[RIVALS_EACH] * RIVAL_USERS]
        for number, (group, size) in enumerate(zip(made, sizes)):
            env = {"VGPU_SHM": f"/dev/shm/rivals{number}", "VGPU_DEVICE_FILE": DEVICE_FILE}
            # By a shell of the group: this process would wait for each exec, which takes longer the more of them run.
            script = f"i=0; while [ $i -lt {size} ]; do {command} & i=$((i + 1)); done; wait"
            stack.callback(stack.enter_context(group.start(["sh", "-c", script], env)).kill)
        for group, size in zip(made, sizes):
            machine.check(machine.wait_for(lambda group=group, size=size: group.nr_processes() > size, RIVALS_START_SECONDS),
                          f"the processes of {group.path.name} do not start")
        time.sleep(RIVALS_SETTLE_SECONDS)
        windows = [groups.cpus_used(made, seconds, 0) for _ in range(RIVALS_WINDOWS)]
        percent = [100 * (1 + RIVAL_USERS) * used[0] / sum(used) for used in (*windows, [sum(each) for each in zip(*windows)])]
        return percent[-1], min(percent), max(percent)


def per_cent_of_cpus(made, seconds, settle):
    return [100 * cpus / scenarios.CPUS for cpus in groups.cpus_used(made, seconds, settle)]


def recovered(eevdf, zernel):
    return stats.recovered(eevdf[0], zernel[0], eevdf[2])


def pods_case(name):
    return Case(f"pods-{name}", pods(name), (
        Figure(f"mean step of {name} in two pods, ms"), Figure("its p99, ms"),
        Figure("mean step without noise, ms"), Figure("its p99, ms"),
        Figure("CPU time of the noise, % of all CPUs", at_least_eevdf(0.6)),
        Derived("recovered", recovered, at_least(0.93)),
        Derived("p99 / p99 without noise under EEVDF", lambda eevdf, zernel: zernel[1] / eevdf[3], at_most(1.2))))


TRUST = (
    Case("fake-gpu", fake("", groups.shares), (Figure("share of a fake GPU user, weight 100 : 300, %", like_eevdf(3)),)),
    Case("gpu", fake(DEVICE_FILE, per_cent_of_cpus), (Figure("the same with a device file, % of all CPUs", at_most(PROMOTED_AT_MOST)),)),
    Case("sleepless", sleepless, (
        Figure("a hog beside a launcher that never sleeps, % of its CPU", at_least(0.95 * RESERVED_PERCENT)),
        Figure("longest wait of any task beside it, ms", at_most(100)))),
    Case("launchers", launchers, (Figure("longest wait of any task beside 6 launchers of one group, ms", at_most(250)),)),
)
RIVALS = (Case("rivals", rivals, (
    Figure("share of a job beside 8 groups of GPU processes, % of its weight", near(100, 5)),
    Figure("the least in a quarter of that time"), Figure("the most"))),)
JOBS = tuple(pods_case(name) for name in ("noisy", "spin", "forkstorm"))
