# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `crowd`, in a guest: many processes, threads and execs, and jobs that start between them.

ZERNEL_SIZE has the numbers of processes, of threads, of execs a second, of jobs that start one after another, and of
processes of the crowd that map a GPU library.
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
NR_PROCESSES, NR_THREADS, NR_EXECS, NR_JOBS, NR_USERS = map(int, os.environ.get("ZERNEL_SIZE", "200 1000 50 3 20").split())
STATE = pathlib.Path("/sys/kernel/sched_ext/state")
LIBRARY = BUILD / "lab/vgpu/libcudart.so.12"
LOOP_P99_MS = 100
PROGRESS_JOBS = 10


def usage(pid):
    """Returns the CPU time of a process in seconds, and the most memory that it had in MiB."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    peak = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"), int(peak[1]) / 1024


class Crowd(Case):
    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def waits_for(self, nr):
        begin = time.monotonic()
        wait_until(lambda: self.snapshot()["probes"]["processes"] == nr, f"{nr} processes are known: {self.server.text()[-500:]}")
        return time.monotonic() - begin

    def finds_a_job(self):
        with mapped_library():
            took = self.waits_for(NR_USERS + 1)
        self.waits_for(NR_USERS)
        return took

    def test_no_job_is_missed_in_a_crowd(self):
        pathlib.Path("/proc/sys/kernel/pid_max").write_text("4194304")
        pathlib.Path("/proc/sys/kernel/threads-max").write_text("400000")
        pathlib.Path("/proc/sys/vm/max_map_count").write_text("1000000")
        self.server = self.zerneld()
        self.assertEqual(STATE.read_text().strip(), "enabled")
        numbers = NR_PROCESSES, NR_THREADS // NR_PROCESSES, NR_EXECS, NR_USERS
        with subprocess.Popen([BUILD / "tests/daemon/crowd", *map(str, numbers), LIBRARY],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
            made = crowd.stdout.readline().split()
            print(f"# {made[0]} processes, {made[1]} more threads; {NR_USERS} of the processes map a GPU library, "
                  f"all known {self.waits_for(NR_USERS):.1f} s after the last one had started", flush=True)
            times = []
            for _ in range(NR_JOBS):
                times.append(self.finds_a_job())
                if len(times) % PROGRESS_JOBS == 0:
                    print(f"# {len(times)} of {NR_JOBS} jobs found, after {max(times):.1f} s at most", flush=True)
            crowd.stdin.close()
            nr_execs, seconds = map(int, crowd.stdout.readline().split())
            snapshot = self.snapshot()
            seconds_used, mebibytes = usage(self.server.process.pid)
        print(f"# zerneld used {seconds_used:.1f} s of CPU time and {mebibytes:.0f} MiB of memory at most")
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
