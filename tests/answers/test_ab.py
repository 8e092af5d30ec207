# SPDX-License-Identifier: GPL-2.0-or-later
"""zernel ab and zernel why beside a zerneld whose job gets better, worse or neither.

Experiments mostly wait, so those that are carried out to their end run side by side.
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
    """(ms without, ms with, state at the start, words) -> how it ended."""

    runs = {
        "better": (20, 12, "off", ["--json", "--seed", "5"]),
        "again": (20, 12, "off", ["--json", "--seed", "5"]),
        "worse": (20, 25, "off", ["--json"]),
        "equal": (20, 20, "attached", ["--json"]),
        "text": (20, 12, "attached", ["--bound", "3"]),
        "job": (20, 20, "off", []),
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job_of = {name: cls.job(*run[:2], state=run[2]) for name, run in cls.runs.items()}
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

    def test_each_is_left_as_it_was_found(self):
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

    def test_a_seed_is_an_order(self):
        self.assertEqual(self.report("again")["seed"], 5)
        self.assertEqual(self.job_of["better"].switches, self.job_of["again"].switches)

    def test_for_people(self):
        out, err, status = self.done["text"]
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^The scheduler helps: with it a step takes (39|40|41)\.\d % less time \(95 %: -\d\d\.\d to -\d\d\.\d %\)\.\n")
        self.assertRegex(out, r"step, mean +(19|20)\.\d ms +1[12]\.\d ms +-(39|40|41)\.\d %")
        self.assertRegex(out, r"python3 \(4711\): 6 of 6 pairs of windows, 500.0 ms each of which the first 100.0 ms do not count, seed \d+\.\n")
        self.assertIn("The scheduler is attached again, as it was.\n", out)
        self.assertNotIn("\033", out)

    def test_a_job_by_its_name(self):
        out, err, status = self.done["job"]
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^No difference shown: ")


class Early(Directory):
    def test_worse_beyond_the_bound_stops_at_once(self):
        server = self.job(20, 50)
        text = self.ends(start(server), 3)
        self.assertRegex(text, r"^Stopped: with the scheduler a step took (4|5|6)\d\.\d ms, and (19|20|21)\.\d ms before\.\n")
        self.assertIn("The scheduler is off again, as it was.", text)
        self.assertEqual(server.state, "off")
        self.assertEqual(server.switches.count("scheduler.attach"), 1)

    def test_without_may_be_worse_too(self):
        server = self.job(50, 20, state="attached")
        report = json.loads(self.ends(start(server, "--json"), 3))
        self.assertEqual((report["end"], report["found"], report["restored"]), ("too_slow", "attached", True))
        self.assertGreater(report["slow_step_ns"], 1.5 * report["usual_step_ns"])
        self.assertEqual(server.state, "attached")

    def test_no_step_ends_any_more(self):
        server = self.job(20, 0)
        self.assertRegex(self.ends(start(server), 3), "^Stopped: with the scheduler (no step ended any more|a step took)")
        self.assertEqual(server.state, "off")

    def test_signals(self):
        """The last of them leaves nobody to restore anything but the guard."""
        for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9):
            server = self.job(20, 20, state="off")
            child = start(server)
            wait_until(lambda: server.state == "attached", "the scheduler is attached")
            child.send_signal(number)
            text = self.ends(child, status)
            wait_until(lambda: server.state == "off", f"restored after {number}")
            if status > 0:
                self.assertRegex(text, r"^Interrupted, after \d of 6 pairs\.\n")

    def test_a_signal_before_anything_was_tried(self):
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
        self.assertIn("The job, or a part of it, ended", self.ends(child, 4))
        self.assertEqual(server.state, "attached")

    def test_zerneld_is_started_anew(self):
        server = self.job(20, 20)
        child = start(server)
        wait_until(lambda: server.state == "attached", "the scheduler is attached")
        server.stop()
        server.start()  # attached, as if its configuration said so
        self.assertIn("zerneld ended", self.ends(child, 4))
        self.assertEqual(server.state, "off")

    def test_zerneld_is_gone(self):
        server = self.job(20, 20)
        child = start(server)
        wait_until(lambda: server.state == "attached", "the scheduler is attached")
        server.stop()
        text = self.ends(child, 4)
        self.assertIn("zerneld ended", text)
        self.assertIn("The scheduler was off and could not be brought back to that", text)

    def test_the_kernel_and_other_people_have_the_last_word(self):
        for state, said in ("ejected", "The kernel took the scheduler down"), ("off", "Somebody else switched"):
            server = self.job(20, 20, state="attached")
            child = start(server, "--seed", "5")
            wait_until(lambda: len(server.switches) > 1 and server.state == "attached", "the scheduler is attached")
            server.state = state
            nr = len(server.switches)
            text = self.ends(child, 4)
            self.assertIn(said, text)
            self.assertIn("was attached at the start and is left as it is now", text)
            self.assertEqual((server.state, len(server.switches)), (state, nr))

    def test_zerneld_cannot_attach(self):
        server = self.job(20, 20)
        server.refused = "another scheduler is attached"
        text = self.ends(start(server), 4)
        self.assertIn("another scheduler is attached", text)
        self.assertEqual(server.state, "off")


class Nothing(Directory):
    def test_what_cannot_begin_changes_nothing(self):
        server = self.job(20, 20)
        self.assertIn("zernel status shows", self.ends(start(server, who="nobody"), 1))
        server.may = ["read"]
        self.assertIn("zernel-admin", self.ends(start(server), 1))
        server.may = ["read", "change"]
        server.state = "ejected"
        self.assertIn("took the scheduler down (stalled)", self.ends(start(server), 1))
        server.state = "off"
        server.step_ms["off"] = 100
        self.assertRegex(self.ends(start(server), 1), r"steps of (9|10|11|12)\d\.\d ms need more time: --minutes 0\.[345]")
        server.step_ms["off"] = 0
        self.assertIn("makes no steps", self.ends(start(server), 1))
        self.assertEqual(server.switches, [])

    def test_usage(self):
        server = self.job(20, 20)
        for words in ["--minutes", "0"], ["--minutes", "x"], ["--minutes", "nan"], ["--bound", "0.5"], ["--seed", "-1"], ["extra"]:
            self.assertIn("Try 'zernel ab --help'.", self.ends(start(server, *words), 2))

    def test_progress_where_somebody_looks(self):
        server = self.job(20, 50)
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        # A terminal of a width, or there is nothing that could be taken away again.
        subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=follower, check=True)
        with subprocess.Popen([ZERNEL, "ab", "--minutes", MINUTES, "--socket", server.path, str(PID)],
                              stdout=subprocess.DEVNULL, stderr=follower) as child:
            os.close(follower)
            text = read_terminal(leader)
        self.assertEqual(child.returncode, 3)
        self.assertIn("\r[" + 30 * "." + "] watching how it does\033[K", text)
        self.assertRegex(text, r"\r\[[#.]{30}\] pair 1 of 6\033\[K")
        self.assertTrue(text.endswith("\r\033[K"))


class Why(Directory):
    def why(self, server, *words, status=0):
        done = subprocess.run([ZERNEL, "why", "--seconds", "1", "--socket", server.path, *words], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, status, done)
        return done.stdout + done.stderr

    def test_half_of_the_time(self):
        server = self.job(20, 20)
        self.assertRegex(self.why(server), r"^GPU of python3 \(4711\) was idle 50 % of the last (1\.\d s|9\d\d\.\d ms), most of it because loaders still computed its data\.\n")
        answer = json.loads(self.why(server, "--json", JOB))["jobs"][0]
        self.assertEqual(answer["name"], JOB)
        process = answer["processes"][0]
        self.assertEqual(sum(process["causes"].values()), process["idle_ns"])
        self.assertAlmostEqual(process["steps"]["mean_ns"] / 20e6, 1, delta=0.1)

    def test_nobody(self):
        server = self.job(20, 20)
        self.assertIn("No such process or job", self.why(server, "1", status=3))
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
