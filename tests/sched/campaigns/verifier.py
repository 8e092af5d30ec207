# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel's verifier makes of the programs."""
import subprocess

from . import machine
from .machine import check


def verifier(_):
    """Verifier instructions and states of every program (veristat)."""
    with subprocess.Popen(["veristat", "-o", "table", "-e", "prog,verdict,insns,states,peak_states",
                           machine.BUILD / "src/bpf/zernel.bpf.o"], stdout=subprocess.PIPE, text=True) as process:
        lines = [line.rstrip() for line in process.stdout]
    yield from lines
    check(process.returncode == 0 and any("zernel_dispatch" in line for line in lines), "veristat failed")
    check(not any("failure" in line for line in lines), "a program was refused")
