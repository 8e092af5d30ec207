# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel's verifier makes of the programs."""
import subprocess

from . import machine
from .machine import check


def verifier(_):
    """Verifier instructions and states of every program."""
    with subprocess.Popen([machine.BUILD / "tests/sched/verified", machine.BUILD / "src/bpf/zernel.bpf.o"],
                          stdout=subprocess.PIPE, text=True) as process:
        lines = [line.rstrip() for line in process.stdout]
    yield from lines
    check(process.returncode == 0, "a program was refused")
    check(any("zernel_dispatch" in line for line in lines), "the scheduler is not among them")
