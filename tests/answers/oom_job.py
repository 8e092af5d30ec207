# SPDX-License-Identifier: GPL-2.0-or-later
"""A job with the virtual GPU that does what each line of its input says, and prints a line when it has done it.

Arguments: the folder of the virtual GPU's libraries, and a library with the functions by which PyTorch reports that it is
out of memory, and what it has allocated. Lines: `launch`, `alloc BYTES`, `oom ASKED ALLOCATED RESERVED`, `use ALLOCATED RESERVED`.
"""
import ctypes
import sys

import vgpu

CUDA = 1  # c10::DeviceType
REPORT = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
USE = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"


class C10Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int8), ("index", ctypes.c_int8)]


def launch(device, _):
    device.launch(1, 100)
    device.drain()


def alloc(device, _, size):
    device.call("cudaMalloc", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(size)))


def oom(_, library, *sizes):
    report = library[REPORT]
    report.argtypes = [ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, C10Device]
    report.restype = None
    report(*map(int, sizes), C10Device(CUDA, 0))


def use(_, library, *sizes):
    report = library[USE]
    report.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, C10Device]
    report.restype = None
    report(None, 1, *map(int, sizes), C10Device(CUDA, 0))


def main(libraries, c10):
    device = vgpu.Device(libraries, None)
    library = ctypes.CDLL(c10)
    device.call("cudaGetDeviceProperties_v2", ctypes.create_string_buffer(1 << 16), 0)
    for line in sys.stdin:
        name, *words = line.split()
        {"launch": launch, "alloc": alloc, "use": use, "oom": oom}[name](device, library, *words)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
