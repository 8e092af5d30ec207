# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel why on jobs with one slow rank, a different one in each run. zernel why must name it.

Runs the lab's job straggler with one more rank, its noise, and a zerneld that only watches, in a guest in virtual time.
The job knows which rank is slow. zerneld knows only the GPU counters and the calls.
"""
import json
import sys
from dataclasses import replace

import guest
from compare import scenarios

BOOT_SECONDS, SLOWDOWN = 300, 60  # slowdown of virtual time on a shared machine
RANKS = 3
WHY_SECONDS = 2
DEVICES = (("VGPU_DEVICES", str(RANKS)),)


def job_of(scenario, slow):
    """A job of RANKS ranks in which rank `slow` is slow."""
    job = scenario.jobs[0]
    args = job.args.replace("--ranks 2", f"--ranks {RANKS}").replace("--slow-rank 1", f"--slow-rank {slow}")
    return replace(job, args=args, launchers=RANKS, env=DEVICES)


def run(lab, tap, server, seed):
    scenario, slow = scenarios.BY_NAME["straggler"], seed % RANKS
    with lab.noise(scenario), lab.job(job_of(scenario, slow), "--seed", str(seed)):
        lab.launchers(server, RANKS)
        done = lab.zernel(server, "why", "--seconds", str(WHY_SECONDS), "--json")
    jobs = json.loads(done.stdout)["jobs"] if done.stdout else [{"answer": done.stderr, "processes": []}]
    named = [job["straggler"]["rank"] for job in jobs if "straggler" in job]
    waited = " ".join(f"{process.get('waited_for_ranks_ns', -1) / 1e6:.0f}" for process in jobs[0]["processes"])
    print(f"# {jobs[0]['answer']}\n# wait of each rank for other ranks, in ms: {waited}", flush=True)
    tap.check(named == [slow], f"seed {seed}: rank {slow} is slow, named: {named}")


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run, BOOT_SECONDS, 10 * SLOWDOWN))
