# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios that are drawn at random: jobs and noise that no rule of a scheduler was tuned for.

The name of such a scenario says how it was drawn, random-SEED-NUMBER, so that it is the same in every process and
can be run again by its name. RANGES is the table of docs/contributing/lab.md.
"""
import random
import re

from . import scenarios, stats

NAME = re.compile(r"random-(\d+)-(\d+)")
SCHEDULERS = ["eevdf", "nice", "zernel"]  # unless others are chosen
SLOWER = 1.02  # times the mean step of EEVDF
MOST_DEVICE = 0.7  # share of time for which the requests of a server use its device

# kind -> parameter -> (smallest, largest), both included. The logarithm is uniform.
RANGES = {
    "train": {"device time of a step, us": (8000, 40000), "launches": (5, 100), "optimizer-us": (200, 8000), "loaders": (1, 6),
              "loading, % of the device time": (10, 100), "prefetch": (1, 4), "ranks": (1, 2), "allreduce, KiB": (256, 16384)},
    "serve": {"rate": (5, 25), "tokenizers": (1, 3), "tokenize-us": (500, 5000), "prefill-us": (3000, 30000),
              "decode-us": (1000, 5000), "launches": (5, 20), "tokens": (2, 12)},
    "roles": {"launches": (5, 30), "kernel-us": (200, 1500), "members": (1, 4), "members or loaders, % of the device time": (10, 100)},
    "noise": {"hogs": (2, 16), "forkstorm": (10, 40)},
}
SYNCS = ("block", "spin", "yield")
KINDS = ("train", "serve", "roles", "roles")  # half of the draws
NOISE = ("hogs", "hogs", "forkstorm")


class Drawing:
    """The random numbers of one scenario."""

    def __init__(self, seed, number):
        self.rng = random.Random(f"{seed}-{number}")

    def choose(self, options):
        return self.rng.choice(options)

    def number(self, kind, parameter):
        low, high = RANGES[kind][parameter]
        return min(int(low * ((high + 1) / low) ** self.rng.random()), high)


def options_of(drawing, kind, parameters):
    return " ".join(f"--{parameter} {drawing.number(kind, parameter)}" for parameter in parameters)


def train(drawing):
    device_us, launches = drawing.number("train", "device time of a step, us"), drawing.number("train", "launches")
    loading, ranks = drawing.number("train", "loading, % of the device time"), drawing.number("train", "ranks")
    args = (f"--launches {launches} --kernel-us {device_us // launches} --load-cpu-us {device_us * loading // 100 // ranks} "
            f"--sync {drawing.choose(SYNCS)} {options_of(drawing, 'train', ('optimizer-us', 'loaders', 'prefetch'))}")
    if ranks > 1:
        args += f" --ranks {ranks} --allreduce-bytes {drawing.number('train', 'allreduce, KiB') * 1024}"
    return scenarios.Job("train", "train", args, launchers=ranks, env=(("VGPU_DEVICES", "2"),))


def serve(drawing):
    values = {name: drawing.number("serve", name) for name in RANGES["serve"]}
    device_us = values["prefill-us"] + values["tokens"] * values["decode-us"]
    values["rate"] = min(values["rate"], max(1, int(MOST_DEVICE * 1e6 / device_us)))
    args = " ".join(f"--{name} {value}" for name, value in values.items())
    return scenarios.Job("serve", "serve", f"{args} --sync {drawing.choose(SYNCS)}", launchers=0, tokens=drawing.choose((False, True)))


def roles(drawing):
    job = drawing.choose(scenarios.ROLES).jobs[0]
    launches, kernel_us, members, percent = (drawing.number("roles", name) for name in RANGES["roles"])
    cpu_us = launches * kernel_us * percent // 100
    args = (f"{job.args} --launches {launches} --kernel-us {kernel_us} --members {members} --member-us {cpu_us // members} "
            f"--load-cpu-us {cpu_us} --sync {drawing.choose(SYNCS)}")
    return scenarios.Job(job.name, job.program, args, launchers=job.launchers, env=job.env)


def draw(seed, number):
    drawing = Drawing(seed, number)
    kind = drawing.choose(KINDS)
    job = {"train": train, "serve": serve, "roles": roles}[kind](drawing)
    noise = drawing.choose(NOISE)
    noise = f"{noise} {drawing.number('noise', noise)}"
    return scenarios.Scenario(f"random-{seed}-{number}", f"{job.program} {job.args}, beside {noise}", (job,), noise)


def names(seed, nr):
    return [f"random-{seed}-{number}" for number in range(nr)]


def find(name):
    """Finds a scenario, a quiet twin or a drawn scenario by its name; None if not found."""
    drawn = NAME.fullmatch(name.removesuffix(scenarios.QUIET))
    if not drawn:
        return scenarios.find(name)
    scenario = draw(*map(int, drawn.groups()))
    return scenarios.twin_of(scenario) if name.endswith(scenarios.QUIET) else scenario


def distribution(rows, sched):
    """Returns how much a scheduler recovered over all scenarios in which noise delays EEVDF measurably; None without one."""
    eevdf = {row["scenario"]: row["step_mean_ms"] for row in rows if row["sched"] == "eevdf"}
    mine = [row for row in rows if row["sched"] == sched]
    recovered = sorted(row["recovered"] for row in mine if row["recovered"] is not None)
    noise = sorted(row["noise_vs_eevdf"] for row in mine if row["noise_vs_eevdf"] is not None)
    slower = sum(row["step_mean_ms"] > SLOWER * eevdf[row["scenario"]] for row in mine
                 if row["step_mean_ms"] and eevdf.get(row["scenario"]))
    if not recovered:
        return None
    return {"sched": sched, "scenarios": len(mine), "measured": len(recovered), "median": stats.quantile(recovered, 50),
            "p10": stats.quantile(recovered, 10), "min": recovered[0], "slower": slower,
            "noise_median": stats.quantile(noise, 50) if noise else None}
