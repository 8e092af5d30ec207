#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the program `rows` on libraries: which rows they have, and which probes are single-stepped."""
import collections
import subprocess
import sys

Library = collections.namedtuple("Library", "path runtime dropped found missing stepped")


def look_up(program, paths):
    """Yields a Library for each path."""
    done = subprocess.run([program, *paths], check=True, text=True, capture_output=True)
    library = None
    for line in done.stdout.splitlines():
        kind, value = line.split(" ", 1)
        if kind == "library":
            if library:
                yield library
            path, runtime, dropped = value.rsplit(" ", 2)
            library = Library(path, runtime, int(dropped), [], [], [])
        else:
            getattr(library, kind).append(value)
    if library:
        yield library


def shorten(names):
    """The first names of a list, for one line."""
    short = [name if len(name) < 60 else name[:40] + "..." for name in names[:5]]
    return ", ".join(short) + (", ..." if len(names) > 5 else "")


def main(program, *paths):
    """Prints a table in Markdown, and the names on stderr. A folder is named after its package."""
    print("| package | library | runtime | rows found | missing | single-stepped |")
    print("|---|---|---|---|---|---|")
    for library in look_up(program, paths):
        label, name = library.path.split("/")[-2:]
        nr = len(library.found)
        print(f"| {label} | {name} | {library.runtime} | {nr} of {nr + len(library.missing)} "
              f"| {len(library.missing)} | {len(library.stepped)} |")
        for kind in ("missing", "stepped"):
            names = getattr(library, kind)
            if names:
                print(f"{label}: {kind}: {' '.join(names)}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
