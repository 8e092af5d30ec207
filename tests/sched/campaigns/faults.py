# SPDX-License-Identifier: GPL-2.0-or-later
"""What must never hurt a machine: coming and going, dying, being broken, being starved."""
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
    """Attaches and detaches under load."""
    with machine.load(), subprocess.Popen([machine.BUILD / "tests/sched/cycle", str(number)],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            yield line.rstrip()
    check(process.returncode == 0, "a cycle failed")


def kill(number):
    """kill -9 at moments of zerneld's whole life: while it loads, attaches and runs."""
    rng, killed = random.Random(SEED), []
    with machine.load():
        begin = time.monotonic()
        with machine.attached():
            start_seconds = time.monotonic() - begin
        for _ in range(number):
            moment = rng.uniform(0, 2 * start_seconds)
            with open(machine.LOG, "wb") as log, subprocess.Popen(
                    [machine.BUILD / "src/daemon/zerneld"], stdout=log, stderr=log) as process:
                time.sleep(moment)
                state = machine.read_sysfs("state")
                begin = time.monotonic()
                process.kill()
                # At once, when it dies before it attached; it may still attach as it dies.
                machine.wait_for(machine.is_back, machine.BACK_SECONDS)
                back = time.monotonic() - begin
                process.wait()
                if not machine.is_back():
                    machine.wait_for(machine.is_back, machine.BACK_SECONDS)
                    back = time.monotonic() - begin
                killed.append((moment, state, back))
    yield "killed after s | state then | EEVDF back after ms"
    for moment, state, back in killed:
        yield f"{moment:14.2f} | {state:10} | {back * 1000:.0f}"
    check(max(back for _, _, back in killed) <= 1, "EEVDF was not back within 1 s")
    check(any(state == "enabled" for _, state, _ in killed), "no kill hit an attached scheduler")


def broken(_):
    """A build that drops a task: the watchdog ejects it, zerneld says why, the task lives on."""
    def named_dropped():
        pathlib.Path("/proc/self/comm").write_text("dropped")

    with machine.hogs([machine.Hog] * 3), machine.attached(machine.BROKEN) as attached:
        with machine.hogs([lambda: machine.Hog(prepare=named_dropped)]) as dropped:
            begin = time.monotonic()
            check(machine.wait_for(lambda: "ejected" in machine.log_text(), 60), "never ejected")
            yield f"ejected after {time.monotonic() - begin:.1f} s: {machine.schedulers.exit_reason(machine.log_text())}"
            check(machine.is_back(), "the kernel's own scheduler is not back")
            check(attached.process.poll() is None, "zerneld does not go on watching")
            got = machine.cpu_time_of(dropped, 2)[0]
    check("runnable task stall" in machine.log_text() and "dropped[" in machine.log_text(),
          "zerneld does not say who was dropped")
    check("class 0, role 0" in machine.log_text(), "zerneld does not show the dump")
    check(got > 0.1, f"the dropped task does not run under EEVDF: {got:.2f} s of CPU in 2 s")
    yield f"the dropped task then got {got:.2f} s of CPU in 2 s beside 3 hogs on {os.cpu_count()} CPUs"
    # The kernel's own report of it is what was asked for.
    machine.forget_kernel_log()


def has_ext_server():
    """Whether this kernel keeps time for sched_ext tasks when RT tasks never sleep."""
    subprocess.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"], check=False)
    return pathlib.Path("/sys/kernel/debug/sched/ext_server").is_dir()


def rt(seconds):
    """An RT hog on every CPU."""
    def make(cpu):
        def fifo():
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        return lambda: machine.Hog(cpus={cpu}, prepare=fifo)

    # Whoever watches must run.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
    served = has_ext_server()
    yield f"the kernel {'has' if served else 'has no'} deadline server for sched_ext"
    with machine.attached() as attached, machine.hogs([machine.Hog] * 2) as ordinary:
        # Nobody else can even end while they run, so they go first.
        with machine.hogs([make(cpu) for cpu in os.sched_getaffinity(0)]):
            got = machine.cpu_time_of(ordinary, seconds)
        machine.wait_for(attached.trouble, machine.BACK_SECONDS)
        trouble = attached.trouble()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    yield f"ordinary hogs got {sum(got) / seconds:.1%} of a CPU in {seconds} s; zernel: {trouble or 'still attached'}"
    if trouble:
        check(not served, trouble)
        check("stall" in trouble or "failed to check in" in trouble, trouble)
        machine.forget_kernel_log()


def churn(stop, moves):
    """CPU 1 comes and goes, and a task is moved to and fro between two cgroups, until `stop` is set."""
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
    """Everything at once; the lightest tasks there are beside it."""
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
