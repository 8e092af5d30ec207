# SPDX-License-Identifier: GPL-2.0-or-later
"""A job of four ranks on four nodes with `zernel serve`: the packaged rules name the slow rank and the missing one.

Each node is a network namespace and serves with TLS and a token, like a real node. Prometheus, that of forky and
VictoriaMetrics use the packaged files, with intervals that are 15 times shorter.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import boards
import fabric
import tap
from harness import BUILD, Serve, note, wait_for
from job import LOAD_MS as USUAL_LOAD_MS
from job import Job, RankZerneld
from prometheus import Prometheus, configuration
from victoria import VictoriaMetrics

NR_NODES, SPEED = 4, 15
SLOW, FACTOR = 2, 2
LOAD_MS = 200  # of a starved job
MISSING = 1
FORKY = "/forky/usr/bin/prometheus"
TOKEN = "secret-0123456789abcdef"
PATIENCE_S = 120
# An alert needs rates over 2 min, and must be pending for 2 min before it fires.
LONG_ENOUGH_S = 2 * (120 + 120) / SPEED
SHARE = "job_name_rank_phase:zernel_phase:share{phase='nccl_collective', rank!=''}"


def make_files(folder):
    subprocess.run([BUILD / "tests/serve/make_certs", folder], check=True)
    (folder / "token").write_text(TOKEN + "\n")
    for path in [*folder.glob("*.key"), folder / "token"]:
        path.chmod(0o400)
        os.chown(path, 65534, 65534)


def node_of_one_rank():
    text = subprocess.run([BUILD / "tests/metrics/print", "json", "1", "1"], check=True, capture_output=True).stdout
    return json.loads(text)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (layer metrics)")
@unittest.skipUnless(os.getuid() == 0, "network namespaces need root")
class Straggler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        make_files(cls.folder)
        fabric.leave()
        cls.fabric = fabric.Fabric(NR_NODES)
        cls.addClassCleanup(cls.fabric.remove)
        cls.job = Job(NR_NODES)
        snapshot = node_of_one_rank()
        cls.targets = [cls.start_node(i, snapshot) for i in range(NR_NODES)]
        cls.prometheus = cls.start_prometheus(9090)
        cls.databases = {"Prometheus": cls.prometheus, "Prometheus, honor_labels": cls.start_prometheus(9091, honor_labels=True)}
        if os.path.exists(FORKY):
            cls.databases["Prometheus of forky"] = cls.start_prometheus(9092, program=FORKY)
            cls.databases["Prometheus of forky, honor_labels"] = cls.start_prometheus(9093, program=FORKY, honor_labels=True)
        if shutil.which("victoria-metrics"):
            cls.databases["VictoriaMetrics"] = cls.start(VictoriaMetrics(cls.configuration(), SPEED, 9094))
        note(f"databases: {'; '.join(cls.databases)}")

    @classmethod
    def configuration(cls, **more):
        return configuration(cls.targets, SPEED, scheme="https",
                             tls_config={"ca_file": f"{cls.folder}/ca.pem", "server_name": "localhost"},
                             authorization={"credentials_file": f"{cls.folder}/token"}, **more)

    @classmethod
    def start_prometheus(cls, port, program="prometheus", **more):
        return cls.start(Prometheus(cls.configuration(**more), SPEED, "--enable-feature=native-histograms", port=port,
                                    program=program))

    @classmethod
    def start(cls, database):
        cls.addClassCleanup(database.stop)
        database.wait_ready()
        return database

    @classmethod
    def start_node(cls, i, snapshot):
        path = str(cls.folder / f"{i}.sock")
        zerneld = RankZerneld(path, snapshot, cls.job, i).start()
        cls.addClassCleanup(zerneld.stop)
        serve = Serve(path, "--listen", cls.fabric.address(i), "--tls-cert", f"{cls.folder}/server.pem",
                      "--tls-key", f"{cls.folder}/server.key", "--token-file", f"{cls.folder}/token",
                      launcher=cls.fabric.launcher(i))
        cls.addClassCleanup(serve.stop)
        if serve.port is None:
            raise RuntimeError("serve did not start: " + "; ".join(serve.lines))
        return f"{cls.fabric.address(i)}:{serve.port}"

    def say_shares(self):
        shares = sorted((labels["rank"], share) for labels, share in self.prometheus.query(SHARE))
        note("share of time in collectives: " + ", ".join(f"rank {rank} {share:.0%}" for rank, share in shares))

    def test_1_no_slow_rank_no_alert(self):
        self.assertTrue(wait_for(lambda: len(self.prometheus.query(SHARE)) == NR_NODES, PATIENCE_S))
        end = time.monotonic() + LONG_ENOUGH_S
        while time.monotonic() < end:
            self.assertEqual(self.prometheus.alerts(), [])
            time.sleep(0.5)
        self.say_shares()
        self.assertEqual(self.prometheus.number("sum(up)"), NR_NODES)

    def test_2_the_slow_rank_is_named(self):
        self.job.slow_down(SLOW, FACTOR)
        begin = time.monotonic()
        alerts = wait_for(self.prometheus.alerts, PATIENCE_S)
        seconds = time.monotonic() - begin
        self.say_shares()
        self.assertEqual([labels for labels, _ in alerts], [{
            "alertname": "ZernelStragglerRank", "severity": "warning", "job_name": "slurm-42",
            "rank": str(SLOW), "instance": self.targets[SLOW]}])
        self.assert_all_say(alerts)
        note(f"{alerts[0][1]['summary']}: after {seconds:.0f} s, {seconds * SPEED / 60:.1f} min with packaged intervals")

    def prometheuses(self):
        """Not VictoriaMetrics: in its vmalert, each alert fired in one run and not in another. The cause is not known."""
        return [(name, database) for name, database in self.databases.items() if name != "VictoriaMetrics"]

    def assert_all_say(self, wanted):
        """Every Prometheus has these alerts, with the same labels and summaries. The values are of different moments."""
        def said(alerts):
            return sorted((sorted(labels.items()), re.sub(r"[0-9.]+%", "N%", text["summary"])) for labels, text in alerts)

        for name, database in self.prometheuses():
            wait_for(lambda database=database: said(database.alerts()) == said(wanted), PATIENCE_S)
            self.assertEqual(said(database.alerts()), said(wanted), name)

    def test_3_the_boards_have_data(self):
        """Every panel that needs ranks, collectives or GPUs; the rest needs no more than one real node: tests/fleet."""
        refused = {"Nodes where the scheduler is refused"}
        constant = {"Run queue wait, p99"}  # of the snapshots here: a quantile of no new samples, which VictoriaMetrics leaves out
        panels = [panel for board in boards.BOARDS for panel in board.panels]
        for name, database in self.databases.items():
            absent = refused | constant if name == "VictoriaMetrics" else refused
            for panel in panels:
                text = boards.query(panel, job_name="slurm-42", instance=self.targets[SLOW], range="1m")
                rows = wait_for(lambda text=text, database=database: database.query(text), PATIENCE_S) \
                    if panel.title not in absent else database.query(text)
                self.assertEqual(not rows, panel.title in absent, f"{name}: {text}")
            note(f"{name}: {len(panels) - len(absent)} of {len(panels)} expressions of the boards returned data")

    def test_4_no_alert_when_all_ranks_are_equally_fast(self):
        self.job.slow_down(SLOW, 1)
        for name, database in self.prometheuses():
            self.assertTrue(wait_for(lambda database=database: not database.alerts(), PATIENCE_S), name)

    def test_5_starved_ranks_are_named(self):
        self.job.starve(LOAD_MS)
        alerts = wait_for(lambda: len(self.prometheus.alerts()) == NR_NODES and self.prometheus.alerts(), PATIENCE_S)
        self.assertTrue(alerts, self.prometheus.alerts())
        self.assertEqual({labels["alertname"] for labels, _ in alerts}, {"ZernelGpuStarvedByData"})
        self.assertEqual(sorted(labels["rank"] for labels, _ in alerts), [str(rank) for rank in range(NR_NODES)])
        note(alerts[0][1]["summary"])
        self.assert_all_say(alerts)

    def test_6_the_missing_rank_is_named(self):
        self.job.starve(USUAL_LOAD_MS)
        self.assertTrue(wait_for(lambda: not self.prometheus.alerts(), PATIENCE_S), self.prometheus.alerts())
        self.job.hang(MISSING)
        alerts = wait_for(self.missing_alerts, PATIENCE_S)
        self.assertEqual([labels for labels, _ in alerts or []], [{
            "alertname": "ZernelRankMissing", "severity": "critical", "job_name": "slurm-42",
            "rank": str(MISSING), "instance": self.targets[MISSING]}])
        for name, database in self.prometheuses():
            self.assertTrue(wait_for(lambda database=database: self.missing_alerts(database), PATIENCE_S), name)
            self.assertEqual([labels for labels, _ in self.missing_alerts(database)], [alerts[0][0]], name)
        note(f"{alerts[0][1]['summary']}: {alerts[0][1]['description']}")

    def missing_alerts(self, database=None):
        """A job that hangs is stuck too, and may be named as such meanwhile."""
        return [alert for alert in (database or self.prometheus).alerts() if alert[0]["alertname"] == "ZernelRankMissing"]


if __name__ == "__main__":
    tap.main()
