# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares Zernel with EEVDF on a shared node: limits, shares, latency and trust.

Each case runs under Zernel, and then under EEVDF in the same boot. A zerneld runs beside the cases of EEVDF too, which
watches and does not schedule, so that the load is the same. It is an ordinary task in a group of its own, with the
weight of system.slice. This process is a real-time task, so that neither scheduler delays a measurement.
"""
import contextlib
import os
import pathlib
import subprocess
import time

from .. import machine
from ..machine import check
from . import groups, jobs, latency, quota, shares
from .cases import COLUMNS, Case, Figure, at_most, line, number, rows

CONFIG = pathlib.Path("/tmp/pods.conf")
LOOP = Case("loop", None, (Figure("longest iteration of zerneld's loop, ms", at_most(100)),))
CASES = (*quota.CASES, *shares.CASES, *latency.CASES, *jobs.TRUST)
HOOK_SINCE = (6, 17)  # the first kernel that tells a scheduler the limits of cgroups


def zerneld():
    return machine.BUILD / "src/daemon/zerneld"


def write_config(attach):
    known = subprocess.run([zerneld(), "--print-config"], capture_output=True, text=True, check=True).stdout
    text = f"[scheduler]\nattach={attach}\n"
    if "device_files" in known:
        text += f"[gpu]\ndevice_files={jobs.DEVICE_FILE}\n"
    CONFIG.write_text(text)


@contextlib.contextmanager
def service(attach):
    """Runs zerneld as an ordinary task."""
    write_config(attach)
    with groups.tree({"zernel.slice": {}}) as (group,), open(machine.LOG, "wb") as log:
        with subprocess.Popen([zerneld(), "--config", CONFIG], stdout=log, stderr=log, preexec_fn=group.join) as process, \
                machine.libraries_held():
            try:
                yield process
            finally:
                process.terminate()


def is_up():
    return machine.read_sysfs("state") == "enabled"


def answers():
    try:
        return longest_iteration() >= 0
    except (OSError, ValueError):  # not yet, or it ended meanwhile
        return False


def trouble(process, attached):
    """Returns None, or why the scheduler is not the one that zerneld attached."""
    if process.poll() is None and is_up() == (attached > 0) and machine.attachments() == attached:
        return None
    return f"the scheduler was ejected: {machine.schedulers.exit_reason(machine.log_text())}"


def measure(case, seconds):
    """Returns the figures and None, or None and why there are none."""
    try:
        return tuple(case.measure(seconds)), None
    except (machine.Failed, machine.schedulers.SchedulerError, machine.RunError, OSError, ValueError,
            ArithmeticError) as error:
        return None, f"{type(error).__name__}: {error}"


def longest_iteration():
    """Returns the longest iteration of zerneld's loop so far, in ms."""
    return machine.ask(("snapshot", {}))["cost"]["loop_longest_ns"] / 1e6


def under(name, attach, cases, seconds, found):
    """Measures each case. After an ejection, zerneld attaches again for the next case."""
    with service(attach) as process:
        check(machine.wait_for(lambda: answers() and machine.attachments() == (attach == "yes"),
                               machine.schedulers.START_SECONDS), f"zerneld does not start: {machine.log_text()[-400:]}")
        for case in cases:
            attached = machine.attachments()
            figures, problem = measure(case, seconds)
            problem = trouble(process, attached) or problem
            found[case.name] = None if problem else figures
            found[LOOP.name] = (longest_iteration(),)
            yield (f"{name}, {case.name}: {problem or ', '.join(map(number, figures))}; "
                   f"longest iteration so far {number(*found[LOOP.name])} ms")
            if attached and not is_up():
                machine.ask(("scheduler.attach", {}))
                check(machine.wait_for(is_up, machine.BACK_SECONDS), "zerneld does not attach again")


def refused():
    """A kernel without the hook: zerneld must not attach while a task has a limit."""
    with groups.tree({"limited": {"max": "20000 100000"}}) as (limited,):
        limited.start_hogs(1)
        with service("auto") as process:
            machine.wait_for(lambda: "cpu.max" in machine.log_text() or is_up() or process.poll() is not None,
                             machine.schedulers.START_SECONDS)
            check(process.poll() is None, f"zerneld ended: {machine.log_text()[-400:]}")
            check(not is_up(), "zerneld attached although a task has a limit that it cannot honor")
            reason = machine.ask(("snapshot", {}))["scheduler"]["reason"]
            check("cpu.max" in reason, f"the reason does not name cpu.max: {reason}")
    yield f"refused: {reason}"


def selected(cases):
    names = [name for name in os.environ.get("CAMPAIGN_CASES", "").split(",") if name]
    unknown = set(names) - {case.name for case in cases}
    check(not unknown, f"unknown cases: {', '.join(sorted(unknown))}")
    return [case for case in cases if not names or case.name in names]


def compare(seconds, all_cases):
    """The loop is judged in a complete run only: in virtual time, a busy host makes it wait for files."""
    zernel, eevdf, cases = {}, {}, selected(all_cases)
    yield from under("Zernel", "yes", cases, seconds, zernel)
    check(machine.wait_for(machine.is_back, machine.BACK_SECONDS), "EEVDF is not back")
    yield from under("EEVDF", "no", cases, seconds, eevdf)
    yield line(COLUMNS)
    broken = []
    for case in (*cases, *([LOOP] if len(cases) == len(all_cases) else [])):
        for row, holds in rows(case, eevdf[case.name], zernel[case.name]):
            yield row
            broken += [] if holds else [row]
    check(not broken, f"{len(broken)} bounds do not hold:\n" + "\n".join(broken))


@contextlib.contextmanager
def real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def pods(seconds):
    """Compare limits, shares, latency and trust in pods with EEVDF."""
    version = tuple(map(int, os.uname().release.split(".")[:2]))
    with real_time():
        yield from compare(seconds, CASES) if version >= HOOK_SINCE else refused()


def pod_jobs(seconds):
    """Compare a job and its noise in two pods with EEVDF."""
    with real_time():
        yield from compare(seconds, jobs.JOBS)


def rivals(seconds):
    """Measure the share of a job beside GPU processes of 8 other users."""
    with real_time():
        yield from compare(seconds, jobs.RIVALS)
