# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares idle time, its causes and steps with the lab's truth, without counters of the GPU.

One guest in virtual time, so that other load of the machine has no effect, runs the lab's scenarios one after
the other under `signals`, which reports several times a second. For each rank, the span from the first report with
steps to the last report before its last step is compared with the truth of the same span, outside the guest.
A rank that waits for its device at the end of each step has exact idle time; for a rank that runs ahead, the truth must
lie in the range between certainly idle and not certainly busy. The output is TAP; the figures are in its comments.
"""
import argparse
import collections
import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace

import device_truth
import idle_truth
import share
from compare import run, scenarios
from compare.results import Tap

MAX_SUM, MAX_SHARE, MIN_STEPS, MAX_STEP_TIME = 0.02, 0.05, 0.99, 0.03
EVERY_MS = 200
STARTUP_MS = 300  # long enough to find its libraries
ATTACH_SECONDS = 3
# The scenarios of the lab, and one whose loader only waits for its disk.
DISK = scenarios.Scenario("disk", "a loader that waits for a slow block device", (replace(
    scenarios.IO, name="disk", args=scenarios.IO.args.replace("--kernel-us 1000", "--kernel-us 100")
    .replace("--loaders 2", "--loaders 1")),), needs_io_device=True)
LEFT_OUT = ("hidden", "serve-noisy", "serve-spin-mixed", "serve-spin-alternate",
            *(scenario.name for scenario in scenarios.ROLES))  # their truth has no cause of idle time
SCENARIOS = {name: scenario for name, scenario in scenarios.BY_NAME.items() if name not in LEFT_OUT}
SCENARIOS["disk"] = DISK
SHORT = ["noisy", "launch-bound", "async-starved", "async"]
# scenario: (cause, expected culprit), where the cause takes time.
CULPRIT_PART = 0.03
CULPRITS = {"noisy": ("runqueue", "hog"), "spin": ("runqueue", "hog"), "disk": ("loader_disk", "nullb0")}
OUT = pathlib.Path("out/idle")
BOOT_SECONDS, SLOWDOWN = 600, 150  # slowdown of virtual time on a shared machine


def command_of(build, job, seconds, seed, truth):
    return ["env", *(f"{key}={value}" for key, value in job.env), f"VGPU_SHM={run.SHM}",
            f"{build}/lab/{job.program}/{job.program}", *job.args.split(), "--startup-ms", str(STARTUP_MS), "--seconds", str(seconds),
            "--seed", str(seed), "--truth", str(truth)]


def save_truth(build, truth, path):
    """Checks the truth of a job and copies it out of the guest. The logs are sparse files."""
    subprocess.run([f"{build}/lab/truth/truth", "check", truth], check=True)
    subprocess.run(["cp", "--recursive", "--sparse=always", truth, path], check=True)


def follow(build, seconds, seeds, out, work, name):
    """Runs the scenario with each seed, one after the other, under one `signals`, because loading it takes time.
    Writes the report, the timeline and the truth of each job."""
    runs = [[command_of(build, job, seconds, seed, work / f"{seed}.truth{i}")
             for i, job in enumerate(SCENARIOS[name].jobs)] for seed in seeds]
    # This process only maps the libraries, and the jobs start when all probes are attached: on 6.1, one after the other.
    holder = f"{build}/lab/train/train --startup-ms 100000000 & holder=$!; sleep {ATTACH_SECONDS}"
    waits = ["\n".join([f"rm -f {run.SHM}", "jobs=", *(f"{subprocess.list2cmdline(job)} & jobs=\"$jobs $!\"" for job in jobs), "wait $jobs"])
             for jobs in runs]
    script = "\n".join([holder, *waits, "kill $holder"])
    with open(out / f"{name}.json", "wb") as report:
        # The reporter must run despite the hogs; the jobs have the same nice value as the hogs.
        subprocess.run(["nice", "-n", "-20", f"{build}/tests/signals/signals", "--json", "--every", str(EVERY_MS), "--timeline",
                        work / "timeline", "--", "nice", "-n", "20", "sh", "-c", script], check=True, stdout=report)
    shutil.copy(work / "timeline", out / f"{name}.timeline")
    for truth in work.glob("*.truth?"):
        save_truth(build, truth, out / f"{name}.{truth.name}")


def in_guest(build, seconds, seeds, out, *names):
    if any(SCENARIOS[name].needs_io_device for name in names):
        run.make_io_device()
    run.WORK.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory(dir=run.WORK) as work, \
                run.noise({"build": build}, SCENARIOS[name], 0):
            follow(build, seconds, seeds.split(","), pathlib.Path(out), pathlib.Path(work), name)
    return 0


def boot(kernel, args, out):
    timeout = BOOT_SECONDS + int(len(args.scenario) * len(args.seed) * args.seconds * SLOWDOWN)
    return subprocess.run(
        ["tools/vm", "--kernel", kernel, "--cpus", str(scenarios.CPUS), "--timeout", str(timeout), "--virtual-time",
         "--", "env", "PYTHONPATH=lab:tests/answers", "PYTHONDONTWRITEBYTECODE=1", "python3", __file__, "guest",
         args.build, str(args.seconds), ",".join(map(str, args.seed)), str(out), *args.scenario],
        check=False).returncode


@functools.cache
def steps_seen(path):
    """Sorted end times of steps, by process."""
    seen = collections.defaultdict(list)
    with open(path, encoding="ascii") as stream:
        for kind, tgid, _, time_ns, *_ in map(str.split, stream):
            if kind == "step":
                seen[int(tgid)].append(int(time_ns))
    return {pid: sorted(ends) for pid, ends in seen.items()}


@functools.cache
def reports_of(path):
    """The reports of each process in order. Reports after its end repeat the last values."""
    lives = collections.defaultdict(list)
    for report in map(json.loads, path.read_text().splitlines()):
        for process in report["processes"]:
            lives[process["pid"]].append(process)
    return lives


def time_of(report, start_ns):
    """The time at which the counters were read, computed from them: they start at the first launch.
    The time of the report is later, because the reporter waits for a CPU, too."""
    return (start_ns + report["busy_ns"] + sum(report["idle_ns"].values()) + sum(report["open_ns"].values())
            + report["pending_ns"])


def difference(first, last, key):
    causes = share.fold(last[key])
    causes.subtract(share.fold(first[key]))
    return causes


def show(where, truth, seen, span_ns):
    print(f"# {where}: idle {sum(seen.values()) / 1e6:.1f} ms of {span_ns / 1e6:.1f} ms; detected (truth), ms: "
          + ", ".join(f"{cause} {seen[cause] / 1e6:.1f} ({truth[cause] / 1e6:.1f})" for cause in idle_truth.CAUSES
                      if max(seen[cause], truth[cause]) > span_ns / 1000))


def judge_steps(tap, where, rank, ends, process):
    found = collections.Counter(rank.step_at(end) for end in ends)
    hits = sum(1 for step in range(len(rank.steps)) if found[step])
    recall, precision = hits / len(rank.steps), hits / len(ends) if ends else 0
    tap.check(min(recall, precision) >= MIN_STEPS,
              f"{where}: {len(ends)} of {len(rank.steps)} steps: recall {recall:.4f}, precision {precision:.4f}")
    seen = process["step"]["sum_ns"] / max(1, process["step"]["count"])
    # Measured from the end of the first step, as the BPF programs do.
    true = (rank.steps[-1][1] - rank.steps[0][1]) / max(1, len(rank.steps) - 1)
    tap.check(abs(seen / true - 1) <= MAX_STEP_TIME, f"{where}: a step takes {seen / 1e6:.3f} ms, truth {true / 1e6:.3f} ms")


def judge_causes(tap, matrix, where, true, seen, pending):
    """A rank that waits for its device at the end of each step. `pending`: time without a decided cause at the ends."""
    idle, booked = sum(true.values()), sum(seen.values()) + pending
    tap.check(abs(booked / idle - 1) <= MAX_SUM, f"{where}: causes sum to {booked / idle:.4f} of the idle time")
    worst = max(idle_truth.CAUSES, key=lambda cause: abs(seen[cause] - true[cause]))
    points = abs(seen[worst] / max(1, sum(seen.values())) - true[worst] / idle)
    tap.check(points <= MAX_SHARE, f"{where}: shares within {points * 100:.1f} points ({worst})")
    matrix[tuple(max(idle_truth.CAUSES, key=lambda cause: causes[cause]) for causes in (true, seen))] += 1


def share_of(name, where, truth, pid, first, last, span, ends):
    """The idle share that follows from calls alone: from certainly idle to not certainly busy."""
    length = span[1] - span[0]
    idle = sum(difference(first, last, "idle_ns").values())
    maybe = difference(first, last, "open_ns")
    maybe["cpu"] -= last["blocked_ns"] - first["blocked_ns"]
    pending = last["pending_ns"] - first["pending_ns"]
    # As zernel why does: the middle of the range.
    causes = difference(first, last, "idle_ns")
    causes.update({cause: ns / 2 for cause, ns in maybe.items()})
    return share.make("none", name, where, truth, pid, span, min(idle, idle + pending) / length,
                      (idle + sum(maybe.values()) + max(0, pending)) / length, causes,
                      sum(span[0] < end <= span[1] for end in ends), last.get("step_basis", ""))


def judge_rank(tap, results, where, name, truth, pid, reports, ends):
    rank = truth.ranks[pid]
    start = truth.first_launch_ns(pid) if pid in truth.did else rank.first_launch_ns
    # After its last step, a rank does not log its activity in detail.
    living = [report for report in reports if report["launches"]
              and rank.steps[0][1] <= time_of(report, start) <= rank.steps[-1][1]]
    if len(living) < 2:
        tap.check(False, f"{where}: {len(living)} reports during its steps")
        return
    first, last = living[0], living[-1]
    span = time_of(first, start), time_of(last, start)
    found = share_of(name, where, truth, pid, first, last, span, ends)
    # The account has what the launcher did. Only zernel why says that it waited for requests.
    if found.cause == "no_requests":
        found = replace(found, cause="-")
    results.shares.append(found)
    share.judge(tap, found)
    if pid not in truth.did:
        true, seen = truth.idle_ns(rank, *span), difference(first, last, "idle_ns")
        show(where, true, seen, span[1] - span[0])
        judge_causes(tap, results.matrix, where, true, seen, last["pending_ns"] - first["pending_ns"])
    if pid not in truth.did or found.basis == "optimizer":
        judge_steps(tap, where, rank, ends, reports[-1])


def judge_culprit(tap, where, name, process):
    """On 6.1, a launcher that wakes up preempts the noise, so the cause takes little time, and the noise is not its culprit."""
    cause, right = CULPRITS[name]
    if process["idle_ns"][cause] < CULPRIT_PART * sum(process["idle_ns"].values()):
        print(f"# {where}: {cause} takes too little time for a culprit")
        return
    told = {one["name"]: one["ns"] for one in process["culprits"] if one["cause"] == cause}
    named = max(told, key=told.get) if told else None
    times = ", ".join(f"{name} {told[name] / 1e6:.1f} ms" for name in sorted(told, key=told.get, reverse=True))
    tap.check(named == right, f"{where}: the culprit of {cause} is {named} ({times})")


@dataclass
class Results:
    """The figures of all ranks, for the tables at the end."""
    matrix: collections.Counter
    shares: list


def judge(tap, results, where, out, name, seed):
    reports = reports_of(out / f"{name}.json")
    ends = steps_seen(out / f"{name}.timeline")
    for i, job in enumerate(SCENARIOS[name].jobs):
        truth = device_truth.Truth(out / f"{name}.{seed}.truth{i}")
        for pid, rank in sorted(truth.ranks.items(), key=lambda item: item[1].number):
            judge_rank(tap, results, f"{where} {job.name} rank {rank.number}", name, truth, pid, reports[pid], ends.get(pid, []))
            if name in CULPRITS and rank.number == 0:
                judge_culprit(tap, where, name, reports[pid][-1])


def print_matrix(matrix):
    """Prints a matrix of the largest causes of all ranks and runs whose steps end in a sync."""
    causes = [cause for cause in idle_truth.CAUSES if any(cause in pair for pair in matrix)]
    right = sum(number for (true, seen), number in matrix.items() if true == seen)
    print(f"# largest cause detected correctly: {right} of {sum(matrix.values())} ranks")
    print("#", f"{'ranks':>26}", *(f"{'detected ' + cause:>26}" for cause in causes))
    for true in causes:
        print("#", f"{'true cause ' + true:>26}", *(f"{matrix[true, seen]:26}" for seen in causes))


def parse(argv):
    parser = argparse.ArgumentParser(prog="./dev signals idle", description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", type=lambda text: text.split(","), default=["6.18"], metavar="V[,V]",
                        help="kernels of the guests (default 6.18)")
    parser.add_argument("--scenario", type=lambda text: text.split(","), default=SHORT, metavar="S[,S]",
                        help=f"choose from {', '.join(SCENARIOS)} (default {','.join(SHORT)})")
    parser.add_argument("--campaign", action="store_const", dest="scenario", const=list(SCENARIOS), help="run all scenarios")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="duration of a run (default 2)")
    parser.add_argument("--seeds", dest="seed", type=lambda text: [int(seed) for seed in text.split(",")], default=[1], metavar="N[,N]",
                        help="run each scenario once per seed (default 1)")
    parser.add_argument("--build", default="out/gcc", help=argparse.SUPPRESS)
    parser.add_argument("--judge", action="store_true", help="judge the files of an earlier run, without a new run")
    return parser.parse_args(argv)


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    args, tap, results = parse(argv), Tap(), Results(collections.Counter(), [])
    if not pathlib.Path("/var/lib/zernel-kernels").is_dir():
        print("1..0 # SKIP no guest kernels here: run it through ./dev test answers")
        return 0
    for kernel in args.kernel:
        out = OUT / kernel
        if not args.judge:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            status = boot(kernel, args, out)
            tap.check(status == 0, f"{kernel}: {len(args.scenario) * len(args.seed)} runs of {args.seconds} s")
        for name in args.scenario:
            for seed in args.seed:
                if (out / f"{name}.{seed}.truth0").exists():
                    judge(tap, results, f"{kernel} {name} {seed}", out, name, seed)
    print_matrix(results.matrix)
    share.print_table(results.shares)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
