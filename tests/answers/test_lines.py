# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel why --lines with a fake zerneld: the request, and files that other programs read."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import tap
from fake_zerneld import FakeZerneld

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
FIXTURE = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "tests/golden/fixture/snapshot.json"
MS = 1000000
HOSTILE = "<script>alert(1)</script> & \"q\" '; \x1b[31m \x00 \ufffe \u202e"
FRAMES = [
    {"function": "train", "file": "/home/u/train.py", "line": 180, "kind": "python"},
    {"function": "collate", "file": "/home/u/train.py", "line": 142, "kind": "python"},
    {"function": HOSTILE, "file": HOSTILE * 100, "line": 1, "kind": "python"},
    {"function": "guess", "file": "guess.so", "line": 9, "kind": "unknown"},
]


KERNELS = [{"kind": "kernel", "name": "gemm", "cut": False}, {"kind": "kernel", "name": HOSTILE, "cut": True},
           {"kind": "graph", "name": "", "cut": False}]


def stack(ns, *frames, cut=False, cause="cpu", **kernels):
    return {"cause": cause, "tid": 7, "role": "launcher", "ns": ns, "samples": ns // (10 * MS), "cut": cut,
            "frames": list(frames), **kernels}


LINES = {"pid": 1000, "start_ns": 1, "window_ns": 1000 * MS, "idle_ns": 310 * MS, "samples": 31, "dropped": 0,
         "unreadable": 0, "frames": FRAMES, "kernels": KERNELS,
         "stacks": [stack(220 * MS, 0, 1, after=0, before=1), stack(60 * MS, 0, 2, after=2), stack(20 * MS, 0, 3), stack(10 * MS, 1, cut=True)]}


def messages(text):
    """The parts of what `protoc --decode_raw` prints, as (field, value) pairs; the value of a message is such a list."""
    top = []
    path = [top]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            path.pop()
        elif line.endswith("{"):
            path[-1].append((int(line.split()[0]), []))
            path.append(path[-1][-1][1])
        else:
            field, _, value = line.partition(": ")
            path[-1].append((int(field), value))
    return top


class Lines(unittest.TestCase):
    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = str(directory / "zernel.sock")
        snapshot = json.loads(FIXTURE.read_text(encoding="utf-8"))
        snapshot["processes"], self.others = snapshot["processes"][:1], snapshot["processes"][1:]
        self.pid = snapshot["processes"][0]["pid"]
        self.zerneld = FakeZerneld(self.path, snapshot)
        self.zerneld.lines = LINES
        self.addCleanup(self.zerneld.start().stop)

    def why(self, *words, status=0):
        done = subprocess.run([BUILD / "src/cli/zernel", "why", "--lines", "--socket", self.path, *words],
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done)
        return done.stdout if status == 0 else (done.stdout + done.stderr).decode()

    def test_request_and_sentence(self):
        text = self.why("--seconds", "1").decode()
        self.assertEqual(self.zerneld.lines_asked, [{"pid": self.pid, "seconds": 1}])
        self.assertTrue(text.startswith("process 1000: idle 31 %: 23 points in collate() train.py:142, 6 in "), text)
        self.assertNotIn("guess", text)
        self.assertNotIn("\033", text)

    def test_process_can_be_named(self):
        self.why(str(self.pid))
        self.assertIn("no matching process", self.why("999999", status=3))

    def test_several_processes_need_a_name(self):
        self.zerneld.snapshot["processes"] += self.others
        text = self.why(status=1)
        self.assertIn("name one by its PID", text)
        self.assertIn(f" {self.pid + 1})", text)
        self.why(str(self.pid + 1))
        self.assertEqual(self.zerneld.lines_asked[-1]["pid"], self.pid + 1)

    def test_json(self):
        answer = json.loads(self.why("--json"))
        self.assertEqual([place["function"] for place in answer["places"][:1]], ["collate"])
        self.assertAlmostEqual(answer["places"][0]["points"], 23)
        self.assertEqual(answer["tree"][0]["cause"], "cpu")
        self.assertEqual(answer["tree"][0]["children"][0]["function"], "train")
        self.assertEqual(answer["tree"][0]["children"][0]["children"][0]["line"], 142)
        self.assertEqual(answer["tree"][0]["children"][1]["kind"], "cut")
        first, second, *_ = answer["between"]
        self.assertEqual((first["after"], first["ns"], first["most_in"]["line"]), (KERNELS[0], 220 * MS, 142))
        self.assertTrue(first["before"]["name"].startswith("<script>alert(1)</script>") and first["before"]["cut"])
        self.assertNotIn("\x1b", first["before"]["name"])
        self.assertEqual((second["after"], second["before"]), ({"kind": "graph"}, {"kind": "unknown"}))

    def test_folded_adds_up(self):
        rows = [line.rpartition(" ") for line in self.why("--folded").decode().splitlines()]
        self.assertEqual(sum(int(ns) for _, _, ns in rows), 310 * MS)
        self.assertIn("launcher computed;train() train.py:180;collate() train.py:142", [path for path, _, _ in rows])

    def test_svg_is_valid_and_has_only_boxes_and_text(self):
        root = xml.etree.ElementTree.fromstring(self.why("--svg"))
        names = {element.tag.rpartition("}")[2] for element in root.iter()}
        self.assertEqual(names, {"svg", "title", "style", "rect", "text"})
        for element in root.iter():
            self.assertLessEqual(set(element.attrib), {"x", "y", "width", "height", "class", "role"})
        titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("collate() train.py:142: 22.0 points, 220.0 ms, 22 samples", titles)
        self.assertTrue(any("<script>alert(1)</script>" in title for title in titles))

    @unittest.skipUnless(shutil.which("protoc"), "protoc is not installed")
    def test_pprof_is_read_by_protoc(self):
        """Field numbers are those of the format, and not read from the schema that Zernel is built with."""
        text = subprocess.run(["protoc", "--decode_raw"], input=self.why("--pprof"), capture_output=True,
                              check=True).stdout.decode()
        profile = messages(text)
        strings = [json.loads(re.sub(r"\\([0-7]{3})", lambda found: f"\\u{int(found[1], 8):04x}",
                                     value.replace("\\'", "'"))) for field, value in profile if field == 6]
        self.assertEqual(strings[0], "")
        types = [[strings[int(value)] for _, value in message] for field, message in profile if field == 1]
        self.assertEqual(types, [["samples", "count"], ["idle", "nanoseconds"]])
        functions = {dict(message)[1]: (strings[int(dict(message)[2])], strings[int(dict(message)[4])])
                     for field, message in profile if field == 5}
        places = {}
        for field, message in profile:
            if field == 4:
                line = dict(dict(message)[4])
                places[dict(message)[1]] = (*functions[line[1]], int(line.get(2, 0)))
        self.assertIn(("collate", "/home/u/train.py", 142), places.values())
        self.assertIn(("[unknown]", "", 0), places.values())
        self.assertNotIn("guess", strings)
        samples = [message for field, message in profile if field == 2]
        self.assertEqual(len(samples), len(LINES["stacks"]))
        labels = [{strings[int(dict(label)[1])]: strings[int(dict(label)[2])] for field, label in sample
                   if field == 3 and 2 in dict(label)} for sample in samples]
        self.assertEqual((labels[0]["after_kernel"], labels[1]["after_kernel"]), ("gemm", "a CUDA or HIP graph"))
        self.assertTrue(labels[0]["before_kernel"].startswith("<script>"), labels[0])
        self.assertFalse([label for label in labels[1:] if "before_kernel" in label])
        self.assertEqual(dict(profile)[10], str(1000 * MS))

    def test_older_zerneld(self):
        self.zerneld.lines = None
        text = self.why(status=1)
        self.assertIn('does not know the request "lines": it is older than this command', text)
        self.assertIn("systemctl restart zerneld", text)

    def test_invalid_reply(self):
        self.zerneld.lines = dict(LINES, stacks=[stack(1, 99)])
        self.assertIn("zerneld sent invalid stacks", self.why(status=1))
        self.zerneld.lines = dict(LINES, stacks=[stack(1, 0, after=len(KERNELS))])
        self.assertIn("zerneld sent invalid stacks", self.why(status=1))

    def test_zerneld_that_knows_no_kernels(self):
        self.zerneld.lines = {key: value for key, value in LINES.items() if key != "kernels"}
        self.zerneld.lines["stacks"] = [stack(220 * MS, 0, 1)]
        self.assertIn("collate() train.py:142", self.why().decode())
        self.assertNotIn("between kernels", self.why().decode())

    def test_words_that_do_not_fit(self):
        for words in ("--watch",), ("--ended", "job"), ("--json", "--svg"):
            self.assertIn("cannot be combined", self.why(*words, status=2))
        done = subprocess.run([BUILD / "src/cli/zernel", "why", "--svg"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"need --lines", done.stderr)


if __name__ == "__main__":
    tap.main()
