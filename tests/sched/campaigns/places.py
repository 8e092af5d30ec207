# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines of other shapes."""
import collections
import contextlib
import os
import pathlib
import subprocess
import time

from . import machine
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
    """The CPUs behind each last-level cache."""
    return {(path / "shared_cpu_list").read_text().strip()
            for path in SYSTEM.glob("cpu/cpu[0-9]*/cache/index3")}


def family_of(pid):
    """Threads of a process and of its children."""
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        yield task
        for child in (task / "children").read_text().split():
            yield from family_of(int(child))


def last_cpus(pid):
    """Where each thread ran last; those that just ended are left out."""
    for task in family_of(pid):
        with contextlib.suppress(OSError):
            yield int((task / "stat").read_text().rpartition(")")[2].split()[36])


def begin_far():
    """On another node than that of the GPU, and free to leave it."""
    machine.be_ordinary()
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, every - nodes()[GPU_NODE])
    os.sched_setaffinity(0, every)


def near_gpu(seconds, busy):
    """Of a training job's threads, how often they were seen on the node of their GPU."""
    environment = {**os.environ, "VGPU_SHM": "/dev/shm/places", "VGPU_NUMA": str(GPU_NODE)}
    near, seen = nodes()[GPU_NODE], collections.Counter()
    made = [lambda cpu=cpu: machine.Hog(cpus={cpu}) for cpu in (near if busy else ())]
    with machine.hogs(made), subprocess.Popen(
            [machine.BUILD / "lab/train/train", *TRAIN, "--seconds", str(seconds)], env=environment,
            stdout=subprocess.DEVNULL, preexec_fn=begin_far) as train:
        time.sleep(seconds / 3)  # until it is known
        while train.poll() is None:
            with contextlib.suppress(OSError):
                seen.update(cpu in near for cpu in last_cpus(train.pid))
            time.sleep(0.2)
    return seen[True] / max(seen.total(), 1)


def topology(seconds):
    """2 nodes x 2 caches x 4 CPUs, a node without CPUs: near the GPU while there is room and the rule place is on, else elsewhere."""
    yield f"nodes {nodes()}; last-level caches {sorted(caches())}"
    check(len(caches()) == 4 and sorted(map(len, nodes().values())) == [0, 8, 8], "not the machine that was asked for")
    os.environ.update(LD_LIBRARY_PATH=str(machine.BUILD / "lab/vgpu"), VGPU_SHM="/dev/shm/places",
                      VGPU_NUMA=str(GPU_NODE))
    with machine.attached() as attached:
        idle, busy = (near_gpu(seconds, busy) for busy in (False, True))
        machine.ask(("policy.set", {"rules_off": ["place"]}))
        off = near_gpu(seconds, False)
        trouble = attached.trouble()
    yield f"threads of a job were on their GPU's node in {idle:.0%} of looks while it was idle, {busy:.0%} while it was busy"
    yield f"without the rule place: {off:.0%} while it was idle"
    check(trouble is None, trouble)
    check(idle >= 0.9, "they do not stay near their GPU")
    check(busy <= 0.5, "they do not spread when there is no room")
    check(off <= 0.5, "they are brought near their GPU although the rule is off")


def many(seconds):
    """64 CPUs: attach, load, detach."""
    check(os.cpu_count() == 64, f"{os.cpu_count()} CPUs")
    with machine.attached() as attached, machine.hogs([machine.Hog] * 96):
        time.sleep(seconds)
        trouble = attached.trouble()
    check(trouble is None, trouble)
    yield f"{os.cpu_count()} CPUs, 96 hogs, {seconds} s: still attached at the end"
