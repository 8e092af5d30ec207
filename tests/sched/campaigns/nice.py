# SPDX-License-Identifier: GPL-2.0-or-later
"""The nice actuator: every nice value is restored, no matter how zerneld ends."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

from . import machine
from .machine import check

NICE = machine.schedulers.BY_NAME["zernel-nice"]
# A batch takes longer than a step: the loaders are always late, so the actuator changes them and the launcher.
JOB = "--sync block --loaders 2 --launches 20 --kernel-us 1000 --load-cpu-us 60000 --seconds 100000".split()
RESTORED_SECONDS = 1
LOADED_SECONDS, PROMOTED_SECONDS = 600, 60  # virtual time: waiting costs nothing
FOREIGN_NICE = 5


def threads_of(pid):
    """All threads of a process and of its children."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found.append(int(task.name))
            for child in (task / "children").read_text().split():
                found += threads_of(int(child))
    return found


def changed(pid):
    """The threads whose nice value is not 0, or whose children would start with another one."""
    found = {}
    for tid in threads_of(pid):
        with contextlib.suppress(ProcessLookupError):
            nice = os.getpriority(os.PRIO_PROCESS, tid)
            if nice or os.sched_getscheduler(tid) & os.SCHED_RESET_ON_FORK:
                found[tid] = nice
    return found


def watchers():
    names = [path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/comm")]
    return names.count("zerneld-restore\n")


@contextlib.contextmanager
def zerneld():
    with open(machine.LOG, "wb") as log, subprocess.Popen(
            NICE.command.format(build=machine.BUILD).split(), stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


def end_and_measure(job, sent):
    """Starts zerneld, waits until it has changed threads, sends it a signal. Returns the threads and the time until all are restored."""
    # The load of the programs is emulated: beside the job it would take minutes.
    os.killpg(job.pid, signal.SIGSTOP)
    with zerneld() as process:
        check(machine.wait_for(lambda: NICE.ready in machine.log_text(), LOADED_SECONDS), f"not ready: {machine.log_text()[-400:]}")
        os.killpg(job.pid, signal.SIGCONT)
        check(machine.wait_for(lambda: len(changed(job.pid)) > 1, PROMOTED_SECONDS), f"no thread was changed: {machine.log_text()[-400:]}")
        check(watchers() == 1, f"{watchers()} watchers")
        threads = changed(job.pid)
        check(all(nice < 0 for nice in threads.values()), f"unexpected nice values: {threads}")
        # Another program changes one of them. It must keep that value.
        foreign = max(threads)
        os.setpriority(os.PRIO_PROCESS, foreign, FOREIGN_NICE)
        begin = time.monotonic()
        process.send_signal(sent)
        others = [tid for tid in threads if tid != foreign]
        check(machine.wait_for(lambda: not any(tid in changed(job.pid) for tid in others), machine.BACK_SECONDS), "not restored")
        took = time.monotonic() - begin
        process.wait()
    check(machine.wait_for(lambda: watchers() == 0, RESTORED_SECONDS), "the watcher did not exit")
    check(changed(job.pid) == {foreign: FOREIGN_NICE}, f"left behind: {changed(job.pid)}")
    # sched_setscheduler() clears the flag with which children start with nice 0.
    os.sched_setscheduler(foreign, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, foreign, 0)
    return threads, took


def nice_restore(number):
    """Kill zerneld with SIGKILL and end it with SIGTERM while the nice actuator acts."""
    done = subprocess.run([machine.BUILD / "tests/daemon/test_nice_actuator"], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"test_nice_actuator failed: {(done.stdout + done.stderr)[-600:]}")
    yield "signal | threads changed | nice values | restored after, ms"
    times = []
    with machine.running([machine.BUILD / "lab/train/train", *JOB]) as job:
        for sent in [signal.SIGKILL, signal.SIGTERM] * number:
            threads, took = end_and_measure(job, sent)
            times.append(took)
            yield f"{sent.name} | {len(threads)} | {sorted(set(threads.values()))} | {took * 1000:.0f}"
    yield f"{len(times)} ends, longest {max(times) * 1000:.0f} ms"
    check(max(times) <= RESTORED_SECONDS, f"not restored within {RESTORED_SECONDS} s")
