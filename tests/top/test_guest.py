# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `./dev demo` without a terminal: the real zerneld sees the job of the demo, and `zernel top` shows it."""
import os
import pathlib
import subprocess
import unittest

import tap

SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])


class Guest(unittest.TestCase):
    def test_demo_and_top(self):
        if not pathlib.Path("/var/lib/zernel-kernels").exists():
            self.skipTest("no guest kernels here: run it through ./dev test top")
        done = subprocess.run([SOURCE / "tools/demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=900, check=False)
        for line in done.stdout.splitlines():
            print("#", line.rstrip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"scheduler attached  \d+/s: .*feeder \d")
        self.assertRegex(done.stdout, r"gpu0 \[\|+ *\] *\d+%")
        self.assertRegex(done.stdout, r"(?m)^ \+ \d+ train .*\b(data|gpu|optim)\b +\d+% .*ms .*[DGO.]{8}$")
        self.assertIn("train", done.stdout.partition("$ zernel why")[2])


if __name__ == "__main__":
    tap.main()
