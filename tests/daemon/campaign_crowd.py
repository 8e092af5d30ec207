# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `crowd`, in a guest: many processes, threads and execs, and jobs that start between them.

ZERNEL_SIZE has the numbers of processes, of threads, of execs a second, and of jobs that start one after another.
"""
import os
import pathlib
import re
import signal
import subprocess
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import mapped_library

harness.SECONDS = 300
harness.ZERNELD = BUILD / "src/daemon/zerneld"
NR_PROCESSES, NR_THREADS, NR_EXECS, NR_JOBS = map(int, os.environ.get("ZERNEL_SIZE", "200 1000 50 3").split())
STATE = pathlib.Path("/sys/kernel/sched_ext/state")
LOOP_P99_MS = 100
PROGRESS_JOBS = 10


class Crowd(Case):
    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def finds_a_job(self):
        with mapped_library():
            begin = time.monotonic()
            wait_until(lambda: self.snapshot()["probes"]["processes"] == 1, f"the job is found: {self.server.text()[-500:]}")
            took = time.monotonic() - begin
        wait_until(lambda: self.snapshot()["probes"]["processes"] == 0, "its end is noticed")
        return took

    def test_no_job_is_missed_in_a_crowd(self):
        pathlib.Path("/proc/sys/kernel/pid_max").write_text("4194304")
        pathlib.Path("/proc/sys/kernel/threads-max").write_text("400000")
        pathlib.Path("/proc/sys/vm/max_map_count").write_text("1000000")
        self.server = self.zerneld()
        self.assertEqual(STATE.read_text().strip(), "enabled")
        with subprocess.Popen([BUILD / "tests/daemon/crowd", *map(str, (NR_PROCESSES, NR_THREADS // NR_PROCESSES, NR_EXECS))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
            made = crowd.stdout.readline().split()
            print(f"# {made[0]} processes, {made[1]} more threads", flush=True)
            times = []
            for _ in range(NR_JOBS):
                times.append(self.finds_a_job())
                if len(times) % PROGRESS_JOBS == 0:
                    print(f"# {len(times)} of {NR_JOBS} jobs found, after {max(times):.1f} s at most", flush=True)
            crowd.stdin.close()
            nr_execs, seconds = map(int, crowd.stdout.readline().split())
            snapshot = self.snapshot()
        print(f"# {nr_execs} execs in {seconds} s; {NR_JOBS} jobs started, all found, after {max(times):.1f} s at most; "
              f"dropped {snapshot['dropped']}, restarts {snapshot['restarts']}")
        self.assertEqual(STATE.read_text().strip(), "enabled")
        self.assertEqual(self.server.text().count("scheduler attached"), 1)
        self.assertEqual(self.server.stop(signal.SIGTERM), 0)
        line = [line for line in self.server.text().splitlines() if "loop iterations" in line][-1]
        print("#", line)
        self.assertLess(int(re.search(r"p99 (\d+) us", line)[1]), LOOP_P99_MS * 1000)


if __name__ == "__main__":
    tap.main()
