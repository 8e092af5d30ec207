# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts `zernel serve` with a fake zerneld, on ports that the kernel chooses."""
import atexit
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from fake_zerneld import FakeZerneld

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNEL = BUILD / "src/cli/zernel"
USER = "nobody"
PATIENCE_S = 120  # a start took longer than 10 s on a machine with much other work
# Sanitizers keep freed memory, so memory is not checked with them.
SANITIZED = os.environ.get("ZERNEL_SANITIZE", "none") != "none"


def note(text):
    print(f"# {text}", flush=True)


def wait_for(what, timeout=PATIENCE_S):
    """Waits until what() is true or the timeout passes. Returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def known_snapshot():
    """A snapshot with known values, as zerneld writes it."""
    text = subprocess.run([BUILD / "tests/serve/known_snapshot"], check=True, capture_output=True).stdout
    return json.loads(text)


class Serve:
    """A running gateway; its log is in `lines`. `launcher` is a prefix of the command. `makes_token`: as packaged."""

    def __init__(self, socket_path, *options, launcher=(), makes_token=False):
        command = [*launcher, ZERNEL, "serve", "--socket", socket_path, "--port", "0"]
        if os.getuid() == 0 and "--user" not in options:
            command += ["--user", USER]
        if not makes_token and "--token-file" not in options and "--config" not in options:
            command += ["--token-file", ""]
        self.lines = []
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # a process that a failed test leaves would keep the runner waiting
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        found = wait_for(lambda: self.said(r"listening on https?://.*:(\d+)$") or self.process.poll() is not None)
        self.port = int(found.group(1)) if isinstance(found, re.Match) else None

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def said(self, pattern):
        for line in list(self.lines):
            match = re.search(pattern, line)
            if match:
                return match
        return None

    def says(self, pattern):
        """Waits for a line: what a gateway does is seen before what it says about it is read."""
        return wait_for(lambda: self.said(pattern))

    def status(self, key):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return re.search(rf"^{key}:\s*(.*)$", text, re.M).group(1)

    def rss_kib(self):
        return int(self.status("VmRSS").split()[0])

    def peak_rss_kib(self):
        return int(self.status("VmHWM").split()[0])

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            note("the gateway did not stop and was killed")
        self.reader.join()
        self.process.stderr.close()
        return self.process.returncode


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first.startswith("HTTP/") else 0
        self.headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)


def raw(port, data, timeout=PATIENCE_S, address="127.0.0.1"):
    """Sends any bytes. Returns the reply until the gateway closes the connection."""
    with socket.create_connection((address, port), timeout) as connection:
        got = b""
        try:
            connection.sendall(data)
            while True:
                part = connection.recv(65536)
                if not part:
                    break
                got += part
        except (ConnectionResetError, BrokenPipeError):
            pass
        return Answer(got)


def curl(*arguments):
    """Status, content type and body from curl; status 0 when there was no answer."""
    done = subprocess.run(["curl", "-s", "-m", str(PATIENCE_S), "-w", "\n%{http_code} %{content_type}", *arguments],
                          capture_output=True, check=False)
    body, _, last = done.stdout.rpartition(b"\n")
    status, _, kind = last.decode().partition(" ")
    return int(status), kind, body


def get_times(port, path, count):
    """The duration in ms of `count` GET requests, sorted."""
    script = pathlib.Path(__file__).parent / "latency.py"
    done = subprocess.run([sys.executable, script, str(port), path, str(count)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


class ServeCase(unittest.TestCase):
    """One gateway for all tests of a class, with the options of the class."""

    options = ()
    scheme = "http"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chmod(cls.folder.name, 0o755)
        cls.path = pathlib.Path(cls.folder.name) / "zernel.sock"
        cls.zerneld = FakeZerneld(str(cls.path), known_snapshot()).start()
        cls.prepare()
        cls.serve = Serve(str(cls.path), *cls.options)
        if cls.serve.port is None:
            raise RuntimeError("serve did not start: " + "; ".join(cls.serve.lines))
        cls.url = f"{cls.scheme}://127.0.0.1:{cls.serve.port}"
        wait_for(lambda: cls.serve.said("zerneld answers"))

    def assert_grew_less(self, before_kib, limit_kib, what):
        after_kib = self.serve.rss_kib()
        note(f"RSS {before_kib} KiB before, {after_kib} KiB after {what}")
        if not SANITIZED:
            self.assertLess(after_kib - before_kib, limit_kib)

    @classmethod
    def prepare(cls):
        """Creates the files that the options name."""

    @classmethod
    def tearDownClass(cls):
        status = cls.serve.stop()
        cls.zerneld.stop()
        cls.folder.cleanup()
        if status != 0:
            print("\n".join(cls.serve.lines), file=sys.stderr)
            raise RuntimeError(f"serve exited with status {status}")
