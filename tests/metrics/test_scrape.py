#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged Prometheus scrapes one node in every format, and all formats give the same values.

Each target serves one fixed format, like an old or a new gateway.
"""
import http.server
import json
import math
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
FORMATS = {
    "text": "text/plain; version=0.0.4; charset=utf-8",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "protobuf": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
}
RANKS, OPERATIONS, PATIENCE_S = 8, 3, 120
# The error bound of a histogram.
ERROR = 1.091


def render(kind):
    return subprocess.run([BUILD / "tests/metrics/print", kind, str(RANKS), str(OPERATIONS)],
                          capture_output=True, check=True).stdout


class Target(http.server.BaseHTTPRequestHandler):
    bodies = {}

    def do_GET(self):
        kind = self.path.strip("/")
        self.send_response(200)
        self.send_header("Content-Type", FORMATS[kind])
        self.send_header("Content-Length", str(len(self.bodies[kind])))
        self.end_headers()
        self.wfile.write(self.bodies[kind])

    def log_message(self, *arguments):
        pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def configuration(port):
    jobs = [{"job_name": kind, "metrics_path": f"/{kind}",
             "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"format": kind}}]}
            for kind in FORMATS]
    return {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}


class Scrape(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Target.bodies = {kind: render(kind) for kind in FORMATS}
        gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        cls.addClassCleanup(gateway.shutdown)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        config = pathlib.Path(folder.name) / "prometheus.yml"
        # JSON is YAML.
        config.write_text(json.dumps(configuration(gateway.server_port)))
        cls.port = free_port()
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder.name}/data",
             f"--web.listen-address=127.0.0.1:{cls.port}", "--enable-feature=native-histograms"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(prometheus.wait)
        cls.addClassCleanup(prometheus.terminate)
        cls.wait()

    @classmethod
    def query(cls, expression):
        """The value of the single result for each value of the label `format`."""
        url = f"http://127.0.0.1:{cls.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url) as reply:
            result = json.load(reply)["data"]["result"]
        return {one["metric"].get("format"): float(one["value"][1]) for one in result}

    @classmethod
    def wait(cls):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                if len(cls.query("sum by (format) (zernel_snapshot_timestamp_seconds)")) == len(FORMATS):
                    return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.5)
        raise TimeoutError("Prometheus did not scrape all targets in time")

    def same(self, expression, value):
        found = self.query(f"sum by (format) ({expression})")
        self.assertEqual(found.keys(), FORMATS.keys(), expression)
        for kind, one in found.items():
            self.assertTrue(math.isclose(one, value, rel_tol=1e-9), f"{kind}: {expression} is {one}")

    def test_every_format_is_taken(self):
        self.same("up", 1)

    def test_plain_values_agree(self):
        self.same("zernel_snapshot_timestamp_seconds", 1700000000.123)
        self.same("zernel_gpu_memory_used_bytes", RANKS * (30 << 30))
        self.same('zernel_phase_seconds_total{phase="gpu_compute", job_name="slurm-42", rank="3"}', 3.000000003)
        self.same("zernel_dropped_total", 3)
        self.same('zernel_build_info{version="0.1.0", kernel_release="6.18.0"}', 1)
        self.same('zernel_gpu_info{uuid="GPU-0000"}', RANKS)
        self.same("zernel_cuda_launch_latency_seconds_count", RANKS * 1000)
        self.same("zernel_gpu_busy_ratio", sum(90 + i for i in range(RANKS)) / 100)

    def test_histograms_agree(self):
        text = self.query("sum by (format) (zernel_gpu_launch_seconds_count)")
        native = self.query("histogram_count(sum by (format) (zernel_gpu_launch_seconds))")
        self.assertEqual(text, {"text": RANKS * 1000, "openmetrics": RANKS * 1000})
        self.assertEqual(native, {"protobuf": RANKS * 1000})
        sums = self.query("sum by (format) (zernel_gpu_launch_seconds_sum)")
        sums |= self.query("histogram_sum(sum by (format) (zernel_gpu_launch_seconds))")
        self.assertEqual(len({round(value, 9) for value in sums.values()}), 1, sums)

    def test_native_quantiles_are_within_the_bound(self):
        """The values are evenly distributed from 2 us to 34 us: launch of 8 us in tests/metrics/node.c."""
        for q in 0.5, 0.9, 0.99:
            exact = (2 + 32 * q) * 1e-6
            found = self.query(f"histogram_quantile({q}, sum by (format) (zernel_gpu_launch_seconds))")
            print(f"# launch quantile {q}: {found['protobuf']:.3g} s, exact {exact:.3g} s")
            self.assertLess(found["protobuf"], exact * ERROR)
            self.assertGreater(found["protobuf"], exact / ERROR)

    def test_series_are_few(self):
        found = self.query('count by (format) ({__name__=~"zernel_.*"})')
        print("# series stored: " + ", ".join(f"{kind} {nr:.0f}" for kind, nr in sorted(found.items())))
        for nr in found.values():
            self.assertLessEqual(nr, 400)


if __name__ == "__main__":
    tap.main()
