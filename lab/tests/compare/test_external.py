# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests how the comparer runs a scheduler that the command line added."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest
import unittest.mock

import tap
from compare import cli, report, rows, schedulers
from test_compare import made_run


# A loader in the place of one that talks to the kernel: it "attaches" by writing sysfs, and SIGINT stops it.
LOADER = """
import os, pathlib, signal, sys
sysfs = pathlib.Path(sys.argv[1])
def leave(*_):
    (sysfs / "state").write_text("disabled\\n")
    os._exit(0)
signal.signal(signal.SIGINT, leave)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[2] == "attach":
    (sysfs / "root/ops").write_text("any_name_1.0\\n")
    (sysfs / "enable_seq").write_text("8\\n")
    (sysfs / "state").write_text("enabled\\n")
elif sys.argv[2] == "refuse":
    sys.exit("no permission")
signal.pause()
"""


class External(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.sysfs = pathlib.Path(self.dir.name, "sysfs")
        (self.sysfs / "root").mkdir(parents=True)
        (self.sysfs / "state").write_text("disabled\n")
        (self.sysfs / "enable_seq").write_text("7\n")
        pathlib.Path(self.dir.name, "loader.py").write_text(LOADER)
        patch = unittest.mock.patch.object(schedulers, "SYSFS", self.sysfs)
        patch.start()
        self.addCleanup(patch.stop)

    def running(self, how):
        command = f"python3 {self.dir.name}/loader.py '{self.sysfs}' {how}"
        return schedulers.running(schedulers.find("mine", {"mine": command}), {}, pathlib.Path(self.dir.name, "log"))

    def test_any_name_is_attached_and_sigint_stops_it(self):
        with self.running("attach") as attached:
            self.assertIsNone(attached.trouble())
        self.assertEqual(attached.process.returncode, 0)
        self.assertEqual(schedulers.read_sysfs("state"), "disabled")

    def test_ejection_is_noticed(self):
        with self.running("attach") as attached:
            (self.sysfs / "state").write_text("disabled\n")
            self.assertRegex(attached.trouble(), "^ejected: ")

    def test_a_loader_that_ends_is_not_attached(self):
        with self.assertRaisesRegex(schedulers.SchedulerError, r"(?s)mine is not attached \(exit status 1\): .*no permission"):
            with self.running("refuse"):
                pass

    def test_a_loader_that_only_runs_is_not_attached(self):
        with unittest.mock.patch.object(schedulers, "START_SECONDS", 0.5):
            with self.assertRaisesRegex(schedulers.SchedulerError, r"mine is not attached \(it still runs\)"):
                with self.running("wait"):
                    pass

    def args(self, *argv):
        args = cli.parser().parse_args(["compare", *argv])
        cli.choose(args)
        return args

    def test_command_line(self):
        args = self.args("--sched", "nice,zernel", "--sched", "mine=out/scx_mine --slice=3,4 {x}", "--scenario", "noisy", "--seed", "1")
        self.assertEqual(args.sched, ["eevdf", "nice", "zernel", "mine"])
        plan = json.loads(json.dumps(cli.make_plans(args)[0]))
        self.assertIn("mine", {run["sched"] for run in plan["runs"]})
        self.assertEqual(schedulers.command_of(schedulers.find("mine", plan["external"]), plan["places"]),
                         ["out/scx_mine", "--slice=3,4", "{x}"])
        self.assertEqual(self.args("--seed", "1").sched, schedulers.COMPARED)

    def test_wrong_names_are_rejected(self):
        for text in ("unknown", "eevdf,unknown", "zernel=true", "=true", "mine=", "a b=true"):
            with self.subTest(text), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                cli.parser().parse_args(["compare", "--sched", text])

    def test_row_says_that_it_was_not_attached(self):
        made, _ = rows.make_rows([{**made_run("noisy", "mine", 20, trouble="mine is not attached: x"), "jobs": []}], ["noisy"], ["mine"], 1)
        self.assertIn("0/1, mine is not attached: x", report.table(made))


if __name__ == "__main__":
    tap.main()
