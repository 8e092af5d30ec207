# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains with the real PyTorch beside the virtual GPU: 8 passes for each optimizer step, one sync per step."""
import torch_job

PASSES = 8
LAUNCHES, KERNEL_US = 10, 1000
LOAD_S = 0.0005


def main():
    job = torch_job.Job(__doc__, batches_per_step=PASSES, workers=2, cpu_s=LOAD_S)
    for number, batch in enumerate(job.loader, 1):
        job.backward(batch, LAUNCHES, KERNEL_US)
        if number % PASSES == 0:
            job.step()
            job.device.item()
    job.report()


if __name__ == "__main__":
    main()
