# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `zernel demo`: the job runs, and nothing of it remains afterwards."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNEL = BUILD / "src/cli/zernel"
SECONDS = 60  # timeout, generous for a machine that stalls
DEVICES = pathlib.Path("/dev/shm")


def session_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[3])
    except (OSError, IndexError):
        return None


def members(session):
    """The processes of a session."""
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and session_of(each) == session]


class Demo(unittest.TestCase):
    def setUp(self):
        self.truth = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *options, program=ZERNEL):
        """Starts the demo in its own session, so that the test finds all its processes."""
        demo = subprocess.Popen([program, "demo", *options, "--socket", "/nonexistent"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env={**os.environ, "VGPU_TRUTH": str(self.truth)})
        self.addCleanup(demo.kill)
        return demo

    def launches(self):
        """The number of launches of all processes, from the log of the virtual GPU."""
        logs = list(self.truth.glob("*.truth"))
        if not logs:
            return 0
        done = subprocess.run([BUILD / "lab/truth/truth", "dump", *logs], capture_output=True, text=True, check=False)
        return sum(json.loads(line)["kind"] == "launch" for line in done.stdout.splitlines())

    def wait_until(self, condition, what):
        end = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, f"timeout: {what}")
            time.sleep(0.05)

    def assert_nothing_left(self, demo):
        self.assertEqual(members(demo.pid), [])
        self.assertFalse((DEVICES / f"zernel-demo-{demo.pid}").exists())

    def test_runs_for_its_time_and_prints_instructions(self):
        demo = self.start("--seconds", "2")
        out, err = demo.communicate(timeout=SECONDS)
        self.assertEqual(demo.returncode, 0, err)
        self.assertIn("zernel top", out)
        self.assertIn("zernel why", out)
        self.assertIn("systemctl start zerneld", err)
        self.assertGreater(self.launches(), 20)
        self.assert_nothing_left(demo)

    def test_the_job_as_json(self):
        demo = self.start("--seconds", "1000", "--json")
        result = json.loads(demo.stdout.readline())
        self.assertEqual((result["seconds"], result["hogs"]), (1000, 8))
        self.assertIn(result["pid"], members(demo.pid))
        demo.terminate()
        self.assertEqual(demo.communicate(timeout=SECONDS)[0], "")

    def check_ended_by(self, number, status):
        demo = self.start("--seconds", "1000")
        # The demo; the job with one rank and two loaders; the noise with its hogs.
        self.wait_until(lambda: len(members(demo.pid)) == 1 + 4 + 9, "all processes run")
        self.assertGreater(self.launches(), 0)
        demo.send_signal(number)
        self.assertEqual(demo.wait(SECONDS), status)
        return demo

    def test_interrupted(self):
        self.assert_nothing_left(self.check_ended_by(signal.SIGINT, 0))

    def test_terminated(self):
        self.assert_nothing_left(self.check_ended_by(signal.SIGTERM, 0))

    def test_killed_demo_ends_its_job(self):
        demo = self.check_ended_by(signal.SIGKILL, -signal.SIGKILL)
        self.wait_until(lambda: not members(demo.pid), "all processes ended")
        # A killed demo cannot remove its device file.
        (DEVICES / f"zernel-demo-{demo.pid}").unlink()

    def test_missing_programs(self):
        lonely = self.truth / "zernel"
        shutil.copy(ZERNEL, lonely)
        demo = self.start(program=lonely)
        _, err = demo.communicate(timeout=SECONDS)
        self.assertEqual(demo.returncode, 1)
        self.assertIn("not installed", err)

    def test_installed(self):
        root = self.truth / "root"
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True,
                       capture_output=True)
        prefix = next(option["value"] for option in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
                      if option["name"] == "prefix")
        demo = self.start("--seconds", "1", program=root / prefix.lstrip("/") / "bin/zernel")
        _, err = demo.communicate(timeout=SECONDS)
        self.assertEqual(demo.returncode, 0, err)
        self.assertGreater(self.launches(), 0)
        self.assert_nothing_left(demo)

    def test_usage_errors(self):
        for words in ("--seconds", "0"), ("--seconds", "many"), ("extra",):
            self.assertEqual(self.start(*words).wait(SECONDS), 2, words)


if __name__ == "__main__":
    tap.main()
