# SPDX-License-Identifier: GPL-2.0-or-later
"""Endpoints, content negotiation, access checks, and malicious paths and requests."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import tap
from harness import PATIENCE_S, ServeCase, curl, note, raw, wait_for

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
LEGACY = {"gpu_utilization", "cuda_latency_p50_us", "cuda_latency_p99_us", "nccl_allreduce_p50_ms",
          "nccl_allreduce_p99_ms", "dataloader_wait_p50_ms", "last_update_ms"}


class Limited(ServeCase):
    """With the smallest allowed limit of series."""

    @classmethod
    def prepare(cls):
        file = pathlib.Path(cls.folder.name) / "zernel.conf"
        file.write_text("[serve]\nseries_max=100\ntoken_file=\n")
        cls.options = ("--config", str(file))

    def test_the_limit_of_the_file_is_used(self):
        lines = curl(f"{self.url}/metrics")[2].decode().splitlines()
        series = [line for line in lines if not line.startswith("#")]
        left_out = [line for line in series if line.startswith("zernel_series_left_out ")]
        note(f"{len(series)} series, {left_out[0]}")
        self.assertLessEqual(len(series), 100)
        self.assertGreater(int(left_out[0].split()[1]), 0)
        self.assertEqual(len([line for line in series if line.startswith("zernel_gpu_memory_used_bytes{")]), 8)


class Endpoints(ServeCase):
    def test_health_and_ready(self):
        status, kind, body = curl(f"{self.url}/healthz")
        self.assertEqual((status, kind, json.loads(body)["status"]), (200, "application/json", "ok"))
        status, _, body = curl(f"{self.url}/readyz")
        self.assertEqual((status, body), (200, b"200: ready\n"))

    def test_metrics_are_text_by_default(self):
        status, kind, body = curl(f"{self.url}/metrics")
        self.assertEqual((status, kind), (200, TEXT))
        self.assertIn(b"# TYPE zernel_gpu_memory_used_bytes gauge", body)

    def test_formats_by_accept(self):
        for accept, expected in ((OPENMETRICS, OPENMETRICS), (PROTOBUF, PROTOBUF), ("*/*", TEXT),
                                 ("text/plain;q=0.4," + OPENMETRICS, OPENMETRICS)):
            status, kind, body = curl("-H", f"Accept: {accept}", f"{self.url}/metrics")
            self.assertEqual((status, kind), (200, expected), accept)
            if expected == OPENMETRICS:
                self.assertTrue(body.endswith(b"# EOF\n"))

    def test_promtool_is_silent(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (layer metrics)")
        _, _, body = curl(f"{self.url}/metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_snapshot_has_the_legacy_keys_and_the_full_snapshot(self):
        status, kind, body = curl(f"{self.url}/api/v1/snapshot")
        self.assertEqual((status, kind), (200, "application/json"))
        value = json.loads(body)
        self.assertEqual(set(value), LEGACY | {"snapshot"})
        self.assertEqual(len(value["gpu_utilization"]), 8)
        self.assertEqual(value["last_update_ms"], value["snapshot"]["time_ms"])
        self.assertEqual(len(value["snapshot"]["processes"]), 8)
        for rank, process in enumerate(value["snapshot"]["processes"]):
            task = process["task"]
            self.assertEqual((task["pid"], task["current_phase"], task["io_wait_fraction"], task["gpu_id"], task["last_gpu_sync_ns"]),
                             (1000 + rank, "GpuCompute", 0.125, rank, 5))

    def test_head_has_no_body(self):
        length = len(curl(f"{self.url}/metrics")[2])
        answer = raw(self.serve.port, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertEqual(int(answer.headers["content-length"]), length)

    def test_ipv6_loopback(self):
        if not pathlib.Path("/proc/net/if_inet6").exists():
            self.skipTest("this machine has no IPv6")
        self.assertEqual(curl("-g", f"http://[::1]:{self.serve.port}/healthz")[0], 200)

    def test_other_paths_are_not_found(self):
        for path in ("/favicon.ico", "/metrics/", "/metrics/x", "/Metrics", "/api", "/api/v1/"):
            self.assertEqual(curl(f"{self.url}{path}")[0], 404, path)

    def test_ws_without_upgrade(self):
        self.assertEqual(curl(f"{self.url}/ws")[0], 426)

    def test_only_get_and_head(self):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            status, _, _ = curl("-X", method, f"{self.url}/metrics")
            self.assertEqual(status, 405, method)
        self.assertEqual(curl("-d", "x" * 1000, f"{self.url}/metrics")[0], 405)
        for method in ("TRACE", "BREW"):
            answer = raw(self.serve.port, f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertNotEqual(answer.status, 200, method)

    def test_a_request_has_no_body(self):
        self.assertEqual(curl("-X", "GET", "-d", "x=1", f"{self.url}/metrics")[0], 413)

    def test_many_requests_on_one_connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.serve.port, timeout=PATIENCE_S)
        for path in ("/metrics", "/healthz", "/nothing", "/api/v1/snapshot", "/metrics") * 20:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 404 if path == "/nothing" else 200)
        connection.close()


class Callers(ServeCase):
    options = ("--allow-origin", "https://board.example:3000")

    def test_a_foreign_origin_is_refused_everywhere(self):
        for path in ("/metrics", "/api/v1/snapshot", "/healthz", "/readyz", "/nothing"):
            for origin in ("http://evil.example", "null", "https://board.example", f"https://127.0.0.1:{self.serve.port}"):
                self.assertEqual(curl("-H", f"Origin: {origin}", f"{self.url}{path}")[0], 403, (path, origin))

    def test_its_own_origin_and_listed_origins_are_allowed(self):
        for origin in (self.url, "https://board.example:3000"):
            self.assertEqual(curl("-H", f"Origin: {origin}", f"{self.url}/metrics")[0], 200, origin)

    def test_dns_rebinding_is_refused(self):
        self.assertEqual(curl("-H", "Host: evil.example", f"{self.url}/metrics")[0], 403)
        self.assertEqual(curl("-H", "Host: evil.example", "-H", "Origin: http://evil.example",
                              f"{self.url}/metrics")[0], 403)
        self.assertEqual(curl("-H", "Host: localhost", f"{self.url}/metrics")[0], 200)
        self.assertEqual(curl("-H", "Host: board.example:3000", f"{self.url}/metrics")[0], 200)

    def test_duplicate_headers_do_not_bypass_the_checks(self):
        self.assertEqual(curl("-H", f"Origin: {self.url}", "-H", "Origin: http://evil.example",
                              f"{self.url}/metrics")[0], 403)
        answer = raw(self.serve.port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"
                                      b"Connection: close\r\n\r\n")
        self.assertNotEqual(answer.status, 200)

    def test_a_request_without_host_is_refused(self):
        self.assertEqual(raw(self.serve.port, b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400)


class Tricks(ServeCase):
    def request(self, path, version=b"HTTP/1.1"):
        return raw(self.serve.port, b"GET " + path + b" " + version + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    def test_path_traversal_is_refused(self):
        for path in (b"/../../etc/passwd", b"/..%2f..%2fetc/passwd", b"/%2e%2e/%2e%2e/etc/passwd",
                     b"/metrics/../../../etc/passwd", b"//etc/passwd", b"/./././etc/passwd", b"/metrics%00",
                     b"/healthz%00.html", b"/\x00", b"/metrics\x00", b"/%", b"/%zz", b"/%c0%ae%c0%ae/etc/passwd",
                     b"/..\\..\\etc\\passwd", b"file:///etc/passwd", b"*", b"", b"/metrics%3f"):
            answer = self.request(path)
            self.assertNotEqual(answer.status, 200, path)
            self.assertNotIn(b"root:", answer.body)

    def test_a_path_that_resolves_to_an_endpoint_is_that_endpoint_or_not_found(self):
        for path in (b"/x/../healthz", b"/%68ealthz", b"/./healthz", b"/healthz?x=../..", b"/healthz#x", b"/healthz;x"):
            answer = self.request(path)
            self.assertTrue(answer.status in (400, 403, 404) or b'"status":"ok"' in answer.body, path)

    def test_an_absolute_uri_is_not_proxied(self):
        for path in (b"http://evil.example/healthz", b"http://127.0.0.1:1/", b"https://localhost/metrics"):
            self.assertIn(self.request(path).status, (0, 400, 403, 404), path)

    def test_a_very_long_path_is_refused(self):
        for length in (1000, 7000, 100000):
            self.assertNotEqual(self.request(b"/" + b"a" * length).status, 200, length)
            self.assertNotEqual(self.request(b"/metrics?" + b"a" * (100 * length)).status, 200, length)

    def test_input_that_is_not_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), b"\r\n\r\n", b"GET\r\n\r\n",
                     b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/9.9\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes(range(256)) * 10,
                     b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\xff: y\r\nConnection: close\r\n\r\n"):
            raw(self.serve.port, data)
            self.assertEqual(curl(f"{self.url}/healthz")[0], 200)

    def test_pipelined_requests_are_all_answered(self):
        one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = raw(self.serve.port, one * 3 + last)
        self.assertEqual(answer.body.count(b"HTTP/1.1 200") + (answer.status == 200), 4)

    def test_smuggled_lengths(self):
        answer = raw(self.serve.port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
                                      b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")
        self.assertNotEqual(answer.status, 200)
        self.assertNotIn(b"zernel_", answer.body)


class Privilege(ServeCase):
    def test_has_no_privileges(self):
        for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Uid", "Gid", "Groups", "NSpid"):
            note(f"{key}: {self.serve.status(key)}")
        for name in sorted(os.listdir("/proc/self/ns")):
            note(f"namespace {os.readlink(f'/proc/{self.serve.process.pid}/ns/{name}')}")
        for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(self.serve.status(key), 16), 0, key)
        self.assertEqual(self.serve.status("NoNewPrivs"), "1")
        self.assertNotIn("0", self.serve.status("Uid").split())
        self.assertNotIn("0", self.serve.status("Gid").split())
        if os.getuid() == 0:
            self.assertEqual(int(self.serve.status("CapBnd"), 16), 0)

    def test_it_writes_nothing_and_has_only_needed_descriptors_open(self):
        links = [os.readlink(f"/proc/{self.serve.process.pid}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{self.serve.process.pid}/fd")]
        files = [link for link in links if link.startswith("/") and not link.startswith("/dev/")]
        note(f"descriptors: {sorted(links)}")
        # Standard input, output and error belong to the caller.
        own = [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)]
        self.assertEqual([link for link in files if link not in own], [])


class Memory(ServeCase):
    SCRAPES = 10000

    def scrape(self, count):
        connection = http.client.HTTPConnection("127.0.0.1", self.serve.port, timeout=PATIENCE_S)
        for number in range(count):
            accept = (TEXT, OPENMETRICS, PROTOBUF)[number % 3]
            connection.request("GET", "/metrics", headers={"Accept": accept})
            if connection.getresponse().read() == b"":
                raise RuntimeError("empty")
            if number % 10 == 0:
                connection.close()
        connection.close()

    def test_memory_is_constant_over_many_scrapes(self):
        self.scrape(500)
        before = self.serve.rss_kib()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(self.scrape, [self.SCRAPES // 4] * 4))
        self.assert_grew_less(before, 1024, f"{self.SCRAPES} scrapes")
        self.assertTrue(wait_for(lambda: json.loads(curl(f"{self.url}/healthz")[2])["connections"] == 1))


if __name__ == "__main__":
    tap.main()
