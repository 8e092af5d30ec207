# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld with all its processes, a gateway, and a service manager that starts both again."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import harness
from harness import BUILD, READERS, ZERNEL, wait_until

NOBODY = 65534
LIBRARY = "libcudart.so.noted"  # no other test uses this name; the fake programs report names with "noted"
# The processes, by name and first argument.
PROCESSES = {
    "zerneld": None,
    "zerneld-starter": ("zerneld-starter", b""),
    "zernel-gpu": ("zernel-gpu", b""),
    "zernel-discover fdinfo": ("zernel-discover", b"fdinfo"),
    "zernel-discover libraries": ("zernel-discover", b"libraries"),
    "zerneld-restore": ("zerneld-restore", b""),
    "gateway": None,
}
CONFIG = "[gpu]\nsample=yes\n[scheduler]\nactuator=nice\n"


def family(pid):
    """Returns a process and all its descendants, as far as they still exist."""
    pids = [pid]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                pids += family(int(child))
    return pids


@contextlib.contextmanager
def mapped_library(name=LIBRARY):
    """A process that has mapped a file with the name of a GPU runtime as code."""
    with tempfile.TemporaryDirectory(prefix="zerneld-job.") as folder:
        library = shutil.copy(BUILD / "lab/vgpu/libcudart.so.12", f"{folder}/{name}")
        code = ("import mmap, sys; file = open(sys.argv[1]); "
                "kept = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); "
                "print(flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", code, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
            job.stdout.readline()
            yield job


class Node:
    def __init__(self):
        self.server = harness.Zerneld(config=CONFIG)
        self.nr_attached = 0  # times that the library was attached before zerneld was last started
        self.gateway = None
        self.gateway_log = self.server.directory / "gateway"
        self.start_gateway()

    def start_gateway(self):
        """It runs as a user who may read the socket."""
        with open(self.gateway_log, "w", encoding="utf-8") as log:
            self.gateway = subprocess.Popen([ZERNEL, "serve", "--socket", self.server.path, "--port", "0", "--token-file", ""],
                                            stdout=subprocess.DEVNULL, stderr=log, user=NOBODY, group=NOBODY, extra_groups=[READERS])

    def manage(self):
        """Starts what has ended, as the service manager does. zerneld must not end without an error."""
        if (code := self.server.process.poll()) is not None:
            assert code != 0, "zerneld ended without an error"
            self.nr_attached = self.times_attached()
            self.server.start(wait=False)
        if self.gateway.poll() is not None:
            self.start_gateway()

    def times_attached(self):
        return self.server.did().count(f"attached {LIBRARY}")

    def pid_of(self, name):
        if not PROCESSES[name]:
            return (self.server.process if name == "zerneld" else self.gateway).pid
        for pid in family(self.server.process.pid):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                comm, argument = PROCESSES[name]
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == comm and argument in (b"", *words[1:2]):
                    return pid
        return None

    def send(self, name, number):
        """Sends a signal to a process as soon as it runs. Returns its pid."""
        while True:
            pid = wait_until(lambda: self.manage() or self.pid_of(name), f"{name} runs: {self.server.text()[-400:]}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                return pid

    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def is_ready(self):
        port = re.search(r"listening on http://127.0.0.1:(\d+)$", self.gateway_log.read_text(encoding="utf-8"), re.M)
        if not port:
            return False
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/readyz", timeout=harness.SECONDS) as answer:
            return answer.status == 200

    def is_whole(self):
        """All processes run, the library of the job is found, GPUs are sampled, the gateway has fresh data."""
        self.manage()
        if not all(map(self.pid_of, PROCESSES)) or self.times_attached() == self.nr_attached:
            return False
        with contextlib.suppress(OSError, TypeError):  # an end of zerneld at this moment
            gpus = self.snapshot()["gpus"]
            return len(gpus) == 2 and gpus[0].get("busy_percent") == 40 and self.is_ready()
        return False

    def becomes_whole(self, after):
        try:
            wait_until(self.is_whole, f"all is well after {after}")
        except AssertionError as error:
            missing = [name for name in PROCESSES if not self.pid_of(name)]
            raise AssertionError(f"{error}; missing: {missing}; {self.server.text()[-1000:]}") from error

    def remove(self):
        self.gateway.send_signal(signal.SIGKILL)
        self.gateway.wait()
        self.server.remove()
