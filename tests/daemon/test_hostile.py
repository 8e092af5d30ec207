# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that send invalid data, never end a line, never read or connect in large numbers.

They must not delay other clients.
"""
import os
import random
import re
import resource
import socket
import threading
import time

import tap
from harness import as_user, Case, Client, OTHERS, READERS

LIMIT = 64 << 10
LATENCY_MS = 250  # acceptable p99


def latencies(path, nr):
    """Returns the response times of a well-behaved client in ms, sorted."""
    times = []
    with Client(path) as client:
        for _ in range(nr):
            begin = time.monotonic()
            assert "result" in client.ask("policy.get")
            times.append((time.monotonic() - begin) * 1000)
            time.sleep(0.002)
    return sorted(times)


class Hostile(Case):
    def setUp(self):
        self.server = self.zerneld()

    def measure(self, what):
        times = latencies(self.server.path, 500)
        print(f"# {what}: p50 {times[250]:.2f} ms, p99 {times[495]:.2f} ms, longest {times[-1]:.2f} ms")
        return times[495]

    def end_of(self, client):
        """Returns the last message of the server. After it, the server must have closed the connection."""
        words = client.line()
        self.assertIsNone(client.line())
        return words

    def test_malformed_requests_end_the_connection(self):
        for line in (b"", b"{", b"[]", b"null", b"\0\0\0", b"\xff\xfe", b'{"id":1}', b'{"method":"hello"}',
                     b'{"id":-1,"method":"hello"}', b'{"id":"1","method":"hello"}', b'{"id":1,"method":7}',
                     b'{"id":1,"method":"hello","params":[]}', b'{"id":1,"method":"hello\\u0000"}',
                     b"[" * 60000, b'{"id":18446744073709551616,"method":"hello"}'):
            with self.server.client(hello=False) as client:
                client.send(line + b"\n")
                words = self.end_of(client)
                self.assertEqual(words["error"]["code"], "malformed", line[:40])
                self.assertNotIn("id", words)

    def test_a_request_of_64_kib_is_answered_and_a_longer_one_ends_the_connection(self):
        request = b'{"id":1,"method":"policy.get","params":{"x":"'
        with self.server.client() as client:
            client.send(request + b"x" * (LIMIT - len(request) - 4) + b'"}}\n')
            self.assertIn("result", client.reply())
            try:
                client.send(request + b"x" * (LIMIT - len(request) - 3) + b'"}}\n')
            except OSError:
                pass
            self.assertEqual(self.end_of(client)["error"]["code"], "too-large")

    def test_an_endless_line_ends_the_connection(self):
        with self.server.client() as client:
            with self.assertRaises(OSError):
                for _ in range(1000):
                    client.send(b"x" * 4096)
            self.assertEqual(client.line()["error"]["code"], "too-large")

    def test_random_bytes(self):
        chance = random.Random(7)
        for _ in range(200):
            with self.server.client(hello=False) as client:
                try:
                    client.send(chance.randbytes(chance.randrange(1, 3000)) + b"\n" * chance.randrange(2))
                except OSError:
                    pass
        self.assertTrue(self.server.answers())

    def test_clients_that_never_read_or_send_single_bytes_delay_no_other_client(self):
        self.measure("alone")
        others = []
        for i in range(40):
            client = Client(self.server.path)
            client.socket.setblocking(False)
            others.append(client)
            if i % 2:
                continue
            request = b'{"id":1,"method":"snapshot"}\n' * 1000
            try:
                while client.socket.send(request):
                    pass
            except BlockingIOError:
                pass
        stop = threading.Event()

        def dribble():
            while not stop.wait(0.001):
                for client in others[1::2]:
                    try:
                        client.socket.send(b"{")
                    except OSError:
                        pass
        thread = threading.Thread(target=dribble)
        thread.start()
        p99 = self.measure("with 20 clients that never read and 20 that send single bytes")
        stop.set()
        thread.join()
        for client in others:
            client.close()
        if tap.TIMING:
            self.assertLess(p99, LATENCY_MS)

    def test_a_subscriber_that_does_not_read_misses_snapshots_and_uses_no_memory(self):
        def memory():
            with self.server.client() as client:
                return client.ask("snapshot")["result"]["cost"]["rss_bytes"]
        before = memory()
        idle = [self.server.client() for _ in range(40)]
        for client in idle:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.ask("subscribe", interval_ms=100)
        time.sleep(5)
        grown = memory() - before
        print(f"# 40 subscribers that did not read for 5 s: {grown >> 10} KiB more")
        self.assertLess(grown, 16 << 20)
        for client in idle:
            client.close()

    @staticmethod
    def greet(client):
        try:
            client.send(b'{"id":1,"method":"hello","params":{"version":2}}\n')
        except OSError:
            pass
        line = client.line()
        return line["error"]["code"] if "error" in line else "in"

    def test_200_connections_at_once(self):
        # Each one greets at once: zerneld ends connections without a greeting after 5 s.
        crowd, answers = [], []
        for _ in range(200):
            crowd.append(self.server.client(hello=False))
            answers.append(self.greet(crowd[-1]))
        self.assertEqual((answers.count("in"), answers.count("busy")), (64, 136))
        p99 = sorted(self.round_trip(crowd[0]) for _ in range(200))[197]
        print(f"# with 64 connected: p99 {p99:.2f} ms")
        if tap.TIMING:
            self.assertLess(p99, LATENCY_MS)
        for client in crowd:
            client.close()
        self.assertTrue(self.server.answers())

    @staticmethod
    def round_trip(client):
        begin = time.monotonic()
        client.id += 1
        assert "result" in client.ask("policy.get")
        return (time.monotonic() - begin) * 1000

    def test_one_user_cannot_take_all_connections(self):
        def crowd():
            clients, answers = [], []
            for _ in range(100):
                clients.append(Client(self.server.path, hello=False))
                answers.append(self.greet(clients[-1]))
            return answers
        self.assertEqual(as_user(OTHERS, OTHERS, [], crowd).count("in"), 2)
        self.assertEqual(as_user(OTHERS, READERS, [], crowd).count("in"), 16)
        self.assertTrue(self.server.answers())

    def test_connections_that_end_in_the_middle_of_a_request(self):
        for i in range(300):
            client = self.server.client(hello=False)
            client.send(b'{"id":1,"method":"hello","params":{"version":2}}\n{"id":2,"method":"snapshot"}\n'[:i % 90])
            client.close()
        with self.server.client() as client:
            client.send(b'{"id":9,"method":"policy.get"}\n')
            client.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(client.reply()["id"], 9)
            self.assertIsNone(client.line())

    def test_a_client_without_a_descriptor_waits_and_the_loop_does_not_spin(self):
        server = self.zerneld()
        with server.client():
            nr = len(os.listdir(f"/proc/{server.process.pid}/fd"))
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (nr, limits[1]))
            late = Client(server.path, hello=False)
            server.said("no descriptor is left for a new client")
            time.sleep(2)
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
            self.assertIn("result", late.ask("hello", version=2))
            late.close()
        self.assertEqual(server.text().count("no descriptor is left"), 1)
        server.stop()
        server.said(" loop iterations, p99")
        nr_turns = int(re.search(r"(\d+) loop iterations", server.text())[1])
        print("#", nr_turns, "loop iterations")
        self.assertLess(nr_turns, 5000)

    def test_the_log_has_the_duration_of_loop_iterations(self):
        self.measure("for the log")
        self.assertEqual(self.server.stop(), 0)
        self.server.said("loop iterations, p99")
        print("#", [line for line in self.server.text().splitlines() if "loop iterations" in line][0])


if __name__ == "__main__":
    tap.main()
