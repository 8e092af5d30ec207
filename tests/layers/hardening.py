#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the installed programs were built with the protections that meson.build requests.

Usage: hardening.py PROGRAM...; prints TAP, one test for each protection of each program.
"""
import pathlib
import re
import subprocess
import sys

# Protection -> what `readelf -hldsW` prints for a program that has it.
PROTECTIONS = {
    "position-independent": r"Type:\s+DYN",
    "read-only relocations": r"^\s+GNU_RELRO\s",
    "symbols bound at start": r"\(FLAGS_1\)\s.*\bNOW\b",
    "no executable stack": r"^\s+GNU_STACK\s.*\sRW\s",
    "stack protector": r"\b__stack_chk_fail\b",
    "checked string functions": r"\b__\w+_chk\b",
}


def main():
    programs = [pathlib.Path(name) for name in sys.argv[1:]]
    print(f"1..{len(programs) * len(PROTECTIONS)}")
    failed = False
    for program in programs:
        text = subprocess.run(["readelf", "-hldsW", program], capture_output=True, text=True, check=True).stdout
        for name, pattern in PROTECTIONS.items():
            found = re.search(pattern, text, re.M)
            failed |= not found
            print("ok" if found else "not ok", "-", program.name, name)
    return failed


if __name__ == "__main__":
    sys.exit(main())
