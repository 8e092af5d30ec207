# SPDX-License-Identifier: GPL-2.0-or-later
"""The schedulers: how each one is started, stopped and watched."""
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass

SYSFS = pathlib.Path("/sys/kernel/sched_ext")
START_SECONDS = 300
STOP_SECONDS = 15
WATCH = "{build}/src/daemon/zerneld --attach no"
WATCHES = " predicted"  # in the log when the BPF programs are loaded


@dataclass(frozen=True)
class Scheduler:
    name: str
    help: str
    command: str = ""  # starts a sched_ext scheduler; {build} and {examples} are directories
    ops: str = ""  # its name in the kernel while it is attached; empty: no sched_ext scheduler
    ready: str = ""  # without ops: a text in the log when it acts
    job_nice: int = 0
    noise_nice: int = 0
    fifo_launcher: bool = False
    compared: bool = True  # runs in a comparison that names no schedulers
    external: bool = False  # a sched_ext scheduler of any name; SIGINT stops it

    @property
    def is_sched_ext(self):
        return bool(self.ops) or self.external


SCHEDULERS = (
    Scheduler("eevdf", "EEVDF, the kernel's default scheduler"),
    Scheduler("nice", "EEVDF, jobs at nice -19, noise at nice 19", job_nice=-19, noise_nice=19),
    Scheduler("fifo", "EEVDF, launchers in SCHED_FIFO", fifo_launcher=True),
    Scheduler("scx_simple", "sched_ext example of the kernel: one queue, virtual time",
              "{examples}/scx_simple", "simple"),
    Scheduler("scx_qmap", "sched_ext example of the kernel: five queues", "{examples}/scx_qmap", "qmap"),
    Scheduler("zernel", "Zernel", "{build}/src/daemon/zerneld --attach yes --actuator sched_ext", "zernel"),
    # The service of zerneld has the same nice value: under EEVDF it would wait for the noise.
    Scheduler("zernel-nice", "Zernel with the nice actuator",
              "nice -n -10 {build}/src/daemon/zerneld --attach yes --actuator nice", ready="the nice actuator acts"),
    # With these, the cost of the probes is a part of both sides of a comparison with Zernel.
    Scheduler("watched", "EEVDF, zerneld watches and does not schedule", f"nice -n -10 {WATCH}", ready=WATCHES, compared=False),
    Scheduler("nice-watched", "as nice, zerneld watches and does not schedule", f"nice -n -10 {WATCH}", ready=WATCHES,
              job_nice=-19, noise_nice=19, compared=False),
)
BY_NAME = {scheduler.name: scheduler for scheduler in SCHEDULERS}
COMPARED = [scheduler.name for scheduler in SCHEDULERS if scheduler.compared]


def find(name, external=()):
    """Finds a scheduler by name; `external` has the commands of those that the command line added."""
    if name in external:
        return Scheduler(name, external[name], external[name], external=True)
    return BY_NAME[name]


class SchedulerError(Exception):
    """A scheduler did not start or did not stop."""


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
    """Finds the reason for an ejection in a log of zerneld or of an example of the kernel."""
    for line in log.splitlines():
        for before in ("EXIT: ", " zerneld error: scheduler ejected by the kernel: "):
            head, found, reason = line.partition(before)
            if found and " " not in head:
                return reason
    return "no reason found in the log"


class Attached:
    """A running sched_ext scheduler; without a process it stands for EEVDF."""

    def __init__(self, scheduler, process=None, log=None):
        self.scheduler, self.process, self.log = scheduler, process, log
        self.enable_seq = read_sysfs("enable_seq")

    def is_up(self):
        if not self.scheduler.is_sched_ext:
            return self.scheduler.ready in self.log.read_text(errors="replace")
        return read_sysfs("state") == "enabled" and read_sysfs("root/ops").startswith(self.scheduler.ops)

    def trouble(self):
        """Returns None, or why the scheduler was ejected. A scheduler that attached again counts as ejected too."""
        if not self.process:
            return None
        if self.process.poll() is None and self.is_up() and read_sysfs("enable_seq") == self.enable_seq:
            return None
        if not self.scheduler.is_sched_ext:
            return f"{self.scheduler.name} ended: {self.log.read_text(errors='replace')[-400:]}"
        return f"ejected: {exit_reason(self.log.read_text(errors='replace'))}"


def stop(attached):
    process = attached.process
    process.send_signal(signal.SIGINT if attached.scheduler.external else signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if attached.scheduler.is_sched_ext and not wait_for(lambda: read_sysfs("state") == "disabled", STOP_SECONDS):
        raise SchedulerError(f"{attached.scheduler.name} does not detach within {STOP_SECONDS} s")


def command_of(scheduler, places):
    """Braces in a command of the user have no meaning."""
    return shlex.split(scheduler.command if scheduler.external else scheduler.command.format(**places))


@contextlib.contextmanager
def running(scheduler, places, log):
    """Attaches the scheduler for the body of a with statement."""
    if not scheduler.command:
        yield Attached(scheduler)
        return
    # The kernel increments enable_seq shortly after the state becomes "enabled": wait for both.
    before = read_sysfs("enable_seq")
    with open(log, "wb") as output:
        process = subprocess.Popen(command_of(scheduler, places), stdout=output, stderr=output)
    attached = Attached(scheduler, process, pathlib.Path(log))
    if not wait_for(lambda: (attached.is_up() and (not scheduler.is_sched_ext or read_sysfs("enable_seq") != before))
                    or process.poll() is not None, START_SECONDS) or process.poll() is not None:
        state = "it still runs" if process.poll() is None else f"exit status {process.poll()}"
        process.kill()
        process.wait()
        raise SchedulerError(f"{scheduler.name} {'is not attached' if scheduler.external else 'does not start'} ({state}): "
                             f"{attached.log.read_text(errors='replace')[-400:]}")
    attached.enable_seq = read_sysfs("enable_seq")
    try:
        yield attached
    finally:
        stop(attached)


def put_launcher_into_fifo(pid):
    """Loaders and helpers that the launcher starts from now on are ordinary tasks again."""
    os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
