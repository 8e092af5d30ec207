# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces and tables of synthetic recordings contain exactly the data of the recordings."""
import csv
import json

import tap
from perfetto import Trace
from recordings import SECOND, Case, events, process, snapshot, stacks, zernel

class Perfetto(Case):
    def trace(self, *frames):
        out = self.directory / "trace"
        zernel("export", self.recording(*frames), "--perfetto", out)
        return Trace(out.read_bytes())

    def phases(self, trace, pid):
        return trace.slices[trace.below(trace.processes()[pid], "phases")]

    def test_phases_are_the_events(self):
        trace = self.trace(snapshot(100, [process(7, "data_loading")]),
                           events([150, "phase", 7, 7, "gpu_compute"], [170, "phase", 7, 7, "optimizer_step"]),
                           snapshot(200, [process(7, "optimizer_step")]))
        self.assertEqual(self.phases(trace, 7), [(100, 150, "data_loading"), (150, 170, "gpu_compute"),
                                                 (170, 200, "optimizer_step")])
        self.assertEqual(trace.tracks[trace.processes()[7]].process.process_name, "train7")
        self.assertEqual(trace.clocks, {1: 1_700_000_000_000_000_000, 3: 100})

    def test_events_before_the_first_snapshot_are_used(self):
        trace = self.trace(snapshot(100, [process(7, "gpu_compute")]),
                           events([50, "phase", 7, 7, "gpu_compute"], [120, "phase", 7, 7, "unknown"]),
                           snapshot(200, [process(7)]))
        self.assertEqual(self.phases(trace, 7), [(50, 120, "gpu_compute"), (120, 200, "unknown")])

    def test_late_events_are_sorted_by_time(self):
        trace = self.trace(snapshot(100, [process(7, "optimizer_step")]),
                           events([190, "phase", 7, 7, "gpu_compute"]),
                           events([150, "phase", 7, 7, "unknown"]),
                           snapshot(200, [process(7)]))
        self.assertEqual(self.phases(trace, 7), [(100, 150, "optimizer_step"), (150, 190, "unknown"),
                                                 (190, 200, "gpu_compute")])

    def test_a_corrected_wait_has_no_slice(self):
        trace = self.trace(snapshot(100, [process(7, "optimizer_step")]),
                           events([150, "phase", 7, 7, "data_loading"], [150, "phase", 7, 7, "optimizer_step"],
                                  [160, "phase", 7, 7, "gpu_compute"]),
                           snapshot(200, [process(7)]))
        self.assertEqual(self.phases(trace, 7), [(100, 150, "optimizer_step"), (150, 160, "optimizer_step"),
                                                 (160, 200, "gpu_compute")])

    def test_events_have_precedence_over_the_first_snapshot(self):
        trace = self.trace(snapshot(100, [process(7, "data_loading")]),
                           events([50, "phase", 7, 7, "optimizer_step"], [90, "phase", 7, 7, "data_loading"]),
                           events([90, "phase", 7, 7, "optimizer_step"], [160, "phase", 7, 7, "gpu_compute"]),
                           snapshot(200, [process(7)]))
        self.assertEqual(self.phases(trace, 7), [(50, 90, "optimizer_step"), (90, 160, "optimizer_step"),
                                                 (160, 200, "gpu_compute")])

    def test_a_step_is_the_time_between_two_step_events(self):
        trace = self.trace(snapshot(100, [process(7)]),
                           events([110, "step", 7, 7, 1], [130, "step", 7, 7, 2], [160, "step", 7, 7, 3]),
                           snapshot(200, [process(7)]))
        steps = trace.slices[trace.below(trace.processes()[7], "steps")]
        self.assertEqual(steps, [(110, 130, "step"), (130, 160, "step")])

    def test_roles_of_threads(self):
        threads = [{"tid": 7, "pid": 7, "role": "launcher", "comm": "main"},
                   {"tid": 8, "pid": 7, "role": "other", "comm": "worker"}]
        trace = self.trace(snapshot(100, [process(7)], threads),
                           events([150, "role", 7, 8, "loader"], [160, "role", 7, 9, "sync_waiter"],
                                  [170, "thread_exit", 7, 8, 0]),
                           snapshot(200, [process(7)], threads[:1]))
        uuids = trace.threads()
        self.assertEqual(trace.slices[uuids[7]], [(100, 200, "launcher")])
        self.assertEqual(trace.slices[uuids[8]], [(150, 170, "loader")])
        self.assertEqual(trace.slices[uuids[9]], [(160, 200, "sync_waiter")])
        self.assertEqual(trace.tracks[uuids[8]].thread.thread_name, "worker")
        self.assertEqual(trace.tracks[uuids[9]].thread.pid, 7)

    def test_a_reused_pid_is_another_process(self):
        trace = self.trace(snapshot(100, [process(7, "gpu_compute", start_ns=1)]),
                           events([150, "exit", 7, 7, 0]),
                           events([170, "phase", 7, 7, "data_loading"]),
                           snapshot(200, [process(7, "data_loading", start_ns=2)]),
                           events([220, "exit", 7, 7, 0], [230, "phase", 7, 7, "unknown"]),
                           snapshot(300))
        lanes = [trace.slices[trace.below(uuid, "phases")] for uuid, track in trace.tracks.items()
                 if track.HasField("process")]
        self.assertEqual(lanes, [[(100, 150, "gpu_compute")], [(170, 220, "data_loading")], [(230, 300, "unknown")]])

    def test_counters_are_shares_of_the_time_in_between(self):
        def at(busy_ns, waited_ns):
            return process(7, busy_ns=busy_ns, hists={"runqueue_wait": {"count": 1, "sum": waited_ns}})
        gpus = [{"gpu": 0, "busy_percent": 40}, {"gpu": 1}]
        trace = self.trace(snapshot(SECOND, [at(0, 5)], gpus=gpus),
                           snapshot(2 * SECOND, [at(SECOND // 2, 5 + SECOND // 4)], gpus=gpus),
                           snapshot(4 * SECOND, [at(SECOND // 2, 0)]))
        uuid = trace.processes()[7]
        self.assertEqual(trace.counters[trace.below(uuid, "GPU busy")], [(2 * SECOND, 50), (4 * SECOND, 0)])
        self.assertEqual(trace.counters[trace.below(uuid, "runqueue wait")], [(2 * SECOND, 25)])
        self.assertEqual(trace.counters[trace.below(0, "GPU 0 busy")], [(SECOND, 40), (2 * SECOND, 40)])
        self.assertNotIn("GPU 1 busy", [track.name for track in trace.tracks.values()])


class Stacks(Perfetto):
    def test_stacks_have_the_time_of_the_end_of_their_window(self):
        """Equal ones of several threads are one. A stack with a longer one above it has its own time."""
        trace = self.trace(snapshot(100, [process(7)]),
                           stacks(("cpu", 7, 20, False, 0, 1), ("loader_cpu", 8, 30, True, 1), ("loader_cpu", 9, 10, True, 1)),
                           snapshot(200, [process(7)]), stacks(("nonsense", 7, 60, False, 0, 2, 3), ("nonsense", 7, 40, False, 0), ("cpu", 7, 7, False)))
        main, collate, call = ("main", "/home/u/train.py", 9), ("col?late", "data.py", 142), ("cudaMallocHost (library call)", "", 0)
        unknown, computed, loaders = ("unknown cause", "", 0), ("launcher computed", "", 0), ("loaders computed", "", 0)
        self.assertEqual(trace.stacks, [
            (100, 7, [loaders, ("[cut]", "", 0), collate], 50), (100, 7, [computed, main, collate], 25),
            (200, 7, [unknown, main], 45), (200, 7, [unknown, main, call, ("[unknown]", "", 0)], 65),
            (200, 7, [computed, ("[unknown]", "", 0)], 12)])

    def test_a_deep_stack(self):
        trace = self.trace(snapshot(100, [process(7)]), stacks(("cpu", 7, 20, True, *[0] * 256)))
        self.assertEqual(len(trace.stacks[0][2]), 258)

    def test_invalid_stacks(self):
        for invalid in (stacks(("cpu", 7, 20, False, 4)), stacks(("cpu", 7, 20, False, *[0] * 257)), stacks(idle_ns=-1), {"lines": 1}):
            path = self.recording(snapshot(100, [process(7)]), invalid)
            self.assertIn("frame 2", zernel("export", path, "--perfetto", self.directory / "out", status=1)[1])
            zernel("export", path, "--csv", self.directory / "out")


class Csv(Case):
    def rows(self, path):
        out = self.directory / "out.csv"
        zernel("export", path, "--csv", out)
        with open(out, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_result_as_json(self):
        path, out = self.recording(snapshot(100)), self.directory / "out.csv"
        self.assertEqual(zernel("export", path, "--csv", out)[0], "")
        result = json.loads(zernel("export", path, "--csv", out, "--json")[0])
        self.assertEqual((result["file"], result["format"]), (str(out), "csv"))
        self.assertGreater(result["frames"], 0)

    def test_a_row_for_each_process_of_each_snapshot(self):
        odd = process(8, "gpu_compute", nr_ranks=2, rank=1, steps=9, busy_ns=5, phase_ns={"gpu_compute": 77},
                      idle_ns={"loader_disk": 3}, open_ns={"cpu": 6}, blocked_ns=4, step_basis="optimizer", hists={"runqueue_wait": {"count": 2, "sum": 11}})
        odd["comm"] = 'say "hi",\n'
        rows = self.rows(self.recording(snapshot(100, [process(7)]), events(), snapshot(200, [process(7), odd])))
        self.assertEqual([(row["monotonic_ns"], row["pid"]) for row in rows], [("100", "7"), ("200", "7"), ("200", "8")])
        self.assertEqual((rows[0]["rank"], rows[2]["rank"], rows[2]["comm"]), ("", "1", 'say "hi",\n'))
        self.assertEqual({key: rows[2][key] for key in ("phase", "gpu_compute_ns", "steps", "busy_ns", "idle_loader_disk_ns",
                                                        "open_cpu_ns", "blocked_ns", "step_basis",
                                                        "runqueue_wait_count", "runqueue_wait_ns")},
                         {"phase": "gpu_compute", "gpu_compute_ns": "77", "steps": "9", "busy_ns": "5",
                          "idle_loader_disk_ns": "3", "open_cpu_ns": "6", "blocked_ns": "4", "step_basis": "optimizer",
                          "runqueue_wait_count": "2", "runqueue_wait_ns": "11"})
        self.assertTrue(all(None not in row.values() and None not in row for row in rows))


class Refusals(Case):
    def test_invalid_usage_and_frames(self):
        path = self.recording(snapshot(100), {"neither": 1})
        self.assertIn("frame 2", zernel("export", path, "--perfetto", self.directory / "out", status=1)[1])
        for words in (["--perfetto", "a", "--csv", "b"], [], ["--csv"], ["--csv", "a", "more"]):
            self.assertIn("Try 'zernel export --help'.", zernel("export", path, *words, status=2)[1])
        self.assertIn("cannot create", zernel("export", path, "--csv", "/nonexistent/out", status=1)[1])

    def test_a_full_disk(self):
        path = self.recording(snapshot(100, [process(7)]))
        for form in "--csv", "--perfetto":
            self.assertIn("No space", zernel("export", path, form, "/dev/full", status=1)[1])


if __name__ == "__main__":
    tap.main()
