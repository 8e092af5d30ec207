# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the scheduler on machines with other topologies."""
import collections
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import time

from compare import scenarios, stats

from . import machine, spin
from .machine import check

SYSTEM = pathlib.Path("/sys/devices/system")
GPU_NODE = 1
TRAIN = "--launches 20 --kernel-us 20000 --optimizer-us 1000 --sync block --loaders 2 --load-cpu-us 14000".split()


def cpus_of(text):
    """0-3,8 -> {0, 1, 2, 3, 8}"""
    found = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def nodes():
    return {int(path.name[4:]): cpus_of((path / "cpulist").read_text()) for path in SYSTEM.glob("node/node[0-9]*")}


def caches():
    """Returns the CPUs of each last-level cache."""
    return {(path / "shared_cpu_list").read_text().strip()
            for path in SYSTEM.glob("cpu/cpu[0-9]*/cache/index3")}


def family_of(pid):
    """Yields the threads of a process and of its children."""
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        yield task
        for child in (task / "children").read_text().split():
            yield from family_of(int(child))


def last_cpus(pid):
    """Yields the last CPU of each thread; threads that just ended are left out."""
    for task in family_of(pid):
        with contextlib.suppress(OSError):
            yield int((task / "stat").read_text().rpartition(")")[2].split()[36])


def begin_far():
    """Starts on another node than that of the GPU, and allows all nodes again."""
    machine.be_ordinary()
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, every - nodes()[GPU_NODE])
    os.sched_setaffinity(0, every)


def near_gpu(seconds, busy):
    """Returns the share of samples in which threads of a training job were on the node of their GPU."""
    environment = {**os.environ, "VGPU_SHM": "/dev/shm/places", "VGPU_NUMA": str(GPU_NODE)}
    near, seen = nodes()[GPU_NODE], collections.Counter()
    made = [lambda cpu=cpu: machine.Hog(cpus={cpu}) for cpu in (near if busy else ())]
    with machine.hogs(made), subprocess.Popen(
            [machine.BUILD / "lab/train/train", *TRAIN, "--seconds", str(seconds)], env=environment,
            stdout=subprocess.DEVNULL, preexec_fn=begin_far) as train:
        time.sleep(seconds / 3)  # until zerneld knows the job
        while train.poll() is None:
            with contextlib.suppress(OSError):
                seen.update(cpu in near for cpu in last_cpus(train.pid))
            time.sleep(0.2)
    return seen[True] / max(seen.total(), 1)


def topology(seconds):
    """Run a job on 2 nodes x 2 caches x 4 CPUs and a node without CPUs: the rule `place` keeps it on the node of its GPU."""
    yield f"nodes {nodes()}; last-level caches {sorted(caches())}"
    check(len(caches()) == 4 and sorted(map(len, nodes().values())) == [0, 8, 8], "the guest has another topology than requested")
    os.environ.update(LD_LIBRARY_PATH=str(machine.BUILD / "lab/vgpu"), VGPU_SHM="/dev/shm/places",
                      VGPU_NUMA=str(GPU_NODE))
    with machine.attached() as attached:
        idle, busy = (near_gpu(seconds, busy) for busy in (False, True))
        machine.ask(("policy.set", {"rules_off": ["place"]}))
        off = near_gpu(seconds, False)
        trouble = attached.trouble()
    yield f"threads of a job were on the node of their GPU in {idle:.0%} of samples with the node idle, {busy:.0%} with the node busy"
    yield f"without the rule `place`: {off:.0%} of samples with the node idle"
    check(trouble is None, trouble)
    check(idle >= 0.9, "the threads do not stay on the node of their GPU")
    check(busy <= 0.5, "the threads do not leave the node of their GPU while it is busy")
    check(off <= 0.5, "the threads move to the node of their GPU although the rule is disabled")


def apart(seconds):
    """Run a job beside hogs on 2 CPUs that share no cache: a feeder gets the CPU that it preempts, p99 at most 1.2 x quiet."""
    check(len(caches()) == 2, "the guest has another topology than requested")
    noisy, quiet = scenarios.BY_NAME["noisy"], scenarios.BY_NAME["quiet"]
    rows = {"EEVDF, no noise": spin.durations(quiet, seconds), "EEVDF, with noise": spin.durations(noisy, seconds)}
    with machine.attached() as attached:
        rows["Zernel, all rules"] = spin.durations(noisy, seconds)
        check(attached.trouble() is None, attached.trouble())
    for name, values in rows.items():
        yield (f"{name}: mean {statistics.mean(values):.1f} ms, p50 {stats.quantile(values, 50):.1f} ms, "
               f"p99 {stats.quantile(values, 99):.1f} ms")
    ratio = stats.quantile(rows["Zernel, all rules"], 99) / stats.quantile(rows["EEVDF, no noise"], 99)
    check(ratio <= 1.2, f"p99 is {ratio:.2f} x quiet")


def many(seconds):
    """Attach on 64 CPUs, run 96 hogs, detach."""
    check(os.cpu_count() == 64, f"{os.cpu_count()} CPUs")
    with machine.attached() as attached, machine.hogs([machine.Hog] * 96):
        time.sleep(seconds)
        trouble = attached.trouble()
    check(trouble is None, trouble)
    yield f"{os.cpu_count()} CPUs, 96 hogs, {seconds} s: still attached at the end"


def ranks():
    """Returns the process of each rank that zerneld knows."""
    return {process["rank"]: process["pid"] for process in machine.ask(("snapshot", {}))["processes"]}


def large(seconds):
    """Attach on 64 CPUs of 4 caches and 2 nodes, run a job with a rank and a GPU on each node beside 96 hogs, detach."""
    check(os.cpu_count() == 64 and len(caches()) == 4 and sorted(map(len, nodes().values())) == [32, 32],
          "the guest has another topology than requested")
    os.environ.update(LD_LIBRARY_PATH=str(machine.BUILD / "lab/vgpu"), VGPU_SHM="/dev/shm/large", VGPU_DEVICES="2", VGPU_NUMA="0,1")
    near = {0: collections.Counter(), 1: collections.Counter()}
    with machine.attached() as attached, machine.hogs([machine.Hog] * 96), subprocess.Popen(
            [machine.BUILD / "lab/train/train", *TRAIN, "--ranks", "2", "--allreduce-bytes", "1048576", "--seconds", str(seconds)],
            stdout=subprocess.PIPE, text=True, preexec_fn=machine.be_ordinary) as train:
        while train.poll() is None:
            for rank, pid in ranks().items():
                with contextlib.suppress(OSError, KeyError):
                    near[rank].update(cpu in nodes()[rank] for cpu in last_cpus(pid))
            time.sleep(0.2)
        steps = json.loads(train.stdout.read().splitlines()[-1])
        trouble = attached.trouble()
    check(trouble is None, trouble)
    for rank, seen in near.items():
        yield f"rank {rank}: its threads were on the node of its GPU in {seen[True] / max(seen.total(), 1):.0%} of {seen.total()} samples"
    yield f"{steps['steps']} steps, mean {steps['step_mean_ms']:.1f} ms; attached to the end"
    check(steps["steps"] > 0 and all(seen.total() for seen in near.values()), "the job made no steps, or zerneld knows not all ranks")
