# SPDX-License-Identifier: GPL-2.0-or-later
"""Inside an arm64 guest: runs the tests of meson suites that are programs of arm64, and prints their results as TAP.

The build tree is that of the machine which compiled it, at the same path. meson itself does not run in the guest.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TAP = re.compile(r"^(not ok|ok)\b(?: \d+\b)?(?: -)? ?(.*)$")
# These tests measure durations, which an emulated CPU distorts, or boot a guest themselves.
LEFT_OUT = {"cost", "rate", "flood", "agree-native", "steps"}
# The default of ten million inputs would take an hour.
ENVIRONMENT = {"PROPERTY_RUNS": "200000"}
TIMEOUT_SECONDS = 900


def tests_of(build, suites):
    for test in json.loads((build / "meson-info/intro-tests.json").read_text()):
        names = {suite.partition(":")[2] for suite in test["suite"]}
        if names & suites and "guest" not in names and test["name"] not in LEFT_OUT:
            yield test, min(names & suites)


class Results:
    """Numbers the results of all programs in one sequence."""

    def __init__(self):
        self.number, self.failed = 0, 0

    def add(self, good, text):
        self.number += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.number} - {text}", flush=True)

    def run(self, build, test):
        begin = time.monotonic()
        try:
            done = subprocess.run(test["cmd"], cwd=test["workdir"] or build, env={**os.environ, **test["env"], **ENVIRONMENT},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  errors="replace", timeout=TIMEOUT_SECONDS)
            output, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, status = (late.stdout or b"").decode(errors="replace"), "timeout"
        found = [match for match in map(TAP.match, output.splitlines()) if match]
        for match in found:
            self.add(match[1] == "ok", f"{test['name']}: {match[2]}")
        is_skipped = re.search(r"^1\.\.0\b.*", output, re.MULTILINE)
        if is_skipped:
            self.add(True, f"{test['name']} # SKIP {is_skipped[0].partition('SKIP')[2].strip()}")
        if status != 0 and all(match[1] == "ok" for match in found) or not (found or is_skipped):
            self.add(False, f"{test['name']}: exit status {status}, {len(found)} results")
        if status != 0:
            print("".join(f"#   {line}\n" for line in output.splitlines()[-60:]), end="")
        return time.monotonic() - begin


def main(build, *suites):
    build, results, took = pathlib.Path(build), Results(), dict.fromkeys(suites, 0.0)
    print(f"# uname -m: {os.uname().machine}, kernel {os.uname().release}, {os.cpu_count()} CPUs", flush=True)
    for test, suite in tests_of(build, set(suites)):
        took[suite] += results.run(build, test)
    for suite, seconds in took.items():
        print(f"# suite {suite}: {seconds:.0f} s of the guest's time")
    print(f"1..{results.number}")
    return int(results.failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
