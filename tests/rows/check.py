#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks up every row of runtimes.def in the real libraries of this machine. Prints TAP.

A library must have all rows except those of missing.txt, and none of those. Arguments: the
program `rows`, missing.txt.
"""
import glob
import sys

from table import look_up, shorten

# name -> where it is, and where it comes from
LIBRARIES = {
    "libcudart.so.13": ("/cuda/lib*/libcudart.so.13", "the CUDA 13 toolkit"),
    "libcuda.so": ("/cuda/lib*/stubs/libcuda.so", "the CUDA 13 toolkit"),
    "libnccl.so.2": ("/cuda/lib*/libnccl.so.2", "the CUDA 13 toolkit"),
    "libamdhip64.so.5": ("/usr/lib/*-linux-gnu/libamdhip64.so.5", "layer runtimes"),
    "librccl.so.1": ("/usr/lib/*-linux-gnu/librccl.so.1", "layer runtimes"),
    "libze_loader.so.1": ("/usr/lib/*-linux-gnu/libze_loader.so.1", "layer runtimes"),
    "libOpenCL.so.1": ("/usr/lib/*-linux-gnu/libOpenCL.so.1", "layer runtimes"),
    "libmpi.so.40": ("/usr/lib/*-linux-gnu/libmpi.so.40", "layer runtimes"),
    "libmpich.so.12": ("/usr/lib/*-linux-gnu/libmpich.so.12", "layer runtimes"),
    "libtorch_cpu.so.2.6": ("/usr/lib/*-linux-gnu/libtorch_cpu.so.2.6", "layer runtimes"),
    "libc10.so.2.6": ("/usr/lib/*-linux-gnu/libc10.so.2.6", "layer runtimes"),
}


def expected(path):
    """Returns library -> the rows that it does not have."""
    missing = {}
    for line in open(path, encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            library, symbol = line.split()
            missing.setdefault(library, set()).add(symbol)
    return missing


def problems(name, library, missing):
    """Yields what is wrong with a library. PyTorch has one form of each function, by its C++ ABI."""
    if library.dropped:
        yield f"{library.dropped} symbols were not read"
    if name.startswith("libtorch"):
        if len(library.found) < 2:
            yield "neither form of a scope was found"
        return
    for symbol in sorted(set(library.missing) - missing):
        yield f"{symbol} does not exist, and is not in missing.txt"
    for symbol in sorted(missing - set(library.missing)):
        yield f"{symbol} exists, or has no row, and is in missing.txt"


def main(program, missing_file):
    missing = expected(missing_file)
    print(f"1..{len(LIBRARIES)}")
    failed = False
    for nr, (name, (pattern, origin)) in enumerate(LIBRARIES.items(), 1):
        paths = glob.glob(pattern)
        if not paths:
            print(f"ok {nr} - {name} # SKIP not installed; it is part of {origin}")
            continue
        library = next(look_up(program, paths[:1]))
        wrong = list(problems(name, library, missing.get(name, set())))
        print(f"# {name}: {len(library.found)} rows found, {len(library.missing)} missing, "
              f"{len(library.stepped)} single-stepped")
        for kind in ("missing", "stepped"):
            if getattr(library, kind):
                print(f"#   {kind}: {shorten(getattr(library, kind))}")
        for line in wrong:
            print(f"# {line}")
        print(f"{'not ok' if wrong else 'ok'} {nr} - {name}")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
