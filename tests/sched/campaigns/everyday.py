# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs work that has nothing to do with ML, under Zernel and under EEVDF alternately."""
import pathlib
import re
import shutil
import statistics
import subprocess
import time

from . import machine
from .machine import check

BOUND = 1.05
SOURCES = pathlib.Path("/tmp/build")
# name -> command. The measured time is the total that the command prints, otherwise its duration.
WORK = {
    "perf bench messaging": "perf bench sched messaging --group 2 --nr_loops 20",
    "perf bench pipe": "perf bench sched pipe --loop 3000",
    "hackbench": "hackbench --groups 3 --loops 20 --process",
    "build": "make --always-make --silent --directory /tmp/build --jobs 4",
}
TOTAL = re.compile(r"(?:Total time|Time): *([0-9.]+)")
# Builds the sources of this repository that need no generated header.
MAKEFILE = """
objects := $(patsubst %.c,%.o,$(wildcard src/core/*.c src/base/*.c))
all: $(objects)
%.o: %.c
\t@gcc -O2 -std=gnu2x -D_GNU_SOURCE -Isrc -c -o $@ $<
"""


def prepare():
    for part in ("abi", "base", "core"):
        shutil.copytree(f"src/{part}", SOURCES / "src" / part)
    (SOURCES / "Makefile").write_text(MAKEFILE)


def seconds_of(command):
    begin = time.monotonic()
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False, preexec_fn=machine.be_ordinary)
    took = time.monotonic() - begin
    check(done.returncode == 0, f"{command}: {done.stderr[-300:]}")
    total = TOTAL.search(done.stdout)
    return float(total[1]) if total else took


def row(name, eevdf, ours):
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, eevdf))
    ratio = statistics.median(ours) / statistics.median(eevdf)
    return ratio, (f"{name:20} | {statistics.median(eevdf):8.2f} | {statistics.median(ours):9.2f} | "
                   f"{ratio:.3f} [{ratios[0]:.3f}, {ratios[-1]:.3f}]")


def everyday(rounds):
    """Run pipes, messages, hackbench and a parallel build of src/core and src/base: at most 1.05 x EEVDF."""
    prepare()
    took = {(name, scheduler): [] for name in WORK for scheduler in (machine.EEVDF, machine.ZERNEL)}
    for command in WORK.values():
        seconds_of(command)  # run once, so that all files are in the page cache
    for number in range(rounds):
        order = [machine.EEVDF, machine.ZERNEL]
        for scheduler in order if number % 2 else order[::-1]:
            with machine.attached(scheduler) as attached:
                for name, command in WORK.items():
                    took[name, scheduler].append(seconds_of(command))
                check(attached.trouble() is None, attached.trouble())
    rows = [row(name, took[name, machine.EEVDF], took[name, machine.ZERNEL]) for name in WORK]
    yield f"work, {rounds} rounds       | EEVDF, s | Zernel, s | Zernel / EEVDF [min, max of the rounds]"
    yield from (text for _, text in rows)
    check(all(ratio <= BOUND for ratio, _ in rows), f"Zernel takes more than {BOUND} x the time of EEVDF")
