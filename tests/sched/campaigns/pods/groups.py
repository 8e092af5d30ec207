# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of cgroups with the cpu controller, and the load in them."""
import contextlib
import json
import os
import pathlib
import subprocess
import time

from compare import run

from .. import machine

ROOT = pathlib.Path("/sys/fs/cgroup")
SETTLE_SECONDS = 0.5


class Group:
    def __init__(self, name):
        self.path = ROOT / name
        self.hogs = []

    def set(self, **files):
        """set(max="20000 100000") writes cpu.max."""
        for name, value in files.items():
            (self.path / f"cpu.{name}").write_text(str(value))

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def join(self):
        """For the child between fork and exec."""
        self.add(0)

    def nr_processes(self):
        return len((self.path / "cgroup.procs").read_text().split())

    def cpu_seconds(self):
        return run.cpu_seconds(self.path)

    def start_hogs(self, number, nice=0, cpus=None, prepare=None):
        def enter():
            self.join()
            if prepare:
                prepare()

        started = [machine.Hog(nice, cpus, enter) for _ in range(number)]
        self.hogs += started
        return started

    def start(self, command, env=None):
        return run.start([str(word) for word in command], self.path, 0, env)

    def start_periodic(self, work_us, period_us, seconds, prefix=()):
        """Starts a daemon that works at intervals."""
        return self.start([*prefix, machine.BUILD / "lab/noise/periodic", "--work-us", work_us, "--period-us", period_us,
                           "--seconds", seconds])

    def periodic(self, *arguments):
        """Runs such a daemon to its end; returns its report."""
        with self.start_periodic(*arguments) as process:
            return json.loads(process.communicate()[0])

    def end(self, seconds):
        (self.path / "cgroup.kill").write_text("1")
        for hog in self.hogs:
            os.waitpid(hog.pid, 0)
        machine.check(machine.wait_for(lambda: "populated 0" in (self.path / "cgroup.events").read_text(),
                                       seconds), f"a task in {self.path.name} does not end")
        self.path.rmdir()


def control(path):
    """Enables the cpu controller for the children of a cgroup."""
    (path / "cgroup.subtree_control").write_text("+cpu")


@contextlib.contextmanager
def tree(groups, end_seconds=machine.BACK_SECONDS):
    """tree({"a": {"weight": 200}, "a/b": {}}) makes these cgroups, and kills their tasks at the end."""
    made = []
    try:
        for name, files in groups.items():
            group = Group(name)
            control(group.path.parent)
            group.path.mkdir()
            made.append(group)
            group.set(**files)
        yield made
    finally:
        for group in reversed(made):
            group.end(end_seconds)


def cpus_used(groups, seconds, settle=SETTLE_SECONDS):
    """Returns how many CPUs each group used on average during `seconds`."""
    time.sleep(settle)
    begin, before = time.monotonic(), [group.cpu_seconds() for group in groups]
    time.sleep(seconds)
    after = [group.cpu_seconds() for group in groups]
    lasted = time.monotonic() - begin  # last, as in compare.run.run_jobs
    return [(now - was) / lasted for now, was in zip(after, before)]


def shares(groups, seconds, settle=SETTLE_SECONDS):
    """Returns the share of each group in the CPU time of all of them, in percent."""
    used = cpus_used(groups, seconds, settle)
    return [100 * cpus / sum(used) for cpus in used]
