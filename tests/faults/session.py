# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs zerneld as a user without privileges, asks it for a snapshot and ends it: `session.py ZERNELD PREFIX...`.

The kernel refuses BPF to this user, so zerneld watches nothing. Ends as zerneld does.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

NOBODY = 65534
START_SECONDS, END_SECONDS = 20, 5


def ask(path):
    """A zerneld with a fault may refuse, close the connection or not answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(path)
        for method, params in ("hello", {"version": 2}), ("snapshot", {}):
            connection.sendall(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
            connection.recv(1 << 16)


def main(zerneld, *prefix):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chown(folder, NOBODY, NOBODY)
        config = folder / "zernel.conf"
        config.write_text(f"[socket]\npath={folder}/sock\n[learning]\nstate_directory={folder}/state\n[gpu]\nsample=no\n")
        with subprocess.Popen([*prefix, zerneld, "--config", config], user=NOBODY, group=NOBODY, extra_groups=[],
                              start_new_session=True) as process:
            end = time.monotonic() + START_SECONDS
            while process.poll() is None and time.monotonic() < end:
                try:
                    ask(f"{folder}/sock")
                    break
                except OSError:
                    time.sleep(0.05)
            if process.poll() is None:
                # strace passes no signal on, so all processes get it.
                os.killpg(process.pid, signal.SIGTERM)
            try:
                code = process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:  # it cannot read the signal
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = 1
    if code < 0 and code != -signal.SIGTERM:  # a program that has not started yet
        os.kill(os.getpid(), -code)
    return max(code, 0)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
