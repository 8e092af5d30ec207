# SPDX-License-Identifier: GPL-2.0-or-later
"""Real runtimes: compares the counts of the BPF programs with the programs' own counts.

Watches the whole machine, so it runs alone in a guest. Programs that could not be
built are skipped; tests/signals/real/run passes the reason.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import tap

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"]) / "tests/signals"
RANKS = 4
# Ranks communicate through shared memory only, and there are more ranks than CPUs.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,sm", "-n", str(RANKS)]
# In an emulated guest, importing PyTorch alone takes minutes.
ENDS_WITHIN_S = 800


def follow(*command):
    """Runs a command under `signals`. Returns its output, its processes by pid, and the report."""
    with tempfile.NamedTemporaryFile("r") as output:
        done = subprocess.run(
            [BUILD / "signals", "--json", "--", "sh", "-c", 'exec "$@" >"$0"', output.name, *command],
            stdout=subprocess.PIPE, text=True, check=True, timeout=ENDS_WITHIN_S)
        printed = [json.loads(line) for line in output if line.startswith("{")]
    report = json.loads(done.stdout.splitlines()[-1])
    print(f"# dropped: {report['dropped']}", flush=True)
    return printed, {process["pid"]: process for process in report["processes"]}, report


def needs(name):
    """Skips a test whose program is missing, with the reason from `run`."""
    reason = os.environ.get(f"WITHOUT_{name}")
    return unittest.skipIf(reason, reason)


class Real(unittest.TestCase):
    @needs("OPENCL")
    def test_opencl_calls_and_buffers_are_counted(self):
        (mine,), seen, _ = follow(BUILD / "real/opencl")
        process = seen[mine["pid"]]
        for key in ("launches", "copies", "syncs"):
            self.assertEqual(process[key], mine[key], key)
        (book,) = process["memory"]
        print(f"# {book}", flush=True)
        for key in ("allocs", "frees", "peak_bytes", "current_bytes"):
            self.assertEqual(book[key], mine[key], key)

    @needs("MPI")
    def test_mpi_ranks_operations_and_bytes_are_exact(self):
        printed, seen, _ = follow(*MPIRUN, BUILD / "real/mpi")
        self.assertEqual(sorted(mine["rank"] for mine in printed), list(range(RANKS)))
        for mine in printed:
            process = seen[mine["pid"]]
            self.assertEqual((process["rank"], process["nr_ranks"]), (mine["rank"], mine["nr_ranks"]))
            self.assertEqual(process["collectives"].keys(), mine["collectives"].keys())
            for operation, counts in mine["collectives"].items():
                self.assertLessEqual(counts.items(), process["collectives"][operation].items(), operation)

    @needs("TORCH")
    def test_torch_loader_waits_and_optimizer_steps_match_its_own_times(self):
        (mine,), seen, report = follow("python3", HERE / "torch_train.py")
        waits, wait = mine["waits_ns"], seen[mine["pid"]]["loader_wait"]
        print(f"# program: {sum(waits) / 1e6:.1f} ms in {len(waits)} waits; "
              f"BPF programs: {wait['sum_ns'] / 1e6:.1f} ms in {wait['count']} waits", flush=True)
        self.assertEqual(wait["count"], len(waits))
        self.assertAlmostEqual(wait["sum_ns"] / sum(waits), 1, delta=0.1)
        self.check_steps(mine["step_ends_ns"], seen[mine["pid"]])
        self.check_loaders(mine, seen, report)

    def check_steps(self, ends, process):
        """A step is as long as the time between the ends of two optimizer steps."""
        took, step = ends[-1] - ends[0], process["step"]
        print(f"# program: {len(ends)} steps, {took / 1e6:.1f} ms; BPF programs: {process['steps']} steps, "
              f"{step['sum_ns'] / 1e6:.1f} ms", flush=True)
        self.assertEqual((process["steps"], process["step_basis"]), (len(ends), "optimizer"))
        self.assertEqual(step["count"], len(ends) - 1)
        self.assertAlmostEqual(step["sum_ns"] / took, 1, delta=0.1)

    def check_loaders(self, mine, seen, report):
        loaders = [pid for pid, process in seen.items() if process["consumer_pid"] == mine["pid"]]
        self.assertEqual(len(loaders), mine["workers"])
        roles = {thread["tid"]: thread["role"] for thread in report["threads"]}
        self.assertEqual(roles[mine["pid"]], "launcher")
        # The first thread of a loader prepares the data, other threads pass it on.
        self.assertEqual([roles[pid] for pid in loaders], ["loader"] * mine["workers"])
        own = {thread["role"] for thread in report["threads"]
               if thread["tgid"] == mine["pid"] != thread["tid"]}
        self.assertLessEqual(own, {"other"})


if __name__ == "__main__":
    tap.main()
