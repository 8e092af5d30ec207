# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of recordings: the commands, and synthetic recordings."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNEL = BUILD / "src/cli/zernel"
SECOND = 1_000_000_000


def zernel(*words, status=0):
    """The standard output and the standard error of a command."""
    done = subprocess.run([ZERNEL, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, (words, done)
    return done.stdout, done.stderr


def snapshot(time_ns, processes=(), threads=(), gpus=(), version=2, **more):
    return {"version": version, "time_ms": 1_700_000_000_000 + time_ns // 1_000_000, "monotonic_ns": time_ns,
            "host": "node-1", "processes": list(processes), "threads": list(threads), "gpus": list(gpus), **more}


def process(pid, phase="unknown", start_ns=1, **more):
    return {"pid": pid, "start_ns": start_ns, "phase": phase, "comm": f"train{pid}", "launcher_tid": pid, **more}


def events(*rows, lost=0):
    return {"lost": lost, "events": list(rows)}


def stacks(*rows, **more):
    """The stacks of a window: a row is the cause, the thread, nanoseconds, whether it is cut, and indexes of frames."""
    frames = [{"function": "main", "file": "/home/u/train.py", "line": 9, "kind": "python"},
              {"function": "col\x1blate", "file": "data.py", "line": 142, "kind": "python"},
              {"function": "cudaMallocHost", "file": "", "line": 0, "kind": "call"},
              {"function": "guess", "file": "guess.so", "line": 9, "kind": "unknown"}]
    made = [{"cause": cause, "tid": tid, "role": "launcher", "ns": ns, "open_ns": 5, "samples": 1, "cut": cut, "frames": places}
            for cause, tid, ns, cut, *places in rows]
    return {"lines": {"pid": 7, "start_ns": 1, "window_ns": 100, "idle_ns": 60, "open_ns": 0, "samples": 3, "dropped": 0,
                      "unreadable": 0, "frames": frames, "kernels": [], "stacks": made, **more}}


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def recording(self, *frames, end=True):
        """A file of these frames: a dict with a version is a snapshot, one with lines has stacks, any other events."""
        lines = [f"{'snapshot' if 'version' in frame else 'stacks' if 'lines' in frame else 'events'} {json.dumps(frame)}"
                 for frame in frames]
        options = ["--stacks"] * any("lines" in frame for frame in frames)
        made = subprocess.run([BUILD / "tests/record/make", *options], input="\n".join(lines + ["end"] * end).encode(),
                              stdout=subprocess.PIPE, check=True).stdout
        path = self.directory / "made.zr"
        path.write_bytes(made)
        return path
