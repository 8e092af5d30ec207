# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `zernel top` in a tmux terminal with a fake zerneld whose time advances second by second."""
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import scene
from fake_zerneld import FakeZerneld

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
ZERNEL = BUILD / "src/cli/zernel"
SECONDS = 60  # timeout, generous for a machine that stalls


class Scripted(FakeZerneld):
    """A test advances the time. Each subscriber gets the snapshot of each second, a new one that of the current second."""

    def __init__(self, path, scene_at):
        super().__init__(path, None)
        self.scene_at = scene_at
        self.second = 1
        self.told = {}  # client -> the latest second that it received

    def _push(self, client):
        state = self.clients[client]
        if state[1] is None or self.silent or self.told.get(client) == self.second:
            return
        self.told[client] = self.second
        self._send(client, {"event": "snapshot", "data": self.scene_at(self.second)})


class Screen:
    """A command in its own terminal."""

    def __init__(self, directory, *command, size=(80, 24), **variables):
        # Each screen has its own socket: the server of a previous screen may still be ending.
        self.tmux = ["tmux", "-u", "-S", f"{directory}/tmux{id(self)}", "-f", "/dev/null"]
        environment = {"TERM": "screen", "LANG": "C.UTF-8", "TZ": "UTC", **variables}
        words = [f"{key}={value}" for key, value in environment.items()]
        self.run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "env", *words, *map(str, command))

    def run(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, capture_output=True, text=True,
                              env={**os.environ, "LANG": "C.UTF-8"}).stdout

    def text(self, *options):
        return self.run("capture-pane", "-p", *options)

    def lines(self):
        return [line.rstrip() for line in self.text().splitlines()]

    def line(self, text):
        """The first line that contains the text."""
        return next((line for line in self.lines() if text in line), None)

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def type(self, text):
        self.run("send-keys", "-l", text)

    def click(self, x, *rows, button=0):
        """Sends a click on each row as xterm reports it, in one write: a part of it would be other keys. Buttons 64 and 65 are the wheel."""
        places = [f"\033[<{button};{x + 1};{row + 1}" for row in rows]
        self.run("set-buffer", "".join(place + "M" + (place + "m" if button < 64 else "") for place in places))
        self.run("paste-buffer", "-d", "-r")

    def resize(self, width, height):
        self.run("resize-window", "-x", str(width), "-y", str(height))

    def asks(self, what):
        return self.run("display-message", "-p", what).strip()

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, check=False)


class TopCase(unittest.TestCase):
    scene_at = staticmethod(scene.node)

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.zerneld = Scripted(f"{self.directory}/sock", type(self).scene_at).start()
        self.addCleanup(self.zerneld.stop)
        self.screen = None

    def start(self, *command, seconds=0, interval_ms=20000, **options):
        """Starts `zernel top` and advances the time. The interval sets the timeout for a silent zerneld."""
        self.screen = Screen(self.directory, *command, ZERNEL, "top", "--socket", f"{self.directory}/sock",
                             "--interval", interval_ms, **options)
        self.addCleanup(self.screen.close)
        self.shows("12:00:01")
        self.pass_seconds(seconds)
        return self.screen

    def pass_seconds(self, seconds):
        for _ in range(seconds):
            self.zerneld.second += 1
            self.shows(f"12:00:{self.zerneld.second:02}")

    def waits(self, condition, what):
        end = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > end:
                self.fail(f"timeout while waiting for {what}:\n{self.screen.text()}")
            time.sleep(0.02)

    def shows(self, *texts):
        for text in texts:
            self.waits(lambda wanted=text: wanted in self.screen.text(), repr(text))

    def hides(self, text):
        self.waits(lambda: text not in self.screen.text(), f"{text!r} to disappear")

    def assertScreen(self, expected):
        """Compares the screen from its first line on."""
        wanted = expected.splitlines()
        self.waits(lambda: self.screen.lines()[:len(wanted)] == wanted, "\n".join(["", *wanted]))
