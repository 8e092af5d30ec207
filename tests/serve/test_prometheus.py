# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged Prometheus scrapes serve with native histograms, and the test queries quantiles."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest
import urllib.parse

import tap
from harness import BUILD, PATIENCE_S, curl, free_port, get_times, note, ServeCase, wait_for

BUCKET = 2 ** 0.25  # factor between the bounds of a bucket


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (layer metrics)")
class Scraped(ServeCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.folder.name)
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "zernel",
                                "static_configs": [{"targets": [f"127.0.0.1:{cls.serve.port}"]}]}]}))
        cls.port = free_port()
        cls.log = open(folder / "prometheus.log", "wb")
        cls.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{cls.port}", "--enable-feature=native-histograms"],
            stdout=cls.log, stderr=cls.log)

    @classmethod
    def tearDownClass(cls):
        cls.prometheus.terminate()
        cls.prometheus.wait(PATIENCE_S)
        cls.log.close()
        super().tearDownClass()

    def query(self, text):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={urllib.parse.quote(text)}"
        status, _, body = curl(url)
        return json.loads(body)["data"]["result"] if status == 200 else []

    def wait_query(self, text):
        result = wait_for(lambda: self.query(text), 60)
        self.assertTrue(result, text)
        return result

    def test_the_target_is_up(self):
        result = wait_for(lambda: [row for row in self.query("up") if row["value"][1] == "1"], 60)
        self.assertEqual(len(result), 1)

    def test_quantiles_are_within_the_bound_of_the_truth(self):
        # Each rank has launches of 1 to 100 us and all-reduces of 1 to 100 ms.
        for family, unit in (("zernel_gpu_launch_seconds", 1e-6), ("zernel_collective_seconds", 1e-3)):
            for quantile, truth in ((0.5, 50 * unit), (0.99, 99 * unit)):
                result = self.wait_query(f"histogram_quantile({quantile}, sum({family}))")
                value = float(result[0]["value"][1])
                note(f"{family} p{quantile * 100:g}: {value:.6g} s, truth {truth:.6g} s, {value / truth - 1:+.1%}")
                self.assertTrue(truth / BUCKET <= value <= truth * BUCKET, (family, quantile, value))
            count = float(self.wait_query(f"histogram_count(sum({family}))")[0]["value"][1])
            self.assertEqual(count, 800, family)

    def test_memory_of_each_rank(self):
        self.assertEqual(len(self.wait_query("zernel_gpu_memory_used_bytes")), 8)

    def test_series_and_time_of_a_scrape(self):
        result = self.wait_query("scrape_samples_scraped")
        seconds = self.wait_query("scrape_duration_seconds")
        note(f"{result[0]['value'][1]} samples in {float(seconds[0]['value'][1]) * 1000:.2f} ms")
        self.assertLessEqual(int(result[0]["value"][1]), 400)


class FullNode(ServeCase):
    """8 ranks with all metrics. The body is rendered again for every snapshot."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = subprocess.run([BUILD / "tests/metrics/print", "json", "8", "3"], check=True, capture_output=True).stdout
        cls.zerneld.snapshot = json.loads(text)
        wait_for(lambda: cls.series() > 300)

    @classmethod
    def series(cls):
        return sum(not line.startswith(b"#") for line in curl(f"{cls.url}/metrics")[2].splitlines())

    def test_a_scrape_is_quick(self):
        times = get_times(self.serve.port, "/metrics", 500)
        note(f"{self.series()} series; a scrape takes {times[0]:.2f} ms at least, p50 {times[250]:.2f}, p99 {times[495]:.2f}")
        if tap.TIMING:
            self.assertLess(times[250], 5)


if __name__ == "__main__":
    tap.main()
