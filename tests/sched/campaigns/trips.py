# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts instructions of the scheduler. The clock of the guest is virtual: each instruction takes 4 ns."""
import json
import pathlib
import subprocess

from . import machine
from .machine import check

NS_PER_INSTRUCTION = 4
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
LIST_MIN = 0.05  # runs of a program in a round trip
MESSAGES = "perf bench -f simple sched messaging --group 2 --nr_loops 20"
# Instructions of a round trip, compared with EEVDF, and of a run of each program: 10 percent above the figures of the day
# when they were set.
BUDGET_RATIO = 1.82
BUDGETS = {"zernel_enqueue": 1320, "zernel_dispatch": 930, "zernel_stopping": 870, "zernel_running": 590}


def nanoseconds(command):
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False, preexec_fn=machine.be_ordinary)
    check(done.returncode == 0, f"{command}: {done.stderr[-300:]}")
    return float(done.stdout) * 1e9


def trips(loops):
    return nanoseconds(f"taskset -c 0 perf bench -f simple sched pipe --loop {loops}")


def instructions(loops):
    """Returns the instructions of a round trip. The difference of two runs has no start and no end."""
    trips(loops)  # its files are in memory from now on: to wait for the host would let seconds pass
    return (trips(2 * loops) - trips(loops)) / loops / NS_PER_INSTRUCTION


def programs():
    """Returns the time and the runs of all BPF programs, by name."""
    shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, check=True).stdout)
    return {program["name"]: (program.get("run_time_ns", 0), program.get("run_cnt", 0)) for program in shown if "name" in program}


def costs(loops):
    """Returns the runs in a round trip, and the instructions of a run, of each BPF program. Counting them takes a part of these."""
    STATISTICS.write_text("1")
    before = programs()
    trips(loops)
    after = programs()
    STATISTICS.write_text("0")
    found = {}
    for name, (ns, runs) in after.items():
        old_ns, old_runs = before.get(name, (0, 0))
        if runs - old_runs >= LIST_MIN * loops:
            found[name] = (runs - old_runs) / loops, (ns - old_ns) / (runs - old_runs) / NS_PER_INSTRUCTION
    return found


def round_trips(loops):
    """Count the instructions of a round trip of a pipe on one CPU, by scheduler and by BPF program."""
    schedulers = [machine.EEVDF, *([machine.SIMPLE] if machine.EXAMPLES else []), machine.ZERNEL]
    counted = {}
    yield "scheduler  | instructions of a round trip | perf bench messaging, ms"
    for scheduler in schedulers:
        with machine.attached(scheduler) as attached:
            counted[scheduler] = instructions(loops)
            yield f"{scheduler.name:10} | {counted[scheduler]:28.0f} | {nanoseconds(MESSAGES) / 1e6:.1f}"
            if scheduler is machine.ZERNEL:
                found = costs(loops)
            check(attached.trouble() is None, attached.trouble())
    total = sum(runs * each for runs, each in found.values())
    yield "BPF program      | runs in a round trip | instructions of a run"
    for name, (runs, each) in sorted(found.items(), key=lambda item: -item[1][0] * item[1][1]):
        yield f"{name:16} | {runs:20.2f} | {each:.0f}"
    ratio = counted[machine.ZERNEL] / counted[machine.EEVDF]
    yield f"Zernel / EEVDF: {ratio:.3f}; all BPF programs: {total:.0f} instructions in a round trip"
    check(ratio <= BUDGET_RATIO, f"a round trip takes {ratio:.3f} times the instructions of EEVDF; the budget is {BUDGET_RATIO}")
    for name, budget in BUDGETS.items():
        check(name in found, f"{name} did not run")
        check(found[name][1] <= budget, f"a run of {name} takes {found[name][1]:.0f} instructions; the budget is {budget}")
