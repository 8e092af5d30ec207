# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the tests in meson's test logs: each TAP line is a test, a program without TAP is one test.

Prints diagnostics (figures), the skipped tests with the reason, the failed tests,
and as its last line `N passed, N failed, N skipped`. The exit status is 1 if a test failed.
"""
import json
import re
import sys

TAP = re.compile(r"^(not )?ok\b(?: \d+\b)?(?: -)? ?(.*)$")
DEAD = {"FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"}


def main(paths):
    passed, failed, skipped = 0, [], []
    for path in paths:
        try:
            entries = [json.loads(line) for line in open(path, encoding="utf-8", errors="replace")]
        except OSError as error:
            failed.append(f"{path}: no log ({error.strerror})")
            continue
        for entry in entries:
            test, output = entry["name"], entry.get("stdout", "")
            nr_failed_here = 0
            tap = False
            for line in output.splitlines():
                if line.startswith("1..0"):
                    tap = True
                    skipped.append(f"{test}: {line.partition('#')[2].strip()}")
                match = TAP.match(line)
                if not match:
                    continue
                tap = True
                name, _, directive = match[2].partition("#")
                if match[1]:
                    nr_failed_here += 1
                    failed.append(f"{test}: {name.strip()}")
                elif directive.strip().lower().startswith("skip"):
                    skipped.append(f"{test}: {name.strip()}: {directive.strip()}")
                else:
                    passed += 1
            if entry["result"] in DEAD and not nr_failed_here:
                failed.append(f"{test}: {entry['result'].lower()} (exit status {entry['returncode']})")
            elif not tap and entry["result"] == "SKIP":
                skipped.append(f"{test}: exit status 77")
            elif not tap and entry["result"] == "OK":
                passed += 1
            for line in output.splitlines():
                if line.startswith("# "):
                    print(f"  {test}: {line[2:]}")
            if entry["result"] in DEAD:
                print(f"  {test}: failed, output:\n{output}{entry.get('stderr', '')}")
    for line in skipped:
        print(f"skipped: {line}")
    for line in failed:
        print(f"FAILED: {line}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
