# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `files`, in a guest: processes of 8 users map hostile files with names of GPU runtimes, and zerneld scans them.

ZERNEL_SIZE has the number of files, and for how many seconds a client measures its response times. On a machine with other tests,
every zerneld would scan these files. The BPF programs are fake: they have no part in this. The users are in a cgroup, as on a machine
whose service manager separates them from services.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import LIBRARY, mapped_library

NR_FILES, SECONDS = map(int, os.environ.get("ZERNEL_SIZE", "24 12").split())
KINDS = ("lease", "fifo", "sparse", "truncated", "mappings", "fuse")
EACH = max(1, min(20, NR_FILES // 12))  # files of a process
FIRST_UID, NR_USERS = 5000, 8
LATENCY_MS = 250  # p99
CGROUPS = pathlib.Path("/sys/fs/cgroup")
USERS = CGROUPS / "users"


class Files(Case):
    def start_hostile(self, stack, number, kind):
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zerneld-hostile.", ignore_cleanup_errors=True)))
        uid = FIRST_UID + number % NR_USERS
        os.chown(folder, uid, uid)
        process = stack.enter_context(subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("hostile_files.py"), kind, str(1 if kind == "mappings" else EACH), folder,
             BUILD / "lab/vgpu/libcudart.so.12", str(uid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True))
        stack.callback(process.kill)
        (USERS / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
        return process, kind

    def hostile(self, stack):
        """Returns the number of mapped files of each kind."""
        left, found, started = NR_FILES, dict.fromkeys(KINDS, 0), []
        while left > 0:
            kind = KINDS[len(started) % len(KINDS)]
            started.append(self.start_hostile(stack, len(started), kind))
            found[kind] += 1 if kind == "mappings" else EACH
            left -= 1 if kind == "mappings" else EACH
        for process, kind in started:
            self.assertEqual(process.stdout.readline(), b"\n", f"a process with files of kind {kind} did not start")
            print("# mapped:", kind, flush=True)
        return found

    def latencies(self, server):
        times, end = [], time.monotonic() + SECONDS
        with server.client() as client:
            while time.monotonic() < end:
                begin = time.monotonic()
                assert "result" in client.ask("snapshot" if len(times) % 2 else "policy.get")
                times.append((time.monotonic() - begin) * 1000)
                time.sleep(0.01)
        return sorted(times)

    def test_hostile_files_delay_no_client_and_hide_no_job(self):
        (CGROUPS / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
        USERS.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:
            print("# files:", self.hostile(stack), flush=True)
            server = self.zerneld()
            server.tell("blind")  # all processes are scanned every 10 s
            times = self.latencies(server)
            p99 = times[int(len(times) * 0.99)]
            print(f"# {len(times)} requests: p50 {times[len(times) // 2]:.2f} ms, p99 {p99:.2f} ms, longest {times[-1]:.2f} ms", flush=True)
            stack.enter_context(mapped_library())
            begin = time.monotonic()
            wait_until(lambda: f"attached {LIBRARY}" in server.did(), f"the honest job is found: {server.text()[-1000:]}")
            found = time.monotonic() - begin
            with server.client() as client:
                snapshot = client.ask("snapshot")["result"]
            print(f"# the honest job was found after {found:.1f} s")
            print("# restarts", snapshot["restarts"], "dropped", snapshot["dropped"], "probes", snapshot["probes"],
                  "rss", snapshot["cost"]["rss_bytes"] >> 20, "MiB")
            server.stop()
        self.assertGreater(snapshot["probes"]["failed"] + snapshot["dropped"]["maps"] + snapshot["restarts"], 0, "the losses are counted")
        self.assertLess(p99, LATENCY_MS)


if __name__ == "__main__":
    harness.SECONDS = 900  # an emulated guest beside processes that never sleep
    tap.main()
