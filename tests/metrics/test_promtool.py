#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds what is exported, the rules and the documentation against the tools that judge them.

`test_promtool.py SOURCE PRINT METRICS_MD`. Speaks TAP.
"""
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
PRINT, METRICS_MD = sys.argv[2:]
RULES = SOURCE / "packaging/prometheus"


def run(*command, given=None):
    done = subprocess.run(command, input=given, capture_output=True)
    return done.returncode, (done.stdout + done.stderr).decode()


def metrics_are_sound(ranks, operations):
    """promtool is silent."""
    text = subprocess.run([PRINT, "text", str(ranks), str(operations)], capture_output=True, check=True)
    status, said = run("promtool", "check", "metrics", given=text.stdout)
    return status == 0 and not said, said


def rules_are_sound():
    status, said = run("promtool", "check", "rules", "--lint=all", "--lint-fatal",
                       str(RULES / "zernel.rules.yml"))
    return status == 0, said


def rules_say_what_they_should():
    status, said = run("promtool", "test", "rules", str(RULES / "zernel.test.yml"))
    return status == 0, said


def scrape_configuration_is_sound():
    status, said = run("promtool", "check", "config", "--syntax-only", str(RULES / "scrape.yml"))
    return status == 0, said


def documentation_is_up_to_date():
    _, made = run(METRICS_MD)
    kept = (SOURCE / "docs/METRICS.md").read_text()
    return made == kept, f"make it again: {METRICS_MD} >docs/METRICS.md"


CHECKS = {
    "metrics of one rank": lambda: metrics_are_sound(1, 1),
    "metrics of eight ranks": lambda: metrics_are_sound(8, 8),
    "metrics of an idle node": lambda: metrics_are_sound(0, 0),
    "rules are sound": rules_are_sound,
    "rules say what they should": rules_say_what_they_should,
    "scrape configuration is sound": scrape_configuration_is_sound,
    "docs/METRICS.md is up to date": documentation_is_up_to_date,
}


def main():
    print(f"1..{len(CHECKS)}")
    failed = False
    for number, (name, check) in enumerate(CHECKS.items(), 1):
        good, said = check()
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print("".join(f"# {line}\n" for line in said.splitlines()), end="")
    return failed


if __name__ == "__main__":
    sys.exit(main())
