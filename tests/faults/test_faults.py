# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `faults`: each allocation and each system call of a program fails once, and then from there on.

inject.c makes allocations fail, strace(1) makes system calls fail. The program must not crash, and a run whose allocation failed
must not keep more allocations than a run without a fault. ZERNEL_SIZE is the step between two faults; 1: all of them, except in the
programs that take long.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])
STEP = int(os.environ.get("ZERNEL_SIZE", "40"))
SECONDS = 60
ERRORS = ("EIO", "ENOMEM")
# The program does not make these calls itself, or they cannot fail.
SKIPPED = {"execve", "exit_group", "arch_prctl", "rt_sigreturn", "brk", "set_tid_address", "set_robust_list", "rseq"}
ZERNEL, ZERNELD = BUILD / "src/cli/zernel", BUILD / "src/daemon/zerneld"


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.folder.chmod(0o777)  # zerneld runs as another user
        config = cls.folder / "zernel.conf"
        config.write_text("[scheduler]\nattach=auto\n[gpu]\nsample=no\n")
        database = cls.folder / "procdb"
        subprocess.run([BUILD / "tests/daemon/make_procdb", database, "20"], check=True)
        recording = SOURCE / "tests/golden/fixture/recording.zr"
        cls.commands = {
            "config": [ZERNEL, "config", "check", config],
            "print-config": [ZERNELD, "--config", config, "--print-config"],
            "procdb": [ZERNEL, "procdb", "list", "--file", database, "--socket", cls.folder / "none"],
            "csv": [ZERNEL, "export", recording, "--csv", cls.folder / "csv"],
            "perfetto": [ZERNEL, "export", recording, "--perfetto", cls.folder / "perfetto"],
            "replay": [ZERNEL, "replay", recording],
            "status": [ZERNEL, "status", "--socket", cls.folder / "none"],
            "doctor": [ZERNEL, "doctor", "--socket", cls.folder / "none"],
            "zerneld": [sys.executable, pathlib.Path(__file__).with_name("session.py"), ZERNELD],
        }
        cls.steps = {"doctor": 4 * STEP, "zerneld": 100 * STEP}  # these take long

    def selected(self):
        """All programs, or the one that FAULT_PROGRAM names."""
        return [(name, command) for name, command in self.commands.items() if name == os.environ.get("FAULT_PROGRAM", name)]

    def run_one(self, command, **environment):
        """session.py gets what else is needed to run its program, which is then the one with the fault."""
        if command[-3:-1] == self.commands["zerneld"][:2]:
            preload = [f"LD_PRELOAD={environment.pop('LD_PRELOAD')}"] if environment else []
            command = [*command[-3:], "env", *preload, *command[:-3]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        return done.returncode, done.stdout.decode(errors="replace")[-400:]

    def alloc(self, command, at, sticky):
        """Returns the number of allocations and of those that were not freed."""
        report = self.folder / "report"
        report.unlink(missing_ok=True)
        environment = {"LD_PRELOAD": str(BUILD / "tests/faults/libinject.so"), "FAULT_AT": str(at), "FAULT_REPORT": str(report)}
        if sticky:
            environment["FAULT_STICKY"] = "1"
        code, text = self.run_one(command, **environment)
        self.assertGreaterEqual(code, 0, f"{command}: allocation {at} fails{' from there on' if sticky else ''}: {text}")
        return tuple(map(int, report.read_text().split())) if report.exists() and not sticky else (0, 0)

    def test_allocations(self):
        for name, command in self.selected():
            total, live = self.alloc(command, 0, False)
            self.assertGreater(total, 0, f"{name} made no allocation")
            leaks = []
            faults = range(1, total + 1, self.steps.get(name, STEP))
            for at in faults:
                self.alloc(command, at, True)
                _, kept = self.alloc(command, at, False)
                leaks += [at] if kept > live else []
            print(f"# {name}: {total} allocations, {2 * len(faults)} faults, {live} not freed without a fault, "
                  f"{len(leaks)} runs kept more", flush=True)
            self.assertEqual(leaks, [], f"{name}: {command}")

    def calls_of(self, command):
        log = self.folder / "trace"
        log.unlink(missing_ok=True)
        self.run_one(["strace", "-f", "-o", log, *command])
        return collections.Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.M))

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_system_calls(self):
        for name, command in self.selected():
            calls = {call: nr for call, nr in self.calls_of(command).items() if call not in SKIPPED}
            places = [(call, at) for call, nr in sorted(calls.items()) for at in range(1, nr + 1)][::self.steps.get(name, STEP)]
            for number, (call, at) in enumerate(places):
                error = ERRORS[number % len(ERRORS)]
                for when in f"{at}", f"{at}+":
                    inject = f"inject={call}:error={error}:when={when}"
                    try:
                        code, text = self.run_one(["strace", "-f", "-o", "/dev/null", "-e", inject, *command])
                    except subprocess.TimeoutExpired:
                        self.fail(f"{name} hangs: {inject}")
                    # strace ends by the same signal as the program.
                    self.assertGreaterEqual(code, 0, f"{name}: {inject}: {text}")
            print(f"# {name}: {sum(calls.values())} calls of {len(calls)} kinds, {2 * len(places)} faults", flush=True)


if __name__ == "__main__":
    tap.main()
