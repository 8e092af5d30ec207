# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what a campaign asserts, as TAP."""


class Tap:
    def __init__(self):
        self.number = self.failed = 0

    def check(self, good, text):
        self.number += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.number} - {text}", flush=True)

    def end(self):
        print(f"1..{self.number}")
        return int(self.failed > 0)
