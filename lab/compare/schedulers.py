# SPDX-License-Identifier: GPL-2.0-or-later
"""Under what it is run: how each scheduler is started, stopped and watched."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time
from dataclasses import dataclass

SYSFS = pathlib.Path("/sys/kernel/sched_ext")
START_SECONDS = 120
STOP_SECONDS = 15


@dataclass(frozen=True)
class Scheduler:
    name: str
    help: str
    command: str = ""  # of a sched_ext scheduler; {build} and {examples} are directories
    ops: str = ""  # what the kernel calls it while it is attached
    job_nice: int = 0
    noise_nice: int = 0
    fifo_launcher: bool = False


SCHEDULERS = (
    Scheduler("eevdf", "the kernel's own, untouched"),
    Scheduler("nice", "the kernel's own, job at -19, noise at 19", job_nice=-19, noise_nice=19),
    Scheduler("fifo", "the kernel's own, launchers in SCHED_FIFO", fifo_launcher=True),
    Scheduler("scx_simple", "the kernel's example: one queue, virtual time",
              "{examples}/scx_simple", "simple"),
    Scheduler("scx_qmap", "the kernel's example: five queues", "{examples}/scx_qmap", "qmap"),
    Scheduler("zernel", "ours", "{build}/src/daemon/zerneld", "zernel"),
)
BY_NAME = {scheduler.name: scheduler for scheduler in SCHEDULERS}


class SchedulerError(Exception):
    """It did not start, or did not stop."""


def needs_examples(scheduler):
    return "{examples}" in scheduler.command


def read_sysfs(name):
    try:
        return (SYSFS / name).read_text().strip()
    except OSError:
        return ""


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def exit_reason(log):
    """What a scheduler said when it ended: the examples' and our way of saying it."""
    for line in log.splitlines():
        for before in ("EXIT: ", " zerneld error: scheduler ejected by the kernel: "):
            head, found, reason = line.partition(before)
            if found and " " not in head:
                return reason
    return "it did not say why"


class Attached:
    """A running sched_ext scheduler, or none where the kernel's own is used."""

    def __init__(self, scheduler, process=None, log=None):
        self.scheduler, self.process, self.log = scheduler, process, log
        self.enable_seq = read_sysfs("enable_seq")

    def is_up(self):
        return read_sysfs("state") == "enabled" and read_sysfs("root/ops").startswith(self.scheduler.ops)

    def trouble(self):
        """None, or how it was lost; a scheduler that came back counts as lost too."""
        if not self.process:
            return None
        if self.process.poll() is None and self.is_up() and read_sysfs("enable_seq") == self.enable_seq:
            return None
        return f"ejected: {exit_reason(self.log.read_text(errors='replace'))}"


def stop(attached):
    process = attached.process
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if not wait_for(lambda: read_sysfs("state") == "disabled", STOP_SECONDS):
        raise SchedulerError(f"{attached.scheduler.name} does not leave")


@contextlib.contextmanager
def running(scheduler, places, log):
    """Attaches the scheduler for the body of a with statement."""
    if not scheduler.command:
        yield Attached(scheduler)
        return
    # The kernel counts an attachment shortly after it calls it enabled: wait for both.
    before = read_sysfs("enable_seq")
    with open(log, "wb") as output:
        process = subprocess.Popen([scheduler.command.format(**places)], stdout=output, stderr=output)
    attached = Attached(scheduler, process, pathlib.Path(log))
    if not wait_for(lambda: (attached.is_up() and read_sysfs("enable_seq") != before)
                    or process.poll() is not None, START_SECONDS) or process.poll() is not None:
        process.kill()
        process.wait()
        raise SchedulerError(f"{scheduler.name} does not start: {attached.log.read_text()[-400:]}")
    attached.enable_seq = read_sysfs("enable_seq")
    try:
        yield attached
    finally:
        stop(attached)


def put_launcher_into_fifo(pid):
    """Loaders and helpers it starts from now on are ordinary again."""
    os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
