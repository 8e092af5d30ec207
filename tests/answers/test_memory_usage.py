# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests with a fake zerneld what `zernel memory --seconds` says of what PyTorch has allocated over time."""
import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import tap
from fake_zerneld import FakeZerneld

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
FIXTURE = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "tests/golden/fixture/snapshot.json"
GIB = 1 << 30
SECOND = 10**9


def part(allocated, reserved, reports=1):
    return {"reports": reports, "allocated_bytes": allocated, "reserved_bytes": reserved, "allocated_most_bytes": allocated,
            "reserved_then_bytes": reserved}


def usage(*gpus):
    return {"pid": 1, "start_ns": 1, "window_ns": 10 * SECOND, "part_ns": SECOND // 2, "gpus": list(gpus)}


USAGE = usage({"gpu": 0, "parts": [None, part(30 * GIB, 40 * GIB, 1200), part(20 * GIB, 40 * GIB, 0)]},
              {"gpu": None, "parts": [part(GIB, GIB)]})


class Zerneld(FakeZerneld):
    reply = None

    def _answer(self, client, state, request):
        if request["method"] != "memory":
            super()._answer(client, state, request)
            return
        self.wanted = request["params"]
        self._send(client, {"id": request["id"], **self.reply})


class Usage(unittest.TestCase):
    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        snapshot = json.loads(FIXTURE.read_text(encoding="utf-8"))
        self.pid = next(each["pid"] for each in snapshot["processes"] if each["launcher_tid"])
        self.zerneld = Zerneld(str(directory / "zernel.sock"), snapshot)
        self.zerneld.ended, self.zerneld.lives = snapshot, {"job": snapshot}
        self.addCleanup(self.zerneld.start().stop)

    def ask(self, reply, *words):
        self.zerneld.reply = reply if "error" in reply else {"result": {"usage": reply}}
        return subprocess.run([BUILD / "src/cli/zernel", "memory", "--seconds", "10", str(self.pid), *words, "--socket", self.zerneld.path],
                              capture_output=True, text=True, timeout=60, check=False)

    def test_text(self):
        done = self.ask(USAGE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.zerneld.wanted, {"pid": self.pid, "seconds": 10})
        self.assertEqual(done.stdout.splitlines(), [
            "GPU 0: PyTorch allocated at most 30.0 GiB; of the 40.0 GiB that it had reserved then, 10.0 GiB (25 %) was unused. "
            "It is in pieces that are too small (fragmentation), or left from an earlier peak; other processes cannot use it.",
            "  TIME  ALLOCATED  RESERVED    UNUSED       REPORTS",
            "0.50 s   30.0 GiB  40.0 GiB  10.0 GiB  25%     1200",
            "1.00 s   20.0 GiB  40.0 GiB  20.0 GiB  50%        0",
            "An unknown GPU: PyTorch allocated at most 1.0 GiB; of the 1.0 GiB that it had reserved then, 0 B (0 %) was unused.",
            "  TIME  ALLOCATED  RESERVED  UNUSED      REPORTS",
            "0.00 s    1.0 GiB   1.0 GiB     0 B  0%        1"])

    def test_json(self):
        answer = json.loads(self.ask(USAGE, "--json").stdout)
        self.assertEqual((answer["pid"], answer["window_ns"], answer["part_ns"]), (1, 10 * SECOND, SECOND // 2))
        first, second = answer["gpus"]
        self.assertEqual((first["gpu"], first["reports"], first["parts"][0]), (0, 1200, None))
        self.assertEqual(first["parts"][1], {**part(30 * GIB, 40 * GIB, 1200), "unused_bytes": 10 * GIB})
        self.assertEqual(second["gpu"], None)
        self.assertIn("at most 30.0 GiB", first["answer"])

    def test_nothing_was_reported(self):
        done = self.ask(usage())
        self.assertEqual(done.returncode, 3)
        self.assertIn("reported no allocation or release of GPU memory in 10.0 s", done.stdout)
        self.assertEqual(json.loads(self.ask(usage(), "--json").stdout)["gpus"], [])

    def test_refusals(self):
        done = self.ask({"error": {"code": "not-found", "message": "process 1 is not known to use PyTorch"}})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("not known to use PyTorch", done.stderr)
        done = self.ask({"error": {"code": "unknown-method", "message": "unknown method"}})
        self.assertIn("it is older than this command", done.stderr)

    def test_invalid_replies(self):
        """Each value is left out, of another type, or too large."""
        def places(value):
            yield from value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()

        def variants(value, root):
            for key, child in list(places(value)):
                for wrong in None, "1", -1, 1 << 63, {}:
                    if child is None or (wrong is None and (key == "gpu" or isinstance(child, dict))) or key == "start_ns":
                        continue
                    value[key] = wrong
                    yield copy.deepcopy(root), (key, wrong)
                value[key] = child
                yield from variants(child, root)

        root = copy.deepcopy(USAGE)
        nr = 0
        for reply, what in variants(root, root):
            done = self.ask(reply)
            self.assertEqual((done.returncode, done.stdout), (1, ""), what)
            self.assertIn("zerneld sent invalid sizes", done.stderr)
            nr += 1
        self.assertGreater(nr, 50)
        for reply in (usage(*[USAGE["gpus"][1]] * 17), usage({"gpu": 0, "parts": [None] * 21})):
            self.assertEqual(self.ask(reply).returncode, 1)


if __name__ == "__main__":
    tap.main()
