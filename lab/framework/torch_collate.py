# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains with the real PyTorch beside the virtual GPU: its DataLoader has a collate_fn that is too slow.

The function collate() burns CPU time in one line, in functions of C only. Samples and the step need little time, so the GPU is
idle in most of a step because of this line. After each step, the job writes what it measured to a file.
"""
import argparse
import itertools
import json
import os
import pathlib
import platform
import time

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

import vgpu

FEATURES, BATCH = 64, 4
STEPS_MAX = 100_000
KERNEL_US = 4000
COLLATE_S, SAMPLE_S = 0.040, 0.001


def clock():
    """The CPU time of this thread, again and again, without a frame of Python for each."""
    return itertools.starmap(time.thread_time, itertools.repeat(()))


def collate(samples):
    end, times = time.thread_time() + COLLATE_S, clock()
    any(map(end.__le__, times))
    return default_collate(samples)


SLOW_LINE = collate.__code__.co_firstlineno + 2


class Samples(Dataset):
    def __len__(self):
        return STEPS_MAX * BATCH

    def __getitem__(self, index):
        any(map((time.thread_time() + SAMPLE_S).__le__, clock()))
        return torch.full((FEATURES,), float(index % 7)), torch.ones(1)


class Job:
    def __init__(self, args):
        torch.set_num_threads(1)
        self.args = args
        context = {"num_workers": args.workers, "multiprocessing_context": args.start} if args.workers else {}
        self.loader = DataLoader(Samples(), batch_size=BATCH, collate_fn=collate, **context)
        self.model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self.device = vgpu.Device(args.vgpu, None)

    def step(self, features, target):
        self.device.upload()
        torch.nn.functional.mse_loss(self.model(features), target).backward()
        self.device.launch(1, KERNEL_US)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.device.item()

    def run(self):
        """Waits for batches and trains with them. Counts the time in which the loader has no batch."""
        begun, waited = time.monotonic(), 0.0
        before = begun
        for steps, batch in enumerate(self.loader, 1):
            waited += time.monotonic() - before
            self.step(*batch)
            self.write(steps, waited, time.monotonic() - begun)
            before = time.monotonic()

    def write(self, steps, waited, elapsed):
        temporary = self.args.truth.with_suffix(".new")
        temporary.write_text(json.dumps({
            "pid": os.getpid(), "python": platform.python_version(), "torch": torch.__version__, "steps": steps,
            "waited": waited, "elapsed": elapsed, "function": collate.__qualname__, "line": SLOW_LINE}))
        temporary.rename(self.args.truth)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vgpu", required=True, metavar="DIR", help="directory of the libraries of the virtual GPU")
    parser.add_argument("--truth", type=pathlib.Path, required=True, metavar="FILE", help="write the truth to this file")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="loaders of the DataLoader; 0: none (default 2)")
    parser.add_argument("--start", choices=("fork", "spawn", "forkserver"), default="fork", help="how loaders are started")
    Job(parser.parse_args()).run()


if __name__ == "__main__":
    main()
