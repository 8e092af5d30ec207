# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests zernel memory on two jobs with known allocations, one of which reports that it is out of memory.

The report must have its sizes and the memory of the other job, and stay after the end of the process. What a job says of its
allocations over time must be in the answer of `zernel memory --seconds`. The jobs run beside a
zerneld that only watches, in a guest in virtual time. The output is TAP.
"""
import json
import subprocess
import sys
import time

import guest
import harness
from compare import run as lab_run

BOOT_SECONDS, RUN_SECONDS = 900, 300  # of the machine; virtual time is slow there
GIB = 1 << 30
JOB = "tests/answers/oom_job.py"
HELD = {"neighbor": GIB, "victim": 2 * GIB}
ASKED, ALLOCATED, RESERVED = 4 * GIB, GIB + GIB // 2, 2 * GIB
OTHER_BYTES = 4096  # vgpu.py allocates so much at the start, which zerneld may not see
DEVICES = (("VGPU_DEVICES", "1"),)
WATCHED = 40  # reports of the larger value, over half of the watch


class Job:
    def __init__(self, name):
        group = lab_run.cgroup(name)
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, JOB, f"{guest.BUILD}/lab/vgpu", f"{guest.BUILD}/tests/libc10.so"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: (group / "cgroup.procs").write_text("0"))

    def do(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def processes(server):
    """pid -> process, and the name of its job."""
    with server.client() as client:
        snapshot = client.ask("snapshot")["result"]
    return {process["pid"]: (process, snapshot["jobs"][process["job"] - 1]["name"])
            for process in snapshot["processes"] if process["launcher_tid"] and process["job"]}


def memory(lab, server):
    return json.loads(lab.zernel(server, "memory", "--json").stdout)


def start(server, name):
    """Returns a job whose calls zerneld sees, and the name that zerneld gives it."""
    job = Job(name)
    _, known = harness.wait_until(lambda: job.do("launch") and processes(server).get(job.process.pid),
                                  f"launches of {name} are seen: {server.text()}")
    assert job.do("alloc", HELD[name])
    return job, known


def held_by(lab, server, job):
    return [each["current_bytes"] for each in memory(lab, server)["processes"] if each["pid"] == job.process.pid]


def check_held(tap, lab, server, jobs):
    """A snapshot can be 100 ms old, and then lacks the last allocation."""
    for job in jobs:
        held = harness.wait_until(lambda job=job: (found := held_by(lab, server, job)) and sum(found) >= GIB and found,
                                  f"memory of {job.name}: {server.text()}")
        tap.check(len(held) == 1 and held[0] - HELD[job.name] in (0, OTHER_BYTES), f"{job.name} holds {held} bytes")


def check_report(tap, report, neighbor):
    sizes = [report[f"{name}_bytes"] for name in ("asked", "allocated", "reserved")]
    tap.check(sizes == [ASKED, ALLOCATED, RESERVED], f"the report has the sizes {sizes}")
    tap.check(report["gpu"] == 0, f"the report is about GPU {report['gpu']}")
    others = [(each["pid"], each["bytes"] - GIB) for each in report.get("others", [])]
    tap.check(others in ([(neighbor.process.pid, 0)], [(neighbor.process.pid, OTHER_BYTES)]),
              f"the other process is {others}, expected pid {neighbor.process.pid}")


def line_of(text):
    """The line of the job with this text."""
    return next(i for i, line in enumerate(open(JOB, encoding="utf-8"), 1) if text in line)


def check_stack(tap, report):
    expected = [("<module>", line_of("main(*sys.argv")), ("main", line_of('"oom": oom}[name]')), ("oom", line_of("report(*map(int"))]
    stack = [(frame["function"], frame["line"]) for frame in report["stack"]]
    tap.check(stack == expected and not report["stack_is_cut"], f"the stack is {stack}, expected {expected}")


def fail(lab, server, job):
    """Reports errors until zerneld has attached its probe, knows the interpreter, and has looked at the other processes."""
    assert job.do("oom", ASKED, ALLOCATED, RESERVED)
    return next((each["oom"] for each in memory(lab, server)["out_of_memory"] if {"others", "stack"} <= each["oom"].keys()), None)


def check_usage(tap, lab, server, job):
    """The job reports until the probe is attached, and then goes down to a lower value."""
    with subprocess.Popen([f"{guest.BUILD}/src/cli/zernel", "memory", "--seconds", "4", "--json", str(job.process.pid), "--socket", server.path],
                          stdout=subprocess.PIPE, text=True) as watch:
        for _ in range(WATCHED):
            assert job.do("use", GIB, RESERVED)
            time.sleep(0.05)
        while watch.poll() is None:
            assert job.do("use", GIB // 2, RESERVED)
            time.sleep(0.05)
        (gpu,) = json.loads(watch.stdout.read())["gpus"]
    parts = [part for part in gpu["parts"] if part]
    seen = [(part["allocated_most_bytes"], part["allocated_bytes"]) for part in parts]
    order = [pair for i, pair in enumerate(seen) if i == 0 or pair != seen[i - 1]]
    low, high = GIB // 2, GIB
    tap.check(order in ([(high, high), (high, low), (low, low)], [(high, high), (low, low)]), f"allocated memory changes once: {order}")
    tap.check({part["reserved_then_bytes"] for part in parts} == {RESERVED} and gpu["gpu"] == 0 and gpu["reports"] > 20,
              f"reserved memory, GPU and reports: {gpu}")


def show_usage(tap, lab, server, job):
    """The text about steps, whose memory grows and is released at their end."""
    with subprocess.Popen([f"{guest.BUILD}/src/cli/zernel", "memory", "--seconds", "2", str(job.process.pid), "--socket", server.path],
                          stdout=subprocess.PIPE, text=True) as watch:
        step = 0
        while watch.poll() is None:
            assert job.do("use", (12 + step % 8) * GIB, 24 * GIB)
            step += 1
            time.sleep(0.01)
        text = watch.stdout.read()
    print("#", "\n# ".join(text.splitlines()), flush=True)
    tap.check("allocated at most 19.0 GiB; of the 24.0 GiB that it had reserved then" in text, "the text has the largest values")


def run(lab, tap, server, _):
    neighbor, _ = start(server, "neighbor")
    victim, name = start(server, "victim")
    check_held(tap, lab, server, [neighbor, victim])
    check_usage(tap, lab, server, victim)
    show_usage(tap, lab, server, victim)
    report = harness.wait_until(lambda: fail(lab, server, victim), f"a report: {server.text()}")
    check_report(tap, report, neighbor)
    check_stack(tap, report)
    victim.end()
    ended = harness.wait_until(
        lambda: (done := lab.zernel(server, "why", "--ended", name)) and "out of memory" in done.stdout and done,
        f"the ended job: {server.text()}")
    print("#", "\n# ".join(ended.stdout.splitlines()), flush=True)
    tap.check(f"  oom() oom_job.py:{line_of('report(*map(int')}\n" in ended.stdout, "zernel why --ended shows the stack")
    tap.check("it asked for 4.0 GiB on GPU 0. PyTorch had reserved 2.0 GiB and allocated 1.5 GiB of it" in ended.stdout,
              "zernel why --ended shows the report")
    neighbor.end()


if __name__ == "__main__":
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run, BOOT_SECONDS, RUN_SECONDS))
