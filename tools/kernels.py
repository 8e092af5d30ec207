# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs short tests on kernels of the archive and writes the results into docs/reference/kernels.md.

Each kernel boots five guests in virtual time, one after the other. A row of the page is replaced when its kernel was run; the other rows stay.
The logs are in out/kernels. The table of features is written from src/abi/features.def.
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

KERNELS = ("6.1", "6.12", "6.16", "6.17", "6.18", "6.19", "7.0", "newest")
PAGE = pathlib.Path("docs/reference/kernels.md")
FEATURES = pathlib.Path("src/abi/features.def")
LOGS = pathlib.Path("out/kernels")
BUILD = "out/gcc"
COLUMNS = ("loads", "phases agree", "steps", "idle causes", "memory", "ranks", "scheduler", "nice actuator")
NO_SCHED_EXT = "no: no sched_ext"
# name: the command, with {kernel} for the version
GUEST = ["tools/vm", "--kernel", "{kernel}", "--timeout", "1800", "--virtual-time", "--"]
RUNS = {
    "watching": [*GUEST, "env", f"ZERNEL_BUILD={BUILD}", "PYTHONPATH=lab/tests/compare:lab", "PYTHONDONTWRITEBYTECODE=1", "python3", "-u",
                 "tests/daemon/test_guest_watching.py"],
    "agree": ["tools/signals", "compare", "--kernel", "{kernel}", "--scenario", "quiet,noisy,collectives", "--seconds", "8"],
    "idle": ["tools/signals", "idle", "--kernel", "{kernel}", "--scenario", "noisy,launch-bound,async-starved", "--seconds", "4"],
    "memory": [*GUEST, f"{BUILD}/tests/signals/books", "--exits", f"{BUILD}/lab/vgpu", "300"],
    "ranks": [*GUEST, "env", "CMOCKA_MESSAGE_OUTPUT=TAP", f"{BUILD}/tests/signals/test_comms_nccl", f"{BUILD}/lab/vgpu/libnccl.so.2"],
}


def run(name, kernel):
    """Returns the output of a run, which also goes to a log."""
    command = [word.format(kernel=kernel) for word in RUNS[name]]
    started = time.monotonic()
    print(f"{kernel}: {name} ...", end="", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env={**os.environ, "ZERNEL_BUILD": BUILD})
    (LOGS / f"{kernel}-{name}.log").write_text(done.stdout)
    print(f" exit {done.returncode}, {time.monotonic() - started:.0f} s", flush=True)
    told = re.search(r"^not ok", done.stdout, re.MULTILINE) or not done.returncode
    return done.stdout + ("" if told else f"\nnot ok 0 - exit status {done.returncode}\n")


def judge(text, *patterns):
    """Yes with the figures of the patterns, or no with the first line that failed, for lines with one of the words."""
    lines = [line for line in text.splitlines() if re.match(r"(not )?ok \d", line)]
    failed = [re.sub(r"^not ok \d+ - ", "", line) for line in lines if line.startswith("not ok")]
    if failed or not lines:
        return f"no: {failed[0] if failed else 'it did not run'}"
    figures = []
    for label, pattern, choose in patterns:
        found = [float(number) for number in re.findall(pattern, text)]
        if found:
            figures.append(f"{label} {choose(found):.4f}".rstrip("0").rstrip("."))
    return "yes" + (f" ({', '.join(figures)})" if figures else "")


def both(*verdicts):
    """The first verdict that is no, or yes."""
    return next((verdict for verdict in verdicts if verdict.startswith("no")), verdicts[0])


def only(text, *words):
    """The test lines that have one of the words, and the failures of the whole run."""
    return "\n".join(line for line in text.splitlines() if line.startswith("not ok 0") or any(word in line for word in words))


def lacks(text):
    found = re.search(r"# lacks: \[(.*?)\]", text)
    return [name.strip("' ") for name in found.group(1).split(",") if name] if found else []


def loads(text):
    verdict = judge(only(text, "test_1_", "test_3_", "test_4_"))
    without = [name for name in lacks(text) if name not in ("scheduler", "group_limits", "group_weights")]
    return verdict + (f", without {', '.join(without)}" if verdict == "yes" and without else "")


def scheduler(text):
    verdict = judge(only(text, "test_2_"))
    missing = [name for name in lacks(text) if name in ("group_limits", "group_weights")]
    if "scheduler" in lacks(text):
        return NO_SCHED_EXT
    return verdict + (f", without {', '.join(missing)}" if verdict == "yes" and missing else "")


def nice_actuator(text):
    return judge(only(text, "test_5_", "# nice:"), ("launcher", r"# nice: launcher (-\d+)", min), ("loader", r"# nice: .*loader (-\d+)", min))


def test(kernel):
    """The cells of a kernel's row."""
    release = subprocess.run(["tools/kernel", "release", kernel], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    text = {name: run(name, kernel) for name in RUNS}
    phases = "\n".join(line for line in text["agree"].splitlines() if " collectives:" not in line)
    return [f"{kernel} ({release.split('-')[0]})", loads(text["watching"]),
            judge(phases, ("phases", r"launcher \d+: phase is correct for ([\d.]+)", min), ("roles", r"roles are correct for ([\d.]+)", min)),
            judge(only(text["idle"], "recall", "a step takes"), ("recall", r"recall ([\d.]+)", min)),
            judge("\n".join(line for line in text["idle"].splitlines() if "recall" not in line and "a step takes" not in line),
                  ("sum", r"causes sum to ([\d.]+)", lambda sums: max(sums, key=lambda value: abs(value - 1))),
                  ("points", r"shares within ([\d.]+)", max)),
            judge(text["memory"]), both(judge(only(text["agree"], " collectives:")), judge(text["ranks"])),
            scheduler(text["watching"]), nice_actuator(text["watching"])]


def row(cells):
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def replace(text, name, lines):
    """Replaces the lines between the markers of a generated part."""
    begin, end = f"<!-- {name}: generated by ./dev kernels -->", f"<!-- end of {name} -->"
    head, rest = text.split(begin, 1)
    return head + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + rest.split(end, 1)[1]


def rows_of(text, name):
    """The generated rows of the page, by their first word."""
    part = text.split(f"<!-- {name}: ", 1)[1].split("<!-- end of", 1)[0]
    return {line.split()[1]: line for line in part.splitlines() if line.startswith("| ")}


def features():
    rows = re.findall(r'^FEATURE\(\w+, +"(\w+)", +"([^"]+)", +(\w+), +"([^"]+)"\)', FEATURES.read_text(), re.MULTILINE)
    return ["| feature | since | without it |", "|---|---|---|",
            *(row([f"`{label}`", since, loss + ("; zerneld cannot watch" if essential == "true" else "")])
              for label, since, essential, loss in rows)]


def write(results, today):
    text = PAGE.read_text()
    known = rows_of(text, "matrix")
    known.update({kernel: row([*cells, today]) for kernel, cells in results.items()})
    ordered = [known[kernel] for kernel in KERNELS if kernel in known]
    text = replace(text, "matrix", [row(["kernel", *COLUMNS, "date"]), "|---" * (len(COLUMNS) + 2) + "|", *ordered])
    PAGE.write_text(replace(text, "features", features()))


def main(argv):
    parser = argparse.ArgumentParser(prog="./dev kernels", description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="*", metavar="V", help=f"versions (default: {' '.join(KERNELS)})")
    parser.add_argument("--write-only", action="store_true", help="run nothing; only write the table of features")
    args = parser.parse_args(argv)
    LOGS.mkdir(parents=True, exist_ok=True)
    today = datetime.date.today().isoformat()
    write({}, today)
    bad = 0
    for kernel in () if args.write_only else args.kernel or KERNELS:
        started = time.monotonic()
        cells = test(kernel)
        write({kernel: cells}, today)
        bad += sum(cell.startswith("no:") and cell != NO_SCHED_EXT for cell in cells[1:])
        print(f"{kernel}: {time.monotonic() - started:.0f} s\n{row(cells)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
