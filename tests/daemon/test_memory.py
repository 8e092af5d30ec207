# SPDX-License-Identifier: GPL-2.0-or-later
"""What PyTorch has allocated over time: the reply, who may ask, and that the allocator is probed only during a watch."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import tap
from harness import as_user, Case, Client, wait_until
from jobs import ALICE, BOB

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
NAME = "libc10.so.noted"  # the fake programs report names with "noted"
OF_USER = 8               # watches at the same time
PARTS = 20
KEEP_SECONDS = 10  # a probe stays after the last watch
# Maps a library as code, without loading it: one with a sanitizer could not be loaded. A line of input lets it unmap the library.
MAPS = ("import mmap, sys, time\nfile = open(sys.argv[1])\n"
        "kept = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\nfile.close()\nprint(flush=True)\n"
        "if sys.stdin.readline():\n    kept.close()\n    time.sleep(1000)\n")


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.processes = {}
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name).chmod(0o755)
        self.library = shutil.copy(BUILD / "tests/libc10.so", f"{folder.name}/{NAME}")

    def job(self, uid, library=None):
        process = subprocess.Popen([sys.executable, "-c", MAPS, library or self.library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   user=uid)
        for clean in process.wait, process.kill, process.stdin.close, process.stdout.close:
            self.addCleanup(clean)
        process.stdout.readline()
        self.processes[process.pid] = process
        return process.pid

    def start_with(self, jobs):
        """Starts zerneld, which knows these processes, a pid and a user each, and at least three in all."""
        others = [(self.job(BOB, sys.executable), BOB) for _ in range(3 - len(jobs))]
        return self.zerneld(processes="".join(f"{pid} {uid} job\n" for pid, uid in jobs + others))

    def start(self, uids):
        """Starts zerneld and a process with PyTorch for each user."""
        pids = [self.job(uid) for uid in uids]
        server = self.start_with(list(zip(pids, uids)))
        wait_until(lambda: f"attached {NAME}" in server.did(), f"the library is attached: {server.text()}")
        server.pids = pids
        return server

    def ask(self, path, pid, seconds=1):
        with Client(path) as client:
            return client.ask("memory", pid=pid, seconds=seconds)

    def begin(self, server, client, pid):
        client.send(b'{"id":7,"method":"memory","params":{"pid":%d,"seconds":300}}\n' % pid)
        wait_until(lambda: f"use {pid}" in server.did(), f"the watch begins: {server.did()}")

    def test_a_reply(self):
        server = self.start([ALICE])
        pid = server.pids[0]
        usage = self.ask(server.path, pid)["result"]["usage"]
        self.assertEqual((usage["pid"], usage["part_ns"], len(usage["gpus"])), (pid, 10**9 // PARTS, 1))
        self.assertGreaterEqual(usage["window_ns"], 10**9)
        parts = usage["gpus"][0]["parts"]
        reported = {"reports": 2, "allocated_bytes": 5, "reserved_bytes": 8, "allocated_most_bytes": 7, "reserved_then_bytes": 9}
        later = {"reports": 0, "allocated_bytes": 5, "reserved_bytes": 8, "allocated_most_bytes": 5, "reserved_then_bytes": 8}
        self.assertEqual(parts, [None, reported] + [later] * (PARTS - 2))
        self.assertEqual([line for line in server.did() if "use" in line or "extra" in line],
                         [f"extra {NAME}", f"use {pid}", f"used {pid}"])
        # The next watch finds the probe. It is gone some time after the last one.
        self.assertIn("result", self.ask(server.path, pid))
        end = time.monotonic()
        wait_until(lambda: f"no-extra {NAME}" in server.did(), "the probe is gone")
        self.assertGreater(time.monotonic() - end, KEEP_SECONDS - 2)
        self.assertEqual(server.did().count(f"extra {NAME}"), 1)

    def test_a_watch_ends_with_its_client(self):
        server = self.start([ALICE])
        pid = server.pids[0]
        with server.client() as client:
            self.begin(server, client, pid)
            reply = self.ask(server.path, pid)["error"]
            self.assertEqual((reply["code"], "another client" in reply["message"]), ("failed", True))
            self.assertNotIn(f"used {pid}", server.did())
        wait_until(lambda: f"used {pid}" in server.did(), "the watch has ended")
        self.assertIn("result", self.ask(server.path, pid))

    def test_a_probe_is_shared(self):
        server = self.start([ALICE, BOB])
        with server.client() as client:
            self.begin(server, client, server.pids[0])
            self.assertIn("result", self.ask(server.path, server.pids[1]))
        self.assertEqual(server.did().count(f"extra {NAME}"), 1)

    def test_the_library_is_unmapped(self):
        """zerneld notices at the next scan. The watch ends, and does not go on with old values."""
        server = self.start([ALICE])
        pid = server.pids[0]
        with server.client() as client:
            self.begin(server, client, pid)
            self.processes[pid].stdin.write(b"\n")
            self.processes[pid].stdin.flush()
            self.assertLess(client.reply()["result"]["usage"]["window_ns"], 300 * 10**9)
        reply = self.ask(server.path, pid)["error"]
        self.assertEqual(reply["code"], "not-found")

    def test_the_process_ends(self):
        server = self.start([ALICE])
        pid = server.pids[0]
        with server.client() as client:
            self.begin(server, client, pid)
            lines = (server.fake / "processes").read_text().replace(f"{pid} ", f"{os.getpid()} ")
            (server.fake / "new").write_text(lines)
            (server.fake / "new").rename(server.fake / "processes")
            usage = client.reply()["result"]["usage"]
            self.assertLess(usage["window_ns"], 300 * 10**9)
        wait_until(lambda: f"used {pid}" in server.did(), "the watch has ended")

    def test_the_allocator_cannot_be_probed(self):
        server = self.start([ALICE])
        server.tell("no-extra")
        reply = self.ask(server.path, server.pids[0])["error"]
        self.assertEqual(reply["code"], "failed")
        self.assertIn("could not be probed", reply["message"])
        self.assertNotIn(f"use {server.pids[0]}", server.did())

    def test_the_watches_of_a_user_are_bounded(self):
        server = self.start([ALICE] * (OF_USER + 1) + [BOB])
        with contextlib.ExitStack() as clients:
            for pid in server.pids[:OF_USER]:
                self.begin(server, clients.enter_context(server.client()), pid)
            reply = self.ask(server.path, server.pids[OF_USER])["error"]
            self.assertEqual((reply["code"], "8 processes of its user" in reply["message"]), ("failed", True))
            self.assertIn("result", self.ask(server.path, server.pids[-1]))

    def test_a_user_asks_for_own_processes_only(self):
        server = self.start([ALICE, BOB])
        own, other = server.pids
        self.assertIn("result", as_user(ALICE, ALICE, [], lambda: self.ask(server.path, own)))
        self.assertEqual(as_user(ALICE, ALICE, [], lambda: self.ask(server.path, other))["error"]["code"], "not-found")
        self.assertNotIn(f"use {other}", server.did())

    def test_a_process_without_pytorch(self):
        pid = self.job(ALICE, sys.executable)
        server = self.start_with([(pid, ALICE)])
        reply = self.ask(server.path, pid)["error"]
        self.assertEqual(reply["code"], "not-found")
        self.assertIn("not known to use PyTorch", reply["message"])

    def test_a_pytorch_without_reports(self):
        """Its library has no call with a name that is known. That is not the fault of the kernel."""
        library = pathlib.Path(self.library)
        library.write_bytes(library.read_bytes().replace(b"reportMemoryUsage", b"reportMemoryAgeUs"))
        server = self.start([ALICE])
        reply = self.ask(server.path, server.pids[0])["error"]
        self.assertEqual(reply["code"], "unsupported")
        self.assertIn("does not report its memory in a known way", reply["message"])

    def test_invalid_requests(self):
        server = self.start([ALICE])
        for pid, seconds in (0, 1), (-1, 1), ("1", 1), (server.pids[0], 0), (server.pids[0], -1), (server.pids[0], 301), (1 << 40, 1):
            self.assertEqual(self.ask(server.path, pid, seconds)["error"]["code"], "invalid")
        self.assertEqual(self.ask(server.path, 1)["error"]["code"], "not-found")


if __name__ == "__main__":
    tap.main()
