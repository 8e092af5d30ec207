# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs training scenarios of the lab under `signals` and compares phases, roles and counts with the truth.

There is one guest for each kernel, in virtual time, so that other work on the machine does not change a figure; or
the machine's own kernel, with calls only. The jobs run in the guest, and their truth is extracted from the logs;
the comparison runs outside of it. Prints TAP, with figures as comments. The bounds are those of the specification.
The start of a process, before its first call, is included.
"""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import agreement
import roles
from compare import run, scenarios
from compare.results import Tap

MIN_PHASE, MIN_ROLE = 0.97, 0.99
# For collectives whose start and end are not marked by calls.
MIN_HIDDEN = 0.9
# The role of a thread is known only after it did its work, so its start counts as wrong. The allowed 1 % covers
# this in a run of this length; a shorter run allows the same time.
ROLE_SECONDS = 20
ALL_REDUCES = 12  # per step; each all-reduce must be timed, so there is more than one
RANK_WAITS_TOO_MANY = 0.01
COLLECTIVES = scenarios.Scenario("collectives", "many all-reduces before each sync", (scenarios.Job(
    "ranks", "train", f"--ranks 2 --launches 4 --kernel-us 1000 --launch-gap-us 200 --sync block --loaders 0 "
    f"--allreduces {ALL_REDUCES} --allreduce-bytes 65536", launchers=2, env=(("VGPU_DEVICES", "2"),)),))
ROLES = {scenario.name: dataclasses.replace(scenario, noise="") for scenario in scenarios.ROLES}  # only roles are compared
KNOWN = scenarios.BY_NAME | {COLLECTIVES.name: COLLECTIVES} | ROLES
SCENARIOS = ("quiet", "noisy", "spin", "self", "io", "hidden", COLLECTIVES.name)
MORE_SCENARIOS = ("straggler", "two-jobs", *ROLES)  # on request; only the first job runs
DETECTS = "+nccl"  # suffix of a scenario's name: with nccl_detection_enabled
NATIVE = "native"
OUT = pathlib.Path("out/signals")
BUCKET = 2 ** 0.25  # factor between two bucket bounds of a distribution
INTERRUPTED = 0.005  # share of launches that are preempted between the clock reads of probe and caller
MOST_LATE = 3  # maximum number of phase changes while a report is taken
TIMING = bool(os.environ.get("ZERNEL_TIMING"))  # `./dev test timing` judges durations on the machine's own kernel
LAUNCH_NS = 300000  # long compared with the few us that probes add to a launch and that the truth does not contain
# In the scenarios, 20 kernels take exactly 5 ticks of the guest. Steps that end at a tick begin the next one at a tick, so
# that a run would show what happens at one moment of a tick only, such as that a hog runs before each wait for data.
KERNEL_US = 1009
STARTUP_MS = 3000  # long enough for an emulated or busy machine to attach the probes of all calls
BOOT_SECONDS, SLOWDOWN = 300, 50  # of virtual time, on a machine with other load


def pick_truth(build, folder, path):
    with open(path, "wb") as out, subprocess.Popen(
            [f"{build}/lab/truth/truth", "dump", *sorted(folder.glob("*.truth"))], stdout=subprocess.PIPE) as dump:
        subprocess.run(["grep", "-E", '"kind":"(phase|thread|launch|sync|collective|role|wait)"'], stdin=dump.stdout, stdout=out, check=True)


def scenario_of(run_name):
    return KNOWN[run_name.removesuffix(DETECTS)]


def follow(build, seconds, out, work, run_name, options, args):
    """Runs the scenario's job under `signals`; writes its report, its timeline and its truth to `out`."""
    job = scenario_of(run_name).jobs[0]
    if run_name.endswith(DETECTS):
        options = [*options, "--nccl-detection"]
    with open(out / f"{run_name}.json", "wb") as report:
        subprocess.run([f"{build}/tests/signals/signals", "--json", *options, "--timeline", work / "timeline", "--",
                        f"{build}/lab/{job.program}/{job.program}", *job.args.split(), *args,
                        "--seconds", str(seconds), "--truth", work / "truth"], check=True, stdout=report,
                       env={**os.environ, **dict(job.env)})
    subprocess.run([f"{build}/lab/truth/truth", "check", work / "truth"], check=True)
    pick_truth(build, work / "truth", out / f"{run_name}.truth")
    shutil.copy(work / "timeline", out / f"{run_name}.timeline")


def options_of(run_name):
    kernels = ["--kernel-us", str(KERNEL_US)] if scenario_of(run_name).jobs[0].program == "train" else []
    return [*kernels, "--startup-ms", str(STARTUP_MS)]


def in_guest(build, seconds, out, *run_names):
    if any(scenario_of(name).needs_io_device for name in run_names):
        run.make_io_device()
    run.WORK.mkdir(exist_ok=True)
    for name in run_names:
        with tempfile.TemporaryDirectory(dir=run.WORK) as work, run.noise({"build": build}, scenario_of(name), 0):
            follow(build, seconds, pathlib.Path(out), pathlib.Path(work), name, [], options_of(name))
    return 0


def boot(kernel, args, out):
    timeout = BOOT_SECONDS + int(len(args.runs) * args.seconds * SLOWDOWN)
    return subprocess.run(
        ["tools/vm", "--kernel", kernel, "--cpus", str(scenarios.CPUS), "--timeout", str(timeout), "--virtual-time",
         "--", "env", "PYTHONPATH=lab", "PYTHONDONTWRITEBYTECODE=1", "python3", __file__, "guest",
         args.build, str(args.seconds), str(out), *args.runs], check=False).returncode


def stay(args, out):
    """On the machine's own kernel only calls are watched. Loaders cannot be detected, so the jobs have none."""
    for name in args.runs:
        with tempfile.TemporaryDirectory() as work:
            os.environ["VGPU_LAUNCH_NS"] = str(LAUNCH_NS)
            follow(args.build, args.seconds, out, pathlib.Path(work), name, ["--calls"],
                   ["--loaders", "0", "--startup-ms", str(STARTUP_MS)])
    return 0


def judge_launches(tap, where, truth, reports):
    """
    Compares their duration. Probes are too slow on an emulated CPU for this. Without exit events, the last state
    of a process is from some time before its end.
    """
    for pid in truth.launch_spans if TIMING else ():
        told = [process["launch"] for report in reports for process in report["processes"] if process["pid"] == pid][-1]
        for quantile, key in ((0.5, "p50_ns"), (0.99, "p99_ns")):
            exact = truth.launch_quantile(pid, told["count"], quantile)
            later = truth.launch_quantile(pid, told["count"], quantile + INTERRUPTED)
            tap.check(exact / BUCKET <= told[key] <= later * BUCKET,
                      f"{where}: p{quantile * 100:g} of {told['count']} launches is {told[key] / 1e3:.1f} us,"
                      f" truth {exact / 1e3:.1f} us, difference {told[key] / exact - 1:+.1%}")


def judge_collectives(tap, where, out, name):
    """
    Compares counts and bytes where exit events are reported, and durations where probes are fast. On the machine's
    own kernel it compares both, for the calls up to the last report that contains the process.
    """
    truth = agreement.Collectives(out / f"{name}.truth")
    reports = [json.loads(line) for line in (out / f"{name}.json").read_text().splitlines()]
    processes = {process["pid"]: process for report in reports for process in report["processes"]}
    tap.check(len(truth.done) == 2, f"{where}: 2 ranks logged collectives (found {len(truth.done)})")
    for (pid, operation), done in truth.done.items():
        told = processes[pid]["collectives"][operation]
        count, wait = (told["count"] if out.name == NATIVE else len(done)), told["wait"]
        size = sum(size for _, size in done[:count])
        tap.check(0 < count <= len(done) and (told["count"], told["bytes"]) == (count, size),
                  f"{where}: {told['count']} x {operation}, {told['bytes']} bytes; truth: {len(done)} until the end")
        tap.check(0 <= told["count"] - wait["count"] <= (ALL_REDUCES if out.name == NATIVE else 0),
                  f"{where}: {wait['count']} of {told['count']} {operation} timed")
        for share, key in ((0.5, "p50_ns"), (0.99, "p99_ns")) if TIMING and out.name == NATIVE else ():
            exact = agreement.quantile([took for took, _ in done[:wait["count"]]], share)
            tap.check(exact / BUCKET <= wait[key] <= exact * BUCKET,
                      f"{where}: p{share * 100:g} of {operation} is {wait[key] / 1e6:.3f} ms,"
                      f" truth {exact / 1e6:.3f} ms, difference {wait[key] / exact - 1:+.1%}")
        waits = processes[pid]["rank_wait"]
        # A report reads one distribution after another, while the job continues. A call that sleeps for a lock of its runtime
        # also counts as a wait: they are an upper bound.
        error = waits["count"] * ALL_REDUCES - wait["count"]
        tap.check(-(ALL_REDUCES if out.name == NATIVE else 0) <= error <= max(ALL_REDUCES, wait["count"] * RANK_WAITS_TOO_MANY),
                  f"{where}: {waits['count']} waits for other ranks, {waits['sum_ns'] / 1e9:.2f} s in total")
    tap.check(not any(reports[-1]["dropped"].values()), f"{where}: nothing dropped")


def judge_transitions(tap, where, timeline, reports):
    """
    Compares the counter with the reported changes. They must be equal for a process whose end was reported. For a
    live process, a few changes may happen between the report's read of the clock and its read of the process.
    """
    last = {process["pid"]: (report["time_ns"], process) for report in reports for process in report["processes"]}
    for pid, (time, process) in sorted(last.items()):
        told, nr_taken_back = timeline.transitions(pid, None if process["ended"] else time)
        more = process["transitions"] - told
        tap.check(more == 0 if process["ended"] else 0 <= more <= MOST_LATE,
                  f"{where}: process {pid} counted {process['transitions']} transitions and reported {told}"
                  f" ({nr_taken_back} waits revoked)")


def least_share(run_name):
    if scenario_of(run_name).name != "hidden":
        return MIN_PHASE
    return MIN_HIDDEN if run_name.endswith(DETECTS) else 0


def judge(tap, where, out, name, seconds):
    if name == COLLECTIVES.name:
        judge_collectives(tap, where, out, name)
        return
    truth, timeline = agreement.Truth(out / f"{name}.truth"), agreement.Timeline(out / f"{name}.timeline")
    if name in ROLES:
        roles.judge(tap, where, truth, timeline)
        return
    reports = [json.loads(line) for line in (out / f"{name}.json").read_text().splitlines()]
    report = reports[-1]
    processes = {process["pid"]: process for process in report["processes"]}

    for (pid, role), matrix in agreement.of_phases(truth, timeline).items():
        share = agreement.share(matrix)
        if role == "launcher":
            agreement.show(where, matrix)
        tap.check(share >= least_share(name), f"{where}: {role} {pid}: phase is correct for {share:.4f} of the time")

    by_role, right, total = collections.defaultdict(list), 0, 0
    for (_, _, role), matrix in agreement.of_roles(truth, timeline).items():
        by_role[role].append(agreement.share_of_roles(matrix))
        right += agreement.share_of_roles(matrix) * sum(matrix.values())
        total += sum(matrix.values())
    for role, shares in sorted(by_role.items()):
        print(f"# {where}: {len(shares)} x {role}: role is correct for at least {min(shares):.4f} of the time")
    least = 1 - (1 - MIN_ROLE) * max(1, ROLE_SECONDS / seconds)
    tap.check(total and right / total >= least, f"{where}: roles are correct for {right / total:.4f} of thread time")

    judge_transitions(tap, where, timeline, reports)
    if any(process["ended"] for process in processes.values()):
        for key, counted in (("launches", truth.launches), ("copies", truth.copies)):
            seen = {pid: processes.get(pid, {}).get(key) for pid in counted}
            tap.check(seen == dict(counted), f"{where}: all {sum(counted.values())} {key} are counted")
    if out.name == NATIVE:
        judge_launches(tap, where, truth, reports)
    tap.check(not any(report["dropped"].values()), f"{where}: nothing dropped")


def parse(argv):
    def names(text):
        chosen = list(ROLES) if text == "roles" else text.split(",")
        if not set(chosen) <= {*SCENARIOS, *MORE_SCENARIOS}:
            raise argparse.ArgumentTypeError(f"unknown scenario; choose from: {', '.join(SCENARIOS + MORE_SCENARIOS)}")
        return chosen

    def settings(text):
        return [{"false": False, "true": True}[word] for word in text.split(",")]

    parser = argparse.ArgumentParser(prog="./dev signals compare", description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", type=lambda text: text.split(","), default=["6.18", "newest"], metavar="V[,V]",
                        help="kernels of the guests; native: this machine's kernel, without loaders "
                        "(default: 6.18,newest)")
    parser.add_argument("--scenario", type=names, default=list(SCENARIOS), metavar="S[,S]",
                        help=f"scenarios to run (default: {','.join(SCENARIOS)}; also: {','.join(MORE_SCENARIOS)}; "
                        "roles: those of lab/roles)")
    parser.add_argument("--nccl-detection", type=settings, metavar="BOOL[,BOOL]",
                        help="run each scenario with these settings (default: true for hidden, otherwise false)")
    parser.add_argument("--seconds", type=float, default=40, metavar="S", help="length of a run (default: 40)")
    parser.add_argument("--build", default="out/gcc", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.runs = [name + DETECTS * detects for name in args.scenario
                 for detects in args.nccl_detection or [name == "hidden"]]
    return args


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    args, tap = parse(argv), Tap()
    if args.kernel != [NATIVE] and not pathlib.Path("/var/lib/zernel-kernels").is_dir():
        print("1..0 # SKIP no guest kernels found: run `./dev test signals`")
        return 0
    for kernel in args.kernel:
        release = os.uname().release if kernel == NATIVE else subprocess.run(
            ["tools/kernel", "release", kernel], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
        out = OUT / kernel
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        status = stay(args, out) if kernel == NATIVE else boot(kernel, args, out)
        tap.check(status == 0, f"{release}: all {len(args.runs)} scenarios ran")
        for name in args.runs:
            if (out / f"{name}.timeline").exists():
                judge(tap, f"{release} {name}", out, name, args.seconds)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
