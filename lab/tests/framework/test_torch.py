# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the jobs with the real PyTorch and compares their own counts with the truth of the virtual GPU."""
import glob
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tap

SOURCE = pathlib.Path(__file__).parents[2] / "framework"
BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"]) / "lab"
STEPS = 12
ENDS_WITHIN_S = 200  # the import alone takes long on a busy machine


def run(job, folder):
    """Returns what the job printed and the records of the virtual GPU, by kind."""
    truth = pathlib.Path(folder) / "truth"
    done = subprocess.run(
        [sys.executable, SOURCE / f"{job}.py", "--steps", str(STEPS), "--vgpu", BUILD / "vgpu", "--truth", truth],
        env={**os.environ, "VGPU_SHM": f"{folder}/vgpu"}, stdout=subprocess.PIPE, text=True, check=True, timeout=ENDS_WITHIN_S)
    subprocess.run([BUILD / "truth/truth", "check", truth], check=True)
    dump = subprocess.run([BUILD / "truth/truth", "dump", *glob.glob(f"{truth}/*.truth")],
                          stdout=subprocess.PIPE, text=True, check=True)
    records = [json.loads(line) for line in dump.stdout.splitlines()]
    return json.loads(done.stdout), lambda kind: [record for record in records if record["kind"] == kind]


def idle_share(busy, start, end):
    """The share of the span that is in none of the busy spans."""
    idle, at = 0, start
    for record in sorted(busy, key=lambda record: record["start_ns"]):
        idle += max(0, min(record["start_ns"], end) - at)
        at = max(at, record["end_ns"])
    return (idle + max(0, end - at)) / (end - start)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed: tools/root layer torch")
class Torch(unittest.TestCase):
    def run_job(self, job):
        with tempfile.TemporaryDirectory() as folder:
            printed, records = run(job, folder)
        self.assertEqual(printed["steps"], STEPS)
        self.assertEqual(len(printed["step_ends_ns"]), STEPS)
        self.assertTrue(all(record["pid"] == printed["pid"] for record in records("launch")))
        ends = printed["step_ends_ns"]
        share = idle_share(records("busy"), ends[0], ends[-1])
        print(f"# {job}: idle {share * 100:.1f} %", flush=True)
        return records, share

    def test_async_starved_waits_for_its_loader_and_not_for_the_device(self):
        records, share = self.run_job("torch_async_starved")
        self.assertEqual(len(records("launch")), STEPS * (1 + 50))
        self.assertEqual(len(records("sync")), 1)
        # A busy machine makes the loader slower, never faster.
        self.assertGreater(share, 0.3)

    def test_accumulate_has_one_sync_per_step(self):
        records, _ = self.run_job("torch_accumulate")
        self.assertEqual(len(records("launch")), STEPS * (8 * (1 + 10) + 1))
        self.assertEqual(len(records("sync")), STEPS + 1)


if __name__ == "__main__":
    tap.main()
