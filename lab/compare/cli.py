# SPDX-License-Identifier: GPL-2.0-or-later
"""Outside the guests: creates the plan, boots them one after the other, and reports."""
import argparse
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

from . import draws, report, rows, run, scenarios, schedulers

OUT = pathlib.Path("out/lab")
RUN_SECONDS_AT_MOST = 60  # longest duration of a run that failed; the timeout of the guest allows for it
BOOT_SECONDS = 120
SLOWDOWN = 3  # by other work on the machine
POLL_SECONDS = 0.5
EXTERNAL_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def names_of(text, table, is_known):
    names = text.split(",")
    for name in names:
        if not is_known(name):
            raise argparse.ArgumentTypeError(f"unknown name '{name}'; choose from: {', '.join(table)}")
    return list(dict.fromkeys(names))


def scenario_names(text):
    return names_of(text, scenarios.BY_NAME, draws.find)


def sched_names(text):
    """Returns the command of each scheduler by name; None for those of the table."""
    name, is_external, command = text.partition("=")
    if not is_external:
        return dict.fromkeys(names_of(text, schedulers.BY_NAME, schedulers.BY_NAME.__contains__))
    if not EXTERNAL_NAME.fullmatch(name) or name in schedulers.BY_NAME or not command.strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=COMMAND with a new name of letters, digits, '-', '_' and '.'")
    return {name: command}


def parser():
    top = argparse.ArgumentParser(prog="./dev lab", description="Run jobs on a virtual GPU and compare schedulers.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the scenarios and schedulers")
    compare = commands.add_parser("compare", help="run scenarios under schedulers, in a guest")
    what = compare.add_mutually_exclusive_group()
    what.add_argument("--scenario", type=scenario_names, default=scenarios.COMPARED,
                      metavar="S[,S]", help="scenarios to run (default: those that compare schedulers)")
    what.add_argument("--random", type=int, metavar="N",
                      help="draw N scenarios by --seed; random-SEED-0 to random-SEED-(N-1) are their names for --scenario")
    compare.add_argument("--sched", type=sched_names, action="append", metavar="S[,S]|NAME=COMMAND",
                         help="schedulers to run (default: those of `lab list` that do not only watch; with --random: eevdf, nice and zernel), or the loader of a sched_ext "
                         "scheduler, which must exist in the guest; may be repeated; eevdf is the reference and always runs")
    compare.add_argument("--rounds", type=int, default=3, metavar="N",
                         help="run each scenario N times under each scheduler in each boot (default: 3)")
    compare.add_argument("--boots", type=int, default=1, metavar="N",
                         help="boot the guest N times (default: 1); intervals that hold for another boot need at least 3")
    compare.add_argument("--seconds", type=float, default=3.5, metavar="S", help="length of a run (default: 3.5)")
    compare.add_argument("--seed", type=int, metavar="N",
                         help="seed of the order of the runs (default: random; the output shows it)")
    compare.add_argument("--kernel", default="6.18", metavar="V", help="kernel of the guest (default: 6.18)")
    compare.add_argument("--json", type=pathlib.Path, metavar="F", help="write the rows to this file, as JSON")
    compare.add_argument("--svg", type=pathlib.Path, default=OUT / "lab.svg", metavar="F",
                         help=f"write the picture to this file (default: {OUT / 'lab.svg'})")
    compare.add_argument("--build", type=pathlib.Path, default=pathlib.Path("out/gcc"), help=argparse.SUPPRESS)
    return top


def show_tables():
    print("Scenarios:")
    for scenario in scenarios.SCENARIOS:
        print(f"  {scenario.name:20} {scenario.help}")
    print("Schedulers:")
    for scheduler in schedulers.SCHEDULERS:
        print(f"  {scheduler.name:12} {scheduler.help}")
    return 0


def make_order(names, scheds, rounds, seed):
    """Every round contains every cell once, in its own order. Quiet twins run under EEVDF."""
    cells = [(name, sched) for name in names for sched in dict.fromkeys(["eevdf", *scheds])]
    cells += [(scenarios.twin_of(draws.find(name)).name, "eevdf") for name in names]
    cells = list(dict.fromkeys(cells))
    rng, order = random.Random(seed), []
    for number in range(rounds):
        rng.shuffle(cells)
        order += [{"round": number, "scenario": name, "sched": sched} for name, sched in cells]
    return order


def make_plans(args):
    """Returns the plan of each boot. Each has its own order."""
    places = {"build": str(args.build), "examples": ""}
    if any(schedulers.needs_examples(schedulers.find(sched, args.external)) for sched in args.sched):
        places["examples"] = subprocess.run(["tools/scx-examples", args.kernel], check=True, text=True,
                                            stdout=subprocess.PIPE).stdout.strip()
    return [{"build": places["build"], "places": places, "external": args.external, "seconds": args.seconds, "messages": str(OUT / f"boot-{boot}.messages"),
             "runs": [{"boot": boot, **cell} for cell in make_order(args.scenario, args.sched, args.rounds, args.seed + boot)]}
            for boot in range(args.boots)]


class Progress:
    """Describes each completed run, and how long the remaining runs take. The clock of the guest is of no use for that."""

    def __init__(self, nr, clock=time.monotonic):
        self.nr, self.done, self.clock, self.begin = nr, 0, clock, clock()

    def line(self, result):
        self.done += 1
        left = (self.clock() - self.begin) / self.done * (self.nr - self.done)
        return (f"[{self.done}/{self.nr}] {result['scenario']} | {result['sched']}: {run.describe(result)}"
                f"  ({left // 60:.0f}:{left % 60:02.0f} left)")


def follow(guest, path, progress):
    """Shows the runs of a guest while they complete. Returns them when the guest has ended."""
    runs = []
    with open(path, encoding="utf-8") as stream:
        rest, has_ended = "", False
        while not has_ended:
            has_ended = guest.poll() is not None
            *lines, rest = (rest + stream.read()).split("\n")
            for line in lines:
                runs.append(json.loads(line))
                print(progress.line(runs[-1]), flush=True)
            if not has_ended:
                time.sleep(POLL_SECONDS)
    return runs


def run_guest(args, plan, progress):
    """Returns the completed runs, also when the guest failed, and the exit status of the guest."""
    OUT.mkdir(parents=True, exist_ok=True)
    messages = pathlib.Path(plan["messages"])
    messages.unlink(missing_ok=True)
    timeout = SLOWDOWN * (BOOT_SECONDS + int(len(plan["runs"]) * (args.seconds + RUN_SECONDS_AT_MOST)))
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        plan_path, result_path = pathlib.Path(name, "plan.json"), pathlib.Path(name, "runs.json")
        plan_path.write_text(json.dumps(plan))
        result_path.write_text("")
        with subprocess.Popen(
            ["tools/vm", "--virtual-time", "--kernel", args.kernel, "--cpus", str(scenarios.CPUS),
             "--timeout", str(timeout), "--", "env", "PYTHONPATH=lab", "PYTHONDONTWRITEBYTECODE=1",
             "python3", "-m", "compare", "guest", str(plan_path), str(result_path)],
            env={**os.environ, "ZERNEL_VM_CONSOLE": str(messages.with_suffix(".console"))}) as guest:
            return follow(guest, result_path, progress), guest.returncode


def run_guests(args, plans):
    """Returns the completed runs of all boots, and the exit status of the last guest that failed."""
    progress, runs, failed = Progress(sum(len(plan["runs"]) for plan in plans)), [], 0
    for plan in plans:
        done, status = run_guest(args, plan, progress)
        runs += done
        failed = status or failed
    return runs, failed


def choose(args):
    """Completes the arguments: seed, scenarios and schedulers."""
    if args.seed is None:
        args.seed = random.SystemRandom().randrange(1 << 32)
    if args.random:
        args.scenario = draws.names(args.seed, args.random)
    chosen = {name: command for part in args.sched or [] for name, command in part.items()}
    args.external = {name: command for name, command in chosen.items() if command}
    args.sched = list(dict.fromkeys(["eevdf", *(chosen or (draws.SCHEDULERS if args.random else schedulers.COMPARED))]))


def show_draws(args, made):
    """Prints what was drawn, and returns the distribution of recovered for each scheduler."""
    for name in args.scenario:
        print(f"{name}: {draws.find(name).help}")
    found = [draws.distribution(made, sched) for sched in args.sched if sched != "eevdf"]
    found = [row for row in found if row]
    print(f"\n{report.distribution_table(found)}\n")
    return found


def compare(args, argv):
    choose(args)
    release = subprocess.run(["tools/kernel", "release", args.kernel], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    plans = make_plans(args)
    nr = sum(len(plan["runs"]) for plan in plans)
    command = f"./dev lab {shlex.join(argv)}"
    head = f"kernel {release}, {scenarios.CPUS} CPUs, seed {args.seed}, boots {args.boots}, {args.rounds} rounds of {args.seconds:g} s"
    print(f"{command}\n{head}: {nr} runs", flush=True)
    runs, status = run_guests(args, plans)
    made, references = rows.make_rows(runs, args.scenario, args.sched, args.seed)
    shown = made + [row for row in references if row["scenario"] not in scenarios.BY_NAME]
    print(f"\n{report.table(shown, args.boots)}\n")
    drawn = show_draws(args, made) if args.random else []
    for line in report.spreads(made, references):
        print(line)
    print(f"kernel messages of each run: {OUT}/boot-N.messages")
    args.svg.write_text(report.svg(made, head, args.boots))
    if args.json:
        args.json.write_text(json.dumps({"command": command, "kernel": release, "cpus": scenarios.CPUS,
                                         "seed": args.seed, "boots": args.boots, "rounds": args.rounds, "seconds": args.seconds,
                                         "complete": len(runs) == nr, "rows": made, "distribution": drawn,
                                         "references": references}, indent=1) + "\n")
    if len(runs) < nr:
        print(f"lab: only {len(runs)} of {nr} runs completed: the guest exited with status {status}",
              file=sys.stderr)
        return 1
    return int(any(run["trouble"] and not run["trouble"].startswith("ejected") for run in runs))


def main(argv):
    if argv[:1] == ["guest"]:
        return run.main(*argv[1:])
    args = parser().parse_args(argv)
    return show_tables() if args.command == "list" else compare(args, argv)
