# SPDX-License-Identifier: GPL-2.0-or-later
"""A job whose stacks never repeat: each step defines functions of its own and sleeps in them while its GPU is idle.

It is for tests of zernel why --lines: one process must not take the room of another one.
"""
import argparse
import itertools
import time

import vgpu

KERNEL_US = 500
FUNCTIONS = 20  # of a step
SLEEP_SECONDS = 0.0002


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vgpu", required=True, metavar="DIR", help="directory of the libraries of the virtual GPU")
    args = parser.parse_args()
    device = vgpu.Device(args.vgpu, None)
    for step in itertools.count():
        for i in range(FUNCTIONS):
            names = {"sleep": time.sleep}
            exec(f"def flood_{step}_{i}():\n    sleep({SLEEP_SECONDS})\n", names)  # a new code object
            names[f"flood_{step}_{i}"]()
        device.launch(1, KERNEL_US)
        device.item()


if __name__ == "__main__":
    main()
