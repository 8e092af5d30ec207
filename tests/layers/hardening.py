#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the installed programs were built with the protections that meson.build requests.

Usage: hardening.py PROGRAM...; prints TAP, one test for each protection of each program.
       hardening.py --table PROGRAM...; prints a table, as `./dev checksec` does.
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


def protections(program):
    """Yields each protection, and whether the program has it."""
    text = subprocess.run(["readelf", "-hldsW", program], capture_output=True, text=True, check=True).stdout
    for name, pattern in PROTECTIONS.items():
        yield name, bool(re.search(pattern, text, re.M))


def table(programs):
    print(" | ".join(["program".ljust(16), *PROTECTIONS, "set-user-ID"]))
    for program in programs:
        cells = [("yes" if found else "NO").ljust(len(name)) for name, found in protections(program)]
        privileged = "YES" if program.stat().st_mode & 0o6000 else "no"
        print(" | ".join([program.name.ljust(16), *cells, privileged]))
    return False


def tap(programs):
    print(f"1..{len(programs) * len(PROTECTIONS)}")
    failed = False
    for program in programs:
        for name, found in protections(program):
            failed |= not found
            print("ok" if found else "not ok", "-", program.name, name)
    return failed


def main():
    show, names = (table, sys.argv[2:]) if sys.argv[1:2] == ["--table"] else (tap, sys.argv[1:])
    return show([pathlib.Path(name) for name in names])


if __name__ == "__main__":
    sys.exit(main())
