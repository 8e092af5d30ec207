# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares idle time by source line with what a Python job knows itself: each share must be within 5 points.

Each run starts the job with other times, beside a zerneld that only watches, in a guest in virtual time. The output is TAP.
"""
import contextlib
import json
import subprocess
import sys

import guest
import harness
from compare import run as lab_run

BOOT_SECONDS, RUN_SECONDS = 1200, 600  # of the machine; virtual time is slow there
WATCH_SECONDS = 10
POINTS = 5
UNREADABLE_MAX = 0.01
FRAMES_MAX = 128
DEPTHS = (60, 200)  # the second one is cut
DEVICES = (("VGPU_DEVICES", "1"),)


@contextlib.contextmanager
def job(seed, truth):
    with subprocess.Popen([sys.executable, "lab/framework/lines_job.py", "--vgpu", f"{guest.BUILD}/lab/vgpu", "--truth", truth,
                           "--seed", str(seed), "--depth", str(DEPTHS[seed % len(DEPTHS)])]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def read(truth):
    return json.loads(truth.read_text())


def spent(before, after):
    """Shares of the time between two truths, in percent, by function and line."""
    seconds = {(name, line): seconds - old for (name, line, seconds), (_, _, old) in zip(after["lines"], before["lines"])}
    total = sum(seconds.values())
    return {line: 100 * value / total for line, value in seconds.items()}


def sampled(answer, lines):
    """The same from the stacks of the launcher. The innermost frame that the truth knows counts."""
    frames = [(frame["function"], frame["line"]) for frame in answer["frames"]]
    ns = dict.fromkeys([*lines, None], 0)
    for stack in answer["stacks"]:
        if stack["role"] == "launcher":
            known = [frames[i] for i in stack["frames"] if frames[i] in lines]
            ns[known[-1] if known else None] += stack["ns"]
    total = sum(ns.values())
    return {line: 100 * value / total for line, value in ns.items()} if total else {}


def check(tap, where, answer, truth):
    found = sampled(answer, truth)
    for (name, line), share in truth.items():
        got = found.get((name, line), 0)
        tap.check(abs(got - share) <= POINTS, f"{where}: {name}:{line} {share:.1f} % in truth, {got:.1f} % sampled")
    print(f"# {where}: other lines {found.get(None, 0):.1f} %, samples {answer['samples']}, dropped {answer['dropped']}, "
          f"unreadable {answer['unreadable']}, idle {100 * answer['idle_ns'] / answer['window_ns']:.1f} %, "
          f"stacks {len(answer['stacks'])}", flush=True)
    # A stack that cannot be read has one frame without a name.
    unknown = {i for i, frame in enumerate(answer["frames"]) if frame["kind"] != "python"}
    partly = [stack for stack in answer["stacks"] if len(stack["frames"]) > 1 and unknown & set(stack["frames"])]
    tap.check(answer["dropped"] == 0 and not partly, f"{where}: nothing was dropped, {len(partly)} stacks lack a name")
    tap.check(answer["unreadable"] <= answer["samples"] * UNREADABLE_MAX,
              f"{where}: {answer['unreadable']} of {answer['samples']} stacks were not readable")


def check_depth(tap, where, answer, depth):
    cut = [stack for stack in answer["stacks"] if stack["cut"]]
    deepest = max((len(stack["frames"]) for stack in answer["stacks"]), default=0)
    is_right = deepest == FRAMES_MAX if depth > FRAMES_MAX else depth < deepest < FRAMES_MAX
    tap.check(bool(cut) == (depth > FRAMES_MAX) and is_right,
              f"{where}: a recursion of {depth} has {deepest} frames, {len(cut)} stacks are cut")


def run(lab, tap, server, seed):
    path = lab_run.WORK / f"lines-{seed}.json"
    where = f"run {seed}"
    with job(seed, path) as pid:
        assert pid in lab.launchers(server)
        before = read(path)
        with server.client() as client:
            reply = client.ask("lines", pid=pid, seconds=WATCH_SECONDS)
        after = read(path)
    tap.check("result" in reply, f"{where}: zerneld answers {reply.get('error', '')}")
    if "result" not in reply:
        print("# " + server.text().replace("\n", "\n# "), flush=True)
        return
    answer = reply["result"]["lines"]
    print(f"# {where}: Python {after['python']}, {after['steps'] - before['steps']} steps", flush=True)
    check(tap, where, answer, spent(before, after))
    check_depth(tap, where, answer, DEPTHS[seed % len(DEPTHS)])


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run, BOOT_SECONDS, RUN_SECONDS))
