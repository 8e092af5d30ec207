# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages and completion files match the tables of commands, and bash completes with them."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import tap
import fake_job

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])
PACKAGING = SOURCE / "packaging"
REFERENCE = SOURCE / "docs/reference"
ZERNEL = BUILD / "src/cli/zernel"
COMMON = ["--json", "--color", "--help", "--version"]


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8")
            for pattern in ("man/*.1", "completion/*") for path in directory.glob(pattern)}


def help_of(*words):
    return subprocess.run([ZERNEL, *words, "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(*words):
    """The names that --help lists."""
    return [line.split()[0] for line in help_of(*words).splitlines()
            if line.startswith("  ") and line[2:3].isalpha()]


def all_commands(*words):
    """The words of every command and subcommand, and of the groups."""
    yield words
    for name in commands_of(*words):
        yield from all_commands(*words, name)


class Files(unittest.TestCase):
    def test_generated_files_are_up_to_date(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([BUILD / "src/cli/zernel-docs", directory, directory], check=True)
            made, shipped = files_of(pathlib.Path(directory)), files_of(PACKAGING)
            pages = {page.name: page.read_text(encoding="utf-8") for page in pathlib.Path(directory).glob("*.md")}
        self.assertEqual(sorted(made), sorted(shipped), "run ./dev docs")
        for name, text in made.items():
            self.assertEqual(text, shipped[name], f"{name} is out of date: run ./dev docs")
        self.assertEqual(sorted(pages), ["cli.md", "config.md", "runtimes.md"])
        for name, text in pages.items():
            self.assertEqual(text, (REFERENCE / name).read_text(encoding="utf-8"),
                             f"docs/reference/{name} is out of date: run ./dev docs")

    def test_each_command_has_a_page_with_its_options(self):
        for name in commands_of():
            page = (PACKAGING / f"man/zernel-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
            for words in [(name, each) for each in commands_of(name)] or [(name,)]:
                for line in help_of(*words).splitlines():
                    if option := re.match(r"  (-\w, |    )(--[\w-]+)", line):
                        self.assertIn(f".B {option[1].strip()} {option[2]}".replace("  ", " "), page)

    def test_help_of_each_command_fits_in_80_columns(self):
        for words in all_commands():
            text = help_of(*words)
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [], words)
            for option in COMMON:
                self.assertRegex(text, rf"(?m)^  (-\w, |    ){option}\b", words)
            self.assertIn("\nExit status:\n  0    ", text)
            self.assertRegex(text, r"\n  \d    Invalid usage", words)

    def test_each_page_has_the_exit_statuses_of_its_help(self):
        for name in commands_of():
            page = (PACKAGING / f"man/zernel-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
            statuses = help_of(name).partition("Exit status:\n")[2]
            for status, text in re.findall(r"(?m)^  (\d+) +(.*(?:\n {7}.*)*)", statuses):
                self.assertIn(f".B {status}\n{' '.join(text.split())}\n", page)


class Bash(unittest.TestCase):
    def completed(self, *words):
        """The words that bash offers for the last word."""
        script = f'source "{PACKAGING}/completion/zernel.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
                 '_zernel; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", "zernel", *words], capture_output=True, text=True,
                              check=True, cwd=self.directory,
                              env={**os.environ, "PATH": f"{ZERNEL.parent}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines() if done.stdout.strip() else []

    def setUp(self):
        # The mask is inherited: `zernel complete` then waits for the answer, however long this machine needs for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        (pathlib.Path(self.directory) / "mine.conf").touch()

    def test_commands(self):
        self.assertEqual(self.completed(""), commands_of() + COMMON)
        self.assertEqual(self.completed("st"), ["status"])
        self.assertEqual(self.completed("procdb", ""), commands_of("procdb") + COMMON)
        self.assertEqual(self.completed("config", "ch"), ["check"])
        self.assertEqual(self.completed("fry", "st"), ["status"])

    def test_options(self):
        self.assertEqual(self.completed("status", "--"), ["--socket", *COMMON])
        self.assertEqual(self.completed("procdb", "forget", "--a"), ["--all"])
        self.assertEqual(self.completed("serve", "--tls-k"), ["--tls-key"])

    def test_values_of_color(self):
        for words in ("status", "--color", "="), ("status", "--color", ""), ("--color", "=", ""):
            self.assertEqual(self.completed(*words), ["auto", "always", "never"])
        self.assertEqual(self.completed("why", "--color", "=", "al"), ["always"])

    def test_completes_pids_and_jobs(self):
        server = fake_job.in_directory(self.directory, 20, 20)
        self.addCleanup(server.stop)
        pid, job = str(fake_job.PID), fake_job.JOB
        for socket in ("--socket", server.path), ("--socket", "=", server.path), (f"--socket={server.path}",):
            self.assertEqual(self.completed("why", *socket, "4"), [pid])
            self.assertEqual(self.completed("ab", *socket, "sl"), [job])
        self.assertEqual(self.completed("why", "--socket", server.path, "slurm\\ 1"), [job])
        self.assertEqual(self.completed("why", "--socket", server.path, ""),
                         ["--seconds", "--watch", "--ended", "--lines", "--folded", "--svg", "--pprof", "--socket", *COMMON, pid, job])
        self.assertEqual(self.completed("why", "--socket", server.path, "--seconds", ""), [])
        self.assertEqual(self.completed("status", "--socket", server.path, "4"), [])

    def test_prints_nothing_without_zerneld(self):
        self.assertEqual(self.completed("why", "--socket", "/nonexistent", "4"), [])
        done = subprocess.run([ZERNEL, "complete", "--", "zernel", "why", "--socket", "/nonexistent"],
                              capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_completes_files(self):
        self.assertEqual(self.completed("status", "--socket", "mi"), ["mine.conf"])
        self.assertEqual(self.completed("config", "check", "mi"), ["mine.conf"])
        self.assertEqual(self.completed("status", "mi"), [])
        self.assertEqual(self.completed("serve", "--port", "mi"), [])


if __name__ == "__main__":
    tap.main()
