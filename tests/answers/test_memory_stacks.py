# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests with a fake zerneld when zernel asks for the stacks of out-of-memory errors."""
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
NR = 20


def oom(i):
    return {"errors": 1, "time_ns": i, "time_ms": i, "gpu": 0, "tid": i, "asked_bytes": 1, "allocated_bytes": 1, "reserved_bytes": 1,
            "others_ns": 0, "others_bytes": 0, "nr_others": 0, "others": []}


def lines(i):
    return {"pid": i, "start_ns": 1, "window_ns": 0, "idle_ns": 0, "samples": 1, "dropped": 0, "unreadable": 0,
            "frames": [{"function": f"forward{i}", "file": "/home/u/model.py", "line": 31, "kind": "python"}],
            "stacks": [{"tid": i, "role": "other", "ns": 0, "open_ns": 0, "samples": 1, "cut": False, "frames": [0]}]}


class Zerneld(FakeZerneld):
    error = None      # the reply to each request for a stack
    hangs_up = False  # at such a request

    def _answer(self, client, state, request):
        if request["method"] != "oom.stack":
            super()._answer(client, state, request)
            return
        self.methods.append("oom.stack")
        if self.hangs_up:
            client.close()
            del self.clients[client]
        elif self.error:
            self._send(client, {"id": request["id"], "error": {"code": self.error, "message": "none"}})
        else:
            self._send(client, {"id": request["id"], "result": {"lines": lines(request["params"]["time_ns"])}})


class Stacks(unittest.TestCase):
    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        snapshot = json.loads(FIXTURE.read_text(encoding="utf-8"))
        first = snapshot["processes"][0]
        snapshot["processes"] = [dict(copy.deepcopy(first), oom=oom(i)) for i in range(1, NR + 1)]
        snapshot["threads"], snapshot["communicators"] = [], []
        self.zerneld = Zerneld(str(directory / "zernel.sock"), snapshot)
        self.zerneld.ended, self.zerneld.lives = snapshot, {"job": snapshot}
        self.addCleanup(self.zerneld.start().stop)

    def zernel(self, *words):
        done = subprocess.run([BUILD / "src/cli/zernel", *words, "--socket", self.zerneld.path], capture_output=True, text=True, timeout=60,
                              check=False)
        return done.stdout, self.zerneld.methods.count("oom.stack")

    def test_each_stack_is_shown(self):
        text, nr = self.zernel("memory")
        self.assertEqual((text.count("was out of memory"), nr), (NR, NR), text)
        for i in range(1, NR + 1):
            self.assertIn(f"  forward{i}() model.py:31\n", text)

    def test_a_stack_that_is_not_kept_does_not_hide_the_others(self):
        self.zerneld.error = "not-found"
        text, nr = self.zernel("memory")
        self.assertEqual((text.count("was out of memory"), nr), (NR, NR), text)

    def test_an_older_zerneld_is_asked_once(self):
        self.zerneld.error = "unknown-method"
        text, nr = self.zernel("memory")
        self.assertEqual((text.count("was out of memory"), nr), (NR, 1), text)

    def test_a_connection_that_ends_is_not_opened_again(self):
        self.zerneld.hangs_up = True
        text, nr = self.zernel("memory")
        self.assertEqual((text.count("was out of memory"), nr), (NR, 1), text)

    def test_only_the_text_about_an_ended_job_has_stacks(self):
        text, nr = self.zernel("why", "--ended", "--json", "job")
        self.assertEqual(nr, 0, text)
        text, nr = self.zernel("why", "--ended", "job")
        self.assertEqual((text.count("() model.py:31\n"), nr), (NR, NR), text)


if __name__ == "__main__":
    tap.main()
