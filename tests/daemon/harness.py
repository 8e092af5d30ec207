# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs zerneld with fake BPF programs, and clients that can also misbehave."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNELD = BUILD / "tests/daemon/zerneld-fake"
ZERNEL = BUILD / "src/cli/zernel"
SECONDS = 120  # timeout; a shared machine can pause
READERS, ADMINS, OTHERS = 4242, 4243, 4244
GROUPS = f"root:x:0:\nzernel:x:{READERS}:\nzernel-admin:x:{ADMINS}:\n"


def wait_until(condition, what):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"timeout: {what}")


def read_terminal(leader):
    """Returns all output of a terminal until the last process closes it."""
    text = b""
    try:
        while part := os.read(leader, 4096):
            text += part
    except OSError:  # a closed terminal returns an error
        pass
    return text.decode()


def as_user(uid, gid, groups, function):
    """Runs a function in a process of that user and returns its result."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            os.write(write, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    text = b""
    while part := os.read(read, 1 << 16):
        text += part
    os.close(read)
    os.waitpid(pid, 0)
    return json.loads(text)


class Client:
    """A well-behaved client. `line()` and `send()` are for tests of misbehaving clients."""

    def __init__(self, path, hello=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(SECONDS)
        self.input = b""
        self.id = 0
        self.pushes = []
        if hello:
            self.hello = self.ask("hello", version=2)["result"]

    def send(self, data):
        self.socket.sendall(data)

    def raw_line(self):
        while b"\n" not in self.input:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:  # the server closed without reading the last data
                return None
            if not data:
                return None
            self.input += data
        line, self.input = self.input.split(b"\n", 1)
        return line

    def line(self):
        line = self.raw_line()
        return None if line is None else json.loads(line)

    def reply(self):
        while (line := self.line()) is not None and "event" in line:
            self.pushes.append(line["data"])
        return line

    def ask(self, method, **params):
        self.id += 1
        self.send(json.dumps({"id": self.id, "method": method, "params": params}).encode() + b"\n")
        reply = self.reply()
        assert reply is None or reply.get("id", self.id) == self.id, reply
        return reply

    def push(self):
        if self.pushes:
            return self.pushes.pop(0)
        line = self.line()
        assert line["event"] == "snapshot", line
        return line["data"]

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Zerneld:
    def __init__(self, *arguments, config="", groups=GROUPS, state=None, wait=True, attach="yes", mount="", environment=None, processes=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="zerneld."))
        self.directory.chmod(0o755)
        self.path = self.directory / "run/zernel.sock"
        self.config = self.directory / "zernel.conf"
        self.state = self.directory / "state"
        self.log = self.directory / "stderr"
        self.fake = self.directory / "kernel"
        self.fake.mkdir()
        if processes:
            (self.fake / "processes").write_text(processes)
        (self.directory / "group").write_text(groups)
        # The virtual GPU counts as a GPU where it has a device file: in a guest.
        devices = "device_files=/dev/zernel-vgpu0\n" if "ZERNEL_IN_GUEST" in os.environ else ""
        self.config.write_text(f"[scheduler]\nattach={attach}\n[learning]\nstate_directory={self.state}\n"
                               f"[socket]\npath={self.path}\n[gpu]\n{devices}sample=no\n{config}")
        self.arguments = arguments
        # Commands of a shell in the mount namespace of zerneld. $$ is its process ID.
        self.mount = mount
        self.environment = environment or {}
        if state:  # mount options of a file system that only zerneld sees
            self.state.mkdir()
            self.mount += f"mount -t tmpfs -o {state} tmpfs {self.state} &&"
        self.process = None
        self.start(wait)

    def start(self, wait=True):
        """Starts zerneld in a separate mount namespace with the groups of the test."""
        command = self.mount + 'mount --bind "$1" /etc/group && shift && exec "$@"'
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", command, "sh", self.directory / "group", ZERNELD,
                 "--config", self.config, *self.arguments],
                stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, **self.environment, "FAKE_KERNEL": str(self.fake)})
        if wait:
            wait_until(self.answers, "zerneld answers")

    def inside(self, *command):
        """Runs a command in the mount namespace of zerneld."""
        subprocess.run(["nsenter", "--mount", "--root", "-t", str(self.process.pid), *command], check=True)

    def answers(self):
        assert self.process.poll() is None, self.text()
        try:
            Client(self.path).close()
            return True
        except OSError:
            return False

    def client(self, **options):
        return Client(self.path, **options)

    def text(self):
        return self.log.read_text(encoding="utf-8")

    def said(self, text):
        wait_until(lambda: text in self.text(), f"'{text}' in {self.text()}")

    def did(self):
        log = self.fake / "log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def tell(self, what):
        (self.fake / what).touch()

    def untell(self, what):
        (self.fake / what).unlink()

    def scheduler(self):
        with self.client() as client:
            return client.ask("snapshot")["result"]["scheduler"]

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        return self.process.wait(SECONDS)

    def remove(self):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        shutil.rmtree(self.directory)


class Case(unittest.TestCase):
    def zerneld(self, *arguments, **options):
        zerneld = Zerneld(*arguments, **options)
        self.addCleanup(zerneld.remove)
        return zerneld

    def assertError(self, reply, code, text=""):
        self.assertEqual(reply["error"]["code"], code, reply)
        self.assertIn(text, reply["error"]["message"])
