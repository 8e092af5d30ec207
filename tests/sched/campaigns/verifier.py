# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports figures of the kernel's verifier for each BPF program."""
import subprocess

from . import machine
from .machine import check


def verifier(_):
    """Load every BPF program and print its verifier instructions and states."""
    with subprocess.Popen([machine.BUILD / "tests/sched/verified"], stdout=subprocess.PIPE, text=True) as process:
        lines = [line.rstrip() for line in process.stdout]
    yield from lines
    check(process.returncode == 0, "the verifier refused a BPF program")
    check(any("zernel_dispatch" in line for line in lines), "the table does not contain the scheduler")
