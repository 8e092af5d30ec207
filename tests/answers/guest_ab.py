# SPDX-License-Identifier: GPL-2.0-only
"""zernel why and zernel ab on the lab's jobs, with the real scheduler, in a guest in virtual time.

A campaign, not a test of CI: each experiment takes minutes. `worse` is noisy under a policy that is made worse
on purpose, so that ab must stop early; the scheduler must be off again after each of them, as it was.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

BOOT_SECONDS, SLOWDOWN = 300, 60  # of virtual time, on a machine that is shared
STEPS_MIN = 30
# name: scenario of the lab, what zerneld is told, exit status, verdicts that are right
CASES = {
    "noisy": ("noisy", "", 0, {"better"}),
    "quiet": ("quiet", "", 0, {"no_difference"}),
    "worse": ("noisy", "others_permille=900\nwithout=feeder,loader,late-loader,spinner,helper,kin,preempt,tier\n", 3,
              {"unknown"}),
}


class Guest:
    def __init__(self, build, minutes):
        import harness
        from compare import run, scenarios
        self.harness, self.run, self.scenarios = harness, run, scenarios
        self.build, self.minutes = build, minutes
        harness.SECONDS = 120
        harness.ZERNELD = pathlib.Path(build, "src/daemon/zerneld")
        run.WORK.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def job(self, job):
        """Runs for as long as the body of a with statement."""
        pathlib.Path(self.run.SHM).unlink(missing_ok=True)
        group = self.run.cgroup(job.name)
        process = subprocess.Popen(
            [f"{self.build}/lab/{job.program}/{job.program}", *job.args.split(), "--seconds", "100000"],
            stdout=subprocess.DEVNULL, process_group=0,  # no session: those share CPUs as groups
            preexec_fn=lambda: (group / "cgroup.procs").write_text("0"),
            env={**os.environ, **dict(job.env), "VGPU_SHM": self.run.SHM})
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def launcher(self, server):
        """The process whose steps are seen."""
        def find():
            with server.client() as client:
                for process in client.ask("snapshot")["result"]["processes"]:
                    if process["launcher_tid"] and process["steps"] > STEPS_MIN:
                        return process["pid"]
            return None
        return self.harness.wait_until(find, f"steps are seen: {server.text()}")

    def zernel(self, server, *words):
        return subprocess.run([f"{self.build}/src/cli/zernel", *words, "--socket", server.path], capture_output=True,
                              text=True, check=False)

    def experiment(self, name, number):
        scenario, policy, status, verdicts = CASES[name]
        scenario = self.scenarios.BY_NAME[scenario]
        server = self.harness.Zerneld(config=f"sample=yes\n[scheduler]\nattach=no\n{policy}")
        try:
            with self.run.noise({"build": self.build}, scenario, 0), self.job(scenario.jobs[0]):
                pid = str(self.launcher(server))
                why = self.zernel(server, "why", "--seconds", "2", pid)
                done = self.zernel(server, "ab", "--minutes", self.minutes, "--seed", str(number), "--json", pid)
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
        return f"{report.get('end')}: {report.get('slow_step_ns', 0) / 1e6:.1f} ms a step, {report.get('usual_step_ns', 0) / 1e6:.1f} before"
    change = report["step_change"]
    return (f"{report['verdict']}, {report['without']['mean_ns'] / 1e6:.1f} ms -> {report['with']['mean_ns'] / 1e6:.1f} ms, "
            f"{change['value']:+.1%} [{change['low']:+.1%}, {change['high']:+.1%}]")


def in_guest(build, minutes, nr_runs, *names):
    guest, number, failed = Guest(build, minutes), 0, 0
    for run in range(int(nr_runs)):
        for name in names:
            number += 1
            good, report = guest.experiment(name, run)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name} {run}: {describe(report)}", flush=True)
    print(f"1..{number}")
    return int(failed > 0)


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    parser = argparse.ArgumentParser(prog="guest_ab.py", description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.18", metavar="V")
    parser.add_argument("--case", type=lambda text: text.split(","), default=list(CASES), metavar="C[,C]")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    parser.add_argument("--minutes", type=float, default=0.25, metavar="M", help="of an experiment (default 0.25)")
    parser.add_argument("--build", default="out/gcc")
    args = parser.parse_args(argv)
    timeout = BOOT_SECONDS + int(len(args.case) * args.runs * (args.minutes * 60 + 10) * SLOWDOWN)
    return subprocess.run(
        ["tools/vm", "--kernel", args.kernel, "--timeout", str(timeout), "--virtual-time", "--", "env",
         f"ZERNEL_BUILD={args.build}", f"LD_LIBRARY_PATH={args.build}/lab/vgpu",
         "PYTHONPATH=lab:tests/daemon", "PYTHONDONTWRITEBYTECODE=1", "python3", "-u", __file__, "guest", args.build,
         str(args.minutes), str(args.runs), *args.case], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
