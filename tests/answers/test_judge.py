# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the judge of idle time with truth logs and answers whose result is known."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import device_truth
import share
import tap
from compare import run
from compare.results import Tap

PID, OTHER = 7, 8
MS = 1_000_000
KIND_STEP, KIND_LOAD, KIND_BUSY, KIND_LAUNCH, KIND_IDLE, KIND_DID = 3, 4, 7, 12, 13, 15
LOAD_CPU, PHASE_OPTIMIZER = 1, 4


def record(kind, start, end, a=0, b=0, c=0, tid=PID, sub=0):
    """Times are in ms."""
    return run.RECORD.pack(start * MS, end * MS, a, b, c, tid, sub, kind)


def work(start, end, sequence, tid=PID, stream=0):
    return (record(KIND_LAUNCH, start, start, 0, stream, sequence, tid),
            record(KIND_BUSY, start, end, 0, stream, sequence))


def did(what, start, end, cpu=0, delay=0, subject=0, tid=PID):
    return record(KIND_DID, start, end, cpu * MS, delay * MS, subject, tid, what)


def truth_of(*records):
    with tempfile.TemporaryDirectory() as name:
        log = bytes(run.HEADER_BYTES) + record(KIND_STEP, 0, 100) + b"".join(records)
        pathlib.Path(name, f"framework.{PID}.truth").write_bytes(log)
        return device_truth.Truth(pathlib.Path(name))


class Truth(unittest.TestCase):
    def causes(self, truth, begin=0, end=100):
        return {cause: round(ns / MS) for cause, ns in truth.idle_causes(PID, begin * MS, end * MS).items() if ns}

    def test_work_of_several_streams_overlaps(self):
        truth = truth_of(*work(10, 40, 1), *work(20, 30, 2, stream=1), *work(35, 60, 3), *work(80, 120, 4))
        spans = [(start // MS, end // MS) for start, end, _ in truth.idle_spans(PID, 0, 100 * MS)]
        self.assertEqual(spans, [(0, 10), (60, 80)])
        self.assertEqual(list(truth.idle_spans(PID, 12 * MS, 50 * MS)), [])

    def test_cause_is_what_the_launcher_did_while_the_device_was_idle(self):
        truth = truth_of(*work(0, 50, 1), *work(90, 100, 2), did(device_truth.DID_COMPUTE, 0, 50, cpu=50),
                         did(device_truth.DID_COMPUTE, 50, 90, cpu=10, delay=20), did(device_truth.DID_COMPUTE, 90, 100, cpu=10))
        self.assertEqual(self.causes(truth), {"cpu": 10, "runqueue": 20, "other": 10})

    def test_thread_that_launches_next_is_the_cause(self):
        truth = truth_of(*work(0, 20, 1), *work(60, 100, 2, tid=OTHER), did(device_truth.DID_DATA, 0, 100),
                         did(device_truth.DID_COMPUTE, 0, 100, cpu=100, tid=OTHER))
        self.assertEqual(self.causes(truth), {"cpu": 40})

    def test_thread_that_waits_for_its_turn_is_not_the_cause(self):
        truth = truth_of(*work(0, 20, 1), *work(60, 100, 2), did(device_truth.DID_PEER, 0, 50), did(device_truth.DID_COMPUTE, 50, 100, cpu=50),
                         did(device_truth.DID_COMPUTE, 0, 40, delay=40, tid=OTHER), did(device_truth.DID_PEER, 40, 100, tid=OTHER))
        self.assertEqual(self.causes(truth), {"runqueue": 20, "cpu": 10})

    def test_wait_for_a_batch_is_charged_to_its_loader(self):
        truth = truth_of(*work(0, 20, 1), *work(80, 100, 2), did(device_truth.DID_DATA, 0, 80, subject=5),
                         record(KIND_LOAD, 0, 60, 5, 20 * MS, 40 * MS, sub=LOAD_CPU), record(KIND_LOAD, 0, 80, 6, 80 * MS, 0, sub=LOAD_CPU))
        self.assertEqual(self.causes(truth), {"loader_cpu": 13, "loader_runqueue": 27, "loader_other": 20})

    def test_wait_for_requests_is_its_own_cause(self):
        truth = truth_of(*work(0, 20, 1), *work(80, 100, 2), did(device_truth.DID_REQUEST, 20, 80, cpu=60))
        self.assertEqual(self.causes(truth), {"no_requests": 60})

    def test_idle_time_ends_at_the_launch_and_not_at_an_earlier_time_stamp(self):
        truth = truth_of(*work(50, 60, 1), *work(80, 100, 2), record(KIND_IDLE, 10, 40, 20 * MS, 10 * MS, sub=PHASE_OPTIMIZER),
                         record(KIND_IDLE, 60, 70, 10 * MS), record(KIND_IDLE, 71, 80, 9 * MS))
        causes = truth.idle_ns(truth.ranks[PID], 0, 100 * MS)
        self.assertEqual((causes["cpu"] // MS, causes["runqueue"] // MS), (39, 20))

    def test_launcher_that_has_work_for_its_device_has_no_cpu(self):
        truth = truth_of(*work(0, 40, 1), *work(90, 100, 2), record(KIND_IDLE, 70, 90, 20 * MS, sub=PHASE_OPTIMIZER))
        self.assertEqual(self.causes(truth), {"cpu": 20, "runqueue": 30})


class Judge(unittest.TestCase):
    def judged(self, true, low, high, cause="cpu", seen="cpu", counter="gpm", scenario="moe"):
        """Returns how many assertions fail."""
        result = Tap()
        with contextlib.redirect_stdout(io.StringIO()):
            share.judge(result, share.Share(counter, scenario, "here", true, low, high, cause, frozenset({cause}), seen, 10, 10, "sync"))
        return result.failed

    def test_range_must_contain_the_truth(self):
        self.assertEqual(self.judged(0.50, 0.48, 0.52), 0)
        self.assertEqual(self.judged(0.55, 0.48, 0.52), 1)
        self.assertEqual(self.judged(0.45, 0.48, 0.52), 1)

    def test_range_must_be_narrow(self):
        self.assertEqual(self.judged(0.50, 0.45, 0.52), 1)
        self.assertEqual(self.judged(0.50, 0.45, 0.52, counter="utilization"), 0)
        self.assertEqual(self.judged(0.50, 0.40, 0.52, counter="utilization"), 1)
        self.assertEqual(self.judged(0.50, 0.00, 1.00, counter="none"), 0)
        self.assertEqual(self.judged(0.00, 0.00, 0.50, counter="none", scenario="async"), 1)

    def test_cause_must_be_right_where_the_device_was_idle(self):
        self.assertEqual(self.judged(0.50, 0.50, 0.50, seen="runqueue"), 1)
        self.assertEqual(self.judged(0.50, 0.50, 0.50, seen="-"), 1)
        self.assertEqual(self.judged(0.01, 0.01, 0.01, cause="-", seen="runqueue"), 0)

    def test_share_is_computed_from_the_span(self):
        truth = truth_of(*work(0, 50, 1), *work(90, 100, 2), did(device_truth.DID_COMPUTE, 0, 100, cpu=100))
        found = share.make("none", "moe", "here", truth, PID, (0, 100 * MS), 0.1, 0.9, {"cpu": 4, "lock": 3, "disk": 2}, 1, "")
        self.assertEqual((found.true, found.cause, found.seen, found.steps), (0.4, "cpu", "other", 1))

    def test_causes_of_about_the_same_size_are_equally_right(self):
        truth = truth_of(*work(0, 50, 1), *work(90, 100, 2), did(device_truth.DID_COMPUTE, 50, 90, cpu=21, delay=19))
        for seen, is_right in (("cpu", True), ("runqueue", True), ("other", False)):
            found = share.make("none", "moe", "here", truth, PID, (0, 100 * MS), 0.5, 0.51, {seen: 1}, 1, "")
            self.assertEqual(found.is_cause_right, is_right, seen)

    def test_a_wide_range_leaves_open_which_cause_is_the_largest(self):
        truth = truth_of(*work(0, 50, 1), *work(90, 100, 2), did(device_truth.DID_COMPUTE, 50, 90, cpu=30, delay=10))
        for high, is_right in ((0.35, False), (0.55, True)):
            found = share.make("none", "moe", "here", truth, PID, (0, 100 * MS), 0.3, high, {"runqueue": 1}, 1, "")
            self.assertEqual(found.is_cause_right, is_right, high)

    def test_table_has_one_row_per_counter_and_scenario(self):
        shares = [share.Share(counter, "moe", "here", 0.5, 0.4, high, "cpu", frozenset({"cpu"}), "cpu", 10, 9, "sync")
                  for counter in ("gpm", "none") for high in (0.45, 0.6)]
        with contextlib.redirect_stdout(io.StringIO()) as text:
            share.print_table(shares)
        rows = [line for line in text.getvalue().splitlines() if " moe " in line]
        self.assertEqual(len(rows), 2)
        self.assertIn("| 1 of 2 ", rows[0])


if __name__ == "__main__":
    tap.main()
