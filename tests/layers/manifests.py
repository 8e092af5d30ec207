#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that all formats of packages agree: the capabilities of the container and of the unit, and the version.

Usage: manifests.py SOURCE VERSION; prints TAP.
"""
import pathlib
import re
import sys

# Where each format has the version.
VERSIONS = {
    "debian/changelog": r"\A\S+ \((\S+)\)",
    "packaging/rpm/zernel.spec": r"^Version:\s+(\S+)",
    "packaging/arch/PKGBUILD": r"^pkgver=(\S+)",
    "packaging/helm/Chart.yaml": r"^appVersion: (\S+)",
    "packaging/kubernetes/base/kustomization.yaml": r"newTag: (\S+)",
}


def capabilities(source):
    """The capabilities of zerneld by the unit, by the DaemonSet and by the documentation."""
    unit = (source / "packaging/systemd/zerneld.service.in").read_text()
    pod = (source / "packaging/kubernetes/base/daemonset.yaml").read_text()
    docs = (source / "docs/operate/security.md").read_text()
    added = re.findall(r"add: \[(.*)\]", pod)
    yield "the unit", set(re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].split())
    yield "the DaemonSet", {f"CAP_{name}" for line in added for name in line.split(", ")}
    yield "docs/operate/security.md", set(re.findall(r"`(CAP_\w+)`", docs))


def main():
    source, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    pod = (source / "packaging/kubernetes/base/daemonset.yaml").read_text()
    sets = dict(capabilities(source))
    checks = {"the unit, the DaemonSet and the documentation name the same capabilities": len(set(map(frozenset, sets.values()))) == 1,
              "only one container adds capabilities, and each drops all of them": (
                  len(re.findall(r"add:", pod)) == 1 and len(re.findall(r"drop: \[ALL\]", pod)) == len(re.findall(r" image: zernel$", pod, re.M))),
              "no container is privileged": not re.search(r"privileged: true", pod)}
    for name, pattern in VERSIONS.items():
        found = re.search(pattern, (source / name).read_text(), re.M)
        checks[f"{name} has version {version}"] = bool(found) and found[1].strip("\"'") == version
    print(f"1..{len(checks)}")
    for number, (what, good) in enumerate(checks.items(), 1):
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
    if len(set(map(frozenset, sets.values()))) > 1:
        print(*(f"# {name}: {' '.join(sorted(names))}" for name, names in sets.items()), sep="\n")
    return not all(checks.values())


if __name__ == "__main__":
    sys.exit(main())
