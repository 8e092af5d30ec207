# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the commands record, replay and export with a zerneld that has fake BPF programs."""
import json
import pathlib
import random
import re
import select
import signal
import subprocess
import tempfile

import harness
import tap
from fake_zerneld import FakeZerneld
from harness import wait_until
from perfetto import Trace
from recordings import SECOND, ZERNEL, Case, events, process, snapshot, zernel

NR_CUTS = 200  # test_record.c has a thousand


class Recorder(harness.Case):
    """zernel record, and the file that it writes."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.directory / "file.zr"
        self.server = self.zerneld()
        self.server.tell("train")

    def start(self, *words):
        child = subprocess.Popen([ZERNEL, "record", "--socket", self.server.path, self.file, *words],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        wait_until(lambda: self.file.exists() and self.file.stat().st_size > 4000, "nothing was recorded")
        return child

    def last(self):
        return json.loads(zernel("replay", self.file, "status", "--json")[0])

    def test_until_a_signal(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            child = self.start()
            self.assertIn("timeline on", self.server.did())
            child.send_signal(number)
            text, errors = child.communicate(timeout=harness.SECONDS)
            self.assertEqual((child.returncode, errors), (0, ""))
            self.assertRegex(text, r"^recorded \d+ s, \d+ snapshots, \d+ events, .*B, .*B per hour\n$")
            self.assertEqual(zernel("replay", self.file, "status")[1], "")
            self.assertEqual(self.server.did()[-1], "timeline off")
            self.file.unlink()

    def test_result_as_json(self):
        text, _ = zernel("record", "--seconds", "1", "-j", "--socket", self.server.path, self.file)
        result = json.loads(text)
        self.assertEqual((result["file"], result["lost"]), (str(self.file), 0))
        self.assertGreaterEqual(result["seconds"], 1)
        self.assertGreater(result["snapshots"], 0)
        self.assertEqual(result["bytes"], self.file.stat().st_size)

    def test_for_some_seconds(self):
        text, errors = zernel("record", "--seconds", "2", "--socket", self.server.path, self.file)
        self.assertEqual(errors, "")
        # On a busy machine, it ends later than asked.
        self.assertGreaterEqual(int(re.match(r"recorded (\d+) s", text)[1]), 2)
        self.assertEqual(len(self.last()["processes"]), 3)
        early = json.loads(zernel("replay", self.file, "status", "--json", "--to", "1")[0])
        late = self.last()
        self.assertGreater(late["monotonic_ns"] - early["monotonic_ns"], SECOND // 2)
        self.assertIn("0 snapshots", zernel("replay", self.file, "status", "--from", "3600", status=1)[1])

    def test_slices_add_up_to_the_phases_of_the_snapshots(self):
        zernel("record", "--seconds", "2", "--socket", self.server.path, self.file)
        zernel("export", self.file, "--perfetto", self.directory / "trace")
        trace = Trace((self.directory / "trace").read_bytes())
        first = json.loads(zernel("replay", self.file, "status", "--json", "--to", "0")[0])
        last = self.last()
        self.assertLess(first["monotonic_ns"], last["monotonic_ns"])
        for before, after in zip(first["processes"], last["processes"]):
            lane = trace.slices[trace.below(trace.processes()[after["pid"]], "phases")]
            for phase, total in after["phase_ns"].items():
                seen = sum(min(end, last["monotonic_ns"]) - max(begin, first["monotonic_ns"])
                           for begin, end, name in lane
                           if name == phase and end > first["monotonic_ns"] and begin < last["monotonic_ns"])
                # A snapshot is read shortly before its timestamp is taken.
                self.assertAlmostEqual(seen, total - before["phase_ns"][phase], delta=SECOND / 1000)
            self.assertTrue(all(begin[1] == end[0] for begin, end in zip(lane, lane[1:])), "gap between slices")
            steps = trace.slices[trace.below(trace.processes()[after["pid"]], "steps")]
            self.assertGreater(len(steps), 40)

    def sleepers(self):
        """zerneld with three processes, and their pids."""
        sleepers = [subprocess.Popen(["sleep", "inf"]) for _ in range(3)]
        for sleeper in sleepers:
            self.addCleanup(sleeper.wait)
            self.addCleanup(sleeper.kill)
        self.server = self.zerneld(processes="".join(f"{sleeper.pid} 0 train\n" for sleeper in sleepers))
        return sleepers

    def error_of(self, child):
        """The next line of its standard error."""
        ready, _, _ = select.select([child.stderr], [], [], harness.SECONDS)
        return child.stderr.readline() if ready else "nothing"

    def test_stacks_until_the_process_ends(self):
        """The last window is shorter, and the recording goes on without stacks."""
        sleepers = self.sleepers()
        pid, other = sleepers[0].pid, sleepers[1].pid
        child = self.start("--stacks", str(pid), "--stacks", str(other), "--json")
        wait_until(lambda: self.server.did().count(f"sample {pid}") > 1, "a second window begins")
        wait_until(lambda: self.server.did().count(f"sample {other}") > 1, "a second window begins")
        sleepers[0].kill()
        sleepers[0].wait()
        self.assertRegex(self.error_of(child), f"no further stacks of process {pid} are recorded: .*has ended")
        child.send_signal(signal.SIGINT)
        windows = json.loads(child.communicate(timeout=harness.SECONDS)[0])["windows"]
        zernel("export", self.file, "--perfetto", self.directory / "trace")
        stacks = Trace((self.directory / "trace").read_bytes()).stacks
        self.assertEqual(len(stacks), 3 * windows)
        for each in pid, other:
            names = [(frames[-1][0], ns) for _, sampled, frames, ns in stacks if sampled == each]
            self.assertGreater(len(names), 0)
            self.assertEqual(sorted(names), sorted([("collate", 75), ("[unknown]", 75), ("cudaMallocHost (library call)", 75)] * (len(names) // 3)))

    def test_stacks_that_another_client_samples(self):
        """They are asked for again, until the other client has ended."""
        pid = self.sleepers()[0].pid
        with self.server.client() as client:
            client.send(b'{"id":7,"method":"lines","params":{"pid":%d,"seconds":300}}\n' % pid)
            wait_until(lambda: f"sample {pid}" in self.server.did(), "sampling begins")
            child = self.start("--stacks", str(pid))
            self.assertRegex(self.error_of(child), f"no stacks of process {pid} for now: another client samples process {pid}")
        wait_until(lambda: self.server.did().count(f"sampled {pid}") > 1, "a window ends")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate(timeout=harness.SECONDS)[1], "")

    def test_refusals_of_stacks(self):
        words = ["record", "--socket", self.server.path, self.file, "--stacks", "1"]
        self.assertIn("run `zernel status`", zernel(*words, status=1)[1])
        pid = str(self.sleepers()[0].pid)
        words = ["record", "--socket", self.server.path, self.file, "--stacks", pid]
        self.assertIn(f"process {pid} is selected twice", zernel(*words, "--stacks", pid, status=1)[1])
        self.assertIn("at least 10 seconds", zernel(*words, "--seconds", "9", status=2)[1])
        words = [word for i in range(9) for word in ("--stacks", str(i))]
        self.assertIn("at most 8", zernel("record", self.file, *words, status=2)[1])
        self.assertFalse(self.file.exists())

    def test_a_killed_recorder_leaves_a_usable_file(self):
        child = self.start()
        child.kill()
        child.wait()
        text, errors = zernel("replay", self.file, "status", "--json")
        self.assertEqual(len(json.loads(text)["processes"]), 3)
        self.assertRegex(errors, r"cut off at byte \d+: only the \d+ frames before it are used")

    def test_the_recording_ends_when_zerneld_exits(self):
        child = self.start()
        self.server.stop(signal.SIGKILL)
        text, errors = child.communicate(timeout=harness.SECONDS)
        self.assertEqual(child.returncode, 1)
        self.assertIn("the connection to zerneld was lost", errors)
        self.assertIn("recorded", text)
        self.assertEqual(zernel("replay", self.file, "status")[1], "")

    def test_an_existing_file_is_not_overwritten(self):
        self.file.write_text("mine")
        self.assertIn("File exists", zernel("record", "--socket", self.server.path, self.file, status=1)[1])
        self.assertEqual(self.file.read_text(), "mine")

    def test_refusals(self):
        self.assertIn("systemctl start", zernel("record", "--socket", "/nonexistent/s", self.file, status=1)[1])
        self.assertFalse(self.file.exists())
        for words in ([], ["a", "b"], ["--seconds", "0", "a"], ["--seconds", "x", "a"]):
            self.assertIn("Try 'zernel record --help'.", zernel("record", *words, status=2)[1])
        self.assertIn("No space", zernel("record", "--seconds", "1", "--socket", self.server.path, self.full(), status=1)[1])

    def full(self):
        """A path on a full disk; the file must not exist before."""
        disk = self.directory / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk / "file"


class Replay(Case):
    """Replays of synthetic recordings."""

    def sound(self):
        frames = []
        for i in range(40):
            frames.append(snapshot((i + 1) * SECOND, [process(7, steps=i)]))
            frames.append(events([(i + 1) * SECOND - 5, "step", 7, 7, i]))
        return self.recording(*frames)

    def test_status_is_the_last_snapshot_byte_by_byte(self):
        text = json.dumps(snapshot(5, [process(7)]))
        path = self.recording(snapshot(4), json.loads(text))
        self.assertEqual(zernel("replay", path, "status", "--json"), (text + "\n", ""))

    def test_a_truncated_recording_is_used_up_to_the_cut(self):
        whole = self.sound().read_bytes()
        cut = self.directory / "cut.zr"
        source = random.Random(1)
        for _ in range(NR_CUTS):
            cut.write_bytes(whole[:source.randrange(len(whole))])
            done = subprocess.run([ZERNEL, "replay", cut, "status", "--json"], capture_output=True, text=True, check=False)
            self.assertIn("cut off", done.stderr)
            if done.returncode == 0:
                self.assertLess(json.loads(done.stdout)["processes"][0]["steps"], 40)
            else:
                self.assertTrue("cannot use any part of" in done.stderr or "0 snapshots" in done.stderr, done)

    def test_damage_is_reported(self):
        data = bytearray(self.sound().read_bytes())
        payload = data.index(b"\x28\xb5\x2f\xfd", len(data) // 2)
        data[payload] ^= 64
        path = self.directory / "damaged.zr"
        path.write_bytes(data)
        text, errors = zernel("replay", path, "status", "--json")
        self.assertIn("damaged at byte", errors)
        self.assertTrue(10 < json.loads(text)["processes"][0]["steps"] < 30)

    def test_snapshots_of_a_newer_version_are_refused(self):
        path = self.recording(snapshot(SECOND), snapshot(2 * SECOND, version=3))
        for words in ("replay", path, "status"), ("replay", path, "why"), ("export", path, "--csv", "/dev/null"), \
                ("export", path, "--perfetto", "/dev/null"):
            self.assertIn("made.zr contains a snapshot of a newer version: use a newer zernel",
                          zernel(*words, status=1)[1])

    def test_a_file_that_is_not_a_recording(self):
        path = self.directory / "other"
        for content, what in (b"PDDB....", "not a recording"), (b"zernrec\n\x03\0\0\0", "newer zernel"), (b"", "cut off"):
            path.write_bytes(content)
            self.assertIn(what, zernel("replay", path, "status", status=1)[1])
        self.assertIn("No such file", zernel("replay", self.directory / "none", "status", status=1)[1])
        for words in ([], ["a"], ["a", "fry"], ["a", "status", "b"], ["a", "why", "b", "c"], ["a", "status", "--from", "-1"], ["a", "status", "--to", "x"]):
            self.assertIn("Try 'zernel replay --help'.", zernel("replay", *words, status=2)[1])


class Identical(Case):
    """Compares a live answer with the replayed answer of the same snapshots."""

    class Scripted(FakeZerneld):
        """Has two snapshots. A client that asks twice gets both, and a recorder gets both."""

        def __init__(self, path, snapshots):
            super().__init__(path, snapshots[0])
            self.snapshots = snapshots
            self.nr_asked = 0

        def _answer(self, client, state, request):
            reply = {"id": request["id"], "result": {}}
            if request["method"] == "hello":
                reply["result"] = {"version": 2, "server": "fake", "snapshot_version": 2, "may": ["read"]}
            if request["method"] == "snapshot":
                reply["result"] = self.snapshots[min(self.nr_asked, 1)]
                self.nr_asked += 1
            self._send(client, reply)
            for each in self.snapshots if request["method"] == "record.start" else ():
                self._send(client, {"event": "snapshot", "data": each})

    def test_why_and_status(self):
        job = {"name": "slurm-1", "cgroup": "/slurm/1"}
        first = snapshot(SECOND, [process(7, job=1, busy_ns=SECOND // 2, idle_ns={"cpu": SECOND // 4}, steps=10)], jobs=[job])
        second = snapshot(6 * SECOND, [process(7, job=1, busy_ns=3 * SECOND, idle_ns={"cpu": SECOND, "loader_disk": 2 * SECOND},
                                               steps=60, culprits=[{"cause": "loader_disk", "ns": SECOND, "name": "sda"}])],
                          jobs=[job])
        socket, file = self.directory / "sock", self.directory / "file.zr"
        server = self.Scripted(str(socket), [first, second]).start()
        self.addCleanup(server.stop)
        zernel("record", "--seconds", "1", "--socket", socket, file)
        for form in [], ["--json"]:
            server.nr_asked = 0
            live = zernel("why", "--seconds", "1", "--socket", socket, *form)
            self.assertEqual(zernel("replay", file, "why", *form), live)
            self.assertIn("sda", live[0])
            self.assertEqual(zernel("replay", file, "status", *form), zernel("status", "--socket", socket, *form))
        self.assertEqual(zernel("replay", file, "why", "7"), zernel("replay", file, "why", "slurm-1"))
        zernel("replay", file, "why", "nobody", status=3)
        self.assertIn("needs 2", zernel("replay", file, "why", "--from", "3600", status=1)[1])


if __name__ == "__main__":
    tap.main()
