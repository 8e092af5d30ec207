#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that includes respect the layers of docs/contributing/architecture.md, and a few other rules.

Prints TAP. Each source names the layer of its includes ("core/phase.h"), so the
check is a table and a loop.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")

# layer -> layers from which it may include (its own layer is always allowed)
MAY_USE = {
    "abi": set(),
    "core": {"abi"},
    "base": {"abi"},
    "bpf": {"abi", "core"},
    "collect": {"abi", "core", "base"},
    "gpu": {"abi", "core", "base", "collect"},
    "discover": {"abi", "core", "base", "collect"},
    "config": {"abi", "core", "base"},
    "store": {"abi", "core", "base"},
    "ipc": {"abi", "core", "base"},
    "metrics": {"abi", "core", "base"},
    "record": {"abi", "core", "base", "ipc", "answers"},
    "answers": {"abi", "core", "base", "ipc"},
    "daemon": {"abi", "core", "base", "collect", "config", "store", "ipc"},
    "serve": {"abi", "core", "base", "config", "ipc", "metrics", "record", "answers"},
    "cli": {"abi", "core", "base", "config", "store", "ipc", "record", "answers", "serve"},
}
# Macros without dependencies; core and the lab may use them too.
EVERYWHERE = {"base/macros.h"}
# Headers of libc that core may include: types, memory and strings; no I/O, no clock.
CORE_SYSTEM = {"math.h", "stdbool.h", "stddef.h", "stdint.h", "string.h", "errno.h", "stdlib.h", "limits.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SOURCES = {".c", ".h", ".def"}


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in SOURCES)


def layer_breaches():
    for path in sources("src"):
        layer = path.relative_to(ROOT / "src").parts[0]
        for bracket, name in INCLUDE.findall(path.read_text()):
            head = name.split("/")[0]
            if bracket == "<":  # system headers, also <bpf/...> of libbpf
                continue
            if head in MAY_USE and head != layer and head not in MAY_USE[layer] and name not in EVERYWHERE:
                yield f"{path}: {layer} must not include {name}"
            if "/" not in name and not name.endswith(".skel.h"):
                yield f"{path}: \"{name}\" does not name its layer"


def link_breaches():
    """A layer only links layers that it may include: zerneld links neither metrics nor record."""
    for path in sorted((ROOT / "src").rglob("meson.build")):
        layer = path.relative_to(ROOT / "src").parts[0]
        for name in re.findall(r"\b([a-z]+)_(?:dep|lib)\b", path.read_text()):
            if layer in MAY_USE and name in MAY_USE and name != layer and name not in MAY_USE[layer]:
                yield f"{path}: {layer} must not link {name}"


def impure_core():
    for path in sources("src/core"):
        for bracket, name in INCLUDE.findall(path.read_text()):
            if bracket != "<":
                continue
            if name not in CORE_SYSTEM or (path.suffix == ".h" and name in ("stdlib.h", "math.h")):
                yield f"{path}: core is pure, it must not include <{name}>"


def bpf_headers():
    """Returns the headers of core that the BPF programs include."""
    found, left = set(), sources("src/bpf")
    while left:
        for _, name in INCLUDE.findall(left.pop().read_text()):
            path = ROOT / "src" / name
            if name.startswith("core/") and path not in found:
                found.add(path)
                left.append(path)
    return sorted(found)


def user_space_in_bpf_headers():
    """A function that only user space calls belongs in a .c file."""
    headers = bpf_headers()
    text = "".join(p.read_text() for p in [*headers, *sources("src/bpf")])
    for path in headers:
        for name in re.findall(r"^static inline [^(]*?(\w+)\(", path.read_text(), re.M):
            if len(re.findall(rf"\b{name}\(", text)) < 2:
                yield f"{path}: BPF does not call {name}()"


def lab_breaches():
    """The lab may include abi and core, but nothing else of the program that it tests. The simulator runs the scheduler itself."""
    for path in sources("lab"):
        allowed = {"abi", "core", "bpf"} if ROOT / "lab/sim" in path.parents else {"abi", "core"}
        for _, name in INCLUDE.findall(path.read_text()):
            # A folder of the lab may have the same name as one of src, but a file may not: src is searched first.
            foreign = name.split("/")[0] in MAY_USE.keys() - allowed and name not in EVERYWHERE
            if foreign and (ROOT / "src" / name).exists():
                yield f"{path}: lab must not include {name}"


def missing_licences():
    text = {".c", ".h", ".def", ".py", ".sh", ".bats", ".js", ".css"}
    scripts = ["dev", ".ci/run", *(f"tools/{p.name}" for p in (ROOT / "tools").iterdir() if p.is_file())]
    files = [p for d in ("src", "lab", "tests", "bench", "web", "packaging") if (ROOT / d).is_dir()
             for p in (ROOT / d).rglob("*") if p.suffix in text or p.name == "meson.build"]
    for path in files + [ROOT / s for s in scripts]:
        if "SPDX-License-Identifier: GPL-2.0-or-later" not in path.read_text()[:400]:
            yield f"{path}: SPDX line missing"


CHECKS = {
    "includes respect the layers": layer_breaches,
    "libraries respect the layers": link_breaches,
    "core is pure": impure_core,
    "BPF calls every function of the headers it includes": user_space_in_bpf_headers,
    "lab does not include the program it tests": lab_breaches,
    "every file has an SPDX line": missing_licences,
}


def main():
    print(f"1..{len(CHECKS)}")
    failed = False
    for number, (name, check) in enumerate(CHECKS.items(), 1):
        breaches = list(check())
        failed |= bool(breaches)
        print(f"{'not ok' if breaches else 'ok'} {number} - {name}")
        for line in breaches:
            print(f"# {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
