# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard of a node in a guest, with zerneld, its BPF programs, a job of the lab and the gateway: see guest_node.py.

Chromium runs outside: an emulated one does not draw a page within minutes.
"""
import json
import pathlib
import re
import socket
import subprocess
import unittest
from urllib.parse import quote

import tap
import dashboard
from dashboard import TREE, WebCase, note, wait_for
from harness import BUILD, free_port

GUEST_S = 900
NR_RANKS = 2
POINTS = 15  # between two windows of a few steps each
PAGES = {"#/job": ".list a", "#/scheduler": ".command", "#/compare": ".choice option", "#/health": ".stat"}
WHY = TREE / "out/web-guest.json"


def without_figures(text):
    """Both ranks are equal, so either can be named."""
    return re.sub(r"(between )?\d+(\.\d+)?( and \d+(\.\d+)?)? (%|s)|rank \d|\d+\)", "N", text)


def shown_percent(text):
    """The largest number of a share, which can be a range."""
    return max(float(each) for each in re.findall(r"\d+\.?\d*", text))


@unittest.skipUnless(pathlib.Path("/var/lib/zernel-kernels").exists(), "no guest kernels found: run ./dev test web-guest")
class Guest(WebCase):
    """The tests run in the order of their names."""

    @classmethod
    def setUpClass(cls):
        cls.port = port = free_port()
        WHY.unlink(missing_ok=True)
        cls.guest = subprocess.Popen([
            "tools/vm", "--timeout", "3000", "--forward", str(port), "--", "env", f"ZERNEL_BUILD={BUILD}", "PYTHONDONTWRITEBYTECODE=1",
            "python3", "-u", "tests/web/guest_node.py", str(port), str(WHY)], cwd=TREE)
        cls.addClassCleanup(cls.stop_guest)
        cls.url = f"http://127.0.0.1:{port}"
        wait_for(lambda: cls.guest.poll() is not None or (WHY.exists() and cls.has_data()), GUEST_S)
        if cls.guest.poll() is not None or not WHY.exists():
            raise RuntimeError("the node in the guest does not answer")
        cls.driver = dashboard.browser()
        cls.addClassCleanup(cls.driver.quit)
        cls.allowed = ["503"]

    @classmethod
    def tearDownClass(cls):
        """Nothing of WebCase is left to stop."""

    @classmethod
    def stop_guest(cls):
        if cls.guest.poll() is None:
            with socket.create_connection(("127.0.0.1", cls.port)) as connection:
                connection.sendall(b"STOP")
        cls.guest.wait()
        WHY.unlink(missing_ok=True)

    def why(self):
        return json.loads(WHY.read_text())["jobs"][0]

    def test_1_now_has_the_sentence_of_why(self):
        self.open()
        self.wait("tr.process", "train")
        self.wait(lambda: without_figures(self.why()["answer"]) in map(without_figures, self.texts(".sentence")))
        note(f"zernel why: {self.why()['answer']}")
        note(f"the page:   {self.texts('.sentence')[0]}")

    def test_2_job_has_the_shares_of_why(self):
        self.open(f"#/job/{quote(self.why()['name'], safe='')}?window=30")
        self.wait(lambda: len(self.find(".bar-row")) == NR_RANKS)
        self.wait(".area canvas")
        self.wait(".lanes canvas")
        shown = dict(zip(self.texts(".bar-name"), map(shown_percent, self.texts(".bar-value"))))
        told = {f"{each['comm']} {each['pid']}": 100 * each["idle_ns"] / (each["idle_ns"] + each["busy_ns"]) for each in self.why()["processes"]}
        note(f"idle on the page, percent: {shown}; by zernel why: { {name: round(share, 1) for name, share in told.items()} }")
        self.assertEqual(sorted(shown), sorted(told))
        for name, share in told.items():
            self.assertAlmostEqual(shown[name], share, delta=POINTS)

    def test_3_the_other_pages_have_their_data(self):
        for page, css in PAGES.items():
            self.open(page)
            self.wait(css)
            self.wait(lambda: "Loading." not in self.text() and "Waiting" not in self.text())


if __name__ == "__main__":
    tap.main()
