# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares snapshots, recordings and replies with the files in `fixture`, byte by byte.

If a public name or format changes, this test fails. After an intended change, run
`./dev shell env ZERNEL_WRITE_FIXTURE=1 meson test -C out/gcc golden` and review the difference in git.
"""
import base64
import json
import os
import pathlib
import re
import struct
import subprocess

import tap
from harness import BUILD, Case
from recordings import Case as RecordingCase
from recordings import events, process, snapshot, stacks, zernel

FIXTURE = pathlib.Path(__file__).parent / "fixture"
WRITE = "ZERNEL_WRITE_FIXTURE" in os.environ

# Values that differ between runs or machines. All other bytes must be equal.
VOLATILE = re.compile(rb'"(time_ms|monotonic_ns|cpu_ns|rss_bytes|bpf_run_ns|loop_longest_ns|last_seen_s|job|stepped_ns)":\d+|'
                      rb'"(gpu_compute|GpuCompute)":\d{9,}|"(host|kernel|image)":"[^"]*"|'
                      rb'"(jobs)":\[(?:[^][]|\[[^]]*\])*\]|"(probes)":\{[^}]*\}')


class Golden:
    def compare(self, name, data):
        path = FIXTURE / name
        if WRITE:
            path.write_bytes(data)
        self.assertEqual(data, path.read_bytes(), f"{path.name} has changed; test_golden.py says how to update it")


class Snapshots(Golden, RecordingCase):
    def test_every_format_of_a_snapshot(self):
        for name in "json", "legacy", "text", "openmetrics", "protobuf":
            done = subprocess.run([BUILD / "tests/metrics/print", name, "2", "2"], capture_output=True, check=True)
            self.compare(f"snapshot.{name}", done.stdout)

    def test_recording_and_its_exports(self):
        gpus = [{"gpu": 0, "busy_percent": 50}]
        threads = [{"tid": 7, "pid": 7, "role": "launcher", "comm": "main"}]
        path = self.recording(snapshot(100, [process(7, "data_loading")], threads, gpus),
                              events([150, "phase", 7, 7, "gpu_compute"], [160, "role", 7, 8, "loader"],
                                     [170, "step", 7, 7, 1], [180, "thread_exit", 7, 8, 0]),
                              snapshot(200, [process(7, "optimizer_step")], threads, gpus))
        self.compare("recording.zr", path.read_bytes())
        trace, table = self.directory / "trace", self.directory / "table"
        zernel("export", path, "--perfetto", trace)
        zernel("export", path, "--csv", table)
        self.compare("recording.perfetto", trace.read_bytes())
        self.compare("recording.csv", table.read_bytes())
        self.compare("recording.status", zernel("replay", path, "status", "--json")[0].encode())

    def test_recording_with_stacks(self):
        path = self.recording(snapshot(100, [process(7)]), stacks(("cpu", 7, 20, True, 0, 1)))
        self.compare("recording-stacks.zr", path.read_bytes())
        trace = self.directory / "trace"
        zernel("export", path, "--perfetto", trace)
        self.compare("recording-stacks.perfetto", trace.read_bytes())

    def test_recording_with_snapshots_of_version_1(self):
        path = FIXTURE / "recording-1.zr"  # made by an older zernel; never written again
        self.assertEqual(json.loads(zernel("replay", path, "status", "--json")[0])["version"], 1)
        self.assertIn("30 % of each CPU is reserved for ordinary tasks", zernel("replay", path, "status")[0])
        table = self.directory / "table"
        zernel("export", path, "--csv", table)
        self.assertIn("python3", table.read_text())


def profiles_v1():
    """A database file of version 1 in base64, with one program that has four observations."""
    entry = struct.pack("<16sB7xQII", b"cc1", 0, 3_000_000, 4, 4)
    return base64.b64encode(b"PDDB" + struct.pack("<II", 1, 1) + entry).decode()


REQUESTS = (
    ("snapshot", {}), ("nosuch", {}), ("jobs.ended", {}), ("jobs.ended", {"job": "nobody"}), ("jobs.ended", {"job": 1}),
    ("subscribe", {"interval_ms": 3600000}), ("subscribe", {"interval_ms": 1}), ("unsubscribe", {}),
    ("policy.get", {}), ("policy.set", {"rules_off": ["tier"]}), ("policy.set", {"slice": 1}),
    ("scheduler.detach", {}), ("scheduler.attach", {}),
    ("procdb.list", {}), ("procdb.export", {}), ("procdb.import", {"image": profiles_v1()}),
    ("procdb.import", {"image": "????"}), ("procdb.list", {}), ("procdb.show", {"name": "cc1"}),
    ("procdb.show", {"name": "nobody"}), ("procdb.show", {}), ("procdb.forget", {"name": "cc1"}),
    ("procdb.forget", {"all": True}), ("procdb.forget", {}),
    ("record.start", {"interval_ms": 3600000}), ("record.stop", {}),
    ("hello", {"version": 1}), ("hello", {}),
)


class Replies(Golden, Case):
    def steady(self, data, pid):
        data = VOLATILE.sub(lambda match: b'"%s":~' % match[match.lastindex], data)
        return re.sub(rb'"(pid|tid)":(\d+)', lambda match: b'"%s":~%d' % (match[1], int(match[2]) - pid), data)

    def test_replies_of_every_method(self):
        server = self.zerneld()
        with server.client() as client:
            lines = []
            for number, (method, params) in enumerate(REQUESTS, 10):
                lines += [f"> {method} {params}".encode(), self.ask(client, number, method, params)]
        self.compare("replies", b"\n".join(self.steady(line, server.process.pid) for line in lines) + b"\n")

    def test_pushed_snapshot(self):
        server = self.zerneld()
        with server.client() as client:
            self.ask(client, 1, "subscribe", {"interval_ms": 3600000})
            self.compare("push", self.steady(client.raw_line(), server.process.pid))

    def ask(self, client, number, method, params):
        client.send(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
        while (line := client.raw_line()).startswith(b'{"event"'):
            pass
        return line


if __name__ == "__main__":
    tap.main()
