# SPDX-License-Identifier: GPL-2.0-or-later
"""WebSockets: pushes at the chosen interval, and refused clients."""
import base64
import collections
import json
import os
import time
import unittest

import tap
from harness import PATIENCE_S, ServeCase, note, raw

FAST_PUSHES = 20
Push = collections.namedtuple("Push", "received taken")  # in s; a busy machine delays the first one only

try:
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect
except ImportError:
    connect = None


def upgrade(path, *headers):
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@unittest.skipUnless(connect, "python3-websockets is not installed (layer metrics)")
class Pushes(ServeCase):
    def open(self, query="", **options):
        return connect(f"ws://127.0.0.1:{self.serve.port}/ws{query}", max_size=None, open_timeout=PATIENCE_S, **options)

    def times(self, client, count):
        result, latest = [], 0
        for _ in range(count):
            value = json.loads(client.recv(timeout=PATIENCE_S))
            self.assertIsInstance(value["gpu_utilization"], list)
            self.assertEqual(value["last_update_ms"], value["snapshot"]["time_ms"])
            self.assertGreater(value["last_update_ms"], latest)
            latest = value["last_update_ms"]
            result.append(Push(time.monotonic(), latest / 1000))
        return result

    def test_the_first_push_is_immediate_then_one_per_second(self):
        start = time.monotonic()
        with self.open() as client:
            times = self.times(client, 4)
        note(f"first push after {times[0].received - start:.3f} s")
        mean = (times[-1].taken - times[1].taken) / 2
        note(f"mean interval {mean:.3f} s of 1 s")
        # A later push would be late on a busy machine only; an earlier one would be wrong.
        self.assertGreater(mean, 0.5)
        if tap.TIMING:
            self.assertLess(times[0].received - start, 1.0)
            self.assertLess(mean, 1.5)

    def test_clients_share_a_message_of_several_frames(self):
        with self.open() as one, self.open() as two:
            for text in one.recv(timeout=PATIENCE_S), two.recv(timeout=PATIENCE_S):
                self.assertGreater(len(text), 16384, "it must not fit into one frame")
                self.assertIn("snapshot", json.loads(text))

    def test_a_chosen_interval(self):
        with self.open("?interval_ms=200") as client:
            self.times(client, 6)  # until serve has requested the shorter interval
            times = self.times(client, 11)
        mean = (times[-1].taken - times[0].taken) / 10
        note(f"mean interval {mean:.3f} s of 0.2 s; requested from zerneld: {self.zerneld.intervals}")
        self.assertGreater(mean, 0.1)
        if tap.TIMING:
            self.assertLess(mean, 0.4)
        self.assertIn(200, self.zerneld.intervals)

    def test_a_slow_interval_is_not_affected_by_a_fast_client(self):
        with self.open("?interval_ms=200") as fast, self.open("?interval_ms=2000") as slow:
            self.times(slow, 1)
            self.times(fast, FAST_PUSHES)
            times = self.times(slow, 3)
        mean = (times[-1].taken - times[0].taken) / 2
        note(f"{FAST_PUSHES} messages at 200 ms; mean interval {mean:.3f} s of 2 s")
        self.assertGreater(mean, 1)

    def test_an_interval_out_of_bounds_is_refused(self):
        for query in ("?interval_ms=99", "?interval_ms=60001", "?interval_ms=", "?interval_ms=x", "?interval_ms=-5",
                      "?interval_ms=" + "9" * 1000):
            with self.assertRaises(InvalidStatus) as caught:
                self.open(query)
            self.assertEqual(caught.exception.response.status_code, 400, query)

    def test_the_path_is_checked(self):
        for path in ("/", "/metrics", "/ws/x", "/wss"):
            self.assertEqual(raw(self.serve.port, upgrade(path)).status, 404, path)

    def test_a_foreign_origin_is_refused(self):
        for origin in ("http://evil.example", "null", "https://localhost"):
            self.assertEqual(raw(self.serve.port, upgrade("/ws", f"Origin: {origin}")).status, 403, origin)

    def test_its_own_origin_is_allowed(self):
        with self.open(origin=self.url) as client:
            self.times(client, 1)

    def test_unknown_subprotocols_are_not_accepted(self):
        for name in ("watch", "chat"):
            answer = raw(self.serve.port, upgrade("/ws", f"Sec-WebSocket-Protocol: {name}"))
            self.assertNotEqual(answer.status, 101, name)

    def test_a_client_that_sends_data_is_closed(self):
        with self.open() as client:
            client.send("{}")
            with self.assertRaises(ConnectionClosed) as caught:
                while True:
                    client.recv(timeout=PATIENCE_S)
            self.assertEqual(caught.exception.rcvd.code, 1008)

    def test_pings_are_answered(self):
        with self.open("?interval_ms=60000") as client:
            self.assertTrue(client.ping(b"x").wait(PATIENCE_S))

    def test_other_upgrades_are_refused(self):
        self.assertNotEqual(raw(self.serve.port, upgrade("/ws").replace(b"Upgrade: websocket", b"Upgrade: h2c")).status, 101)


if __name__ == "__main__":
    tap.main()
