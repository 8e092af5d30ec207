# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small model on the CPU and reports its waits for data and its optimizer steps.

Two loader processes prepare every sample with some CPU time and a sleep, so
that the training loop waits for them at every batch. There is an optimizer step
for every other batch. It measures each next(iterator) and each optimizer step
itself and prints the result as one line of JSON.
"""
import json
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = 8
PASSES = 2  # batches of a step
BATCH = 8
FEATURES = 64
WORKERS = 2
# Time that a loader needs for a sample.
CPU_S, SLEEP_S = 0.010, 0.030


class Samples(Dataset):
    def __len__(self):
        return STEPS * PASSES * BATCH

    def __getitem__(self, index):
        end = time.thread_time() + CPU_S
        while time.thread_time() < end:
            pass
        time.sleep(SLEEP_S)
        return torch.full((FEATURES,), float(index)), torch.tensor([float(index)])


def train(loader, model, optimizer):
    """
    Returns the duration of each next() in ns, of which the last call reaches the end of the data, and the end of each
    optimizer step.
    """
    waits, ends = [], []
    batches = iter(loader)
    while True:
        before = time.monotonic_ns()
        batch = next(batches, None)
        waits.append(time.monotonic_ns() - before)
        if batch is None:
            return waits, ends
        features, target = batch
        torch.nn.functional.mse_loss(model(features), target).backward()
        if len(waits) % PASSES == 0:
            optimizer.step()
            ends.append(time.monotonic_ns())
            optimizer.zero_grad()


def main():
    loader = DataLoader(Samples(), batch_size=BATCH, num_workers=WORKERS)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    waits, ends = train(loader, model, torch.optim.SGD(model.parameters(), lr=1e-6))
    print(json.dumps({"pid": os.getpid(), "workers": WORKERS, "waits_ns": waits, "step_ends_ns": ends}))


if __name__ == "__main__":
    main()
