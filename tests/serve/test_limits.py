# SPDX-License-Identifier: GPL-2.0-or-later
"""Too many, too large or too slow clients are refused, and all other clients are not affected."""
import base64
import json
import os
import resource
import socket
import time
import unittest

import tap
from harness import SANITIZED, ServeCase, curl, get_times, note, raw, wait_for

CONNECTIONS_MAX, WEBSOCKETS_MAX = 2048, 1536
HEADERS_TIMEOUT, STALLED_TIMEOUT, RESPONSE_TIMEOUT = 10, 10, 30
SLACK = 8 if tap.TIMING else 60  # timeouts are checked once a second, and a busy machine is late


class LimitsCase(ServeCase):
    def setUp(self):
        self.clients = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 4096:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        if hard < 4096:
            self.skipTest(f"the limit of open files is only {hard}")

    def tearDown(self):
        for client in self.clients:
            client.close()
        self.assertTrue(wait_for(lambda: self.health().get("connections") == 1), self.health())

    def open(self, data=b"", receive_buffer=None):
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(30)
        client.connect(("127.0.0.1", self.serve.port))
        client.sendall(data)
        self.clients.append(client)
        return client

    def websocket(self, interval_ms, **options):
        key = base64.b64encode(os.urandom(16)).decode()
        client = self.open((f"GET /ws?interval_ms={interval_ms} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode(),
                           **options)
        return client.recv(12)[9:12]

    def health(self):
        status, _, body = curl(f"{self.url}/healthz")
        return json.loads(body) if status == 200 else {}


def closed_after(client, limit):
    """Seconds until the gateway closes the connection, or None when it does not."""
    start = time.monotonic()
    client.settimeout(limit)
    try:
        while client.recv(65536):
            pass
    except TimeoutError:
        return None
    except OSError:
        pass
    return time.monotonic() - start


class Requests(LimitsCase):
    def test_oversized_headers(self):
        for headers in (b"X: " + b"a" * 20000, b"\r\n".join(b"X-%d: %s" % (n, b"a" * 50) for n in range(1000)),
                        b"Accept: " + b"a" * 5000, b"Origin: " + b"a" * 2000, b"Authorization: Bearer " + b"a" * 3000,
                        b"a" * 100000):
            answer = raw(self.serve.port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + headers +
                         b"\r\nConnection: close\r\n\r\n")
            note(f"{len(headers)} bytes of headers, {headers[:8]!r}...: {answer.status}")
            self.assertTrue(answer.status != 200 or headers[:1] == b"X", headers[:20])
        self.assertEqual(curl(f"{self.url}/metrics")[0], 200)

    def test_endless_headers_use_no_more_memory(self):
        before = self.serve.rss_kib()
        client = self.open(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        try:
            while sent < 50 << 20:
                client.sendall(b"X-Name: " + b"a" * 10000 + b"\r\n")
                sent += 10010
        except OSError:
            pass
        self.assert_grew_less(before, 2048, f"{sent} bytes of headers")

    def test_slow_headers_and_slow_readers(self):
        silent = self.open()
        partial = self.open(b"GET /metrics HTTP/1.1\r\nHost: local")
        dripping = self.open(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
        reader = self.open(b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, receive_buffer=4096)
        start, cpu = time.monotonic(), self.serve.cpu_seconds()
        try:
            while time.monotonic() - start < HEADERS_TIMEOUT + SLACK:
                dripping.sendall(b"a")
                time.sleep(0.5)
        except OSError:
            pass
        note(f"one byte every 0.5 s: closed after {time.monotonic() - start:.1f} s")
        self.assertLess(time.monotonic() - start, HEADERS_TIMEOUT + SLACK)
        cpu = (self.serve.cpu_seconds() - cpu) / (time.monotonic() - start)
        note(f"CPU during this time: {cpu:.1%}")
        self.assertLess(cpu, 0.2)
        for name, client in (("nothing sent", silent), ("part of a header", partial)):
            self.assertIsNotNone(closed_after(client, SLACK), name)
        wait = RESPONSE_TIMEOUT + SLACK - (time.monotonic() - start)
        self.assertTrue(wait_for(lambda: self.health().get("connections") == 1, wait))
        note(f"a response that is not read: closed after {time.monotonic() - start:.1f} s at most")
        reader.close()


class Crowds(LimitsCase):
    def latencies(self):
        """Latencies of /healthz in ms, each request on a new connection."""
        return get_times(self.serve.port, "/healthz", 500)

    def test_1000_idle_and_200_slow_websockets(self):
        before, rss = self.latencies(), self.serve.rss_kib()
        for _ in range(1000):
            self.assertEqual(self.websocket(60000), b"101")
        for _ in range(200):
            self.assertEqual(self.websocket(100, receive_buffer=4096), b"101")
        during = self.latencies()
        health = self.health()
        for name, values in (("before", before), ("during", during)):
            note(f"/healthz {name}: p50 {values[len(values) // 2]:.2f} ms, p99 {values[len(values) * 99 // 100]:.2f} ms, "
                 f"max {values[-1]:.2f} ms")
        note(f"{health}")
        self.assert_grew_less(rss, 64 << 10, "1000 idle and 200 slow clients connected")
        self.assertGreater(health["skipped"], 0)
        if tap.TIMING:
            self.assertLess(during[len(during) // 2], 50)
        self.assertTrue(wait_for(lambda: self.health().get("websockets", 9999) <= 1000, STALLED_TIMEOUT + SLACK), self.health())
        health = self.health()
        note(f"after the slow clients were closed: {health}")
        self.assertGreaterEqual(health["cut"], 200)

    def test_more_websockets_than_allowed(self):
        for _ in range(WEBSOCKETS_MAX):
            self.assertEqual(self.websocket(60000), b"101")
        for _ in range(20):
            self.assertEqual(self.websocket(60000), b"503")
        self.assertEqual(curl(f"{self.url}/metrics")[0], 200)

    def test_more_connections_than_allowed(self):
        for _ in range(CONNECTIONS_MAX):
            self.open()
        extra = self.open()
        self.assertIsNotNone(closed_after(extra, HEADERS_TIMEOUT + SLACK))
        self.assertEqual(curl("-m", "10", f"{self.url}/healthz")[0], 0)
        # Connections without a request are closed after a timeout, and the gateway works again.
        self.assertTrue(wait_for(lambda: self.health().get("refused", 0) >= 2, HEADERS_TIMEOUT + SLACK))
        note(f"{self.health()}, RSS {self.serve.rss_kib()} KiB")


class LargeSnapshot(LimitsCase):
    """A snapshot needs memory several times while it is received, parsed and rendered."""
    PROCESSES, BASE_KIB, TIMES = 2000, 20 << 10, 4

    @classmethod
    def prepare(cls):
        one = cls.zerneld.snapshot["processes"][0]
        cls.zerneld.snapshot["processes"] = [{**one, "pid": pid} for pid in range(1, cls.PROCESSES + 1)]

    def test_peak_of_memory(self):
        size = 0
        for _ in range(3):
            pushes = self.zerneld.pushes
            self.assertTrue(wait_for(lambda before=pushes: self.zerneld.pushes > before, 60))
            size = max(size, len(curl(f"{self.url}/api/v1/snapshot")[2]) >> 10)
        peak = self.serve.peak_rss_kib()
        note(f"a snapshot has {size} KiB; RSS {peak} KiB at most")
        self.assertGreater(size, 1024)
        if not SANITIZED:
            self.assertLess(peak, self.BASE_KIB + self.TIMES * size)


class SilentClients(LimitsCase):
    """Clients that read nothing, each of them from another snapshot on."""
    CLIENTS, THREADS = 60, 20000
    REQUEST = b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @classmethod
    def prepare(cls):
        one = cls.zerneld.snapshot["threads"][0]
        cls.zerneld.snapshot["threads"] = [{**one, "tid": tid} for tid in range(1, cls.THREADS + 1)]

    def next_snapshot(self):
        pushes = self.zerneld.pushes
        self.assertTrue(wait_for(lambda: self.zerneld.pushes > pushes, 60))

    def test_memory_does_not_grow_with_their_number(self):
        size = len(curl(f"{self.url}/api/v1/snapshot")[2])
        self.next_snapshot()
        before = self.serve.rss_kib()
        for i in range(self.CLIENTS):
            if i % 20 == 0:
                self.assertEqual(self.websocket(100, receive_buffer=4096), b"101")  # new snapshots come more often
            self.open(self.REQUEST, receive_buffer=4096)
            self.next_snapshot()
        health = self.health()
        note(f"a snapshot has {size >> 10} KiB; {health}")
        self.assert_grew_less(before, 28 << 10, f"{self.CLIENTS} silent clients connected")
        self.assertGreater(health["cut"], 0)
        self.assertEqual(curl(f"{self.url}/metrics")[0], 200)
        self.assertEqual(len(curl(f"{self.url}/api/v1/snapshot")[2]), size)


if __name__ == "__main__":
    tap.main()
