# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages and completion are those of the tables, and bash completes by them."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
PACKAGING = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "packaging"
ZERNEL = BUILD / "src/cli/zernel"


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8")
            for pattern in ("man/*.1", "completion/*") for path in directory.glob(pattern)}


def help_of(*words):
    return subprocess.run([ZERNEL, *words, "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(*words):
    """The names that --help lists."""
    return [line.split()[0] for line in help_of(*words).splitlines()
            if line.startswith("  ") and line[2:3].isalpha()]


class Files(unittest.TestCase):
    def test_what_is_shipped_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([BUILD / "src/cli/zernel-docs", directory], check=True)
            made, shipped = files_of(pathlib.Path(directory)), files_of(PACKAGING)
        self.assertEqual(sorted(made), sorted(shipped), "out/gcc/src/cli/zernel-docs packaging")
        for name, text in made.items():
            self.assertEqual(text, shipped[name], f"{name} is old: out/gcc/src/cli/zernel-docs packaging")

    def test_each_command_has_a_page_with_its_options(self):
        for name in commands_of():
            page = (PACKAGING / f"man/zernel-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
            for words in [(name, each) for each in commands_of(name)] or [(name,)]:
                for line in help_of(*words).splitlines():
                    if line.startswith("  --"):
                        self.assertIn(f".B {line.split()[0]}", page)


class Bash(unittest.TestCase):
    def completed(self, *words):
        """What bash offers for the last word."""
        script = f'source "{PACKAGING}/completion/zernel.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
                 '_zernel; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", "zernel", *words], capture_output=True, text=True,
                              check=True, cwd=self.directory)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        (pathlib.Path(self.directory) / "mine.conf").touch()

    def test_commands(self):
        self.assertEqual(self.completed(""), commands_of() + ["--help"])
        self.assertEqual(self.completed("st"), ["status"])
        self.assertEqual(self.completed("procdb", ""), commands_of("procdb") + ["--help"])
        self.assertEqual(self.completed("config", "ch"), ["check"])
        self.assertEqual(self.completed("fry", "st"), ["status"])

    def test_options(self):
        self.assertEqual(self.completed("status", "--"), ["--json", "--socket", "--help"])
        self.assertEqual(self.completed("procdb", "forget", "--a"), ["--all"])
        self.assertEqual(self.completed("serve", "--tls-k"), ["--tls-key"])

    def test_files_where_files_are_meant(self):
        self.assertEqual(self.completed("status", "--socket", "mi"), ["mine.conf"])
        self.assertEqual(self.completed("config", "check", "mi"), ["mine.conf"])
        self.assertEqual(self.completed("status", "mi"), [])
        self.assertEqual(self.completed("serve", "--port", "mi"), [])


if __name__ == "__main__":
    tap.main()
