# SPDX-License-Identifier: GPL-2.0-or-later
"""read_own: a user without a group reads what belongs to the own processes, and not a byte of another user's."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile

import tap
from harness import as_user, Client, READERS, wait_until, ZERNEL
from jobs import ALICE, BOB, JobCase

METHODS = ("hello", {"version": 2}), ("snapshot", {}), ("jobs.ended", {}), ("jobs.ended", {"job": "slurm-71"}), \
    ("jobs.ended", {"job": "slurm-82"}), ("policy.get", {}), ("policy.set", {"reserved_percent": 10}), \
    ("scheduler.detach", {}), ("scheduler.attach", {}), ("procdb.list", {}), ("procdb.show", {"name": "x"}), \
    ("procdb.export", {}), ("procdb.import", {"image": ""}), ("procdb.forget", {"all": True}), ("record.start", {}), \
    ("record.stop", {}), ("subscribe", {"interval_ms": 100}), ("unsubscribe", {}), ("nosuch", {})


def ask_all(path):
    """Returns the bytes of all replies and of a push."""
    with Client(path, hello=False) as client:
        text = b""
        for number, (method, params) in enumerate(METHODS):
            client.send(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
            while True:
                line = client.raw_line()
                text += line + b"\n"
                if b'"event"' not in line[:10]:
                    break
            if method == "subscribe":
                text += client.raw_line() + b"\n"
        return text.decode()


def run_all(path):
    """Returns what the commands print."""
    text = ""
    for words in ["status"], ["status", "--json"], ["top", "--json"], ["jobs"], ["jobs", "--json"], ["why", "--seconds", "1"], \
            ["why", "--ended", "slurm-71"], ["complete", "--"]:
        words = [words[0], "--socket", str(path), *words[1:]] if words[0] != "complete" else ["complete", "--", "--socket", str(path)]
        done = subprocess.run([ZERNEL, *words], capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
        text += done.stdout + done.stderr
    return text


GATEWAY = 4305  # the user of a gateway
TOKEN = "a-token-of-the-test"


class Gateway:
    """`zernel serve` of a user, with its log in a file."""

    def __init__(self, case, path, uid, group, token):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.token_file, self.log = pathlib.Path(folder.name) / "token", pathlib.Path(folder.name) / "log"
        self.token_file.write_text(TOKEN)
        self.token_file.chmod(0o400)
        os.chown(self.token_file, uid, uid)
        with open(self.log, "wb") as log:
            process = subprocess.Popen([ZERNEL, "serve", "--socket", path, "--port", "0", "--token-file",
                                        self.token_file if token else ""], user=uid, group=uid, extra_groups=[group],
                                       stdout=log, stderr=log)
        case.addCleanup(process.wait)
        case.addCleanup(process.kill)
        self.port = int(wait_until(lambda: re.search(r"listening on http://.*:(\d+)$", self.text(), re.M), self.text)[1])

    def text(self):
        return self.log.read_text()

    def get(self, path, token=None):
        """Status and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return [answer.status, answer.read().decode()]


class Own(JobCase):
    def secrets(self, server):
        """Words that only alice's job has: names, process IDs, the cgroup, the claimed name."""
        return ["alice", "job_71", "slurm-71\"", str(server.pids[0]), str(server.pids[1]), str(ALICE), "cc1"]

    def ready(self):
        server = self.start()
        with server.client() as client:
            wait_until(lambda: all(j["claimed_name"] for j in client.ask("snapshot")["result"]["jobs"]), "names")
        return server

    def check(self, server, text):
        for secret in self.secrets(server):
            # A number is searched for as a whole: it can be a part of a time.
            found = re.search(rf"(?<!\d){secret}(?!\d)" if secret.isdigit() else re.escape(secret), text)
            self.assertIsNone(found, found and f"{secret} in ...{text[max(0, found.start() - 200):found.end() + 50]}...")

    def test_every_reply_has_only_own_data(self):
        server = self.ready()
        text = as_user(BOB, BOB, [], lambda: ask_all(server.path))
        self.check(server, text)
        self.assertGreaterEqual(text.count("bobs-train-claim"), 2)  # a snapshot and a push
        self.assertIn('"may":["read-own"]', text)
        # The same search finds the words in what alice and a member may read.
        for uid in ALICE, 0:
            text = as_user(uid, uid, [], lambda: ask_all(server.path))
            self.assertIn("alices-train-claim", text)
            self.assertIn(str(server.pids[1]), text)

    def test_every_reply_after_the_jobs_ended(self):
        server = self.ready()
        server.tell("end-all")
        with server.client() as client:
            self.assertEqual(len(client.ask("jobs.ended")["result"]["jobs"]), 2)
        text = as_user(BOB, BOB, [], lambda: ask_all(server.path))
        self.check(server, text)
        self.assertIn("bobs-train-claim", text)

    def test_a_limit_of_another_user_is_not_named(self):
        server = self.ready()
        server.tell("cgroup_v1")  # zerneld says which cgroup has the limit, unless attach is yes
        text = as_user(BOB, BOB, [], lambda: ask_all(server.path))
        self.assertNotIn("/kubepods/pod7", text)

    def test_the_commands_work_and_show_only_own_data(self):
        server = self.ready()
        text = as_user(BOB, BOB, [], lambda: run_all(server.path))
        self.check(server, text.replace("no ended job is named slurm-71", ""))
        self.assertIn("bobs-train", text)
        self.assertIn("Only your own processes are shown", text)
        self.assertIn("slurm-82", text)

    def test_a_gateway_tells_nothing_without_its_token(self):
        server = self.ready()
        gateway = Gateway(self, server.path, GATEWAY, READERS, token=True)
        wait_until(lambda: gateway.get("/readyz", TOKEN)[0] == 200, gateway.text)
        for path in "/metrics", "/api/v1/snapshot", "/ws", "/healthz", "/readyz", "/nosuch":
            for token in None, "a-wrong-token-of-bob":
                status, text = as_user(BOB, BOB, [], lambda path=path, token=token: gateway.get(path, token))
                self.assertEqual(status, 401, path)
                self.check(server, text)
        with self.assertRaises(ValueError):  # nothing was read
            as_user(BOB, BOB, [], gateway.token_file.read_text)
        self.assertIn("alices-train-claim", gateway.get("/metrics", TOKEN)[1])

    def test_a_gateway_of_a_stranger_has_only_own_data(self):
        server = self.ready()
        gateway = Gateway(self, server.path, BOB, BOB, token=False)
        wait_until(lambda: gateway.get("/readyz")[0] == 200, gateway.text)
        for path in "/metrics", "/api/v1/snapshot":
            status, text = gateway.get(path)
            self.assertEqual(status, 200, text)
            self.check(server, text)
            self.assertIn("bobs-train-claim", text)

    def test_connections_of_strangers_are_limited(self):
        server = self.ready()

        def connect():
            clients = [Client(server.path, hello=False) for _ in range(3)]
            for client in clients[:2]:
                client.ask("hello", version=2)
            return [clients[0].ask("snapshot")["result"]["own"], clients[2].line()["error"]["code"]]

        self.assertEqual(as_user(BOB, BOB, [], connect), [True, "busy"])

    def test_snapshots_of_strangers_are_rare(self):
        server = self.ready()

        def times():
            with Client(server.path) as client:
                return [client.ask("snapshot")["result"]["monotonic_ns"] for _ in range(200)]

        # However many requests there are, a snapshot is built once a second.
        seen = sorted(set(as_user(BOB, BOB, [], times)))
        self.assertTrue(all(b - a >= 900_000_000 for a, b in zip(seen, seen[1:])), seen)


if __name__ == "__main__":
    tap.main()
