# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of a fleet for Prometheus: nodes with Zernel, compared with plain series of the same number."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

import exporters
import fabric
from prometheus import INTERVAL_S, Prometheus, configuration

MEMORY_LIMIT_KIB = 6 << 20
START_S = 60
APPENDED = "prometheus_tsdb_head_samples_appended_total"
GROUPS = ("zernel", "zernel-alerts")
OPTIONS = ("--web.enable-admin-api",)
NATIVE = ("--enable-feature=native-histograms",)


class TooMuchMemory(RuntimeError):
    pass


class Run:
    """Runs Prometheus with one kind of fleet; the results are the attributes."""

    def __init__(self, kind, nr_nodes, seconds, speed):
        self.kind, self.nr_nodes, self.speed = kind, nr_nodes, speed
        fleet = subprocess.Popen([sys.executable, pathlib.Path(exporters.__file__), kind],
                                 stdout=subprocess.PIPE)
        try:
            if fleet.stdout.readline() != b"ready\n":
                raise RuntimeError("the fleet of exporters did not start")
            targets = [f"{exporters.address(i)}:{exporters.PORT}" for i in range(nr_nodes)]
            prometheus = Prometheus(configuration(targets, speed), speed, *OPTIONS,
                                    *(NATIVE if kind == "native" else ()))
            try:
                prometheus.wait_ready()
                self._measure(prometheus, seconds)
            finally:
                prometheus.stop()
        finally:
            fleet.terminate()
            fleet.wait()
            fleet.stdout.close()

    def _watch(self, prometheus, seconds):
        """Lets Prometheus run, and stops when it exceeds the memory limit."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if prometheus.memory_kib() > MEMORY_LIMIT_KIB:
                raise TooMuchMemory(f"{self.kind}: Prometheus uses more than {MEMORY_LIMIT_KIB >> 20} GiB")
            time.sleep(0.5)

    def _wait_up(self, prometheus):
        """Waits until every node was scraped: the creation of series is not measured."""
        end = time.monotonic() + START_S
        while prometheus.number("sum(up)") < self.nr_nodes:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.kind}: only {prometheus.number('sum(up)'):.0f} nodes scraped in {START_S} s")
            self._watch(prometheus, 0.5)

    def _measure(self, prometheus, seconds):
        self._wait_up(prometheus)
        begin, before = time.monotonic(), prometheus.own()
        evaluations = {group: [] for group in GROUPS}
        while time.monotonic() < begin + seconds:
            self._watch(prometheus, INTERVAL_S / self.speed)
            after = prometheus.own()
            for group, found in evaluations.items():
                found.append(self._rule_ms(after, group))
        passed_s = time.monotonic() - begin
        self.samples_per_s = (after[APPENDED] - before[APPENDED]) / passed_s
        self.cpu = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / passed_s
        self.nr_series = after["prometheus_tsdb_head_series"]
        self.rule_ms = evaluations
        self.missed = after.get("prometheus_rule_group_iterations_missed_total", 0)
        self.rss_kib = prometheus.memory_kib()
        self.peak_kib = prometheus.memory_kib("VmHWM")
        self.nr_stored, self.stored_bytes = prometheus.block()
        self.nr_up = prometheus.number("sum(up)")
        self.nr_ranks = prometheus.number("sum(job_name:zernel_ranks:count)")
        self.scrape_ms = prometheus.number("avg(scrape_duration_seconds)") * 1000
        # Count the series of one node only: a count over all nodes takes longer than all rules.
        first = f"{exporters.address(0)}:{exporters.PORT}"
        self.per_node = prometheus.number(f'count({{instance="{first}", __name__=~"(zernel|plain)_.*"}})')

    @staticmethod
    def _rule_ms(own, group):
        """The duration of the latest evaluation of the group."""
        for key, value in own.items():
            if key.startswith("prometheus_rule_group_last_duration_seconds{") and f';{group}"' in key:
                return value * 1000
        raise RuntimeError(f"group {group} was not evaluated")


def least_and_median(values):
    """The minimum is the cost of the rules; the median also includes other load of the machine."""
    return f"{min(values):.1f}, {statistics.median(values):.1f}"


ROWS = (
    ("series per node", lambda r: f"{r.per_node:.0f}"),
    ("series in total, with recorded series", lambda r: f"{r.nr_series:.0f}"),
    ("samples per second", lambda r: f"{r.samples_per_s:.0f}"),
    ("CPU of Prometheus, cores", lambda r: f"{r.cpu:.2f}"),
    ("CPU time per million samples, s", lambda r: f"{r.cpu / r.samples_per_s * 1e6:.1f}"),
    ("recording rules: minimum, median ms", lambda r: least_and_median(r.rule_ms["zernel"])),
    ("alerting rules: minimum, median ms", lambda r: least_and_median(r.rule_ms["zernel-alerts"])),
    ("rule evaluations missed", lambda r: f"{r.missed:.0f}"),
    # A chunk has 120 samples: with fewer samples for each series, its overhead counts more.
    ("stored samples of a series, bytes of a sample",
     lambda r: f"{r.nr_stored / r.nr_series:.0f}, {r.stored_bytes / r.nr_stored:.2f}"),
    ("RSS at the end, MiB", lambda r: f"{r.rss_kib / 1024:.0f}"),
    ("maximum RSS, MiB", lambda r: f"{r.peak_kib / 1024:.0f}"),
    ("scrape, mean ms", lambda r: f"{r.scrape_ms:.1f}"),
    ("nodes up", lambda r: f"{r.nr_up:.0f}"),
)


def name_of(run):
    return f"plain {run.kind}" if run.kind.isdigit() else run.kind


def table(runs):
    yield ["", *map(name_of, runs)]
    for name, show in ROWS:
        yield [name, *(show(run) for run in runs)]


def compare(nr_nodes, seconds, speed):
    """Zernel with native histograms and with text, each followed by the same number of plain series."""
    for kind in ("native", "text"):
        run = Run(kind, nr_nodes, seconds, speed)
        yield run
        yield Run(f"{run.per_node:.0f}", nr_nodes, seconds, speed)


def main():
    parser = argparse.ArgumentParser(prog="./dev nodes", description=__doc__)
    parser.add_argument("nodes", nargs="?", type=int, default=1000, help="number of nodes (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="duration of each of the four runs (%(default)s)")
    parser.add_argument("--speed", type=int, default=1, help="factor to divide the intervals by (%(default)s)")
    options = parser.parse_args()
    fabric.leave()
    print(f"{options.nodes} nodes of {exporters.RANKS} ranks, scraped and evaluated every "
          f"{INTERVAL_S / options.speed:g} s, {options.seconds} s per run, {os.cpu_count()} cores", flush=True)
    runs = []
    for run in compare(options.nodes, options.seconds, options.speed):
        runs.append(run)
        print(f"{name_of(run)}: {run.samples_per_s:.0f} samples per second", flush=True)
    for row in table(runs):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
