# SPDX-License-Identifier: GPL-2.0-or-later
"""A node of a fleet in a guest, with real systemd and Prometheus. Each test uses the state of the previous one."""
import os
import signal
import time
import unittest

import boards
import tap
from node import (JOB, SOCKET, TRUTH_LAUNCH, TRUTH_SYNC, Prometheus, Unit, install, note, output, ready, start_job,
                  truth_spans, wait_until)

BUCKET = 2 ** 0.25  # factor between the bounds of a bucket
SYNCS = 1500  # enough that p99 is not one of the few slowest samples, which vary a lot
EXPOSURE_MAX = 3.0
SERIES_MAX = 400
SYNC_WAITS = f'sum(zernel_sync_wait_seconds{{job_name="{JOB}"}})'
LAUNCHES = f'sum(zernel_gpu_launch_seconds{{job_name="{JOB}"}})'
zerneld, serve = Unit("zerneld"), Unit("zernel-serve")


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install("[scheduler]\nattach=auto\n[kernel]\nmeasure_run_time=yes\n")
        zerneld.ctl("start")
        serve.ctl("start")
        wait_until(ready, serve.log)
        cls.prometheus = Prometheus()
        cls.addClassCleanup(cls.prometheus.stop)

    def assert_recovers(self, other, broken, line):
        """After `broken`, both units work again; the other unit is still the same process and logs `line`."""
        pid, said = other.pid(), other.log().count(line)
        begin = time.monotonic()
        broken()
        wait_until(lambda: other.log().count(line) > said, other.log)
        wait_until(ready, serve.log)
        note(f"recovered after {time.monotonic() - begin:.1f} s")
        self.assertEqual(other.pid(), pid)

    def value(self, query, at=None):
        """Waits for a value, because Prometheus can be too busy to answer immediately."""
        return wait_until(lambda: self.prometheus.query(query, at), query)

    def assert_scraped(self):
        now = time.time()
        wait_until(lambda: (self.prometheus.query("timestamp(up == 1)") or 0) > now, "no scrape by Prometheus")

    def assert_serve_returns(self, broken):
        """After `broken`, serve runs as a new process, zerneld is the same process, and Prometheus scrapes again."""
        pids = zerneld.pid(), serve.pid()
        broken()
        wait_until(lambda: serve.pid() not in (0, pids[1]) and ready(), serve.log)
        self.assertEqual(zerneld.pid(), pids[0])
        self.assert_scraped()

    def test_01_both_units_start(self):
        self.assertTrue(zerneld.active() and serve.active())
        self.assertEqual(zerneld.show("Type"), "notify-reload")  # so "active" means that it has notified systemd
        note(f"status text of zerneld: {zerneld.show('StatusText')}")

    def test_02_serve_has_no_privilege(self):
        self.assertNotEqual(serve.status("Uid").split()[0], "0")
        for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(serve.status(key), 16), 0, key)
        self.assertEqual(serve.status("NoNewPrivs"), "1")

    def test_03_exposure(self):
        for unit in (serve, zerneld):
            exposure, text = unit.exposure()
            note(f"systemd-analyze security {unit.name}: {exposure}")
            for line in text.splitlines():
                if line.lstrip().startswith("✗") and float(line.split()[-1]) >= 0.2:
                    note(f"  {' '.join(line.split())}")
            if unit is serve:
                self.assertLessEqual(exposure, EXPOSURE_MAX)

    def assert_agrees(self, what, histogram, kind, at):
        """Compares the calls of the job that Prometheus has at that time with the truth of the job."""
        every = truth_spans(kind, self.value("zernel_snapshot_timestamp_seconds", at))
        count = int(self.value(f"histogram_count({histogram})", at))
        note(f"{what}: {count} counted of {len(every)}")
        self.assertGreaterEqual(count, 0.95 * len(every))
        spans = sorted(every[-count:])
        note(f"{what}: the slowest calls of the truth, in ms: {' '.join(f'{span * 1e3:.1f}' for span in spans[-20:])}")
        for quantile in (0.5, 0.99):
            exact = spans[int(quantile * len(spans))]
            value = self.value(f"histogram_quantile({quantile}, {histogram})", at)
            note(f"{what}: p{quantile * 100:g} {value * 1e3:.3f} ms, truth {exact * 1e3:.3f} ms, {value / exact - 1:+.1%}")
            self.assertTrue(exact / BUCKET <= value <= exact * BUCKET, (what, quantile, value, exact))

    def test_04_prometheus_has_the_p99_of_the_jobs_launches_and_syncs(self):
        start_job()
        begin, cpu = time.monotonic(), {unit: unit.cpu_seconds() for unit in (zerneld, serve)}
        wait_until(lambda: (self.prometheus.query(f"histogram_count({SYNC_WAITS})") or 0) >= SYNCS, "no samples of the job")
        at = time.time()
        seconds = time.monotonic() - begin
        for unit, before in cpu.items():
            note(f"{unit.name}: {(unit.cpu_seconds() - before) / seconds:.1%} of a CPU, {unit.status('VmRSS')} resident"
                 f" ({seconds:.0f} s, {os.cpu_count()} CPUs)")
        for what in ("bpf_run", "daemon_cpu"):
            note(f"zernel_{what}_seconds_total: {self.value(f'rate(zernel_{what}_seconds_total[10s])', at):.1%} of a CPU")

        self.assert_agrees("launches", LAUNCHES, TRUTH_LAUNCH, at)
        self.assert_agrees("syncs", SYNC_WAITS, TRUTH_SYNC, at)

    def test_05_series_of_the_node(self):
        samples, seconds = (self.value(f"scrape_{what}") for what in ("samples_scraped", "duration_seconds"))
        note(f"{samples:.0f} series, scraped in {seconds * 1e3:.1f} ms")
        self.assertLessEqual(samples, SERIES_MAX)

    def test_06_the_rules_are_evaluated(self):
        rules = wait_until(lambda: [rule for rule in self.prometheus.rules() if rule["health"] != "unknown"],
                           "no evaluated rules")
        self.assertEqual([rule for rule in rules if rule["health"] != "ok"], [])

    def test_07_the_boards_have_data(self):
        """Every expression is evaluated. It must return data, unless the panel says when it may be empty."""
        empty = []
        for board in boards.BOARDS:
            for panel in board.panels:
                text = boards.query(panel, job_name=JOB, instance="localhost:9476", range="10m")
                if panel.empty:
                    rows = self.prometheus.rows(text)
                    self.assertIsNotNone(rows, text)
                else:
                    rows = wait_until(lambda text=text: self.prometheus.rows(text), text)
                if not rows:
                    empty.append(panel.title)
        note(f"panels: {sum(len(board.panels) for board in boards.BOARDS)}, without data: {', '.join(empty) or 'none'}")

    def test_08_restart_and_reload_of_zerneld(self):
        self.assert_recovers(serve, lambda: zerneld.ctl("restart"), "zerneld answers")
        self.assert_recovers(zerneld, lambda: zerneld.ctl("reload"), "configuration reloaded")

    def test_09_restart_of_serve(self):
        self.assert_serve_returns(lambda: serve.ctl("restart"))

    def test_10_zerneld_is_killed(self):
        before = serve.log().count("no data from zerneld")
        self.assert_recovers(serve, lambda: os.kill(zerneld.pid(), signal.SIGKILL), "zerneld answers")
        self.assertGreater(serve.log().count("no data from zerneld"), before)
        self.assert_scraped()

    def test_11_serve_is_killed(self):
        self.assert_serve_returns(lambda: os.kill(serve.pid(), signal.SIGKILL))

    def test_12_the_socket_is_deleted(self):
        self.assert_recovers(zerneld, SOCKET.unlink, "was removed: socket recreated")
        self.assert_serve_returns(lambda: serve.ctl("restart"))

    def test_13_the_job_continues_and_is_observed_again(self):
        self.assertTrue(Unit(JOB).active())
        before = self.value(f"histogram_count({SYNC_WAITS})")
        wait_until(lambda: self.value(f"histogram_count({SYNC_WAITS})") > before, "no samples of the job")

    def test_14_the_kernel_logged_no_warnings(self):
        self.assertNotRegex(output("dmesg"), "WARNING:|BUG:|sched_ext:.*(error|stall)")


if __name__ == "__main__":
    tap.main()
