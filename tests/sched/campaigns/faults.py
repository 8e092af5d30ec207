# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults that must never harm a machine: attach and detach, kill, a broken scheduler, starvation."""
import itertools
import os
import pathlib
import random
import subprocess
import threading
import time

from . import machine
from .machine import check

SEED = 20261115


def cycles(number):
    """Attach and detach the scheduler many times under load."""
    with machine.load(), subprocess.Popen([machine.BUILD / "tests/sched/cycle", str(number)],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            yield line.rstrip()
    check(process.returncode == 0, "a cycle failed")


def kill(number):
    """Kill zerneld with SIGKILL while it loads, attaches and runs."""
    rng, killed = random.Random(SEED), []
    yield "killed after, s | sched_ext state at the kill | EEVDF back after, ms"
    with machine.load():
        begin = time.monotonic()
        with machine.attached():
            start_seconds = time.monotonic() - begin
        for _ in range(number):
            moment = rng.uniform(0, 2 * start_seconds)
            with open(machine.LOG, "wb") as log, subprocess.Popen(
                    [machine.BUILD / "src/daemon/zerneld", "--attach", "yes"], stdout=log, stderr=log) as process:
                time.sleep(moment)
                state = machine.read_sysfs("state")
                begin = time.monotonic()
                process.kill()
                # If zerneld was killed before it attached, this returns immediately. But zerneld may still attach
                # while it exits.
                machine.wait_for(machine.is_back, machine.BACK_SECONDS)
                back = time.monotonic() - begin
                process.wait()
                if not machine.is_back():
                    machine.wait_for(machine.is_back, machine.BACK_SECONDS)
                    back = time.monotonic() - begin
                killed.append((state, back))
            yield f"{moment:15.2f} | {state:27} | {back * 1000:.0f}"
    check(max(back for _, back in killed) <= 1, "EEVDF was not back within 1 s")
    check(any(state == "enabled" for state, _ in killed), "the scheduler was attached at none of the kills")


def broken(_):
    """Run a build that drops a task: the watchdog ejects the scheduler, zerneld reports why, the task continues."""
    def named_dropped():
        pathlib.Path("/proc/self/comm").write_text("dropped")

    with machine.hogs([machine.Hog] * 3), machine.attached(machine.BROKEN) as attached:
        with machine.hogs([lambda: machine.Hog(prepare=named_dropped)]) as dropped:
            begin = time.monotonic()
            check(machine.wait_for(lambda: "ejected" in machine.log_text(), 60), "the scheduler was not ejected within 60 s")
            yield f"ejected after {time.monotonic() - begin:.1f} s: {machine.schedulers.exit_reason(machine.log_text())}"
            check(machine.is_back(), "EEVDF is not back")
            check(attached.process.poll() is None, "zerneld exited after the ejection")
            got = machine.cpu_time_of(dropped, 2)[0]
    check("runnable task stall" in machine.log_text() and "dropped[" in machine.log_text(),
          "the log of zerneld does not name the dropped task")
    check("class 0, role 0" in machine.log_text(), "the log of zerneld does not contain the dump")
    check(got > 0.1, f"the dropped task does not run under EEVDF: {got:.2f} s of CPU in 2 s")
    yield f"after that, the dropped task got {got:.2f} s of CPU time in 2 s beside 3 hogs on {os.cpu_count()} CPUs"
    # The kernel's own report of the stall is expected.
    machine.forget_kernel_log()


def has_ext_server():
    """Returns whether this kernel reserves CPU time for sched_ext tasks when RT tasks never sleep."""
    subprocess.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"], check=False)
    return pathlib.Path("/sys/kernel/debug/sched/ext_server").is_dir()


def rt(seconds):
    """Run a SCHED_FIFO hog on every CPU."""
    def make(cpu):
        def fifo():
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        return lambda: machine.Hog(cpus={cpu}, prepare=fifo)

    # This process must run while the hogs do.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
    served = has_ext_server()
    yield f"the kernel {'has' if served else 'has no'} deadline server for sched_ext"
    with machine.attached() as attached, machine.hogs([machine.Hog] * 2) as ordinary:
        # No other process can exit while the RT hogs run, so they end first.
        with machine.hogs([make(cpu) for cpu in os.sched_getaffinity(0)]):
            got = machine.cpu_time_of(ordinary, seconds)
        machine.wait_for(attached.trouble, machine.BACK_SECONDS)
        trouble = attached.trouble()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    yield f"ordinary hogs got {sum(got) / seconds:.1%} of a CPU in {seconds} s; Zernel: {trouble or 'still attached'}"
    if trouble:
        check(not served, trouble)
        check("stall" in trouble or "failed to check in" in trouble, trouble)
        machine.forget_kernel_log()


def churn(stop, moves):
    """Takes CPU 1 offline and online, and moves a task between two cgroups, until `stop` is set."""
    groups = [pathlib.Path(f"/sys/fs/cgroup/churn{i}") for i in range(2)]
    for group in groups:
        group.mkdir(exist_ok=True)
    with machine.hogs([machine.Hog]) as (hog,):
        for turn in itertools.count(1):
            for _ in range(50):
                if stop.wait(0.1):
                    (groups[0].parent / "cgroup.procs").write_text(str(hog.pid))
                    if turn % 2 == 0:
                        machine.set_online(1, True)
                        moves["CPU switches"] += 1
                    return
                moves["cgroup moves"] += 1
                (groups[moves["cgroup moves"] % 2] / "cgroup.procs").write_text(str(hog.pid))
            machine.set_online(1, turn % 2 == 0)
            moves["CPU switches"] += 1


def stress(seconds):
    """Run stress-ng, CPU hotplug, cgroup moves and hogs of nice 19 at the same time."""
    rejected = machine.read_sysfs("nr_rejected")
    stop, moves = threading.Event(), {"cgroup moves": 0, "CPU switches": 0}
    light = [lambda: machine.Hog(nice=19)] * 3
    with machine.attached(), machine.Waits() as waits, machine.stress(
            "--cpu", "2", "--fork", "1", "--affinity", "1", "--switch", "1", "--yield", "1", "--futex", "1",
            "--hdd", "1", "--hdd-bytes", "8M", "--temp-path", "/tmp", "--timeout", str(seconds + 60)):
        with machine.hogs(light):
            thread = threading.Thread(target=churn, args=(stop, moves))
            thread.start()
            time.sleep(seconds)
            stop.set()
            thread.join()
    yield f"{seconds} s, {', '.join(f'{number} {what}' for what, number in moves.items())}, {waits}"
    check(machine.attachments() == 1, f"attached {machine.attachments()} times: {machine.log_text()[-500:]}")
    check("ejected" not in machine.log_text(), machine.schedulers.exit_reason(machine.log_text()))
    check(machine.read_sysfs("nr_rejected") == rejected, "tasks were rejected")
