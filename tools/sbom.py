# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the software bill of materials of the build: SPDX 2.3 as JSON.

It lists the programs with their checksums, the packages of the libraries that they link, directly or through other
libraries, and the packages of the tools that made them. What the build links is read from the programs and from
build.ninja. On a machine without dpkg, a file stands for its package, and versions are unknown.

With --from, it copies the list of a build, with the checksums of programs as they are in a package: without symbols.

Usage: sbom.py --version V --build DIR --output FILE --tool PATH... PROGRAM...
       sbom.py --from FILE --output FILE PROGRAM...
"""
import argparse
import datetime
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

NEEDED = re.compile(r"\(NEEDED\)\s.*\[(.+)\]")
ARCHIVE = re.compile(r"(?<=\s)/\S+\.a\b")
NAMESPACE = "https://spdx.org/spdxdocs/zernel"
LICENSE = "GPL-2.0-or-later"


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


@functools.cache
def libraries():
    """The paths of all shared libraries that the loader knows, by name."""
    found = {}
    for line in output("/sbin/ldconfig", "-p").splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow and "x32" not in name:
            found.setdefault(name.split()[0], path)
    return found


@functools.cache
def needed(path):
    return [libraries().get(name, name) for name in NEEDED.findall(output("readelf", "-dW", path))]


def all_needed(program):
    """Each library of the program, also those that only other libraries need."""
    found, new = set(), list(needed(program))
    while new:
        path = new.pop()
        if path not in found:
            found.add(path)
            new += needed(path)
    return found


def archives(build, program):
    """The static libraries from outside of the tree that the program links."""
    name = os.path.relpath(program, build)
    text = (build / "build.ninja").read_text(encoding="utf-8")
    rule = re.search(rf"^build {re.escape(name)}: .*?(?=^build |\Z)", text, re.M | re.S)
    return set(ARCHIVE.findall(rule[0])) if rule else set()


@functools.cache
def package_of(path):
    """(name, version, architecture) of the package that a file belongs to."""
    real = os.path.realpath(path)
    for place in (real, real.removeprefix("/usr"), path):
        owner = output("dpkg-query", "-S", place).partition(": ")[0].split(",")[0]
        if owner:
            fields = output("dpkg-query", "-W", "-f", "${source:Package} ${Package} ${Version} ${Architecture}", owner).split()
            return tuple(fields[1:]) if len(fields) == 4 else (owner, "", "")
    return pathlib.Path(path).name, "", ""


def spdx_id(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def describe(package):
    name, version, architecture = package
    entry = {"SPDXID": spdx_id("Package", name), "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}
    if version:
        entry |= {"versionInfo": version, "supplier": "Organization: Debian", "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={architecture}"}]}
    return entry


def describe_file(program):
    content = program.read_bytes()
    return {"SPDXID": spdx_id("File", program.name), "fileName": f"./{program.name}", "fileTypes": ["BINARY"],
            "checksums": [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, content).hexdigest()}
                          for kind in ("sha1", "sha256")],
            "licenseConcluded": LICENSE, "licenseInfoInFiles": [LICENSE], "copyrightText": "NOASSERTION"}


def namespace(version, files):
    digest = hashlib.sha256("".join(file["checksums"][1]["checksumValue"] for file in files).encode()).hexdigest()
    return f"{NAMESPACE}-{version}-{digest}"


def created():
    """The time of the build, or a fixed one for builds that must be the same each time."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def document(args):
    whole = {"SPDXID": "SPDXRef-Package-zernel", "name": "zernel", "versionInfo": args.version, "filesAnalyzed": False,
             "downloadLocation": "NOASSERTION", "licenseConcluded": LICENSE, "licenseDeclared": LICENSE,
             "copyrightText": "NOASSERTION"}
    files, packages, relations = [], {}, [("SPDXRef-DOCUMENT", "DESCRIBES", whole["SPDXID"])]

    def use(path):
        entry = describe(package_of(path))
        packages[entry["SPDXID"]] = entry
        return entry["SPDXID"]

    for program in args.program:
        files.append(describe_file(program))
        name = files[-1]["SPDXID"]
        relations.append((whole["SPDXID"], "CONTAINS", name))
        relations += [(name, "DYNAMIC_LINK", use(path)) for path in all_needed(str(program))]
        relations += [(name, "STATIC_LINK", use(path)) for path in archives(args.build, program)]
    relations += [(use(path), "BUILD_TOOL_OF", whole["SPDXID"]) for path in args.tool]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"zernel-{args.version}",
            "documentNamespace": namespace(args.version, files),
            "creationInfo": {"created": created(), "creators": ["Tool: zernel-sbom"]},
            "packages": [whole, *(packages[key] for key in sorted(packages))], "files": files,
            "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                              for one, kind, other in sorted(set(relations))]}


def copy(args):
    """The document of a build with the checksums of other files of the same names."""
    whole = json.loads(args.build_list.read_text(encoding="utf-8"))
    programs = {f"./{program.name}": program for program in args.program}
    files = [describe_file(programs[file["fileName"]]) for file in whole["files"]]
    return whole | {"files": files, "documentNamespace": namespace(whole["packages"][0]["versionInfo"], files)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version")
    parser.add_argument("--build", type=pathlib.Path, default=".")
    parser.add_argument("--from", dest="build_list", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--tool", action="append", default=[])
    parser.add_argument("program", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.program = [program.resolve() for program in args.program]
    args.output.write_text(json.dumps(copy(args) if args.build_list else document(args), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
