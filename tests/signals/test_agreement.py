# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the comparison of roles and critical paths with logs whose result is known."""
import json
import pathlib
import tempfile
import unittest

import agreement
import tap

LAUNCHER, LOADER, FEEDER = (agreement.ROLES.index(role) for role in ("launcher", "loader", "feeder_path"))
OTHER = agreement.ROLES.index("other")


def record(kind, tid, start, end, sub=0, a=0):
    return {"pid": 1, "tid": tid, "kind": kind, "sub": sub, "start_ns": start, "end_ns": end, "a": a}


# 1 waits for 2 from 20 to 50. 2 waits for 3 from 10 to 30, and for 4, after that, from 60 to 70. 3 changes its role at 25.
RECORDS = (record("thread", 1, 0, 100, LAUNCHER), record("thread", 2, 0, 100, LOADER), record("thread", 3, 0, 100, FEEDER),
           record("thread", 4, 0, 100, OTHER), record("role", 3, 0, 25, OTHER), record("role", 3, 25, 100, FEEDER),
           record("wait", 1, 20, 50, a=2), record("wait", 2, 10, 30, a=3), record("wait", 2, 60, 70, a=4))
TIMELINE = "role 1 1 10 launcher\nrole 1 2 40 loader\nrole 1 3 50 critical\nrole 4 4 10 loader\nexit 4 4 30\n"


class Roles(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as name:
            truth, timeline = pathlib.Path(name, "truth"), pathlib.Path(name, "timeline")
            truth.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
            timeline.write_text(TIMELINE)
            self.truth, self.timeline = agreement.Truth(truth), agreement.Timeline(timeline)
        self.roles = {tid: matrix for (_, tid, _), matrix in agreement.of_roles(self.truth, self.timeline).items()}

    def test_share_of_a_life(self):
        self.assertEqual([agreement.share_of_roles(self.roles[tid]) for tid in (1, 2)], [0.9, 0.6])

    def test_no_role_after_exec(self):
        self.assertEqual(dict(self.roles[4]), {("other", "other"): 80, ("other", "loader"): 20})

    def test_changes_of_the_true_role(self):
        self.assertEqual(dict(self.roles[3]), {("other", "other"): 25, ("feeder_path", "other"): 25, ("feeder_path", "critical"): 50})

    def test_role_without_a_name_in_the_product(self):
        self.assertEqual(agreement.share_of_roles(self.roles[3]), 0.75)

    def test_critical_path_follows_chains_within_a_wait(self):
        self.assertEqual(agreement.critical_of(self.truth), {2: [[20, 50]], 3: [[20, 30]]})

    def test_roles_on_the_critical_path(self):
        self.assertEqual(dict(agreement.of_critical(self.truth, self.timeline)),
                         {("loader", "other"): 20, ("loader", "loader"): 10, ("other", "other"): 5, ("feeder_path", "other"): 5})

    def test_waits_in_a_circle_end(self):
        self.truth.waits[3].append((0, 100, 2))
        self.assertEqual(agreement.critical_of(self.truth)[3], [[20, 30]])


if __name__ == "__main__":
    tap.main()
