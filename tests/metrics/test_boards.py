#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Grafana boards: promtool accepts each expression, and metrics and labels are those of the table of metrics."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import boards
import tap

SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])
BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ROW = re.compile(r"^\| `(zernel_\w+)` \| (\w+) \| ([\w, ]*) \|", re.M)
NAME = re.compile(r"[\w:]*\bzernel_\w+(?::\w+)?")
SELECTED = re.compile(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
OF_TARGET = {"instance"}  # that Prometheus adds to each series
VALUES = {"job_name": "train", "instance": "node:9476"}


def metrics():
    """The labels of each series name in the table of metrics."""
    text = subprocess.run([BUILD / "src/metrics/metrics-md"], capture_output=True, check=True, text=True).stdout
    found = {}
    for name, kind, labels in ROW.findall(text):
        labels = {label.strip() for label in labels.split(",") if label.strip()}
        found[name] = labels
        if kind == "histogram":
            found[f"{name}_bucket"] = labels | {"le"}
    return found


def recorded():
    """A recorded name begins with its labels, so the labels of a rule are those before the first colon."""
    names = re.findall(r"record: (\S+)", (SOURCE / "packaging/prometheus/zernel.rules.yml").read_text())
    known = set().union(*metrics().values())
    found = {}
    for name in names:
        prefix, labels = name.partition(":")[0], set()
        while prefix:
            label = max((one for one in known if re.match(rf"{one}(_|$)", prefix)), key=len)
            labels.add(label)
            prefix = prefix[len(label):].lstrip("_")
        found[name] = labels
    return found


def unknown(expression, known):
    """Metrics, and labels that none of the metrics of the expression has."""
    names = set(NAME.findall(expression))
    wrong = {name for name in names if name not in known}
    labels = set().union(OF_TARGET, *(known.get(name, set()) for name in names))
    used = set(SELECTED.findall(expression))
    for group in GROUPED.findall(expression):
        used |= {label.strip() for label in group.split(",") if label.strip()}
    return wrong | (used - labels)


class Boards(unittest.TestCase):
    def panels(self):
        for board in boards.BOARDS:
            for panel in board.panels:
                with self.subTest(f"{board.name}: {panel.title}"):
                    yield board, panel

    def test_files_are_up_to_date(self):
        folder = SOURCE / "packaging/grafana"
        for name, text in boards.files():
            self.assertEqual((folder / name).read_text(), text, "run ./dev docs")
        self.assertEqual({path.name for path in folder.iterdir()}, {name for name, _ in boards.files()})

    def test_promtool_accepts_each_expression_as_a_rule(self):
        rules = [{"record": f"board:expression:{number}", "expr": boards.query(panel, **VALUES)}
                 for number, (_, panel) in enumerate(self.panels())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "boards", "rules": rules}]}, file)  # JSON is YAML
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(rules)} rules found", done.stdout)

    def test_metrics_and_labels_exist(self):
        known = metrics() | recorded()
        self.assertGreater(len(known), 50)
        for _, panel in self.panels():
            self.assertTrue(NAME.search(panel.expr))
            self.assertEqual(unknown(panel.expr, known), set(), panel.expr)

    def test_unknown_metrics_and_labels_are_found(self):
        known = metrics() | recorded()
        self.assertEqual(unknown('zernel_no_such{instance="a"}', known), {"zernel_no_such"})
        self.assertEqual(unknown("sum by (rank) (zernel_gpu_info)", known), {"rank"})
        self.assertEqual(unknown('zernel_steps_total{pod="a", job_name=~"b"}', known), {"pod"})
        self.assertEqual(unknown("sum by (le) (rate(zernel_step_seconds_bucket[5m]))", known), set())

    def test_legends_use_labels_that_the_result_has(self):
        known = metrics() | recorded()
        for _, panel in self.panels():
            names = set(NAME.findall(panel.expr))
            labels = set().union(OF_TARGET, *(known[name] for name in names))
            self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", panel.legend)), labels, panel.legend)

    def test_variables_are_those_of_the_board(self):
        for board, panel in self.panels():
            self.assertLessEqual(set(re.findall(r"\$(?!__)(\w+)", panel.expr)), {board.variable} - {""})
            if board.variable:
                self.assertIn(f'{board.variable}="${board.variable}"', panel.expr)


if __name__ == "__main__":
    tap.main()
