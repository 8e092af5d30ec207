# SPDX-License-Identifier: GPL-2.0-or-later
"""A fake zerneld with only the protocol: hello, a snapshot per interval, events, ended jobs."""
import json
import os
import select
import socket
import threading
import time


class FakeZerneld:
    """Pushes `snapshot` (a dict, with the current time) to each subscriber."""

    def __init__(self, path, snapshot):
        self.path = path
        self.snapshot = snapshot
        self.version = 2       # of the protocol
        self.silent = False    # accepts requests and sends nothing
        self.stuck = False     # sends the same snapshot again and again
        self.forbidden = False  # answers every request except hello with an error
        self.intervals = []    # all requested intervals
        self.methods = []      # all requested methods
        self.ended = None      # the snapshot with the ended jobs; None: an older zerneld
        self.lives = {}        # the snapshot of one ended job with its processes, by its name and by its cgroup
        self.lines = None      # the stacks of a process; None: an older zerneld
        self.lines_asked = []  # the parameters of all requests for stacks
        self.lines_error = None  # the error of such a request, instead of stacks
        self.lines_s = 0       # time until the reply to such a request
        self.sampled = []      # [time of the reply, client, reply] of requests that wait for it
        self.asked = []        # snapshots for the next requests for one; then the current one
        self.events = lambda: []  # the events to push after a snapshot
        self.greetings = 0
        self.pushes = 0
        self.thread = None

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(8)
        self.stopped = False
        self.clients = {}  # socket -> [input, interval in s, time of the next push, whether it records]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        """Stops as if killed: connections end, and the socket file stays."""
        if self.thread:
            self.stopped = True
            self.thread.join()
            self.thread = None

    def _run(self):
        while not self.stopped:
            readable, _, _ = select.select([self.listener, *self.clients], [], [], 0.01)
            for each in readable:
                if each is self.listener:
                    self.clients[each.accept()[0]] = [b"", None, 0, False]
                else:
                    self._read(each)
            for each in list(self.clients):
                self._push(each)
            for each in [each for each in self.sampled if each[0] <= time.monotonic()]:
                self.sampled.remove(each)
                self._send(*each[1:])
        for each in [self.listener, *self.clients]:
            each.close()

    def _read(self, client):
        try:
            data = client.recv(65536)
        except OSError:
            data = b""
        if not data:
            client.close()
            del self.clients[client]
            self.sampled = [each for each in self.sampled if each[1] is not client]
            return
        state = self.clients[client]
        *lines, state[0] = (state[0] + data).split(b"\n")
        for line in lines:
            self._answer(client, state, json.loads(line))

    def _answer(self, client, state, request):
        if self.silent:
            return
        reply = {"id": request["id"], "result": {}}
        self.methods.append(request["method"])
        if request["method"] == "hello":
            self.greetings += 1
            reply["result"] = {"version": self.version, "server": "fake", "snapshot_version": 2, "may": ["read"]}
            if request["params"]["version"] != self.version:
                reply = {"id": request["id"], "error": {"code": "version", "message": "another version"}}
        elif self.forbidden:
            reply = {"id": request["id"],
                     "error": {"code": "forbidden", "message": "only group zernel may read"}}
        elif request["method"] == "jobs.ended":
            job = request["params"].get("job")
            reply["result"] = self.lives.get(job) if job else self.ended
            if job and job not in self.lives:
                reply = {"id": request["id"], "error": {"code": "not-found", "message": "no ended job has this name"}}
            elif not self.ended:
                reply = {"id": request["id"], "error": {"code": "unknown-method", "message": "no such method"}}
        elif request["method"] == "lines":
            self.lines_asked.append(request["params"])
            reply["result"] = {"lines": self.lines}
            if self.lines_error:
                reply = {"id": request["id"], "error": self.lines_error}
            elif not self.lines:
                reply = {"id": request["id"], "error": {"code": "unknown-method", "message": "no such method"}}
            elif self.lines_s:
                self.sampled.append([time.monotonic() + self.lines_s, client, reply])
                return
        elif request["method"] == "snapshot":
            reply["result"] = self.asked.pop(0) if self.asked else self.current()
        elif request["method"] == "record.stop":
            state[1], state[3] = None, False
        else:
            state[1] = request["params"]["interval_ms"] / 1000
            state[2] = 0
            state[3] = state[3] or request["method"] == "record.start"
            self.intervals.append(request["params"]["interval_ms"])
        self._send(client, reply)

    def _push(self, client):
        state = self.clients[client]
        now = time.monotonic()
        if self.silent or state[1] is None or now < state[2]:
            return
        state[2] = now + state[1]
        self._send(client, {"event": "snapshot", "data": self.current()})
        if state[3]:
            self._send(client, {"event": "events", "data": {"lost": 0, "events": self.events()}})
        self.pushes += 1

    def current(self):
        """The snapshot to push now."""
        if not self.stuck:
            self.snapshot["time_ms"] = int(time.time() * 1000)
            self.snapshot["monotonic_ns"] = time.monotonic_ns()
        return self.snapshot

    def _send(self, client, what):
        try:
            client.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            client.close()
            self.clients.pop(client, None)
