# SPDX-License-Identifier: GPL-2.0-or-later
"""`zernel procdb export --format v2`, checked with a reader that was written only from the description of the format."""
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

import tap

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNEL = BUILD / "src/cli/zernel"
HEADER = struct.Struct("<4sII")  # magic, version, count
ENTRY = struct.Struct("<16sB7xQQQQII")  # comm, tier, padding, average, deviation, wakeups, switches, observations, votes
FIELDS = "tier average deviation wakeups switches observations votes".split()


def read_reference(content):
    """Returns the profiles by name, as the reference reads them. It ignores bytes after the last entry."""
    magic, version, count = HEADER.unpack_from(content)
    if magic != b"PDDB" or version != 2 or len(content) < HEADER.size + count * ENTRY.size:
        raise ValueError("not a version 2 database")
    profiles = {}
    for i in range(count):
        comm, *values = ENTRY.unpack_from(content, HEADER.size + i * ENTRY.size)
        profiles[comm.rstrip(b"\0").decode()] = dict(zip(FIELDS, values))
    if len(profiles) != count:
        raise ValueError("a name occurs twice")
    return profiles


def write_reference(profiles, trailing=b""):
    entries = b"".join(ENTRY.pack(name.encode(), *(p[field] for field in FIELDS)) for name, p in profiles.items())
    return HEADER.pack(b"PDDB", 2, len(profiles)) + entries + trailing


class Export(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def zernel(self, *words):
        done = subprocess.run([ZERNEL, "procdb", *words, "--file", "db"], cwd=self.directory, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_the_reference_can_read_an_export(self):
        subprocess.run([BUILD / "tests/daemon/make_procdb", self.directory / "db", "50"], check=True)
        self.assertIn("50 profiles exported", self.zernel("export", "--format", "v2", "copy"))
        content = (self.directory / "copy").read_bytes()
        self.assertEqual(len(content), 12 + 50 * 64)
        profiles = read_reference(content)
        self.assertEqual(sorted(profiles), sorted(f"prog{i}" for i in range(50)))
        self.assertEqual(profiles["prog7"], {"tier": 0, "average": 1_000_000, "deviation": 0, "wakeups": 0,
                                             "switches": 0, "observations": 4, "votes": 4})

    def test_a_file_of_the_reference_survives_import_and_export(self):
        wrote = {
            "cc1": dict(zip(FIELDS, (0, 9_000_000, 1_000_000, 3, 5, 40, 8))),
            "pipewire": dict(zip(FIELDS, (2, 200_000, 20_000, 64, 512, 4_000_000_000, 8))),
            "fifteen-letters": dict(zip(FIELDS, (1, 1, 0, 0, 0, 3, 3))),
        }
        (self.directory / "theirs").write_bytes(write_reference(wrote, trailing=b"tail"))
        said = self.zernel("import", "theirs")
        self.assertIn("theirs: 4 bytes follow the last of 3 entries of version 2 and are ignored", said)
        self.assertIn("3 profiles imported", said)
        shown = self.zernel("show", "cc1", "--json")
        self.assertIn('"wakeups_per_s": 30', shown)
        self.assertIn('"switches_per_s": 50', shown)
        self.zernel("export", "--format", "v2", "ours")
        self.assertEqual(read_reference((self.directory / "ours").read_bytes()), wrote)


if __name__ == "__main__":
    tap.main()
