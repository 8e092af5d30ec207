# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel ab and zernel why with a fake zerneld whose job gets faster, slower or neither.

Experiments mostly wait, so the complete ones run in parallel.
"""
import json
import os
import pty
import signal
import subprocess
import tempfile
import unittest

import tap
from fake_job import JOB, PID, in_directory
from harness import ZERNEL, read_terminal, wait_until

MINUTES = "0.1"


def start(server, *words, who=str(PID), **options):
    return subprocess.Popen([ZERNEL, "ab", "--minutes", MINUTES, "--socket", server.path, *words, who],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Directory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.servers = []
        cls.addClassCleanup(lambda: [server.stop() for server in cls.servers])

    @classmethod
    def job(cls, *arguments, **options):
        server = in_directory(cls.directory, *arguments, **options)
        cls.servers.append(server)
        return server

    def ends(self, child, status):
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, status, out + err)
        return out + err


class Complete(Directory):
    """Complete runs: (step ms without the scheduler, step ms with it, initial state, words)."""

    runs = {
        "better": (20, 12, "off", ["--json", "--seed", "5"]),
        "again": (20, 12, "off", ["--json", "--seed", "5"]),
        "worse": (20, 25, "off", ["--json"]),
        "equal": (20, 20, "attached", ["--json"]),
        "text": (20, 12, "attached", ["--bound", "3"]),
        "job": (20, 20, "off", []),
        "nice": (20, 12, "attached", ["--bound", "3"]),
        "nice json": (20, 12, "off", ["--json"]),
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job_of = {name: cls.job(*run[:2], state=run[2], by_nice=name.startswith("nice")) for name, run in cls.runs.items()}
        children = {name: start(cls.job_of[name], *run[3], who=JOB if name == "job" else str(PID))
                    for name, run in cls.runs.items()}
        cls.done = {name: (*child.communicate(timeout=120), child.returncode) for name, child in children.items()}

    def report(self, name):
        out, err, status = self.done[name]
        self.assertEqual((status, err), (0, ""), out)
        report = json.loads(out)
        self.assertEqual((report["end"], report["restored"], report["found"]), ("complete", True, self.runs[name][2]))
        self.assertEqual(report["pairs"], report["planned_pairs"])
        return report

    def test_initial_state_is_restored(self):
        for name, server in self.job_of.items():
            self.assertEqual(server.state, self.runs[name][2], name)
            self.assertGreaterEqual(server.switches.count("scheduler.attach"), 6)
            self.assertGreaterEqual(server.switches.count("scheduler.detach"), 6)

    def test_better(self):
        report = self.report("better")
        self.assertEqual(report["verdict"], "better")
        self.assertAlmostEqual(report["step_change"]["value"], -0.4, delta=0.03)
        self.assertLess(report["step_change"]["low"], report["step_change"]["value"])
        self.assertLess(report["step_change"]["high"], -0.3)
        self.assertAlmostEqual(report["without"]["mean_ns"] / 20e6, 1, delta=0.05)
        self.assertAlmostEqual(report["with"]["mean_ns"] / 12e6, 1, delta=0.05)
        self.assertLess(abs(report["busy_change"]["value"]), 0.05)

    def test_worse(self):
        report = self.report("worse")
        self.assertEqual(report["verdict"], "worse")
        self.assertAlmostEqual(report["step_change"]["value"], 0.25, delta=0.04)

    def test_equal(self):
        report = self.report("equal")
        self.assertEqual(report["verdict"], "no_difference")
        self.assertLess(abs(report["step_change"]["value"]), 0.03)

    def test_seed_defines_the_order(self):
        self.assertEqual(self.report("again")["seed"], 5)
        self.assertEqual(self.job_of["better"].switches, self.job_of["again"].switches)

    def test_text_output(self):
        out, err, status = self.done["text"]
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^The scheduler helps: with it, a step takes (39|40|41)\.\d % less time \(95 % interval: -\d\d\.\d to -\d\d\.\d %\)\.\n")
        self.assertRegex(out, r"step time, mean +(19|20)\.\d ms +1[12]\.\d ms +-(39|40|41)\.\d %")
        self.assertRegex(out, r"python3 \(4711\): 6 of 6 pairs of windows, 500.0 ms per window, the first 100.0 ms of each window not counted, seed \d+\.\n")
        self.assertIn("The scheduler is attached again, as at the start.\n", out)
        self.assertNotIn("\033", out)

    def test_the_nice_actuator_is_named(self):
        report = self.report("nice json")
        self.assertEqual((report["verdict"], report["actuator"]), ("better", "nice"))
        self.assertEqual(self.report("better")["actuator"], "sched_ext")
        out, err, status = self.done["nice"]
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^The nice actuator helps: with it, a step takes (39|40|41)\.\d % less time")
        self.assertRegex(out, r"MEASURE +NICE OFF +NICE ON ")
        self.assertIn("The nice actuator is on again, as at the start.\n", out)

    def test_select_a_job_by_name(self):
        out, err, status = self.done["job"]
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^No significant difference: ")


class Early(Directory):
    def test_stops_at_once_beyond_the_bound(self):
        server = self.job(20, 50)
        text = self.ends(start(server), 3)
        self.assertRegex(text, r"^Stopped: with the scheduler, a step took (4|5|6)\d\.\d ms\. Before, a step took (19|20|21)\.\d ms\.\n")
        self.assertIn("The scheduler is off again, as at the start.", text)
        self.assertEqual(server.state, "off")
        self.assertEqual(server.switches.count("scheduler.attach"), 1)

    def test_stops_if_slower_without_the_scheduler(self):
        server = self.job(50, 20, state="attached")
        report = json.loads(self.ends(start(server, "--json"), 3))
        self.assertEqual((report["end"], report["found"], report["restored"]), ("too_slow", "attached", True))
        self.assertGreater(report["slow_step_ns"], 1.5 * report["usual_step_ns"])
        self.assertEqual(server.state, "attached")

    def test_stops_if_no_step_ends(self):
        server = self.job(20, 0)
        self.assertRegex(self.ends(start(server), 3), "^Stopped: with the scheduler, (no step ended|a step took)")
        self.assertEqual(server.state, "off")

    def test_signals(self):
        """After SIGKILL only the guard can restore the state."""
        for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9):
            server = self.job(20, 20, state="off")
            child = start(server)
            wait_until(lambda: server.state == "attached", "the scheduler is attached")
            child.send_signal(number)
            text = self.ends(child, status)
            wait_until(lambda: server.state == "off", f"restored after {number}")
            if status > 0:
                self.assertRegex(text, r"^Interrupted after \d of 6 pairs\.\n")

    def test_signal_before_the_first_switch(self):
        server = self.job(20, 20)
        child = start(server)
        wait_until(lambda: server.clients, "it is connected")
        child.send_signal(signal.SIGINT)
        self.ends(child, 130)
        self.assertEqual(server.switches, [])

    def test_the_job_ends(self):
        server = self.job(20, 20, state="attached")
        child = start(server)
        wait_until(lambda: server.state == "off", "the scheduler is off")
        server.gone = True
        self.assertIn("The job, or a process of it, ended", self.ends(child, 4))
        self.assertEqual(server.state, "attached")

    def test_zerneld_restarts(self):
        server = self.job(20, 20)
        child = start(server)
        wait_until(lambda: server.state == "attached", "the scheduler is attached")
        server.stop()
        server.start()  # attached, as if its configuration said so
        self.assertIn("The connection to zerneld was lost", self.ends(child, 4))
        self.assertEqual(server.state, "off")

    def test_zerneld_ends(self):
        server = self.job(20, 20)
        child = start(server)
        wait_until(lambda: server.state == "attached", "the scheduler is attached")
        server.stop()
        text = self.ends(child, 4)
        self.assertIn("The connection to zerneld was lost", text)
        self.assertIn("The scheduler was off at the start, but that state could not be restored", text)

    def test_keeps_the_state_set_by_the_kernel_or_another_client(self):
        for state, said in ("ejected", "The kernel ejected the scheduler"), ("off", "Another client switched"):
            server = self.job(20, 20, state="attached")
            child = start(server, "--seed", "5")
            wait_until(lambda: len(server.switches) > 1 and server.state == "attached", "the scheduler is attached")
            server.state = state
            nr = len(server.switches)
            text = self.ends(child, 4)
            self.assertIn(said, text)
            self.assertIn("was attached at the start. It stays in its current state", text)
            self.assertEqual((server.state, len(server.switches)), (state, nr))

    def test_zerneld_cannot_attach(self):
        server = self.job(20, 20)
        server.refused = "another scheduler is attached"
        text = self.ends(start(server), 4)
        self.assertIn("another scheduler is attached", text)
        self.assertEqual(server.state, "off")


class NotStarted(Directory):
    def test_failed_start_does_not_switch(self):
        server = self.job(20, 20)
        self.assertIn("List them with: zernel status", self.ends(start(server, who="nobody"), 1))
        server.may = ["read"]
        self.assertIn("zernel-admin", self.ends(start(server), 1))
        server.may = ["read", "change"]
        server.state = "ejected"
        self.assertIn("ejected the scheduler (stalled)", self.ends(start(server), 1))
        server.state = "off"
        server.step_ms["off"] = 100
        self.assertRegex(self.ends(start(server), 1), r"steps of (9|10|11|12)\d\.\d ms need more time: use --minutes 0\.[345]")
        server.step_ms["off"] = 0
        self.assertIn("too few steps", self.ends(start(server), 1))
        self.assertEqual(server.switches, [])

    def test_usage(self):
        server = self.job(20, 20)
        for words in ["--minutes", "0"], ["--minutes", "x"], ["--minutes", "nan"], ["--bound", "0.5"], ["--seed", "-1"], ["extra"]:
            self.assertIn("Try 'zernel ab --help'.", self.ends(start(server, *words), 2))

    def test_progress_on_a_terminal(self):
        server = self.job(20, 50)
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        # Set a terminal size: without a width there is no progress bar.
        subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=follower, check=True)
        with subprocess.Popen([ZERNEL, "ab", "--minutes", MINUTES, "--socket", server.path, str(PID)],
                              stdout=subprocess.DEVNULL, stderr=follower) as child:
            os.close(follower)
            text = read_terminal(leader)
        self.assertEqual(child.returncode, 3)
        self.assertIn("\r[" + 30 * "." + "] measuring the job before the first switch\033[K", text)
        self.assertRegex(text, r"\r\[[#.]{30}\] pair 1 of 6\033\[K")
        self.assertTrue(text.endswith("\r\033[K"))


class Why(Directory):
    def why(self, server, *words, status=0):
        done = subprocess.run([ZERNEL, "why", "--seconds", "1", "--socket", server.path, *words], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, status, done)
        return done.stdout + done.stderr

    def test_idle_half_of_the_time(self):
        server = self.job(20, 20)
        self.assertRegex(self.why(server), r"^GPU of python3 \(4711\) was idle 50 % of the last [\d.]+ m?s, mostly because its loaders still computed the data\.\n")
        answer = json.loads(self.why(server, "--json", JOB))["jobs"][0]
        self.assertEqual(answer["name"], JOB)
        process = answer["processes"][0]
        self.assertEqual(sum(process["causes"].values()), process["idle_ns"])
        self.assertAlmostEqual(process["steps"]["mean_ns"] / 20e6, 1, delta=0.1)

    def test_no_matching_process(self):
        server = self.job(20, 20)
        self.assertIn("No matching process or job", self.why(server, "1", status=3))
        server.gone = True
        self.assertEqual(self.why(server, status=3), "No process uses a GPU.\n")
        server.stop()
        self.assertIn("systemctl start zerneld", self.why(server, status=1))

    def test_watch(self):
        server = self.job(20, 20)
        with subprocess.Popen([ZERNEL, "why", "--watch", "--seconds", "1", "--json", "--socket", server.path],
                              stdout=subprocess.PIPE, text=True) as child:
            lines = [json.loads(child.stdout.readline()) for _ in range(2)]
            child.terminate()
        self.assertLess(lines[0]["time_ms"], lines[1]["time_ms"])

    def test_usage(self):
        server = self.job(20, 20)
        for words in ["--seconds", "0"], ["--seconds", "x"], ["a", "b"]:
            self.assertIn("Try 'zernel why --help'.", self.why(server, *words, status=2))


if __name__ == "__main__":
    tap.main()
