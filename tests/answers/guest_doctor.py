# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel doctor on real kernels: good, with broken BTF, without BTF, without sched_ext, and with other problems.

A case prepares a machine with a command and lists the expected line and exit status. The case without sched_ext
runs on the kernel of the host, if that kernel has no sched_ext.
"""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass

import guest
from compare import schedulers
from compare.results import Tap

NOBODY = ["setpriv", "--reuid", "65534", "--clear-groups"]
TIMEOUT = 300
OK, WARNING, FAILURE = range(3)
VERDICTS = ("ok", "warning", "failure")


@dataclass(frozen=True)
class Case:
    name: str
    check: str  # name of the line
    verdict: int
    text: str  # expected part of the line
    kernel: str = "6.18"
    status: int = FAILURE
    prepare: str = ""  # runs in its own mount namespace
    user: tuple = ()
    scheduler: str = ""  # attached during the check


CASES = (
    Case("good kernel: sched_ext", "sched_ext", OK, "available, state: disabled", status=WARNING),
    Case("good kernel: BTF", "BTF", OK, "complete, with all functions", status=WARNING),
    Case("newest kernel", "BTF", OK, "complete, with all functions", kernel="newest", status=WARNING),
    Case("no GPU", "GPU", WARNING, "no GPU found", status=WARNING),
    Case("zerneld is not running", "zerneld", WARNING, "does not answer", status=WARNING),
    Case("zernel attached", "scheduler", OK, "zernel is attached", status=WARNING, scheduler="zernel"),
    Case("another scheduler", "scheduler", WARNING, "the scheduler simple", status=WARNING, scheduler="scx_simple"),
    Case("no privilege", "capabilities", FAILURE, "you lack", user=tuple(NOBODY)),
    Case("no BTF", "BTF", FAILURE, "has no /sys/kernel/btf/vmlinux", prepare="mount -t tmpfs none /sys/kernel/btf"),
    Case("broken BTF", "BTF", FAILURE, "old pahole", kernel="7.1"),
    Case("no sched_ext", "sched_ext", WARNING, "no sched_ext", kernel=""),
)


def look(case):
    """Runs doctor and returns the line of the check and the exit status."""
    command = f"{case.prepare or ':'} && exec \"$@\""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command, "sh", *case.user, f"{guest.BUILD}/src/cli/zernel",
                           "doctor", "--json"], capture_output=True, text=True, check=False)
    checks = json.loads(done.stdout)["checks"] if done.stdout else []
    line = next((check for check in checks if check["name"] == case.check), {"verdict": None, "text": done.stderr})
    return line, done.returncode


def judge(tap, case, examples=""):
    attached = schedulers.running(schedulers.BY_NAME[case.scheduler], {"build": guest.BUILD, "examples": examples},
                                  "/tmp/scheduler.log") if case.scheduler else contextlib.nullcontext()
    with attached:
        line, status = look(case)
    print(f"# {line['verdict']}  {line['text']}" + (f"  -> {line['fix']}" if "fix" in line else ""), flush=True)
    tap.check(line["verdict"] == VERDICTS[case.verdict] and case.text in line["text"] and status == case.status,
              f"{case.name}, exit status {status}")


def in_guest(kernel, examples):
    tap = Tap()
    for case in CASES:
        if case.kernel == kernel:
            judge(tap, case, examples)
    return tap.end()


def main(argv):
    if argv[:1] == ["guest"]:
        return in_guest(*argv[1:])
    argparse.ArgumentParser(prog="./dev answers doctor", description=__doc__.splitlines()[0]).parse_args(argv)
    tap = Tap()
    examples = subprocess.run(["tools/scx-examples", "6.18"], check=True, capture_output=True, text=True).stdout.strip()
    for kernel in sorted({case.kernel for case in CASES} - {""}):
        status = guest.boot(kernel, TIMEOUT, __file__, kernel, examples)
        tap.check(status == 0, f"all cases on {kernel}")
    for case in CASES:
        if case.kernel == "" and pathlib.Path(schedulers.SYSFS).exists():
            print(f"ok {tap.number + 1} - {case.name} # SKIP this kernel has sched_ext")
            tap.number += 1
        elif case.kernel == "":
            judge(tap, case)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
