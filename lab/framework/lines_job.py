# SPDX-License-Identifier: GPL-2.0-or-later
"""A training loop that spends known time in known lines while its GPU is idle, and writes that truth to a file.

The GPU is idle from the return of item() to the next launch. What happens between them is the same in each step: functions
that burn CPU time, directly, in a generator, in a coroutine and deep in a recursion, one that sleeps, one that waits for a
loader, which is a forked process and burns CPU time as well, and one that is mostly inside calls of the runtime.

A step launches three kernels: two by handles that were looked up by name, and one by the runtime. The truth has the idle
time between each two of them.
"""
import argparse
import asyncio
import json
import os
import pathlib
import platform
import random
import sys
import time

import vgpu

KERNEL_US = 2000
FORWARD, BACKWARD = b"busy_forward", b"busy_backward_" + 200 * b"x"  # the second name is cut
# The parts of a step before each launch.
BEFORE_FORWARD, BEFORE_BACKWARD = ("collate", "samples", "report"), ("deep", "checkpoint")
BEFORE_RUNTIME = "fetch", "pin"
# zerneld may find the libraries after the first step, so kernels are looked up again.
LOOK_UP_STEPS = 20
MS = 0.001


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def collate(seconds):
    burn(seconds / 4)
    burn(3 * seconds / 4)


def samples(seconds):
    while True:
        burn(seconds)
        yield


async def report(seconds):
    await asyncio.sleep(0)
    burn(seconds)


def deep(seconds, depth):
    return deep(seconds, depth - 1) if depth else burn(seconds)


def checkpoint(seconds):
    time.sleep(seconds)


def decode(seconds):
    burn(seconds)


class Loader:
    def __init__(self, seconds):
        asked, self.ask = os.pipe()
        self.answer, answered = os.pipe()
        if os.fork():
            os.close(asked)
            os.close(answered)
            return
        os.close(self.ask)
        os.close(self.answer)
        while os.read(asked, 1):  # ends with its parent
            decode(seconds)
            os.write(answered, b"x")
        os._exit(0)

    def fetch(self):
        os.write(self.ask, b"x")
        os.read(self.answer, 1)


def pin(device, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        device.pin()


def line_of(function, number):
    """The line `number` lines below the first one of a function."""
    return function.__code__.co_firstlineno + number


class Job:
    def __init__(self, args):
        choose = random.Random(args.seed)
        names = "collate", "samples", "report", "deep", "checkpoint", "fetch", "pin"
        self.seconds = {name: choose.randint(2, 12) * MS for name in names}
        self.loader = Loader(self.seconds["fetch"])
        self.device = vgpu.Device(args.vgpu, None)
        self.loop = asyncio.new_event_loop()
        self.samples = samples(self.seconds["samples"])
        self.parts = {
            "collate": lambda: collate(self.seconds["collate"]),
            "samples": lambda: next(self.samples),
            "report": lambda: self.loop.run_until_complete(report(self.seconds["report"])),
            "deep": lambda: deep(self.seconds["deep"], args.depth),
            "checkpoint": lambda: checkpoint(self.seconds["checkpoint"]),
            "fetch": self.loader.fetch,
            "pin": lambda: pin(self.device, self.seconds["pin"]),
        }
        self.spent = dict.fromkeys(self.parts, 0.0)
        self.driver = next(pathlib.Path(args.vgpu).glob("libcuda.so.*[0-9]"))

    def look_up(self):
        self.forward, _, _ = self.device.find(self.driver, FORWARD)
        _, _, self.backward = self.device.find(self.driver, BACKWARD)

    def do(self, names):
        for name in names:
            before = time.monotonic()
            self.parts[name]()
            self.spent[name] += time.monotonic() - before

    def step(self):
        self.do(BEFORE_FORWARD)
        self.device.run(self.forward, KERNEL_US)
        self.device.item()
        self.do(BEFORE_BACKWARD)
        self.device.run(self.backward, KERNEL_US)
        self.device.item()
        self.do(BEFORE_RUNTIME)
        self.device.launch(1, KERNEL_US)
        self.device.item()

    def between(self):
        """Seconds between two kernels; None: the one that the runtime launches."""
        kernels = [None, FORWARD.decode(), BACKWARD.decode(), None]
        names = BEFORE_FORWARD, BEFORE_BACKWARD, BEFORE_RUNTIME
        return [[kernels[i], kernels[i + 1], sum(self.spent[name] for name in names[i])] for i in range(3)]

    def truth(self, steps):
        """Seconds by the function and the line in which they were spent."""
        collated = self.spent["collate"]
        return {"pid": os.getpid(), "python": platform.python_version(), "steps": steps, "between": self.between(), "lines": [
            ["collate", line_of(collate, 1), collated / 4], ["collate", line_of(collate, 2), 3 * collated / 4],
            ["samples", line_of(samples, 2), self.spent["samples"]],
            ["report", line_of(report, 2), self.spent["report"]],
            ["deep", line_of(deep, 1), self.spent["deep"]],
            ["checkpoint", line_of(checkpoint, 1), self.spent["checkpoint"]],
            ["Loader.fetch", line_of(Loader.fetch, 2), self.spent["fetch"]],
            ["pin", line_of(pin, 3), self.spent["pin"]]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vgpu", required=True, metavar="DIR", help="directory of the libraries of the virtual GPU")
    parser.add_argument("--truth", type=pathlib.Path, required=True, metavar="FILE", help="write the truth to this file")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="chooses the times (default 0)")
    parser.add_argument("--depth", type=int, default=60, metavar="N", help="of the recursion (default 60)")
    args = parser.parse_args()
    sys.setrecursionlimit(10000)
    job, steps = Job(args), 0
    while True:
        if steps % LOOK_UP_STEPS == 0:
            job.look_up()
        job.step()
        steps += 1
        temporary = args.truth.with_suffix(".new")
        temporary.write_text(json.dumps(job.truth(steps)))
        temporary.rename(args.truth)


if __name__ == "__main__":
    main()
