#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the exported text, the rules and the documentation with promtool and metrics-md."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import tap

SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])
BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
RULES = SOURCE / "packaging/prometheus"
HONORED = 'namespace="ml", pod="train-0"'
RENAMED = 'namespace="monitoring", pod="zernel-x", exported_namespace="ml", exported_pod="train-0", exported_job="x"'


def output(*command):
    return subprocess.run(command, capture_output=True, check=True).stdout


class Promtool(unittest.TestCase):
    def promtool(self, *arguments, given=None):
        done = subprocess.run(["promtool", *arguments], input=given, capture_output=True)
        said = (done.stdout + done.stderr).decode()
        self.assertEqual(done.returncode, 0, said)
        return said

    def test_metrics_are_valid(self):
        for ranks, operations in (0, 0), (1, 1), (8, 8):
            text = output(BUILD / "tests/metrics/print", "text", str(ranks), str(operations))
            self.assertEqual(self.promtool("check", "metrics", given=text), "")

    def test_rules_are_valid(self):
        self.promtool("check", "rules", "--lint=all", "--lint-fatal", RULES / "zernel.rules.yml")

    def test_rules_fire_as_expected(self):
        self.promtool("test", "rules", RULES / "zernel.test.yml")

    def test_rules_fire_with_and_without_honor_labels(self):
        """Labels of the target in Kubernetes, and those of a job with the same names, as Prometheus stores them."""
        text = (RULES / "zernel.test.yml").read_text()
        for labels in HONORED, RENAMED:
            changed, nr = re.subn(r"^( *- series: '\w+\{)", rf"\1{labels}, ", text, flags=re.M)
            self.assertGreater(nr, 50)
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(RULES / "zernel.rules.yml", folder)
                pathlib.Path(folder, "zernel.test.yml").write_text(changed)
                self.promtool("test", "rules", f"{folder}/zernel.test.yml")

    def test_scrape_configuration_is_valid(self):
        self.promtool("check", "config", "--syntax-only", RULES / "scrape.yml")


class Documentation(unittest.TestCase):
    def test_documentation_is_up_to_date(self):
        made = output(BUILD / "src/metrics/metrics-md").decode()
        self.assertEqual(made, (SOURCE / "docs/reference/metrics.md").read_text(), "run ./dev docs")


if __name__ == "__main__":
    tap.main()
