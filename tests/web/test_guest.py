# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard of a real node, in a guest: zerneld with its BPF programs, a job of the lab, and Chromium."""
import json
import os
import pathlib
import re
import subprocess

import tap
from dashboard import WebCase, note
from harness import BUILD, USER, ZERNEL

LAB = BUILD / "lab"
READERS = 4242
GROUP = pathlib.Path("/sys/fs/cgroup/training")
# Two ranks whose GPU waits for data most of the time.
JOB = "--ranks 2 --loaders 1 --launches 4 --kernel-us 20000 --optimizer-us 3000 --sync block --load-cpu-us 300000 --prefetch 1 " \
    "--startup-ms 60000 --seconds 100000"
POINTS = 15  # between two windows of a few steps each
os.environ["HOME"] = "/tmp"  # Chromium writes there, and the root of the guest is read-only
PAGES = {"#/job": ".list a", "#/scheduler": ".command", "#/compare": ".choice option", "#/health": ".stat"}


def without_figures(text):
    return re.sub(r"(between )?\d+(\.\d+)?( and \d+(\.\d+)?)? (%|s)", "N", text)


class Node:
    """Has the methods of a fake zerneld that WebCase uses."""

    def __init__(self, path, _scene):
        folder = pathlib.Path(path).parent
        self.config = folder / "zernel.conf"
        self.config.write_text(f"[scheduler]\nattach=no\n[learning]\nstate_directory={folder}/state\n[socket]\npath={path}\n"
                               "[gpu]\ndevice_files=/dev/zernel-vgpu0\nsample=no\n")
        groups = folder / "group"
        groups.write_text(pathlib.Path("/etc/group").read_text() + f"zernel:x:{READERS}:{USER}\n")
        subprocess.run(["mount", "--bind", groups, "/etc/group"], check=True)
        self.gpus = folder / "vgpu"
        self.gpus.touch()
        self.gpus.chmod(0o666)
        self.processes = []

    def start(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(LAB / "vgpu"), "VGPU_SHM": str(self.gpus), "VGPU_DEVICES": "2"}
        GROUP.mkdir(exist_ok=True)
        self.processes = [
            subprocess.Popen([BUILD / "src/daemon/zerneld", "--config", self.config]),
            subprocess.Popen([LAB / "train/train", *JOB.split()], env=environment, stdout=subprocess.DEVNULL,
                             preexec_fn=lambda: (GROUP / "cgroup.procs").write_text("0"))]
        return self

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


class Guest(WebCase):
    """The tests run in the order of their names."""

    kind = Node

    def why(self):
        done = subprocess.run([ZERNEL, "why", "--json", "--seconds", "20", "--socket", self.path], check=True, capture_output=True)
        return json.loads(done.stdout)["jobs"][0]

    def test_1_now_has_the_sentence_of_why(self):
        self.open()
        self.wait("tr.process", "train")
        told = self.why()
        note(told["answer"])
        self.wait(lambda: without_figures(told["answer"]) in map(without_figures, self.texts(".sentence")))
        note(self.texts(".sentence")[0])

    def test_2_job_has_the_shares_of_why(self):
        told = self.why()
        self.open(f"#/job/{told['name']}")
        self.wait(".bar-row", "rank 1")
        self.wait(".area canvas")
        self.wait(".lanes canvas")
        shown = [float(text.split()[0].rstrip("%")) for text in self.texts(".bar-value")]
        idle = [100 * each["idle_ns"] / (each["idle_ns"] + each["busy_ns"]) for each in told["processes"] if each["rank"] >= 0]
        note(f"idle on the page: {shown} %, by zernel why: {[round(each, 1) for each in idle]} %")
        self.assertEqual(len(shown), len(idle))
        for page, cli in zip(shown, idle):
            self.assertAlmostEqual(page, cli, delta=POINTS)

    def test_3_the_other_pages_have_their_data(self):
        for page, css in PAGES.items():
            self.open(page)
            self.wait(css)
            self.wait(lambda: "Loading." not in self.text() and "Waiting" not in self.text())


if __name__ == "__main__":
    tap.main()
