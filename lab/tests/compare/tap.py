# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs unittest cases and prints TAP, so that each test is counted."""
import os
import sys
import unittest

# Bounds on time hold on a quiet machine only. `./dev test timing` judges them; the common run prints the figures.
TIMING = bool(os.environ.get("ZERNEL_TIMING"))


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def line(self, test, outcome, text=""):
        self.number += 1
        print(f"{outcome} {self.number} - {test.id().removeprefix('__main__.')}")
        for part in text.splitlines():
            print(f"# {part}")

    def addSuccess(self, test):
        self.line(test, "ok")

    def addSkip(self, test, reason):
        self.number += 1
        print(f"ok {self.number} - {test.id().removeprefix('__main__.')} # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, "not ok", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, "not ok", self.errors[-1][1])


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(not result.wasSuccessful())
