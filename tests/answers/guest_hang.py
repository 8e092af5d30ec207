# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel hang on jobs with one rank that stops, has other bytes or is late. zernel hang must name it.

Each run starts a job of the lab with four ranks for each kind, and one in which all ranks are alike, beside a zerneld
that only watches, in a guest in virtual time. Another rank is odd in each run. The output is TAP.
"""
import json
import sys

import guest
import harness
from compare import scenarios

BOOT_SECONDS, RUN_SECONDS = 1200, 600  # of the machine; virtual time is slow there
RANKS, ALLREDUCES, BYTES = 4, 3, 4 << 20
ODD_STEP = 40  # the job runs until zerneld has seen guest.STEPS_MIN steps
LATE_US = 50000
DEVICES = (("VGPU_DEVICES", str(RANKS)),)
JOB = scenarios.Job(
    "hang", "train", f"--ranks {RANKS} --loaders 0 --launches 4 --kernel-us 2000 --optimizer-us 500 --sync block "
    f"--allreduces {ALLREDUCES} --allreduce-bytes {BYTES}", launchers=RANKS, env=DEVICES)


def ask(lab, server):
    """Returns the only job of the answer and its communicator; None: there is none yet, or there are several."""
    done = lab.zernel(server, "hang", "--json")
    jobs = json.loads(done.stdout)["jobs"] if done.stdout else []
    if len(jobs) != 1 or len(jobs[0]["communicators"]) != 1:
        return None
    return jobs[0], jobs[0]["communicators"][0]


def missing(comm):
    return [rank for rank in comm["ranks"] if rank["missing"]]


def check_stop(tap, where, odd, job, comm):
    """The rank stops before the last all-reduce of a step, so its number is known."""
    number = ODD_STEP * ALLREDUCES + ALLREDUCES
    named = [(rank["rank"], rank["entered"], rank["launcher"]["state"]) for rank in missing(comm)]
    tap.check(job["verdict"] == "missing" and named == [(odd, number - 1, "stopped")] and comm["number"] == number,
              f"{where}: stopped before number {number}; named: {job['verdict']} {named}")
    waiting = {rank["launcher"].get("call") for rank in comm["ranks"] if not rank["missing"]}
    # The innermost call: the runtime calls the driver.
    tap.check(waiting == {"cuCtxSynchronize"}, f"{where}: the other ranks are in {waiting}")


def check_bytes(tap, where, odd, job, comm):
    found = comm.get("disagreement", {"ranks": []})
    named = [(rank["rank"], rank["op"], rank["bytes"]) for rank in found["ranks"]]
    tap.check(job["verdict"] == "disagree" and named == [(odd, "all_reduce", BYTES // 2)] and found["bytes"] == BYTES,
              f"{where}: other bytes; named: {job['verdict']} {named}")


def check_late(tap, where, odd, job, comm):
    last = comm.get("last", {})
    tap.check(job["verdict"] == "none" and last.get("late") and last["rank"] == odd,
              f"{where}: late by {LATE_US / 1000:.0f} ms of CPU time; named: {job['verdict']} {last}")


def check_none(tap, where, odd, job, comm):
    tap.check(job["verdict"] == "none", f"{where}: all ranks are alike; named: {job['verdict']} {comm.get('last')}")


# kind -> check; whether the answer comes only after the shortest time of a hang
KINDS = {"stop": (check_stop, True), "bytes": (check_bytes, False), "late": (check_late, False), "none": (check_none, False)}


def run(lab, tap, server, kind, seed):
    odd = seed % RANKS
    check, is_hang = KINDS[kind]
    with lab.job(JOB, "--odd-kind", kind, "--odd-rank", str(odd), "--odd-step", str(ODD_STEP if is_hang else 0),
                 "--odd-us", str(LATE_US), "--seed", str(seed)):
        lab.launchers(server, RANKS)
        answer = harness.wait_until(
            lambda: (found := ask(lab, server)) and (not is_hang or found[0]["verdict"] != "none") and found,
            f"an answer: {server.text()}")
    print(f"# {answer[0]['answer']}", flush=True)
    check(tap, f"run {seed}, rank {odd}", odd, *answer)


def run_all(lab, tap, server, seed):
    for kind in KINDS:
        run(lab, tap, server, kind, seed)


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run_all, BOOT_SECONDS, RUN_SECONDS))
