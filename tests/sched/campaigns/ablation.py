# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what each rule of the policy contributes, on the scenarios that the rule was made for."""
from compare import run, scenarios, stats

from . import machine
from .machine import check

SECONDS = 4  # length of one run
# The rules to disable in each scenario, with the names of `zerneld --without`. Where one rule can do the work of
# another rule, both are also disabled together.
RULES = {
    "noisy": ("feeder", "loader", "late-loader", "loader,late-loader", "preempt"),
    "spin": ("spinner",),
    "straggler": ("helper",),
    "two-jobs": ("helper",),
    "serve-noisy": ("feeder", "preempt"),
    "forkstorm": ("tier",),
    "offload": ("critical",),
    "engine-poll": ("critical", "poller"),
}
COLUMNS = ("scenario", "configuration", "mean step, ms", "p50, ms", "p99, ms", "CPU time of the noise, % of all CPUs")
WIDTHS = (33, 41, 13, 7, 7, 36)


def steps_of(scenario):
    """Returns the steps of the first job (for serving: times to first token) in ms, and the noise's share of all CPUs."""
    plan = {"build": str(machine.BUILD), "seconds": SECONDS}
    with run.noise(plan, scenario, 0) as noise:
        finished, share = run.run_jobs(plan, scenario, machine.EEVDF, noise)
    job, truth, _ = finished[0]
    return run.durations_ms(job, truth), share


def line(cells):
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS)) + " |"


def label_of(scenario):
    """Returns the label of a scenario. For serving, it says that the figures are times to first token."""
    return f"{scenario.name} (time to first token)" if scenario.jobs[0].program == "serve" else scenario.name


def configuration(rules):
    """Names the configuration that runs without some rules: "feeder" -> "Zernel without `feeder`"."""
    names = " and ".join(f"`{rule}`" for rule in rules.split(",") if rule)
    return f"Zernel without {names}" if names else "Zernel, all rules"


def row(scenario, name, measured):
    summary = stats.summarise([values for values, _ in measured])
    shares = [share for _, share in measured if share is not None]
    noise = f"{sum(shares) / len(shares):.0%}" if shares else "no noise"
    return line((label_of(scenario), name, *(f"{summary[key]:.1f}" for key in ("mean", "p50", "p99")), noise))


def ablation(rounds):
    """Disable each rule of the policy in turn, on the scenarios that the rule is for."""
    run.WORK.mkdir(exist_ok=True)
    yield line(COLUMNS)
    yield line(["-" * width for width in WIDTHS])
    for name in RULES:
        scenario = scenarios.BY_NAME[name]
        quiet = scenarios.twin_of(scenario)
        yield row(scenario, "EEVDF, no noise", [steps_of(quiet) for _ in range(rounds)])
        yield row(scenario, "EEVDF, with noise", [steps_of(scenario) for _ in range(rounds)])
    # One zerneld serves all configurations, because loading it takes most of the time.
    with machine.attached() as attached:
        for name, rules in RULES.items():
            scenario = scenarios.BY_NAME[name]
            cells = {"": []} | {rule: [] for rule in rules}
            for _ in range(rounds):
                for rule, measured in cells.items():
                    machine.ask(("policy.set", {"rules_off": rule.split(",") if rule else []}))
                    measured.append(steps_of(scenario))
            yield from (row(scenario, configuration(rule), measured) for rule, measured in cells.items())
        check(attached.trouble() is None, attached.trouble())
