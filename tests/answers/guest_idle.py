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
# A job runs for so much longer than the question. Beside noise, zernel has to wait for a CPU, too.
LEAD_SECONDS, NOISE_SECONDS = 2, 6
OWN_NOISE = "self"  # the loaders of the job take all CPUs
SHORT = ["launch-bound", "async-starved", "async"]
OUT = pathlib.Path("out/answers-idle")
# counter: environment of the zerneld that has only this counter
COUNTERS = {
    "gpm": {"VGPU_GPM": "1"},
    "utilization": {"VGPU_GPM": "0"},
    "none": {"LD_LIBRARY_PATH": ""},  # zerneld does not find NVML; jobs find their libraries by themselves
}
ZERNELD_NICE = -10  # as in zerneld.service
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


def ask(servers):
    """Asks each zerneld for text and JSON about the same time. Returns the answers by counter."""
    asked = {}
    for counter, server in servers.items():
        command = [f"{guest.BUILD}/src/cli/zernel", "why", "--seconds", str(WHY_SECONDS), "--socket", server.path]
        asked[counter] = [subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                          for more in ([], ["--json"])]
    answers = {}
    for counter, (text, data) in asked.items():
        out, error = data.communicate()
        answers[counter] = {"json": json.loads(out or "{}"), "error": error, "text": text.communicate()[0],
                            "realtime_minus_monotonic_ns": time.time_ns() - time.monotonic_ns()}
    return answers


def run_one(lab, servers, scenario, seed, work):
    """Runs the jobs of a scenario until they end. Returns the answers of zernel why by counter."""
    is_noisy = scenario.noise or scenario.name == OWN_NOISE
    started, seconds = [], WHY_SECONDS + LEAD_SECONDS + (NOISE_SECONDS if is_noisy else 0)
    with lab.noise(scenario):
        for i, job in enumerate(scenario.jobs):
            command = test_idle.command_of(guest.BUILD, job, seconds, seed, work / str(i))
            # The devices exist already: zerneld opened them.
            command = [word for word in command if not word.startswith(("VGPU_DEVICES=", "VGPU_SHM="))]
            started.append(run.start(command, run.cgroup(job.name), 0))
        for server in servers.values():
            ready(server, sum(max(1, job.launchers) for job in scenario.jobs))
        answers = ask(servers)
        for process in started:
            process.communicate()
    return answers


@contextlib.contextmanager
def environment(variables):
    before = dict(os.environ)
    os.environ.update(variables)
    yield
    os.environ.clear()
    os.environ.update(before)


def start_servers(lab, counters):
    """Starts one zerneld for each counter. All of them watch the same jobs, because virtual time is expensive."""
    servers = {}
    os.setpriority(os.PRIO_PROCESS, 0, ZERNELD_NICE)
    for counter in counters:
        with environment(COUNTERS[counter]):
            servers[counter] = lab.zerneld("[scheduler]\nattach=no\n", os.environ.items())
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    return servers


def in_guest(out, counters, seeds, *names):
    lab = guest.Guest()
    if any(test_idle.SCENARIOS[name].needs_io_device for name in names):
        run.make_io_device()
    os.environ.update({"VGPU_DEVICES": DEVICES, "VGPU_SHM": run.SHM})
    servers = start_servers(lab, counters.split(","))
    with lab.libraries_held():
        for seed in seeds.split(","):
            for name in names:
                where = pathlib.Path(out, f"{name}.{seed}")
                with tempfile.TemporaryDirectory(dir=run.WORK) as work:
                    answers = run_one(lab, servers, test_idle.SCENARIOS[name], seed, pathlib.Path(work))
                    subprocess.run(["cp", "--recursive", "--sparse=always", work, where], check=True)
                (where / "answers.json").write_text(json.dumps(answers))
    for server in servers.values():
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
    name, seed = folder.name.split(".")
    truths = [device_truth.Truth(place) for place in sorted(folder.glob("[0-9]"))]
    for counter, answer in json.loads((folder / "answers.json").read_text()).items():
        print(f"# zernel why, {kernel} {counter} {name} {seed}:")
        for line in (answer["text"] or answer["error"]).splitlines():
            print(f"#   {line}")
        for truth in truths:
            judge_job(tap, shares, truth, answer, counter, name, f"{kernel} {counter} {name} {seed}")


def judge_job(tap, shares, truth, answer, counter, name, where):
    told = {process["pid"]: process for job in answer["json"].get("jobs", []) for process in job["processes"]}
    for pid, rank in sorted(truth.ranks.items(), key=lambda item: item[1].number):
        if pid not in told:
            tap.check(False, f"{where} rank {rank.number}: no answer")
            continue
        found = share_of(counter, name, f"{where} rank {rank.number}", truth, told[pid], answer)
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
    if not pathlib.Path("/var/lib/zernel-kernels").is_dir():
        print("1..0 # SKIP no guest kernels here: run it through ./dev test answers")
        return 0
    if not args.judge:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        runs = len(args.scenario) * len(args.seeds)
        status = guest.boot(args.kernel, BOOT_SECONDS * len(args.counters) + RUN_SECONDS * runs, __file__, out, ",".join(args.counters),
                            ",".join(args.seeds), *args.scenario, options=["--virtual-time", "--cpus", str(scenarios.CPUS)])
        tap.check(status == 0, f"{args.kernel}: {runs} runs")
    for folder in sorted(out.iterdir()):
        if (folder / "answers.json").exists():
            judge(tap, shares, folder, args.kernel)
    share.print_table(shares)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
