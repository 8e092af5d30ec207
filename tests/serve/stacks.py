# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of a process as zerneld sends them, with known times."""
MS = 1000000
HOSTILE = "<img src=x onerror=alert(1)>\u202e"
FRAMES = [("<module>", "train.py", 210), ("train", "train.py", 180), ("collate", "train.py", 142), ("DataLoader.__next__", "dataloader.py", 701),
          ("_get_data", "dataloader.py", 1284), ("log_metrics", "metrics.py", 33), (HOSTILE, HOSTILE + ".py", 7)]
# Milliseconds of 1000, cause, frames.
STACKS = [(220, "cpu", (0, 1, 2)), (60, "loader_cpu", (0, 1, 3, 4)), (20, "cpu", (0, 1, 5)), (6, "cpu", (0, 1, 6)), (4, "cpu", (0, 1))]


def stacks(pid):
    return {"pid": pid, "start_ns": 1, "window_ns": 1000 * MS, "idle_ns": 310 * MS, "open_ns": 0, "samples": 31, "dropped": 0, "unreadable": 0,
            "frames": [{"function": name, "file": f"/home/u/{file}", "line": line, "kind": "python"} for name, file, line in FRAMES],
            "stacks": [{"cause": cause, "tid": pid, "role": "launcher", "ns": ms * MS, "open_ns": 0, "samples": ms // 10, "cut": False,
                        "frames": list(frames)} for ms, cause, frames in STACKS]}
