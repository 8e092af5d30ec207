# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel hang on ranks in Python, of which one stays in a known line. The answer must have this line.

Each run starts a job of the lab with four ranks for each kind: the rank is stopped, sleeps or spins in the line. A zerneld that only
watches runs beside it, in a guest in virtual time. The output is TAP.
"""
import ast
import os
import pathlib
import signal
import subprocess
import sys

import guest
import guest_hang
import harness

BOOT_SECONDS, RUN_SECONDS = 1200, 1200  # of the machine; virtual time is slow there
JOB, KINDS = "lab/framework/hang_job.py", ("stop", "sleep", "spin")


def stuck_line():
    """The line in which the rank stays: the only one in the body of stuck()."""
    (function,) = (node for node in ast.parse(pathlib.Path(JOB).read_text(encoding="utf-8")).body
                   if getattr(node, "name", "") == "stuck")
    return function.body[0].lineno


def run(lab, tap, server, kind, seed):
    odd = seed % guest_hang.RANKS
    command = [sys.executable, JOB, "--vgpu", f"{guest.BUILD}/lab/vgpu", "--ranks", guest_hang.RANKS, "--odd", odd,
               "--step", guest_hang.ODD_STEP, "--kind", kind]
    with subprocess.Popen([str(word) for word in command], start_new_session=True) as process:
        try:
            lab.launchers(server, guest_hang.RANKS)
            job, comm = harness.wait_until(
                lambda: (found := guest_hang.ask(lab, server)) and found[0]["verdict"] != "none" and found,
                f"an answer: {server.text()}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    named = [(rank["rank"], [(frame["function"], frame["line"]) for frame in rank.get("stack", [])])
             for rank in guest_hang.missing(comm)]
    tap.check(job["verdict"] == "missing" and [rank for rank, _ in named] == [odd] and ("stuck", stuck_line()) in named[0][1],
              f"run {seed}, rank {odd}, {kind}: the stack of the missing rank has stuck():{stuck_line()}: {named}")


def run_all(lab, tap, server, seed):
    for kind in KINDS:
        run(lab, tap, server, kind, seed)


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, guest_hang.DEVICES, run_all, BOOT_SECONDS, RUN_SECONDS))
