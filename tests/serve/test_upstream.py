# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld exits, returns, hangs, refuses requests and sends invalid data; serve keeps running."""
import socket
import threading
import time
import unittest

import tap
from fake_zerneld import FakeZerneld
from harness import PATIENCE_S, Serve, ServeCase, curl, known_snapshot, note, wait_for


class Upstream(ServeCase):
    def status(self, path):
        return curl(f"{self.url}{path}")[0]

    def assert_recovers(self):
        start = time.monotonic()
        self.assertTrue(wait_for(lambda: self.status("/readyz") == 200))
        note(f"ready again after {time.monotonic() - start:.2f} s")
        self.assertEqual(self.status("/metrics"), 200)

    def test_a_kernel_that_lacks_something_is_ready(self):
        self.zerneld.snapshot["lacks"] = ["launch_times", "scheduler"]
        self.addCleanup(self.zerneld.snapshot.update, lacks=[])
        body = b"200: ready; left out on this kernel: launch_times, scheduler\n"
        self.assertTrue(wait_for(lambda: curl(f"{self.url}/readyz")[::2] == (200, body)))

    def test_zerneld_is_killed_and_restarted(self):
        pid = self.serve.process.pid
        self.zerneld.stop()
        self.assertTrue(wait_for(lambda: self.status("/readyz") == 503))
        self.assertEqual(self.status("/healthz"), 200)
        self.assertEqual(self.status("/metrics"), 503)
        self.assertEqual(self.status("/api/v1/snapshot"), 503)
        self.assertTrue(self.serve.says("no data from zerneld at .*: it closed the connection"))
        time.sleep(1)
        self.zerneld.start()
        self.assert_recovers()
        self.assertEqual(self.serve.process.pid, pid)
        self.assertIsNone(self.serve.process.poll())

    def test_the_socket_is_deleted(self):
        self.zerneld.stop()
        self.path.unlink()
        self.assertTrue(wait_for(lambda: self.status("/readyz") == 503))
        self.zerneld.start()
        self.assert_recovers()

    def test_a_missing_zerneld_is_logged_once(self):
        before = len(self.serve.lines)
        self.zerneld.stop()
        self.assertTrue(wait_for(lambda: len(self.serve.lines) > before))
        time.sleep(2)
        self.assertEqual(len(self.serve.lines), before + 1)
        self.assertIn("no data from zerneld", self.serve.lines[before])
        self.zerneld.start()
        self.assert_recovers()

    def test_a_silent_zerneld_is_not_ready(self):
        self.zerneld.silent = True
        try:
            self.assertTrue(wait_for(lambda: self.status("/readyz") == 503))
            self.assertEqual(self.status("/healthz"), 200)
            self.assertTrue(wait_for(lambda: self.serve.said("it sends no snapshots")))
        finally:
            self.zerneld.silent = False
        self.assert_recovers()

    def test_a_snapshot_that_is_sent_again_is_not_fresh(self):
        self.zerneld.stuck = True
        try:
            self.assertTrue(wait_for(lambda: self.status("/readyz") == 503))
            self.assertIn(b"out of date", curl(f"{self.url}/readyz")[2])
            self.assertEqual(self.status("/metrics"), 503)
        finally:
            self.zerneld.stuck = False
        self.assert_recovers()

    def test_a_refusal_is_logged(self):
        self.zerneld.forbidden = True
        self.zerneld.stop()
        self.zerneld.start()
        try:
            self.assertTrue(wait_for(lambda: self.status("/readyz") == 503))
            self.assertTrue(self.zerneld.greetings > 0)
        finally:
            self.zerneld.forbidden = False
        self.assert_recovers()

    def test_a_zerneld_of_another_version_is_logged(self):
        zerneld = FakeZerneld(f"{self.path}.old", known_snapshot())
        zerneld.version = 1
        self.addCleanup(zerneld.start().stop)
        serve = Serve(zerneld.path)
        self.addCleanup(serve.stop)
        self.assertTrue(wait_for(lambda: serve.said("it speaks another protocol version: update both")))

    def talk(self, *lines):
        """Replaces zerneld with a server that sends this data to every client."""
        self.zerneld.stop()
        self.path.unlink()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            self.path.chmod(0o666)
            listener.listen(8)
            listener.settimeout(PATIENCE_S)
            for line in lines:
                connection, _ = listener.accept()
                with connection:
                    try:
                        connection.sendall(line)
                        connection.settimeout(10)
                        while connection.recv(65536):
                            pass
                    except OSError:
                        pass
        self.zerneld.start()

    def test_invalid_data_does_not_stop_serve(self):
        self.talk(b"hello\n", b"[]\n", b"{\n", b'{"event":"snapshot"}\n', b'{"event":"snapshot","data":7}\n',
                  b'{"event":"snapshot","data":{}}\n', b'{"error":{}}\n', b'{"error":{"message":7}}\n', b"\0\n\n\n",
                  b"[" * 100000 + b"\n")
        self.assertEqual(self.status("/healthz"), 200)
        self.assert_recovers()

    def test_an_endless_line_is_cut_off(self):
        self.talk(b"x" * (20 << 20))
        note(f"RSS {self.serve.rss_kib()} KiB")
        self.assert_recovers()


class Late(ServeCase):
    """serve started before zerneld."""

    @classmethod
    def prepare(cls):
        cls.zerneld.stop()
        cls.path.unlink()
        threading.Thread(target=cls.start_late).start()

    @classmethod
    def start_late(cls):
        wait_for(lambda: hasattr(cls, "serve") and cls.serve.said("no data from zerneld"))
        cls.zerneld.start()

    def test_it_becomes_ready(self):
        self.assertTrue(self.serve.says("no data from zerneld at .*: No such file or directory; retrying until it answers"))
        self.assertTrue(wait_for(lambda: curl(f"{self.url}/readyz")[0] == 200))
        self.assertTrue(self.serve.says("zerneld answers"))


if __name__ == "__main__":
    tap.main()
