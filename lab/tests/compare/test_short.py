# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the comparer end to end, in a short form: one boot, three scenarios, two schedulers, one round."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tap

KEYS = {"scenario", "sched", "step_mean_ms", "step_p50_ms", "step_p99_ms", "gpu_busy", "noise_share",
        "recovered", "recovered_low", "recovered_high"}
SCENARIOS, SCHEDULERS = ["quiet", "noisy", "straggler"], ["eevdf", "zernel"]


class Short(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            result = pathlib.Path(name) / "lab.json"
            done = subprocess.run(
                ["tools/lab", "compare", "--scenario", ",".join(SCENARIOS), "--sched", ",".join(SCHEDULERS),
                 "--rounds", "1", "--seconds", "3", "--seed", "1", "--json", result,
                 "--build", os.environ["ZERNEL_BUILD"],
                 "--kernel", os.environ.get("ZERNEL_KERNEL", "6.18")],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            for line in done.stdout.splitlines():
                print(f"# {line}", flush=True)
            cls.status = done.returncode
            cls.result = json.loads(result.read_text()) if result.exists() else {"rows": []}
        cls.rows = {(row["scenario"], row["sched"]): row for row in cls.result["rows"]}

    def test_every_run_completed(self):
        self.assertEqual(self.status, 0)
        self.assertTrue(self.result["complete"])
        self.assertEqual(set(self.rows), {(name, sched) for name in SCENARIOS for sched in SCHEDULERS})

    def test_rows_have_all_keys_and_plausible_steps(self):
        for row in self.rows.values():
            self.assertLessEqual(KEYS, row.keys())
            self.assertEqual(row["runs_good"], 1)
            self.assertGreater(row["step_mean_ms"], 20)  # time that the GPU needs
            self.assertGreaterEqual(row["step_p99_ms"], row["step_p50_ms"])
            self.assertTrue(0 < row["gpu_busy"] <= 1)
            self.assertTrue(0 < row["cpu_share"] < 1 - (row["noise_share"] or 0) + 0.01)

    def test_truth_is_consistent_in_every_run(self):
        self.assertTrue(self.rows)
        self.assertTrue(all(row["truth_ok"] for row in self.rows.values()))

    def test_no_scheduler_was_ejected(self):
        self.assertTrue(self.rows)
        self.assertEqual([row["trouble"] for row in self.rows.values() if row["trouble"]], [])

    def test_noise_slows_eevdf_down(self):
        slow, quiet = self.rows["noisy", "eevdf"], self.rows["quiet", "eevdf"]
        self.assertGreaterEqual(slow["step_mean_ms"] / quiet["step_mean_ms"], 1.3)
        self.assertIsNone(quiet["noise_share"])
        self.assertGreater(slow["noise_share"], 0.2)

    def test_zernel_recovers_most_of_the_delay(self):
        self.assertGreaterEqual(self.rows["noisy", "zernel"]["recovered"], 0.7)

    def test_ranks_that_wait_for_each_other_are_not_slowed_down(self):
        slow, eevdf = self.rows["straggler", "zernel"], self.rows["straggler", "eevdf"]
        self.assertLessEqual(slow["step_mean_ms"], eevdf["step_mean_ms"])


if __name__ == "__main__":
    if not pathlib.Path("/var/lib/zernel-kernels").is_dir():
        print("1..0 # SKIP no guest kernels found: run `./dev test lab`")
        sys.exit(0)
    tap.main()
