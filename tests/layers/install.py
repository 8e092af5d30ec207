#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks what `meson install` installs: everything of packaging/, and programs that the units find.

Usage: install.py MESON BUILD SOURCE; prints TAP.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Files of packaging/ that are not installed: the build reads them, or tests, or they make packages of another format.
NOT_INSTALLED = {"meson.build", "prometheus/zernel.test.yml"}
OTHER_FORMATS = {"arch", "helm", "kubernetes", "rpm"}
RENAMED = {"completion/zernel.bash": "zernel"}


def missing(source, root):
    """The files of packaging/ whose content is not installed."""
    packaging = source / "packaging"
    installed = {path.name for path in root.rglob("*") if path.is_file()}
    for path in sorted(packaging.rglob("*")):
        name = str(path.relative_to(packaging))
        if name in NOT_INSTALLED or name.split("/")[0] in OTHER_FORMATS:
            continue
        if path.is_file() and RENAMED.get(name, path.name.removesuffix(".in")) not in installed:
            yield name


def broken_units(root):
    """The units that start a program which is not installed."""
    for unit in root.rglob("*.service"):
        program = re.search(r"^ExecStart=(\S+)", unit.read_text(), re.M)[1]
        if not os.access(root / program[1:], os.X_OK):
            yield f"{unit.name}: {program}"


def outside(root, prefix):
    """Installed files that are neither below the prefix nor configuration."""
    for path in root.rglob("*"):
        name = "/" + str(path.relative_to(root))
        if path.is_file() and not name.startswith((prefix + "/", "/etc/")):
            yield name


def option(meson, build, name):
    options = json.loads(subprocess.run([meson, "introspect", "--buildoptions", build], capture_output=True, text=True, check=True).stdout)
    return next(row["value"] for row in options if row["name"] == name)


def main():
    meson, build, source = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    prefix = option(meson, build, "prefix")
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        done = subprocess.run([meson, "install", "--no-rebuild", "--quiet", "-C", build, "--destdir", name],
                              capture_output=True, text=True, check=False)
        checks = {
            f"meson install succeeds {done.stderr[-300:]}": [] if done.returncode == 0 else [done.returncode],
            "every file of packaging/ is installed": list(missing(source, root)),
            "each unit starts an installed program": list(broken_units(root)),
            "all files are below the prefix or in /etc": list(outside(root, prefix)),
        }
    print(f"1..{len(checks)}")
    for number, (what, bad) in enumerate(checks.items(), 1):
        print(f"{'not ok' if bad else 'ok'} {number} - {what}", *bad)
    return any(checks.values())


if __name__ == "__main__":
    sys.exit(main())
