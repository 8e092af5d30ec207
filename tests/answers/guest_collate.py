# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests idle time by source line on PyTorch's DataLoader: the slow line of its collate_fn must be named first.

Each run starts the job with another way to start loaders, or without loaders, with the Python of the development root or that of
forky, beside a zerneld that only watches, in a guest in virtual time. Eight runs have all of them. The output is TAP.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import guest

BOOT_SECONDS, RUN_SECONDS = 1200, 900  # of the machine; virtual time is slow there
WATCH_SECONDS, TEXT_SECONDS = 10, 5
SHARE_MIN = 50  # percent of the time of the loaders, or of the launcher without loaders
LOST_MAX = 0.05  # a job with PyTorch can have more stacks than its share of the tables
DEVICES = (("VGPU_DEVICES", "1"),)
JOB = "lab/framework/torch_collate.py"
PYTHONS = (([sys.executable], "tools/root layer torch"), (["tools/in-forky", "python3"], "tools/root forky"))
STARTS = "fork", "none", "spawn", "forkserver"  # none: the launcher collates
LOADERS = 2


@contextlib.contextmanager
def running(python, start, truth):
    loaders = ["--workers", "0"] if start == "none" else ["--workers", str(LOADERS), "--start", start]
    with subprocess.Popen([*python, JOB, "--vgpu", f"{guest.BUILD}/lab/vgpu", "--truth", truth, *loaders],
                          start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # loaders would notice the end of their parent after seconds


def has_torch(python):
    code = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"
    return subprocess.run([*python, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode == 0


def by_place(answer, role):
    """The time of each line that is the innermost one of Python in a stack, the most first. None: no line is known."""
    frames, found = answer["frames"], {}
    for stack in answer["stacks"]:
        python = [frames[i] for i in stack["frames"] if frames[i]["kind"] == "python"]
        place = (python[-1]["function"], pathlib.Path(python[-1]["file"]).name, python[-1]["line"]) if python else None
        if stack["role"] == role:
            found[place] = found.get(place, 0) + stack["ns"] + stack["open_ns"]
    return sorted(found.items(), key=lambda item: -item[1])


def check(tap, where, answer, slow, role):
    places = by_place(answer, role)
    total = max(sum(ns for _, ns in places), 1)
    shares = [(place, 100 * ns / total) for place, ns in places]
    known = [place for place, _ in places if place]
    share = dict(shares).get(slow, 0)
    tap.check(known[:1] == [slow] and share >= SHARE_MIN,
              f"{where}: {slow[0]}() {slow[1]}:{slow[2]} has {share:.1f} % of the time of the {role}")
    for place, part in shares[:6]:
        print(f"#   {part:.1f} % {place or 'not readable'}", flush=True)
    stacks = {(stack["tid"], *stack["frames"]) for stack in answer["stacks"]}
    tap.check(answer["dropped"] + answer["unreadable"] <= answer["samples"] * LOST_MAX,
              f"{where}: {answer['samples']} samples, {answer['dropped']} dropped, {answer['unreadable']} not readable, "
              f"{len(stacks)} stacks")


def check_text(lab, tap, server, where, pid, slow):
    """The sentence of zernel why names the line before all others."""
    done = lab.zernel(server, "why", "--lines", str(pid), "--seconds", str(TEXT_SECONDS))
    sentence = done.stdout.partition("\n")[0]
    _, _, first = sentence.partition("points in ")
    tap.check(done.returncode == 0 and first.startswith(f"{slow[0]}() {slow[1]}:{slow[2]},"),
              f"{where}: {sentence or done.stderr.strip()}")


def run(lab, tap, server, seed):
    python, missing = PYTHONS[seed // len(STARTS) % len(PYTHONS)]
    start = STARTS[seed % len(STARTS)]
    where = f"run {seed}, {start}"
    if not has_torch(python):
        tap.check(True, f"{where} # SKIP {' '.join(python)} has no PyTorch: run {missing}")
        return
    path = pathlib.Path("/dev/shm", f"collate-{seed}.json")  # the tree of forky sees it at the same place
    path.unlink(missing_ok=True)
    with running(python, start, path) as pid:
        assert pid in lab.launchers(server)
        before = json.loads(path.read_text())
        with server.client() as client:
            reply = client.ask("lines", pid=pid, seconds=WATCH_SECONDS)
        after = json.loads(path.read_text())
        slow = after["function"], pathlib.Path(JOB).name, after["line"]
        check_text(lab, tap, server, where, pid, slow)
    if "result" not in reply:
        tap.check(False, f"{where}: zerneld answers {reply.get('error', '')}")
        return
    answer = reply["result"]["lines"]
    waited, elapsed = (after[key] - before[key] for key in ("waited", "elapsed"))
    idle, at_most = (100 * ns / answer["window_ns"] for ns in (answer["idle_ns"], answer["idle_ns"] + answer["open_ns"]))
    print(f"# {where}: Python {after['python']}, PyTorch {after['torch']}, {after['steps'] - before['steps']} steps, waited "
          f"{100 * waited / elapsed:.1f} % for batches, idle {idle:.1f} to {at_most:.1f} %", flush=True)
    check(tap, where, answer, slow, "launcher" if start == "none" else "loader")


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run, BOOT_SECONDS, RUN_SECONDS, nr_runs=len(STARTS) * len(PYTHONS)))
