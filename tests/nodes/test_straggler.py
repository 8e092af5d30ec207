# SPDX-License-Identifier: GPL-2.0-or-later
"""A job of four ranks on four nodes with `zernel serve`: the packaged rules name the slow rank.

Each node is a network namespace and serves with TLS and a token, like a real node. Prometheus uses the packaged
files, with intervals that are 15 times shorter.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import boards
import fabric
import tap
from harness import BUILD, Serve, note, wait_for
from job import Job, RankZerneld
from prometheus import Prometheus, configuration

NR_NODES, SPEED = 4, 15
SLOW, FACTOR = 2, 2
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
        cls.prometheus = cls.start_prometheus(9090, honor_labels=False)
        cls.honoring = cls.start_prometheus(9091, honor_labels=True)

    @classmethod
    def start_prometheus(cls, port, **more):
        prometheus = Prometheus(configuration(
            cls.targets, SPEED, scheme="https",
            tls_config={"ca_file": f"{cls.folder}/ca.pem", "server_name": "localhost"},
            authorization={"credentials_file": f"{cls.folder}/token"}, **more), SPEED,
            "--enable-feature=native-histograms", port=port)
        cls.addClassCleanup(prometheus.stop)
        prometheus.wait_ready()
        return prometheus

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
        honoring = wait_for(self.honoring.alerts, PATIENCE_S)
        self.assertEqual([(labels, text["summary"]) for labels, text in honoring],
                         [(labels, text["summary"]) for labels, text in alerts])
        note(f"{alerts[0][1]['summary']}: after {seconds:.0f} s, {seconds * SPEED / 60:.1f} min with packaged intervals")

    def test_3_the_boards_have_data(self):
        """Every panel that needs ranks, collectives or GPUs; the rest needs no more than one real node: tests/fleet."""
        refused = {"Nodes where the scheduler is refused"}
        for board in boards.BOARDS:
            for panel in board.panels:
                text = boards.query(panel, job_name="slurm-42", instance=self.targets[SLOW], range="1m")
                rows = wait_for(lambda text=text: self.prometheus.query(text), PATIENCE_S) \
                    if panel.title not in refused else self.prometheus.query(text)
                self.assertEqual(not rows, panel.title in refused, text)

    def test_4_no_alert_when_all_ranks_are_equally_fast(self):
        self.job.slow_down(SLOW, 1)
        self.assertTrue(wait_for(lambda: not self.prometheus.alerts(), PATIENCE_S))


if __name__ == "__main__":
    tap.main()
