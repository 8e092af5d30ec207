# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual GPU for a Python job: what PyTorch with CUDA would call beside its CPU tensors."""
import ctypes
import os
import pathlib

COPY_BYTES = 4096
TO_DEVICE, TO_HOST = 1, 2  # enum cudaMemcpyKind


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Device:
    """The default stream of a device. Nothing waits for the device, except item() and drain()."""

    def __init__(self, libraries, truth, number=0):
        if truth:
            truth.mkdir(parents=True, exist_ok=True)
            os.environ["VGPU_TRUTH"] = str(truth)  # os.environ calls setenv(), which the library sees
        (path,) = pathlib.Path(libraries).glob("libcudart.so.*[0-9]")
        self.cudart = ctypes.CDLL(str(path))
        self.cudart.cudaLaunchKernel.argtypes = [
            ctypes.c_void_p, Dim3, Dim3, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p]
        self.busy = ctypes.cast(self.cudart.vgpu_busy, ctypes.c_void_p)
        self.call("cudaSetDevice", number)
        self.memory, self.host = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(COPY_BYTES))
        self.call("cudaMallocHost", ctypes.byref(self.host), ctypes.c_size_t(COPY_BYTES))

    def call(self, name, *args):
        error = getattr(self.cudart, name)(*args)
        if error:
            raise RuntimeError(f"{name} failed with error {error}")

    def launch(self, number, kernel_us):
        """Queues kernels that keep the device busy for so long each."""
        duration = ctypes.c_uint64(kernel_us * 1000)
        args = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        one = Dim3(1, 1, 1)
        for _ in range(number):
            self.call("cudaLaunchKernel", self.busy, one, one, args, 0, None)

    def find(self, driver, name):
        """Returns the handles of a kernel, as programs that load their own code get them: a function of a module, a kernel of
        a library, and the function of that kernel. Its name begins with "busy"."""
        self.cuda = ctypes.CDLL(str(driver))
        module, library, handles = ctypes.c_void_p(), ctypes.c_void_p(), [ctypes.c_void_p() for _ in range(3)]
        self.drive("cuModuleLoadData", ctypes.byref(module), b"image")
        self.drive("cuLibraryLoadData", ctypes.byref(library), b"image", None, None, 0, None, None, 0)
        self.drive("cuModuleGetFunction", ctypes.byref(handles[0]), module, name)
        self.drive("cuLibraryGetKernel", ctypes.byref(handles[1]), library, name)
        self.drive("cuKernelGetFunction", ctypes.byref(handles[2]), handles[1])
        return handles

    def drive(self, name, *args):
        error = getattr(self.cuda, name)(*args)
        if error:
            raise RuntimeError(f"{name} failed with error {error}")

    def run(self, kernel, kernel_us):
        """Launches a kernel by its handle, through the driver."""
        duration = ctypes.c_uint64(kernel_us * 1000)
        args = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        self.drive("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, args, None)

    def upload(self):
        self.copy(self.memory, self.host, TO_DEVICE)

    def item(self):
        """Reads a number from the device, which waits for all work before it."""
        self.copy(self.host, self.memory, TO_HOST)
        self.call("cudaStreamSynchronize", None)

    def copy(self, to, source, kind):
        self.call("cudaMemcpyAsync", to, source, ctypes.c_size_t(COPY_BYTES), kind, None)

    def pin(self):
        """Allocates pinned memory and frees it."""
        memory = ctypes.c_void_p()
        self.call("cudaMallocHost", ctypes.byref(memory), ctypes.c_size_t(COPY_BYTES))
        self.call("cudaFreeHost", memory)

    def drain(self):
        self.call("cudaDeviceSynchronize")
