# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small model on the CPU and reports its waits for data.

Two loader processes prepare every sample with some CPU time and a sleep, so
that the training loop waits for them at every step. It measures each
next(iterator) itself and prints the result as one line of JSON.
"""
import json
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = 15
BATCH = 8
FEATURES = 64
WORKERS = 2
# Time that a loader needs for a sample.
CPU_S, SLEEP_S = 0.010, 0.030


class Samples(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        end = time.thread_time() + CPU_S
        while time.thread_time() < end:
            pass
        time.sleep(SLEEP_S)
        return torch.full((FEATURES,), float(index)), torch.tensor([float(index)])


def update(model):
    """Does the work of an optimizer. torch.optim would import the compiler, which takes minutes in the guest."""
    with torch.autograd.profiler.record_function("Optimizer.step#mine"), torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-6 * parameter.grad
            parameter.grad = None


def train(loader, model):
    """Returns the duration of each next() in ns; the last call reaches the end of the data."""
    waits = []
    batches = iter(loader)
    while True:
        before = time.monotonic_ns()
        batch = next(batches, None)
        waits.append(time.monotonic_ns() - before)
        if batch is None:
            return waits
        features, target = batch
        torch.nn.functional.mse_loss(model(features), target).backward()
        update(model)


def main():
    loader = DataLoader(Samples(), batch_size=BATCH, num_workers=WORKERS)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    waits = train(loader, model)
    print(json.dumps({"pid": os.getpid(), "workers": WORKERS, "waits_ns": waits}))


if __name__ == "__main__":
    main()
