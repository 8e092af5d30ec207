# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle time by source line: the reply, who may ask for which process, and that sampling ends with its client."""
import contextlib
import signal
import subprocess
import sys

import tap
from harness import as_user, Client, wait_until
from jobs import ALICE, BOB, JobCase

FRAMES = [{"function": "?", "file": "", "line": 0, "kind": "unknown"},
          {"function": "collate", "file": "…train.py", "line": 142, "kind": "python"},
          {"function": "?", "file": "", "line": 0, "kind": "unknown"},
          {"function": "cudaMallocHost", "file": "", "line": 0, "kind": "call"}]
OF_USER = 8  # watches at the same time


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
        self.assertEqual(lines["stacks"], [
            {**head, "cut": True, "frames": [0, 1]}, {**head, "cut": False, "frames": [2], "after": 0, "before": 1},
            {**head, "cut": True, "frames": [0, 1, 3], "before": 0}])
        # Bytes that are no text are replaced, and a kernel whose name is not known is left out.
        name = "gemm\N{REPLACEMENT CHARACTER}\"" + 122 * "x"
        self.assertEqual(lines["kernels"], [{"kind": "kernel", "name": name, "cut": True}, {"kind": "graph", "name": "", "cut": False}])
        self.assertEqual([line for line in server.did() if "sampl" in line], [f"sample {pid}", f"sampled {pid}"])

    def test_the_current_stack(self):
        """The processes have no interpreter, so the stack cannot be read. Nothing is sampled."""
        server = self.start()
        pid = server.pids[0]
        lines = self.ask(server.path, pid, seconds=0)["result"]["lines"]
        self.assertEqual((lines["pid"], lines["samples"], lines["unreadable"], lines["window_ns"]), (pid, 1, 1, 0))
        self.assertEqual(lines["frames"], FRAMES[2:3])
        self.assertEqual(lines["stacks"], [{"tid": pid, "role": "launcher", "ns": 0, "open_ns": 0, "samples": 1, "cut": False,
                                            "frames": [0]}])
        reply = as_user(ALICE, ALICE, [], lambda: self.ask(server.path, server.pids[2], seconds=0))
        self.assertEqual(reply["error"]["code"], "not-found")
        self.assertFalse([line for line in server.did() if "sampl" in line])

    def sleeper(self, uid):
        process = subprocess.Popen(["sleep", "inf"], user=uid)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def interpreter(self):
        """zerneld with a Python process of Alice, which sleeps in line 4."""
        source = "import time\ndef wait():\n    print(flush=True)\n    time.sleep(1000)\nwait()\n"
        process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, user=ALICE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        pids = process.pid, self.sleeper(ALICE), self.sleeper(ALICE)
        return self.zerneld(processes="".join(f"{pid} {ALICE} job\n" for pid in pids)), process

    def test_a_known_interpreter_is_not_searched_again(self):
        server, process = self.interpreter()
        for _ in range(3):
            self.assertIn("result", self.ask(server.path, process.pid))
        did = [line for line in server.did() if line.endswith(f" {process.pid}")]
        self.assertEqual(did, [f"python {process.pid}", *[f"sample-python {process.pid}", f"sampled {process.pid}"] * 3])

    def test_the_current_stack_of_an_interpreter(self):
        server, process = self.interpreter()
        expected = [("<module>", "<string>", 5), ("wait", "<string>", 4)]
        for stop in False, True:
            if stop:
                process.send_signal(signal.SIGSTOP)
            lines = wait_until(lambda: (found := self.ask(server.path, process.pid, seconds=0)["result"]["lines"])
                               and not found["unreadable"] and found["frames"][-1]["line"] == 4 and found,
                               "the thread sleeps in the line")
            self.assertEqual([(frame["function"], frame["file"], frame["line"]) for frame in lines["frames"]], expected)
            self.assertEqual(lines["stacks"][0]["frames"], [0, 1])

    def test_sampling_ends_with_its_client(self):
        server = self.start()
        pid = server.pids[0]
        with server.client() as client:
            client.send(b'{"id":7,"method":"lines","params":{"pid":%d,"seconds":300}}\n' % pid)
            wait_until(lambda: f"sample {pid}" in server.did(), "sampling begins")
            self.assertEqual(self.ask(server.path, pid)["error"]["code"], "failed")
            self.assertNotIn(f"sampled {pid}", server.did())
        wait_until(lambda: f"sampled {pid}" in server.did(), "sampling ends")

    def test_the_watches_of_a_user_are_bounded(self):
        uids = [ALICE] * (OF_USER + 1) + [BOB]
        pids = [self.sleeper(uid) for uid in uids]
        server = self.zerneld(processes="".join(f"{pid} {uid} job\n" for pid, uid in zip(pids, uids)))
        with contextlib.ExitStack() as clients:
            for pid in pids[:OF_USER]:
                client = clients.enter_context(server.client())
                client.send(b'{"id":7,"method":"lines","params":{"pid":%d,"seconds":300}}\n' % pid)
                wait_until(lambda pid=pid: f"sample {pid}" in server.did(), "sampling begins")
            self.assertEqual(self.ask(server.path, pids[OF_USER])["error"]["code"], "failed")
            self.assertIn("result", self.ask(server.path, pids[-1]))
        wait_until(lambda: f"sampled {pids[0]}" in server.did(), "sampling ends")
        self.assertIn("result", self.ask(server.path, pids[OF_USER]))

    def test_a_user_asks_for_own_processes_only(self):
        server = self.start()
        own, other = server.pids[0], server.pids[2]
        self.assertIn("result", as_user(ALICE, ALICE, [], lambda: self.ask(server.path, own)))
        reply = as_user(ALICE, ALICE, [], lambda: self.ask(server.path, other))
        self.assertEqual(reply["error"]["code"], "not-found")
        self.assertNotIn(f"sample {other}", server.did())

    def ask_oom(self, path, pid, time_ns):
        with Client(path) as client:
            return client.ask("oom.stack", pid=pid, time_ns=time_ns)

    def processes(self, server):
        with server.client() as client:
            return client.ask("snapshot")["result"]["processes"]

    def test_the_stack_of_an_out_of_memory_error(self):
        """It stays after the end of the process. No snapshot has it."""
        server = self.start()
        server.tell("oom")
        wait_until(lambda: sum("oom" in process for process in self.processes(server)) == len(server.pids), "a snapshot has all errors")
        own, other = server.pids[0], server.pids[2]
        for uid, pid, time_ns in (ALICE, own, 7), (0, other, 9):
            lines = as_user(uid, uid, [], lambda pid=pid, time_ns=time_ns: self.ask_oom(server.path, pid, time_ns))["result"]["lines"]
            self.assertEqual((lines["pid"], lines["frames"]), (pid, FRAMES[:2]))
            self.assertEqual(lines["stacks"], [{"tid": 5, "role": "other", "ns": 0, "open_ns": 0, "samples": 1, "cut": True,
                                                "frames": [0, 1]}])
        for pid, time_ns in (other, 9), (own, 8), (1, 7):
            reply = as_user(ALICE, ALICE, [], lambda pid=pid, time_ns=time_ns: self.ask_oom(server.path, pid, time_ns))
            self.assertEqual(reply["error"]["code"], "not-found")
        with server.client() as client:
            self.assertNotIn("collate", str(client.ask("snapshot")))
            for pid, time_ns in (0, 7), ("1", 7), (own, -1), (own, "7"), (1 << 40, 7):
                self.assertEqual(client.ask("oom.stack", pid=pid, time_ns=time_ns)["error"]["code"], "invalid")
        server.tell("end-all")
        wait_until(lambda: not self.processes(server), "the processes end")
        self.assertEqual(self.ask_oom(server.path, own, 7)["result"]["lines"]["frames"], FRAMES[:2])
        with server.client() as client:
            ended = client.ask("jobs.ended", job="slurm-71")["result"]
        self.assertEqual([process["oom"]["time_ns"] for process in ended["processes"]], [7, 8])
        self.assertNotIn("collate", str(ended))

    def test_invalid_requests(self):
        server = self.start()
        for pid, seconds in (0, 1), (-1, 1), ("1", 1), (server.pids[0], -1), (server.pids[0], 301), (1 << 40, 1):
            self.assertEqual(self.ask(server.path, pid, seconds)["error"]["code"], "invalid")
        self.assertEqual(self.ask(server.path, 1)["error"]["code"], "not-found")


if __name__ == "__main__":
    tap.main()
