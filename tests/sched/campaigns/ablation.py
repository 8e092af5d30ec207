# SPDX-License-Identifier: GPL-2.0-or-later
"""What each rule of the policy is worth, on the scenarios it was made for."""
from compare import run, scenarios, stats

from . import machine
from .machine import check

SECONDS = 4  # of a run
# Whom each rule is for, where two can do the work of one also both; `zerneld --without` has the same names.
RULES = {
    "noisy": ("feeder", "loader", "late-loader", "loader,late-loader", "preempt"),
    "spin": ("spinner",),
    "straggler": ("helper",),
    "two-jobs": ("helper",),
    "serve-noisy": ("feeder", "preempt"),
    "forkstorm": ("tier",),
}


def steps_of(scenario):
    """Steps of the first job, or times to first token, in ms, and what share of the CPUs the noise got."""
    plan = {"build": str(machine.BUILD), "seconds": SECONDS}
    with run.noise(plan, scenario, 0) as noise:
        finished, share = run.run_jobs(plan, scenario, machine.EEVDF, noise)
    job, truth, _ = finished[0]
    return run.durations_ms(job, truth), share


def row(name, what, measured):
    summary = stats.summarise([values for values, _ in measured])
    shares = [share for _, share in measured if share is not None]
    noise = f"{sum(shares) / len(shares):.0%}" if shares else "-"
    return f"{name:11} | {what:18} | {summary['mean']:7.1f} | {summary['p50']:6.1f} | {summary['p99']:6.1f} | {noise}"


def ablation(rounds):
    """Each rule of the policy left out in turn, on the scenarios it is for."""
    run.WORK.mkdir(exist_ok=True)
    yield "scenario    | without            | mean ms |    p50 |    p99 | noise got"
    for name in RULES:
        scenario = scenarios.BY_NAME[name]
        yield row(name, "noise, eevdf", [steps_of(scenarios.twin_of(scenario)) for _ in range(rounds)])
        yield row(name, "zernel", [steps_of(scenario) for _ in range(rounds)])
    # One zerneld for all: loading it is what takes the time.
    with machine.attached() as attached:
        for name, rules in RULES.items():
            cells = {"nothing": []} | {rule: [] for rule in rules}
            for _ in range(rounds):
                for rule, measured in cells.items():
                    machine.ask(("policy.set", {"rules_off": [] if rule == "nothing" else rule.split(",")}))
                    measured.append(steps_of(scenarios.BY_NAME[name]))
            yield from (row(name, rule, measured) for rule, measured in cells.items())
        check(attached.trouble() is None, attached.trouble())
