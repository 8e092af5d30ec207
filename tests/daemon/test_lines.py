# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle time by source line: the reply, who may ask for which process, and that sampling ends with its client."""
import tap
from harness import as_user, Client, wait_until
from jobs import ALICE, JobCase

FRAMES = [{"function": "?", "file": "", "line": 0, "kind": "unknown"},
          {"function": "collate", "file": "…train.py", "line": 142, "kind": "python"},
          {"function": "?", "file": "", "line": 0, "kind": "unknown"}]


class Lines(JobCase):
    def ask(self, path, pid, seconds=1):
        with Client(path) as client:
            return client.ask("lines", pid=pid, seconds=seconds)

    def test_a_reply(self):
        server = self.start()
        pid = server.pids[0]
        lines = self.ask(server.path, pid)["result"]["lines"]
        self.assertEqual((lines["pid"], lines["samples"], lines["dropped"], lines["unreadable"]), (pid, 3, 0, 0))
        self.assertGreaterEqual(lines["window_ns"], 10**9)
        self.assertEqual(lines["frames"], FRAMES)
        head = {"cause": "cpu", "tid": pid, "role": "launcher", "ns": 70, "open_ns": 5, "samples": 2}
        self.assertEqual(lines["stacks"], [{**head, "cut": True, "frames": [0, 1]}, {**head, "cut": False, "frames": [2]}])
        self.assertEqual([line for line in server.did() if "sampl" in line], [f"sample {pid}", f"sampled {pid}"])

    def test_sampling_ends_with_its_client(self):
        server = self.start()
        pid = server.pids[0]
        with server.client() as client:
            client.send(b'{"id":7,"method":"lines","params":{"pid":%d,"seconds":300}}\n' % pid)
            wait_until(lambda: f"sample {pid}" in server.did(), "sampling begins")
            self.assertEqual(self.ask(server.path, pid)["error"]["code"], "failed")
            self.assertNotIn(f"sampled {pid}", server.did())
        wait_until(lambda: f"sampled {pid}" in server.did(), "sampling ends")

    def test_a_user_asks_for_own_processes_only(self):
        server = self.start()
        own, other = server.pids[0], server.pids[2]
        self.assertIn("result", as_user(ALICE, ALICE, [], lambda: self.ask(server.path, own)))
        reply = as_user(ALICE, ALICE, [], lambda: self.ask(server.path, other))
        self.assertEqual(reply["error"]["code"], "not-found")
        self.assertNotIn(f"sample {other}", server.did())

    def test_invalid_requests(self):
        server = self.start()
        for pid, seconds in (0, 1), (-1, 1), ("1", 1), (server.pids[0], 0), (server.pids[0], 301), (1 << 40, 1):
            self.assertEqual(self.ask(server.path, pid, seconds)["error"]["code"], "invalid")
        self.assertEqual(self.ask(server.path, 1)["error"]["code"], "not-found")


if __name__ == "__main__":
    tap.main()
