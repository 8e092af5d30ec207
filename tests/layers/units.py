#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints and bounds the exposure of each unit by the measure of `systemd-analyze security`.

Usage: units.py SYSTEMD-ANALYZE UNIT...; prints TAP.
"""
import pathlib
import re
import subprocess
import sys

# From 0 (safe) to 10. docs/operate/security.md says what is left.
BOUNDS = {"zerneld.service": 2.4, "zernel-serve.service": 1.2}


def exposure(analyze, unit):
    text = subprocess.run([analyze, "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", text)
    return float(found[1]) if found else None


def main():
    analyze, *units = sys.argv[1:]
    print(f"1..{len(units)}")
    failed = False
    for i, unit in enumerate(map(pathlib.Path, units), 1):
        value = exposure(analyze, unit)
        good = value is not None and value <= BOUNDS[unit.name]
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {i} - {unit.name}: {value}, at most {BOUNDS[unit.name]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
