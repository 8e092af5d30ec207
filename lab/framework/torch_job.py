# SPDX-License-Identifier: GPL-2.0-or-later
"""What the jobs with the real PyTorch have in common: its DataLoader and its SGD on a small model on the CPU."""
import argparse
import json
import multiprocessing
import os
import pathlib
import platform
import time

import torch
from torch.utils.data import DataLoader, Dataset

import vgpu

FEATURES = 64


class Samples(Dataset):
    """Every batch is one sample, which costs its loader CPU time."""

    def __init__(self, number, cpu_s):
        self.number, self.cpu_s = number, cpu_s

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        end = time.thread_time() + self.cpu_s
        while time.thread_time() < end:
            pass
        return torch.full((FEATURES,), float(index % 7)), torch.ones(1)


class Job:
    def __init__(self, description, batches_per_step, workers, cpu_s):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--steps", type=int, default=50, metavar="N", help="optimizer steps (default 50)")
        parser.add_argument("--vgpu", required=True, metavar="DIR", help="directory of the libraries of the virtual GPU")
        parser.add_argument("--truth", type=pathlib.Path, metavar="DIR", help="write truth logs to this directory")
        self.args = parser.parse_args()
        torch.set_num_threads(1)
        self.loader = DataLoader(Samples(self.args.steps * batches_per_step, cpu_s), num_workers=workers)
        self.model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self.device = vgpu.Device(self.args.vgpu, self.args.truth)
        self.ends_ns = []

    def backward(self, batch, launches, kernel_us):
        """Forward and backward pass, and the kernels that a GPU would run for it."""
        features, target = batch
        self.device.upload()
        torch.nn.functional.mse_loss(self.model(features), target).backward()
        self.device.launch(launches, kernel_us)

    def step(self):
        self.optimizer.step()
        self.ends_ns.append(time.monotonic_ns())
        self.optimizer.zero_grad()

    def report(self):
        self.device.drain()
        print(json.dumps({"pid": os.getpid(), "steps": len(self.ends_ns), "step_ends_ns": self.ends_ns,
                          "python": platform.python_version(), "torch": torch.__version__,
                          "start_method": multiprocessing.get_start_method()}))
