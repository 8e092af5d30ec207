# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording as one file: `zernel export --html`, opened from the disk."""
import json
import pathlib
import re
import subprocess
import urllib.parse

import tap
from dashboard import WebCase, note
from harness import ZERNEL


class Export(WebCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.zr = pathlib.Path(cls.folder.name) / "job.zr"
        cls.html = pathlib.Path(cls.folder.name) / "job.html"
        subprocess.run([ZERNEL, "record", "--socket", cls.path, "--seconds", "6", cls.zr], check=True, capture_output=True)
        subprocess.run([ZERNEL, "export", cls.zr, "--html", cls.html], check=True, capture_output=True)
        note(f"recording {cls.zr.stat().st_size} bytes, file {cls.html.stat().st_size} bytes")
        found = re.search(r'<script type="application/json" id="zernel-data">(.*?)</script>', cls.html.read_text(), re.S)
        cls.data = json.loads(found.group(1))

    def open_file(self, fragment):
        self.driver.get("about:blank")
        self.driver.get(f"file://{urllib.parse.quote(str(self.html))}{fragment}")

    def test_answers_are_those_of_the_data(self):
        self.open_file("#/now")
        self.wait(".pill", "Recording")
        self.assertEqual(set(self.texts(".sentence")), {job["answer"] for job in self.data["why"]["jobs"]})

    def test_bars_are_those_of_the_data(self):
        job = next(each for each in self.data["why"]["jobs"] if each["name"] == "slurm-4711")
        self.open_file("#/job/slurm-4711")
        self.wait(".bar-row", "rank 7")
        ranks = sorted(job["processes"], key=lambda process: process["rank"])
        self.assertEqual(self.texts(".bar-value"), [f"{100 * each['idle_ns'] / (each['idle_ns'] + each['busy_ns']):.1f} %" for each in ranks])
        self.wait(".lanes canvas")
        self.wait(".area canvas")

    def test_all_pages_work_without_a_server(self):
        for page, text in (("scheduler", "Classes"), ("compare", "A and B"), ("health", "Probes")):
            self.open_file(f"#/{page}")
            self.wait("h2", text)

    def test_two_files_can_be_compared(self):
        self.open("#/compare")
        for field in self.wait(lambda: self.find("input[type=file]")):
            field.send_keys(str(self.html))
        self.wait(".bar-row", "A  job.html")
        self.wait(".bar-row", "B  job.html")


if __name__ == "__main__":
    tap.main()
