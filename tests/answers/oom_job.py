# SPDX-License-Identifier: GPL-2.0-or-later
"""A job with the virtual GPU that does what each line of its input says, and prints a line when it has done it.

Arguments: the folder of the virtual GPU's libraries, and a library with the function by which PyTorch reports that it is
out of memory. Lines: `launch`, `alloc BYTES`, `oom ASKED ALLOCATED RESERVED`.
"""
import ctypes
import sys

import vgpu

CUDA = 1  # c10::DeviceType
REPORT = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"


class C10Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int8), ("index", ctypes.c_int8)]


def launch(device, _):
    device.launch(1, 100)
    device.drain()


def alloc(device, _, size):
    device.call("cudaMalloc", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(size)))


def oom(_, report, *sizes):
    report(*map(int, sizes), C10Device(CUDA, 0))


def main(libraries, c10):
    device = vgpu.Device(libraries, None)
    report = ctypes.CDLL(c10)[REPORT]
    report.argtypes = [ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, C10Device]
    report.restype = None
    device.call("cudaGetDeviceProperties_v2", ctypes.create_string_buffer(1 << 16), 0)
    for line in sys.stdin:
        name, *words = line.split()
        {"launch": launch, "alloc": alloc, "oom": oom}[name](device, report, *words)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
