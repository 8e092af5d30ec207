# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `kill`: every process of zerneld, and the gateway, is killed and stopped under load.

Runs zerneld with fake BPF programs, several of them at a time, because most of the time is spent in pauses before a restart.
ZERNEL_SIZE has the numbers of kills and of stops of each process. `./dev sched kill` and `nice-restore` kill zerneld with the real
programs.
"""
import concurrent.futures
import os
import random
import signal
import subprocess
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import PROCESSES, Node, mapped_library

NR_KILLS, NR_STOPS = map(int, os.environ.get("ZERNEL_SIZE", "2 1").split())
IS_CAMPAIGN = "ZERNEL_SIZE" in os.environ
NODES = min(8, NR_KILLS)
STOP_SECONDS = 20 if IS_CAMPAIGN else 3
# A process that dies often is started again after a longer pause. All of them die once before zerneld does.
FIRST, LAST = ("zernel-gpu", "zernel-discover fdinfo", "zernel-discover libraries", "zerneld-restore", "gateway"), ("zerneld-starter", "zerneld")
SEED = 20261116

harness.SECONDS = 60
os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/daemon")  # its NVML has two GPUs
assert {*FIRST, *LAST} == {*PROCESSES}


def kill_rounds(node, rng, nr):
    """Returns the longest time until all was well again."""
    longest = 0.0
    for _ in range(nr):
        time.sleep(rng.uniform(0, 0.3))  # also while zerneld starts
        for name in rng.sample(FIRST, len(FIRST)):
            node.send(name, signal.SIGKILL)
        for name in LAST:
            node.becomes_whole(f"the processes before {name} were killed")
            begin = time.monotonic()
            node.send(name, signal.SIGKILL)
            wait_until(lambda: node.server.process.poll() is not None, f"zerneld ends after a kill of {name}: {node.server.text()}")
            node.manage()
            if name != LAST[-1]:
                node.becomes_whole(f"{name} was killed")
                longest = max(longest, time.monotonic() - begin)
    node.becomes_whole("the last kill")
    return longest


def stop_rounds(node, name, nr):
    """Returns the longest wait of a client, if zerneld was not the one that was stopped."""
    longest = 0.0
    for _ in range(nr):
        node.becomes_whole("zerneld was killed")
        pid = node.send(name, signal.SIGSTOP)
        end = time.monotonic() + STOP_SECONDS
        while name != "zerneld" and time.monotonic() < end and node.server.process.poll() is None:
            begin = time.monotonic()
            node.snapshot()
            longest = max(longest, time.monotonic() - begin)
            time.sleep(0.2)
        time.sleep(max(0, end - time.monotonic()))
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:  # zerneld has killed it
            pass
        node.becomes_whole(f"{name} was stopped")
        node.send("zerneld", signal.SIGKILL)  # pauses before a restart begin again
    return longest


class Kill(Case):
    @classmethod
    def setUpClass(cls):
        load = ["stress-ng", "--quiet", "--cpu", "2", "--fork", "1"] if IS_CAMPAIGN else ["sleep", "infinity"]
        cls.load = subprocess.Popen(load, stdout=subprocess.DEVNULL)
        cls.addClassCleanup(cls.load.wait)
        cls.addClassCleanup(cls.load.terminate)
        cls.enterClassContext(mapped_library())

    def in_parallel(self, works):
        """Runs each function with a node of its own. Returns their results."""
        def run(work):
            node = Node()
            try:
                node.becomes_whole("the start")
                return work(node)
            finally:
                node.remove()
        with concurrent.futures.ThreadPoolExecutor(NODES) as pool:
            return list(pool.map(run, works))

    def test_after_a_kill_all_processes_run_again(self):
        nr = -(-NR_KILLS // NODES)
        times = self.in_parallel([lambda node, i=i: kill_rounds(node, random.Random(SEED + i), nr) for i in range(NODES)])
        print(f"# {nr * NODES} kills of each of {', '.join(PROCESSES)}; all well again after a kill of zerneld-starter: {max(times):.1f} s at most")

    def test_after_a_stop_all_processes_run_again(self):
        for name, longest in zip(PROCESSES, self.in_parallel(
                [lambda node, name=name: stop_rounds(node, name, NR_STOPS) for name in PROCESSES])):
            print(f"# {name}: {NR_STOPS} stops of {STOP_SECONDS} s, longest wait for a snapshot {longest * 1000:.0f} ms")

    def test_stopped_processes_end_with_zerneld(self):
        """If zerneld is killed, zerneld-starter ends the others, and zerneld-restore restores: these two must run."""
        for number, code, running in (signal.SIGTERM, 0, ()), (signal.SIGKILL, -9, ("zerneld-starter", "zerneld-restore")):
            node = Node()
            self.addCleanup(node.remove)
            node.becomes_whole("the start")
            names = {node.pid_of(name): name for name in PROCESSES if PROCESSES[name]}
            for pid, name in names.items():
                if name not in running:
                    os.kill(pid, signal.SIGSTOP)
            self.assertEqual(node.server.stop(number), code)
            self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in names if os.path.exists(f"/proc/{pid}")])
            wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in names), f"all of {names} have ended")


if __name__ == "__main__":
    tap.main()
