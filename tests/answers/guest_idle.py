# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares what zernel why says about idle time with the lab's truth, by the counter that the GPU has.

Runs jobs of the lab beside a zerneld that only watches, in a guest in virtual time. For each run, prints the answer of
zernel why and the truth. The true idle share must lie in the range of the answer. The output is TAP.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import device_truth
import guest
import harness
import share
import test_idle
from compare import run, scenarios
from compare.results import Tap

BOOT_SECONDS, RUN_SECONDS = 400, 200  # of the machine; virtual time is slow there
WHY_SECONDS = 5  # the default of zernel why
LEAD_SECONDS = 3  # a job runs for so long before and after the question
SHORT = ["launch-bound", "async-starved", "async"]
OUT = pathlib.Path("out/answers-idle")
# counter: environment of zerneld and of the jobs
COUNTERS = {
    "gpm": {"VGPU_GPM": "1"},
    "utilization": {"VGPU_GPM": "0"},
    "none": {"LD_LIBRARY_PATH": ""},  # zerneld does not find NVML; jobs find their libraries by themselves
}
DEVICES = "4"  # the largest number that a scenario needs; a job uses the first ones


def ready(server, number):
    """Waits until zerneld follows the work of so many processes."""
    def find():
        with server.client() as client:
            followed = [process for process in client.ask("snapshot")["result"]["processes"]
                        if process["launcher_tid"] and process["busy_ns"] + sum(process["open_ns"].values())
                        and pathlib.Path(f"/proc/{process['pid']}").exists()]
        return len(followed) >= number
    harness.wait_until(find, f"the launchers are seen: {server.text()}")


def ask(lab, server):
    """Asks for text and JSON about the same time."""
    command = [f"{guest.BUILD}/src/cli/zernel", "why", "--seconds", str(WHY_SECONDS), "--socket", server.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as text:
        done = lab.zernel(server, *command[1:-2], "--json")
        return {"json": json.loads(done.stdout or "{}"), "error": done.stderr, "text": text.communicate()[0],
                "realtime_minus_monotonic_ns": time.time_ns() - time.monotonic_ns()}


def run_one(lab, server, scenario, seed, work):
    """Runs the jobs of a scenario until they end. Returns the answers of zernel why."""
    started = []
    with lab.noise(scenario):
        for i, job in enumerate(scenario.jobs):
            command = test_idle.command_of(guest.BUILD, job, WHY_SECONDS + 2 * LEAD_SECONDS, seed, work / str(i))
            # The devices exist already: zerneld opened them.
            command = [word for word in command if not word.startswith(("VGPU_DEVICES=", "VGPU_SHM="))]
            started.append(run.start(command, run.cgroup(job.name), 0))
        ready(server, sum(max(1, job.launchers) for job in scenario.jobs))
        answer = ask(lab, server)
        for process in started:
            process.communicate()
    return answer


@contextlib.contextmanager
def environment(variables):
    before = dict(os.environ)
    os.environ.update(variables)
    yield
    os.environ.clear()
    os.environ.update(before)


def in_guest(out, counters, seeds, *names):
    lab = guest.Guest()
    if any(test_idle.SCENARIOS[name].needs_io_device for name in names):
        run.make_io_device()
    for counter in counters.split(","):
        devices = {**COUNTERS[counter], "VGPU_DEVICES": DEVICES, "VGPU_SHM": f"{run.SHM}-{counter}"}
        with environment(devices):
            server = lab.zerneld("[scheduler]\nattach=no\n", devices.items())
            with lab.libraries_held():
                for name in names:
                    for seed in seeds.split(","):
                        with tempfile.TemporaryDirectory(dir=run.WORK) as work:
                            where = pathlib.Path(out, f"{counter}.{name}.{seed}")
                            answer = run_one(lab, server, test_idle.SCENARIOS[name], seed, pathlib.Path(work))
                            subprocess.run(["cp", "--recursive", "--sparse=always", work, where], check=True)
                        (where / "answer.json").write_text(json.dumps(answer))
            server.remove()
    return 0


def span_of(process, answer):
    end = answer["json"]["time_ms"] * 1_000_000 - answer["realtime_minus_monotonic_ns"]
    return end - process["wall_ns"], end


def share_of(counter, name, where, truth, process, answer):
    watched = process["busy_ns"] + process["idle_ns"]
    return share.make(counter, name, where, truth, process["pid"], span_of(process, answer),
                      process["idle_min_ns"] / watched, process["idle_max_ns"] / watched,
                      {process["cause"]: 1} if "cause" in process else {}, process["steps"]["count"], process["step_basis"])


def judge(tap, shares, folder, kernel):
    counter, name, seed = folder.name.split(".")
    answer = json.loads((folder / "answer.json").read_text())
    print(f"# zernel why, {kernel} {folder.name}:")
    for line in (answer["text"] or answer["error"]).splitlines():
        print(f"#   {line}")
    told = {process["pid"]: process for job in answer["json"].get("jobs", []) for process in job["processes"]}
    for place in sorted(folder.glob("[0-9]")):
        truth = device_truth.Truth(place)
        for pid, rank in sorted(truth.ranks.items(), key=lambda item: item[1].number):
            where = f"{kernel} {counter} {name} {seed} rank {rank.number}"
            if pid not in told:
                tap.check(False, f"{where}: no answer")
                continue
            found = share_of(counter, name, where, truth, told[pid], answer)
            print(f"# truth, rank {rank.number}: idle {found.true:.1%}, because of {found.cause}, {found.steps} steps")
            shares.append(found)
            share.judge(tap, found)


def words(table):
    def parse(text):
        unknown = [word for word in text.split(",") if word not in table]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown name '{unknown[0]}'; choose from: {', '.join(table)}")
        return text.split(",")
    return parse


def parse(argv):
    parser = argparse.ArgumentParser(prog="./dev answers idle", description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.18", metavar="V")
    parser.add_argument("--scenario", type=words(test_idle.SCENARIOS), default=SHORT, metavar="S[,S]",
                        help=f"(default {','.join(SHORT)}); see `./dev lab list`")
    parser.add_argument("--campaign", action="store_const", dest="scenario", const=list(test_idle.SCENARIOS), help="run all scenarios")
    parser.add_argument("--seeds", type=words([str(seed) for seed in range(1000)]), default=["1"], metavar="N[,N]",
                        help="run each scenario once per seed (default 1)")
    parser.add_argument("--counters", type=words(COUNTERS), default=list(COUNTERS), metavar="C[,C]",
                        help=f"counters that the GPU has (default {','.join(COUNTERS)})")
    parser.add_argument("--judge", action="store_true", help="judge the files of an earlier run, without a new run")
    return parser.parse_args(argv)


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    args, tap, shares = parse(argv), Tap(), []
    out = OUT / args.kernel
    if not args.judge:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        runs = len(args.scenario) * len(args.seeds) * len(args.counters)
        status = guest.boot(args.kernel, BOOT_SECONDS * len(args.counters) + RUN_SECONDS * runs, __file__, out, ",".join(args.counters),
                            ",".join(args.seeds), *args.scenario, options=["--virtual-time", "--cpus", str(scenarios.CPUS)])
        tap.check(status == 0, f"{args.kernel}: {runs} runs")
    for folder in sorted(out.iterdir()):
        if (folder / "answer.json").exists():
            judge(tap, shares, folder, args.kernel)
    share.print_table(shares)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
