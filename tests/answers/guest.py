# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a job of the lab with a real zerneld in a guest, for the campaigns in this directory."""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import harness
from compare import run as lab_run
from compare.results import Tap

STEPS_MIN = 30
HARNESS_SECONDS = 120
STARTUP_MS = 1000  # like the import of a framework; longer than zerneld needs to find the libraries
BUILD = os.environ["ZERNEL_BUILD"]


def boot(kernel, timeout, script, *arguments, options=()):
    """Runs `script guest ARGUMENT...` in a guest; `options` are those of tools/vm."""
    return subprocess.run(
        ["tools/vm", "--kernel", kernel, "--timeout", str(timeout), *options, "--", "env", f"ZERNEL_BUILD={BUILD}",
         f"LD_LIBRARY_PATH={BUILD}/lab/vgpu", f"PYTHONPATH={os.environ['PYTHONPATH']}", "PYTHONDONTWRITEBYTECODE=1",
         "python3", "-u", script, "guest", *map(str, arguments)], check=False).returncode


def main(argv, script, devices, run, boot_seconds, run_seconds, nr_runs=20):
    """The command line of a campaign: boots a guest in virtual time, in which `run(lab, tap, server, seed)` is called for each run,
    beside a zerneld that only watches. The times are those of the machine outside."""
    if argv[:1] == ["guest"]:
        return watch(devices, run, *map(int, argv[1:]))
    module = sys.modules["__main__"]
    parser = argparse.ArgumentParser(prog=f"./dev answers {pathlib.Path(script).stem.removeprefix('guest_')}",
                                     description=module.__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.18", metavar="V")
    parser.add_argument("--runs", type=int, default=nr_runs, metavar="N", help=f"(default {nr_runs})")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="seed of the first run (default 0)")
    args = parser.parse_args(argv)
    return boot(args.kernel, boot_seconds + args.runs * run_seconds, script, args.first, args.runs, options=["--virtual-time"])


def watch(devices, run, first, nr_runs):
    lab, tap = Guest(), Tap()
    server = lab.zerneld("[scheduler]\nattach=no\n", devices)
    try:
        with lab.libraries_held():
            for seed in range(first, first + nr_runs):
                run(lab, tap, server, seed)
    finally:
        server.remove()
    return tap.end()


class Guest:
    def __init__(self):
        harness.SECONDS = HARNESS_SECONDS
        harness.ZERNELD = pathlib.Path(BUILD, "src/daemon/zerneld")
        lab_run.WORK.mkdir(exist_ok=True)

    def zerneld(self, config, env=()):
        """Starts zerneld with the virtual GPUs of the jobs. They are one file; its first user sets their number."""
        os.environ.update({"VGPU_SHM": lab_run.SHM, **dict(env)})
        return harness.Zerneld(config=f"sample=yes\n{config}")

    def noise(self, scenario):
        return lab_run.noise({"build": BUILD}, scenario, 0)

    @contextlib.contextmanager
    def job(self, job, *options, is_group=False):
        """Runs the job during a with statement. A session of its own gets its own share of the CPUs from the kernel."""
        group = lab_run.cgroup(job.name)
        process = subprocess.Popen(
            [f"{BUILD}/lab/{job.program}/{job.program}", *job.args.split(), "--seconds", "100000",
             "--startup-ms", str(STARTUP_MS), *options],
            stdout=subprocess.DEVNULL, start_new_session=is_group, process_group=None if is_group else 0,
            preexec_fn=lambda: (group / "cgroup.procs").write_text("0"),
            env={**os.environ, **dict(job.env)})
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextlib.contextmanager
    def libraries_held(self):
        """Starts a process that only maps the libraries. Detaching and reattaching probes would take a second here."""
        with subprocess.Popen([f"{BUILD}/lab/train/train", "--startup-ms", "1000000000"]) as holder:
            try:
                yield
            finally:
                holder.kill()

    def launchers(self, server, number=1):
        """Waits for this number of running processes whose steps zerneld sees, and returns their pids."""
        def find():
            with server.client() as client:
                found = [process["pid"] for process in client.ask("snapshot")["result"]["processes"]
                         if process["launcher_tid"] and process["steps"] > STEPS_MIN
                         and pathlib.Path(f"/proc/{process['pid']}").exists()]
            return found if len(found) >= number else None
        return harness.wait_until(find, f"steps are seen: {server.text()}")

    def zernel(self, server, *words):
        return subprocess.run([f"{BUILD}/src/cli/zernel", *words, "--socket", server.path], capture_output=True,
                              text=True, check=False)
