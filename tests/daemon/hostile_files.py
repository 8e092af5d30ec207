# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that maps hostile files with names of GPU runtimes: `hostile_files.py KIND NUMBER FOLDER LIBRARY UID`.

It prints a line when all files are mapped, and ends with its standard input.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import signal
import struct
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
MAPPINGS = 40000  # of one file; the kernel allows 65,530 in a process
SPARSE_BYTES = 1 << 40
# Operations of FUSE, and sizes of its structures: linux/fuse.h
LOOKUP, GETATTR, OPEN, INIT, FLUSH, RELEASE = 1, 3, 14, 26, 25, 18
ROOT = 1
KEPT = []  # mappings and descriptors


def keep_mapping(fd, length=0):
    KEPT.append((fd, mmap.mmap(fd, length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)))


def lease(path):
    """An open of the file waits for the owner of the lease, who does not answer."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDWR)
    keep_mapping(fd)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)


def fifo(path):
    """The name of the mapped file now belongs to a pipe without a writer."""
    fd = os.open(path, os.O_RDONLY)
    keep_mapping(fd)
    os.close(fd)
    os.unlink(path)
    os.mkfifo(path)


def sparse(path):
    """An ELF file of 1 TiB, whose tables of sections are at its end and as long as possible."""
    with open(path, "r+b") as file:
        file.seek(0x28)
        file.write(struct.pack("<Q", SPARSE_BYTES - (60000 * 64)))
        file.seek(0x3c)
        file.write(struct.pack("<H", 60000))
        file.truncate(SPARSE_BYTES)
        keep_mapping(os.dup(file.fileno()), 4096)


def truncated(path):
    """The file changes its size 5 times a second. Without the sleep, most of an emulated CPU would flush the page tables of these changes."""
    fd = os.open(path, os.O_RDWR)
    keep_mapping(fd)
    content = os.pread(fd, 1 << 24, 0)

    def change():
        while True:
            os.ftruncate(fd, 100)
            os.pwrite(fd, content, 0)
            time.sleep(0.2)
    threading.Thread(target=change, daemon=True).start()


def mappings(path):
    """So many mappings that a scan takes long. Neighbors differ, so the kernel does not merge them."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fd = os.open(path, os.O_RDONLY)
    for i in range(MAPPINGS):
        protection = mmap.PROT_READ | (mmap.PROT_EXEC if i % 2 else 0)
        if LIBC.mmap(None, 4096, protection, mmap.MAP_PRIVATE, fd, 0) in (None, ctypes.c_void_p(-1).value):
            break


def answer_fuse(fd):
    """A file system with one file, of which no byte can ever be read."""
    attributes = struct.pack("<QQQQQQIIIIIIIIII", 2, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, 0o100644, 1, 0, 0, 0, 4096, 0)
    folder = struct.pack("<QQQQQQIIIIIIIIII", ROOT, 0, 0, 0, 0, 0, 0, 0, 0, 0o040755, 2, 0, 0, 0, 4096, 0)
    while True:
        request = os.read(fd, 1 << 17)
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        body = None
        if operation == INIT:
            body = struct.pack("<IIIIHHIIHH", 7, 31, 1 << 16, 0, 16, 16, 1 << 16, 1, 0, 0) + bytes(28)
        elif operation == LOOKUP:
            body = struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes
        elif operation == GETATTR:
            body = struct.pack("<QII", 3600, 0, 0) + (folder if node == ROOT else attributes)
        elif operation == OPEN:
            body = struct.pack("<QII", 1, 0, 0)
        elif operation in (FLUSH, RELEASE):
            body = b""
        if body is not None:
            os.write(fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


def fuse(path):
    """A file whose content never arrives."""
    folder = os.path.dirname(path) + "/" + os.path.basename(path) + ".mount"
    os.mkdir(folder)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
    if LIBC.mount(b"hostile", folder.encode(), b"fuse", 0, options.encode()) < 0:
        raise OSError(ctypes.get_errno(), "mount")
    if os.fork() == 0:
        try:
            answer_fuse(fd)
        except OSError as error:
            os._exit(error.errno != errno.ENODEV)
    os.close(fd)
    keep_mapping(os.open(f"{folder}/{os.path.basename(path)}", os.O_RDONLY), 4096)


KINDS = {"lease": lease, "fifo": fifo, "sparse": sparse, "truncated": truncated, "mappings": mappings, "fuse": fuse}


def main(kind, number, folder, library, uid):
    if kind == "fuse":
        # The mounts belong to this process alone. Only root can make them here; a user would use a user namespace.
        if LIBC.unshare(CLONE_NEWNS) < 0 or LIBC.mount(b"none", b"/", None, (1 << 14) | (1 << 18), None) < 0:
            raise OSError(ctypes.get_errno(), "unshare")
    else:
        os.setgroups([])
        os.setresgid(int(uid), int(uid), int(uid))
        os.setresuid(int(uid), int(uid), int(uid))
    for i in range(int(number)):
        path = f"{folder}/libcudart.so.{kind}{i}"
        if kind != "fuse":
            shutil.copyfile(library, path)
        KINDS[kind](path)
    print(flush=True)
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
