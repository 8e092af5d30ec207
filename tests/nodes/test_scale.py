# SPDX-License-Identifier: GPL-2.0-or-later
"""The short form of ./dev nodes with 20 nodes: prints the results and checks them."""
import os
import shutil
import unittest

import exporters
import fabric
import scale
import tap
from harness import note

NR_NODES, SECONDS, SPEED = 20, 18, 5  # a scrape may take 3 s, because the machine may be busy


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (layer metrics)")
@unittest.skipUnless(os.getuid() == 0, "network namespaces need root")
class Scale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fabric.leave()
        cls.runs = list(scale.compare(NR_NODES, SECONDS, SPEED))
        for row in scale.table(cls.runs):
            note(" | ".join(row))

    def test_every_node_is_scraped(self):
        for run in self.runs:
            self.assertEqual(run.nr_up, NR_NODES, run.kind)

    def test_the_plain_fleet_has_the_same_number_of_series(self):
        for zernel, plain in zip(self.runs[::2], self.runs[1::2]):
            self.assertEqual(zernel.per_node, plain.per_node)
            self.assertLessEqual(zernel.per_node, 400)

    def test_the_rules_know_every_rank(self):
        for zernel, plain in zip(self.runs[::2], self.runs[1::2]):
            self.assertEqual(zernel.nr_ranks, NR_NODES * exporters.RANKS)
            self.assertEqual(plain.nr_ranks, 0)

    def test_native_histograms_take_fewer_series_than_text(self):
        self.assertLess(self.runs[0].per_node, self.runs[2].per_node)


if __name__ == "__main__":
    tap.main()
