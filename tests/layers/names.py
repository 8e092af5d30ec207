#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks docs/reference/names.md: no cell is empty, and every name of Zernel in it exists.

Prints TAP. The first column contains the names of the reference. Text between backticks in
the other columns is a name of Zernel; its form shows where it must exist:

    `struct hist`             a type that src defines
    `hist.count`              a member of a type, a key of zernel.conf as section.key,
                              or a member of a JSON object
    `[serve]`                 a section of zernel.conf
    `zernel_processes{phase}` a metric and one of its labels
    `zernel status --json`    a command; its manual page contains its options
    `src/core/hist.h`         a file of the tree
    `/metrics`                a string of src, or a path in a manual page
    `hist_record()`           a function, variable, macro, map or constant that src defines,
                              a metric, or a string of src/core or src/ipc: a key or a label
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
PAGE = ROOT / "docs/reference/names.md"
HEADER = ["reference name", "our name", "where it is shown", "why it differs"]
LINES_MAX = 250
AREAS_MIN = 9  # fewer tables mean that this script does not parse the page correctly
STRING = r'"((?:\\.|[^"\\\n])*)"'


def rows():
    """Yields line number and cells of each row of each table, without the header and the separator."""
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells != HEADER:
                yield number, cells


@functools.cache
def sources(folder):
    """Returns the sources below a folder, without comments."""
    text = "\n".join(p.read_text() for p in sorted((ROOT / folder).rglob("*"))
                     if p.suffix in {".c", ".h", ".def"})
    return re.sub(STRING + r"|/\*.*?\*/|//[^\n]*", lambda m: m[0] if m[0][0] == '"' else " ", text, flags=re.S)


@functools.cache
def strings(*folders):
    return {s for folder in folders for s in re.findall(STRING, sources(folder))}


@functools.cache
def types():
    """(kind, name) -> the text between its braces."""
    found = re.findall(r"^(struct|enum) (\w+) \{\n(.*?)^\}", sources("src"), re.S | re.M)
    return {(kind, name): body for kind, name, body in found}


@functools.cache
def definitions():
    """Returns the names that are defined at file scope: lines that are not indented, macros, constants of enums."""
    text = re.sub(r"^SEC\([^)]*\) |\bBPF_PROG\(", "", sources("src"), flags=re.M).replace(" SEC(", ";")
    names = set(re.findall(r"^#\s*define\s+(\w+)", text, re.M))
    names |= set(re.findall(r"^[A-Za-z}][^(\[=;,){\n]*?(\w+)\s*[(\[=;,)]", text, re.M))
    for body in re.findall(r"\benum\b[^;{()]*\{(.*?)\}", text, re.S):
        names |= set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", body))
    return names


@functools.cache
def metrics():
    text = sources("src/abi")
    labels = dict(re.findall(r'^LABEL\((\w+), "(\w+)"', text, re.M))
    return {name: {labels[id] for id in re.findall(r"L\((\w+)\)", rest)}
            for name, rest in re.findall(r'^METRIC\(\w+, "(\w+)"(.*?)"', text, re.S | re.M)}


@functools.cache
def config_keys():
    return set(re.findall(r'\{ "(\w+)", "(\w+)",', sources("src/config")))


@functools.cache
def manual(page):
    path = ROOT / "packaging/man" / page
    return path.read_text().replace("\\-", "-") if path.exists() else ""


def has_word(text, word):
    return re.search(rf"(?<![\w/-]){re.escape(word)}(?![\w/-])", text)


def is_command(program, words):
    words = words.split()
    page = manual("zerneld.8" if program == "zerneld" else f"zernel-{words.pop(0)}.1")
    if "\n.SS " in page and not words[0].startswith("-") and f"\n.SS {words.pop(0)}\n" not in page:
        return False
    return bool(page) and all(has_word(page, word) or word in strings("src/cli") for word in words)


def is_member(owner, member):
    body = types().get(("struct", owner), "")
    return ((owner, member) in config_keys() or {owner, member} <= strings("src/ipc")
            or bool(re.search(rf"\b{member}\b", body)))


def is_path(path):
    return path in strings("src") or any(has_word(manual(p.name), path) for p in (ROOT / "packaging/man").iterdir())


FORMS = [
    (r"(struct|enum) (\w+)", lambda kind, name: (kind, name) in types()),
    (r"\[(\w+)\]", lambda section: section in {key[0] for key in config_keys()}),
    (r"(zerneld?) (.+)", is_command),
    (r"(/\S+)", is_path),
    (r"(\w[^\s{]*/\S*)", lambda path: (ROOT / path).exists()),
    (r"(\w+)\{(\w+)\}", lambda metric, label: label in metrics().get(metric, ())),
    (r"(\w+)\.(\w+)", is_member),
    (r"(\w+)(?:\(\))?", lambda name: name in definitions() or name in metrics()
     or name in strings("src/core", "src/ipc")),
]


def exists(name):
    for form, check in FORMS:
        match = re.fullmatch(form, name)
        if match:
            return check(*match.groups())
    return False


def bad_rows():
    for number, cells in rows():
        if len(cells) != len(HEADER) or not all(cells):
            yield f"{PAGE}:{number}: a row must have {len(HEADER)} cells, and no cell may be empty"


def missing_names():
    for number, cells in rows():
        for name in re.findall(r"`([^`]+)`", " ".join(cells[1:])):
            if not exists(name):
                yield f"{PAGE}:{number}: `{name}` does not exist"


def bad_form():
    lines = PAGE.read_text().splitlines()
    nr_areas = sum(line == f"| {' | '.join(HEADER)} |" for line in lines)
    if nr_areas < AREAS_MIN:
        yield f"{PAGE}: {nr_areas} tables found, at least {AREAS_MIN} are required"
    if len(lines) > LINES_MAX:
        yield f"{PAGE}: {len(lines)} lines, at most {LINES_MAX} are allowed"


CHECKS = {
    "the page has all tables and not too many lines": bad_form,
    "every row is complete": bad_rows,
    "every name of Zernel exists": missing_names,
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
