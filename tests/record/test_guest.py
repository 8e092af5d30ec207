# SPDX-License-Identifier: GPL-2.0-or-later
"""Records, replays and exports a job of the lab on a real kernel, and measures the cost of recording."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import tap
from harness import BUILD, ZERNEL, wait_until
from perfetto import Trace
from recordings import SECOND, zernel

SECONDS = 5
POINTS = 5
# Guest time per instruction, and 1 % of a core that executes three instructions per nanosecond.
NS_AN_INSTRUCTION = 4
INSTRUCTIONS_A_SECOND = 30_000_000
LAB = BUILD / "lab"
harness.SECONDS = 90
harness.ZERNELD = BUILD / "src/daemon/zerneld"


class Guest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["LD_LIBRARY_PATH"] = str(LAB / "vgpu")
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.file = cls.directory / "job.zr"
        cls.server = harness.Zerneld(config="sample=yes\n[kernel]\nmeasure_run_time=yes\n")
        cls.addClassCleanup(cls.server.remove)
        cls.job = subprocess.Popen([LAB / "train/train", "--seconds", "600", "--loaders", "1"], stdout=subprocess.DEVNULL)
        cls.addClassCleanup(cls.job.wait)
        cls.addClassCleanup(cls.job.kill)
        wait_until(lambda: any("sync_wait" in each["hists"] for each in cls.snapshot()["processes"]), "no sync waits of the job")

    @classmethod
    def snapshot(cls):
        with cls.server.client() as client:
            return client.ask("snapshot")["result"]

    def cost_of_zerneld(self):
        """Instructions per second during the next seconds, in user space and in BPF programs."""
        before = self.snapshot()
        time.sleep(SECONDS)
        after = self.snapshot()
        span = (after["monotonic_ns"] - before["monotonic_ns"]) * NS_AN_INSTRUCTION / SECOND
        return [(after["cost"][key] - before["cost"][key]) / span for key in ("cpu_ns", "bpf_run_ns")]

    def cpu_ns_of(self, pid):
        """CPU time of all threads of a process."""
        return sum(int(stat.read_text(encoding="ascii").split()[0])
                   for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))

    def test_01_recording_costs_little(self):
        quiet = self.cost_of_zerneld()
        with subprocess.Popen([ZERNEL, "record", "--socket", self.server.path, self.file], stdout=subprocess.PIPE,
                              text=True) as child:
            wait_until(lambda: self.file.exists() and self.file.stat().st_size > 2000, "nothing was recorded")
            begun, began = self.cpu_ns_of(child.pid), time.monotonic()
            busy = self.cost_of_zerneld()
            recorder = (self.cpu_ns_of(child.pid) - begun) / NS_AN_INSTRUCTION / (time.monotonic() - began)
            child.send_signal(signal.SIGINT)
            print("#", child.communicate()[0].strip())
        print("# dropped:", {key: value for key, value in self.snapshot()["dropped"].items() if value})
        print(f"# million instructions per second: zerneld {quiet[0] / 1e6:.2f}, recording {busy[0] / 1e6:.2f}; BPF "
              f"{quiet[1] / 1e6:.2f}, recording {busy[1] / 1e6:.2f}; zernel record {recorder / 1e6:.2f}")
        self.assertLess(sum(busy) - sum(quiet) + recorder, INSTRUCTIONS_A_SECOND)

    def replayed(self, *words):
        text, errors = zernel("replay", self.file, "status", "--json", *words)
        self.assertEqual(errors, "")
        return json.loads(text)

    def test_02_slices_add_up_to_the_phases(self):
        zernel("export", self.file, "--perfetto", self.directory / "trace")
        trace = Trace((self.directory / "trace").read_bytes())
        first, last = self.replayed("--to", "0"), self.replayed()
        start, end = first["monotonic_ns"], last["monotonic_ns"]
        self.assertGreater(end - start, (SECONDS - 2) * SECOND)
        before = {each["pid"]: each for each in first["processes"]}
        for process in last["processes"]:
            lane = trace.slices[trace.below(trace.processes()[process["pid"]], "phases")]
            for phase, total in process["phase_ns"].items():
                seen = sum(min(to, end) - max(begin, start) for begin, to, name in lane
                           if name == phase and to > start and begin < end)
                counted = total - before[process["pid"]]["phase_ns"][phase]
                print(f"# {process['comm']} {process['pid']} {phase}: {counted / 1e6:.3f} ms in snapshots, "
                      f"{seen / 1e6:.3f} in slices")
                # A wait that is open during a snapshot can turn out not to be a wait.
                self.assertAlmostEqual(seen, counted, delta=0.01 * (end - start))
            lane = trace.slices[trace.below(trace.processes()[process["pid"]], "steps")]
            # Events continue after the last snapshot.
            steps = sum(start < to <= end for _, to, _ in lane)
            counted = process["steps"] - before[process["pid"]]["steps"]
            print(f"# {process['comm']} {process['pid']}: {counted} steps in snapshots, {steps} in slices")
            # The first step began before the recording.
            self.assertTrue(counted - 2 <= steps <= counted + 1)
        roles = {name for tid in trace.threads().values() for _, _, name in trace.slices[tid]}
        self.assertLessEqual({"launcher", "loader"}, roles)

    def test_03_table(self):
        zernel("export", self.file, "--csv", self.directory / "table")
        lines = (self.directory / "table").read_text(encoding="utf-8").splitlines()
        self.assertGreater(len(lines), SECONDS * 2)

    def launches(self, pid):
        return any(each["pid"] == pid and each["launcher_tid"] for each in self.snapshot()["processes"])

    def test_04_stacks_of_a_python_job(self):
        """The share of each line in the trace, of the time in lines that the job has measured itself."""
        truth, file = self.directory / "truth.json", self.directory / "python.zr"
        job = subprocess.Popen([sys.executable, "lab/framework/lines_job.py", "--vgpu", LAB / "vgpu", "--truth", truth,
                                "--seed", "0", "--depth", "60"])
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        wait_until(lambda: truth.exists() and self.launches(job.pid), "the job launches work")
        before = json.loads(truth.read_text())["lines"]
        text, errors = zernel("record", "--socket", self.server.path, "--seconds", "13", "--stacks", str(job.pid), file)
        print("#", text.strip())
        self.assertEqual(errors, "")
        after = json.loads(truth.read_text())["lines"]
        zernel("export", file, "--perfetto", self.directory / "trace")
        spent = {(name, line): new - old for (name, line, new), (_, _, old) in zip(after, before)}
        found = dict.fromkeys(spent, 0)
        for _, pid, frames, ns in Trace((self.directory / "trace").read_bytes()).stacks:
            known = [(name, line) for name, _, line in frames if (name, line) in spent]
            if pid == job.pid and known:
                found[known[-1]] += ns
        for line, seconds in spent.items():
            true, share = 100 * seconds / sum(spent.values()), 100 * found[line] / sum(found.values())
            print(f"# {line[0]}:{line[1]}: {true:.1f} % in truth, {share:.1f} % in the trace")
            self.assertAlmostEqual(share, true, delta=POINTS)


if __name__ == "__main__":
    tap.main()
