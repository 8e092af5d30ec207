# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations of the campaigns on their guest, and measurements in it."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
from dataclasses import replace

from compare import schedulers
from compare.run import RunError
from compare.schedulers import read_sysfs, wait_for

BUILD = pathlib.Path(os.environ.get("ZERNEL_BUILD", "out/gcc"))
EXAMPLES = os.environ.get("ZERNEL_EXAMPLES", "")  # directory of the kernel's example schedulers, if the campaign compares with one
LOG = pathlib.Path("/tmp/zerneld.log")
SOCKET = "/run/zernel/zernel.sock"
ZERNEL = schedulers.BY_NAME["zernel"]
EEVDF = schedulers.BY_NAME["eevdf"]
SIMPLE = schedulers.BY_NAME["scx_simple"]
BROKEN = replace(ZERNEL, command="{build}/tests/sched/broken/zerneld --attach yes")
FDS_MAX = 256
ATTACH_SECONDS = 20  # virtual time: waiting costs nothing
BACK_SECONDS = 10  # time until EEVDF must be back
# Linux 6.12 loses count of the time reserved for ordinary tasks when a CPU goes offline, with any sched_ext scheduler.
KNOWN = re.compile(r"WARNING: .* at kernel/sched/deadline.c:265 (task_non_contending|inactive_task_timer)")
TROUBLE = re.compile(r"WARNING:|BUG:|soft lockup|detected stall|task stall|sched_ext:.*error")


class Failed(Exception):
    """An assertion of a campaign failed."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def attached(scheduler=ZERNEL):
    """Attaches a scheduler for the body of a with statement."""
    return schedulers.running(scheduler, {"build": BUILD, "examples": EXAMPLES}, LOG)


def ask(*requests):
    """Sends requests to zerneld. Each one must succeed. Returns the result of the last one."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(SOCKET)
        stream = connection.makefile("rw", encoding="utf-8")
        for method, params in (("hello", {"version": 2}), *requests):
            stream.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
            stream.flush()
            answer = json.loads(stream.readline())
            check("error" not in answer, f"{method}: {answer}")
    return answer["result"]


def log_text():
    return LOG.read_text(errors="replace")


def is_back():
    """A kernel without sched_ext has no state."""
    return read_sysfs("state") in ("disabled", "")


def kernel_trouble():
    """Returns the kernel log from the first line on that reports a problem."""
    lines = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()
    has_known = os.uname().release.startswith("6.12.")
    return next((lines[i:] for i, line in enumerate(lines) if TROUBLE.search(line) and not (has_known and KNOWN.search(line))), [])


def forget_kernel_log():
    subprocess.run(["dmesg", "-C"], check=True)


def be_ordinary():
    os.setpriority(os.PRIO_PROCESS, 0, 0)


@contextlib.contextmanager
def running(command):
    """Runs a program in its own process group until the body of the with statement ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True, preexec_fn=be_ordinary) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def libraries_held():
    """A process that only maps the GPU libraries, so that the probes are attached before a job starts."""
    with running([BUILD / "lab/train/train", "--startup-ms", "100000000"]):
        time.sleep(ATTACH_SECONDS)
        yield


def stress(*arguments):
    return running(["stress-ng", "--quiet", *arguments])


def load():
    """Runs more work than the CPUs of the guest can do."""
    return stress("--cpu", "2", "--fork", "1", "--switch", "1", "--yield", "1")


def spin():
    while True:
        pass


class Hog:
    """
    A process that only computes, and runs when the constructor returns. It has no open files: to close one, it would wait
    for the host, and the virtual time of an idle guest advances meanwhile.
    """

    def __init__(self, nice=0, cpus=None, prepare=None):
        self.nice = nice
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writer)
            os.read(reader, 1)
            os.close(reader)
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if prepare:
            prepare()
        os.closerange(0, writer)
        os.write(writer, b"1")
        os.closerange(writer, FDS_MAX)
        spin()

    def cpu_seconds(self):
        return int(pathlib.Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def hogs(made):
    """Starts hogs, one by each function of a list, for the body of a with statement."""
    running_hogs = []
    try:
        for make in made:
            running_hogs.append(make())
        yield running_hogs
    finally:
        for hog in running_hogs:
            hog.end()


def cpu_time_of(running_hogs, seconds):
    """Returns the CPU time of each hog in `seconds`, measured after all hogs started."""
    time.sleep(0.5)
    before = [hog.cpu_seconds() for hog in running_hogs]
    time.sleep(seconds)
    return [hog.cpu_seconds() - was for hog, was in zip(running_hogs, before)]


class Waits:
    """Measures the longest time that a task was runnable but did not run, during the body of a with statement."""

    def __enter__(self):
        self.process = subprocess.Popen([BUILD / "tests/sched/waits"], stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "ready\n", "tests/sched/waits does not start")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        out, _ = self.process.communicate()
        number, _, self.who = out.strip().partition(" ")
        self.longest_seconds = int(number or 0) / 1e9

    def __str__(self):
        return f"longest runnable wait {self.longest_seconds * 1000:.0f} ms ({self.who})"


def set_online(cpu, online):
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
    # The kernel refuses while another process changes the state of a CPU.
    for _ in range(50):
        try:
            path.write_text(str(int(online)))
            return
        except OSError:
            time.sleep(0.1)
    raise Failed(f"cannot take cpu{cpu} {'online' if online else 'offline'}")


def attachments():
    return log_text().count("scheduler attached")


