# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel why and zernel ab on the lab's jobs, with the real scheduler, in a guest in virtual time.

This is a campaign, not a CI test: each experiment takes minutes. `worse` is the scenario noisy with a policy that
is worse on purpose, so ab must stop early. After each experiment, the scheduler must be off again, as before.
"""
import argparse
import json
import sys

import guest
from compare import scenarios
from compare.results import Tap

BOOT_SECONDS, SLOWDOWN = 300, 60  # slowdown of virtual time on a shared machine
# name: scenario of the lab, whether its job has its own group, configuration of zerneld, exit status of ab,
# correct verdicts
CASES = {
    "noisy": ("noisy", False, "", 0, {"better"}),
    "quiet": ("quiet", False, "", 0, {"no_difference"}),
    # The group gets half of the CPU time. A scheduler without its rules ignores groups.
    "worse": ("noisy", True, "without=feeder,loader,late-loader,spinner,helper,preempt,tier,place\n", 3, {"unknown", "worse"}),
}


def experiment(lab, minutes, name, number):
    scenario, is_group, policy, status, verdicts = CASES[name]
    scenario = scenarios.BY_NAME[scenario]
    server = lab.zerneld(f"[scheduler]\nattach=no\n{policy}")
    try:
        with lab.noise(scenario), lab.job(scenario.jobs[0], is_group=is_group):
            pid = str(lab.launchers(server)[0])
            why = lab.zernel(server, "why", "--seconds", "2", pid)
            done = lab.zernel(server, "ab", "--minutes", minutes, "--seed", str(number), "--json", pid)
        state = server.scheduler()["state"]
    finally:
        server.remove()
    print(*(f"# {line}" for line in why.stdout.splitlines() + done.stderr.splitlines()), sep="\n", flush=True)
    report = json.loads(done.stdout) if done.stdout else {"verdict": None}
    good = done.returncode == status and report["verdict"] in verdicts and state == "off"
    print(f"# {name} {number} state {state}, exit status {done.returncode}: {json.dumps(report)}", flush=True)
    return good, report


def describe(report):
    if "step_change" not in report:
        return f"{report.get('end')}: {report.get('slow_step_ns', 0) / 1e6:.1f} ms per step, {report.get('usual_step_ns', 0) / 1e6:.1f} before"
    change = report["step_change"]
    return (f"{report['verdict']}, {report['without']['mean_ns'] / 1e6:.1f} ms -> {report['with']['mean_ns'] / 1e6:.1f} ms, "
            f"{change['value']:+.1%} [{change['low']:+.1%}, {change['high']:+.1%}]")


def in_guest(minutes, first, nr_runs, *names):
    lab, tap = guest.Guest(), Tap()
    for number in range(int(first), int(first) + int(nr_runs)):
        for name in names:
            good, report = experiment(lab, minutes, name, number)
            tap.check(good, f"{name} {number}: {describe(report)}")
    return tap.end()


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    parser = argparse.ArgumentParser(prog="./dev answers ab", description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.18", metavar="V")
    parser.add_argument("--case", type=lambda text: text.split(","), default=list(CASES), metavar="C[,C]")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first run, which is its seed (default 0)")
    parser.add_argument("--minutes", type=float, default=0.25, metavar="M", help="duration of an experiment (default 0.25)")
    args = parser.parse_args(argv)
    timeout = BOOT_SECONDS + int(len(args.case) * args.runs * (args.minutes * 60 + 10) * SLOWDOWN)
    return guest.boot(args.kernel, timeout, __file__, args.minutes, args.first, args.runs, *args.case,
                      options=["--virtual-time"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
