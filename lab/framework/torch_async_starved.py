# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains with the real PyTorch beside the virtual GPU: no sync, and a loader that is too slow."""
import torch_job

LAUNCHES, KERNEL_US = 50, 200
LOAD_S = 0.020  # twice the time that the device needs for a batch


def main():
    job = torch_job.Job(__doc__, batches_per_step=1, workers=1, cpu_s=LOAD_S)
    for batch in job.loader:
        job.backward(batch, LAUNCHES, KERNEL_US)
        job.step()
    job.report()


if __name__ == "__main__":
    main()
