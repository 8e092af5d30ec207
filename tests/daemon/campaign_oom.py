# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of the campaign `kill`, in a guest: the OOM killer ends every process of zerneld, and the gateway.

ZERNEL_SIZE has the number of kills of each process. The kernel kills the process with the highest score when it is asked to
(SysRq f), as it does without free memory. The BPF programs are fake.
"""
import os
import pathlib
import subprocess
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import PROCESSES, Node, mapped_library

NR_KILLS = int(os.environ.get("ZERNEL_SIZE", "1"))
harness.SECONDS = 120
os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/daemon")


def is_running(pid):
    """A killed child of this process stays until it is waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def oom_kill(node, name):
    """Returns the time until all is well again."""
    pid = node.pid_of(name)
    pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    pathlib.Path("/proc/sysrq-trigger").write_text("f")
    wait_until(lambda: not is_running(pid), f"{name} is killed")
    begin = time.monotonic()
    node.becomes_whole(f"{name} was killed")
    return time.monotonic() - begin


class Oom(Case):
    def test_after_an_oom_kill_all_processes_run_again(self):
        self.enterContext(mapped_library())
        node = Node()
        self.addCleanup(node.remove)
        node.becomes_whole("the start")
        times = {name: [] for name in PROCESSES}
        for _ in range(NR_KILLS):
            for name in sorted(PROCESSES, key=lambda name: name.startswith("zerneld")):  # zerneld last: pauses begin again
                times[name].append(oom_kill(node, name))
        for name, took in times.items():
            print(f"# {name}: {len(took)} OOM kills, all well again after {max(took):.1f} s at most")
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        print("# the kernel log has", log.count("Out of memory: Killed process"), "OOM kills")


if __name__ == "__main__":
    tap.main()
