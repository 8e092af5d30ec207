# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranks that train with NCCL in Python. One of them never enters an all-reduce: it stays in a known line.

The line is the one with the call in stuck(). The rank sleeps there, is stopped there by a signal, or spins there.
"""
import argparse
import ctypes
import os
import pathlib
import signal
import time

import vgpu

KERNEL_US = 2000
COUNT = 1024
FLOAT32, SUM = 7, 0  # ncclDataType_t, ncclRedOp_t
SECONDS = 1000000


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


def spin():
    while True:
        pass


KINDS = {"sleep": lambda: time.sleep(SECONDS), "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP), "spin": spin}


def stuck(kind):
    KINDS[kind]()


class Rank:
    def __init__(self, args, rank, unique):
        (path,) = pathlib.Path(args.vgpu).glob("libnccl.so.*[0-9]")
        self.nccl = ctypes.CDLL(str(path))
        self.args, self.rank, self.comm = args, rank, ctypes.c_void_p()
        self.device = vgpu.Device(args.vgpu, None, rank)
        self.call("ncclCommInitRank", ctypes.byref(self.comm), args.ranks, unique, rank)

    def call(self, name, *args):
        error = getattr(self.nccl, name)(*args)
        if error:
            raise RuntimeError(f"{name} failed with error {error}")

    def step(self, number):
        self.device.launch(1, KERNEL_US)
        if number == self.args.step and self.rank == self.args.odd:
            stuck(self.args.kind)
        self.call("ncclAllReduce", self.device.memory, self.device.memory, ctypes.c_size_t(COUNT), FLOAT32, SUM,
                  self.comm, None)
        self.device.drain()

    def run(self):
        number = 0
        while True:
            self.step(number)
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vgpu", required=True, metavar="DIR", help="directory of the libraries of the virtual GPU")
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="(default 4)")
    parser.add_argument("--odd", type=int, default=0, metavar="N", help="the rank that does not arrive (default 0)")
    parser.add_argument("--step", type=int, default=40, metavar="N", help="in which it does not arrive (default 40)")
    parser.add_argument("--kind", choices=KINDS, default="sleep", help="how it stays there (default sleep)")
    args = parser.parse_args()
    pipes = [os.pipe() for _ in range(args.ranks)]
    for rank in range(1, args.ranks):
        if os.fork() == 0:
            Rank(args, rank, UniqueId.from_buffer_copy(os.read(pipes[rank][0], ctypes.sizeof(UniqueId)))).run()
    (path,) = pathlib.Path(args.vgpu).glob("libnccl.so.*[0-9]")
    unique = UniqueId()
    if ctypes.CDLL(str(path)).ncclGetUniqueId(ctypes.byref(unique)):
        raise RuntimeError("ncclGetUniqueId failed")
    for _, write in pipes[1:]:
        os.write(write, bytes(unique))
    Rank(args, 0, unique).run()


if __name__ == "__main__":
    main()
