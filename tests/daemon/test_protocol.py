# SPDX-License-Identifier: GPL-2.0-or-later
"""Every method of docs/reference/protocol.md, with valid and with invalid requests."""
import subprocess
import time

import tap
from harness import ZERNEL, Case, wait_until


class Protocol(Case):
    def setUp(self):
        self.server = self.zerneld()
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def test_hello_must_come_first(self):
        with self.server.client(hello=False) as client:
            self.assertError(client.ask("snapshot"), "hello-needed")
            self.assertError(client.ask("hello", version=1), "version", "supports only protocol version 2: update the client")
            self.assertError(client.ask("hello"), "version")
            hello = client.ask("hello", version=2)["result"]
            self.assertEqual((hello["version"], hello["may"]), (2, ["read", "change"]))
            self.assertRegex(hello["server"], r"^zerneld \d")
            self.assertIn("result", client.ask("snapshot"))

    def test_snapshot_contains_the_data_of_the_kernel(self):
        snapshot = self.client.ask("snapshot")["result"]
        self.assertEqual(snapshot["version"], self.client.hello["snapshot_version"])
        self.assertEqual(snapshot["scheduler"]["state"], "attached")
        self.assertEqual(snapshot["scheduler"]["classes"]["feeder"]["runqueue_wait"]["count"], 1)
        self.assertEqual(len(snapshot["processes"]), 3)
        self.assertEqual(snapshot["processes"][0]["comm"], "train\ufffd")
        self.assertEqual(snapshot["processes"][1]["rank"], 1)
        self.assertEqual([process["steps"] for process in snapshot["processes"]], [40, 41, 42])
        self.assertEqual(snapshot["processes"][2]["busy_ns"], 900)
        self.assertEqual({cause: ns for cause, ns in snapshot["processes"][2]["idle_ns"].items() if ns},
                         {"cpu": 70, "disk": 30})
        # The most expensive culprits of this process, and no culprit of another process.
        self.assertEqual([(one["name"], one["cause"], one["ns"]) for one in snapshot["processes"][0]["culprits"]],
                         [(f"cc{i}", "runqueue", 10 + i) for i in range(11, 3, -1)])
        self.assertEqual(snapshot["processes"][1]["culprits"], [])
        self.assertGreater(snapshot["cost"]["rss_bytes"], 1 << 20)
        self.assertEqual([one["collectives"]["all_reduce"] for one in snapshot["processes"]], [12, 13, 14])
        self.assertEqual([one["collective_bytes"]["all_reduce"] for one in snapshot["processes"]], [48, 49, 50])

    def test_memory_of_an_unknown_gpu_is_shown_until_the_gpu_is_known(self):
        def memory():
            return self.client.ask("snapshot")["result"]["processes"][0]["memory"]

        known = {"gpu": 0, "current_bytes": 1 << 20, "peak_bytes": 1 << 21, "allocs": 2, "frees": 1}
        self.server.tell("unknown-gpus")
        time.sleep(0.2)
        self.assertEqual(memory(), [{"gpu": None, "current_bytes": 1 << 21, "peak_bytes": 1 << 22,
                                     "allocs": 4, "frees": 2}])
        self.server.untell("unknown-gpus")
        time.sleep(0.2)
        self.assertEqual(memory(), [known])

    def test_snapshot_has_the_whole_task_state(self):
        snapshot = self.client.ask("snapshot")["result"]
        tasks = [process["task"] for process in snapshot["processes"]]
        age = snapshot["monotonic_ns"] - 1
        phases = "Unknown", "DataLoading", "GpuCompute", "NcclCollective", "OptimizerStep"
        self.assertEqual(tasks[0], {
            "pid": self.server.process.pid, "is_ml_process": True, "current_phase": "GpuCompute", "gpu_utilization": 90,
            "last_gpu_sync_ns": 7, "cpu_burst_duration_ns": 2_000_000, "io_wait_fraction": 0.25, "nccl_active": False,
            "futex_wait_count": 0, "gpu_id": 7, "gpu_instance": 3, "compute_instance": 0, "gpu_basis": "driver", "phase_start_ns": 1,
            "phase_time_ns": {phase: age if phase == "GpuCompute" else 0 for phase in phases},
            "phase_fraction": {phase: float(phase == "GpuCompute") for phase in phases}})
        self.assertEqual([(task["gpu_utilization"], task["futex_wait_count"], task["nccl_active"]) for task in tasks],
                         [(90, 0, False), (91, 1, True), (92, 2, False)])
        # The GPU number of the machine. The second process uses a GPU that is not identified. The third uses no GPU.
        self.assertEqual([task["gpu_id"] for task in tasks], [7, None, None])
        self.assertEqual([task["gpu_basis"] for task in tasks], ["driver", "none", "none"])

    def test_transitions_of_an_ended_process_stay_counted(self):
        def snapshot():
            return self.client.ask("snapshot")["result"]

        def last_of(of):
            return of["processes"][-1]["transitions"]

        self.server.tell("train")
        before = wait_until(lambda: last_of(one := snapshot()) > 10 and one, "phases change")
        self.assertEqual(before["phase_transitions"], sum(process["transitions"] for process in before["processes"]))
        self.server.tell("end")
        after = wait_until(lambda: len((one := snapshot())["processes"]) == 2 and one, "a process ends")
        ended = int(self.server.did()[-1].split()[2])
        self.assertGreaterEqual(ended, last_of(before))
        self.assertEqual(after["phase_transitions"] - sum(process["transitions"] for process in after["processes"]), ended)

    def test_a_process_that_cannot_be_read_keeps_its_values_and_delays_no_other(self):
        def later(one, whose):
            return wait_until(lambda: transitions(two := self.client.ask("snapshot")["result"])[whose] > transitions(one)[whose] and two,
                              f"process {whose} goes on")

        def transitions(one):
            self.assertEqual(len(one["processes"]), 3)
            self.assertEqual(sum(process["transitions"] for process in one["processes"]), one["phase_transitions"])
            self.assertEqual(one["processes"][0]["collectives"]["all_reduce"], 12)
            self.assertIn("sync_wait", one["processes"][0]["hists"])
            return [process["transitions"] for process in one["processes"]]

        self.server.tell("train")
        first = later(self.client.ask("snapshot")["result"], 0)
        self.server.tell("torn")
        torn = later(later(first, 1), 1)
        still = later(torn, 1)
        self.assertEqual(transitions(still)[0], transitions(torn)[0])
        self.server.untell("torn")
        later(still, 0)

    def test_users_beyond_their_quota_are_named(self):
        self.assertEqual(self.client.ask("snapshot")["result"]["over_quota"], [])
        self.server.tell("quota")
        expected = [{"uid": 1000, "processes": 3, "memory": 70, "scans": 0}]
        wait_until(lambda: self.client.ask("snapshot")["result"]["over_quota"] == expected, "the user is named")
        done = subprocess.run([ZERNEL, "status", "--socket", self.server.path], capture_output=True, text=True, check=True)
        self.assertIn("user 1000: 3 calls of processes, 70 memory operations not followed", done.stdout)

    def test_subscriber_gets_snapshots_at_the_interval_until_it_unsubscribes(self):
        self.assertEqual(self.client.ask("subscribe", interval_ms=200)["result"], {})
        times = [self.client.push()["monotonic_ns"] for _ in range(6)]
        self.assertGreater(times[-1] - times[0], 0.8e9)
        self.assertEqual(self.client.ask("unsubscribe")["result"], {})
        self.client.pushes.clear()
        time.sleep(0.5)
        self.assertIn("result", self.client.ask("policy.get"))
        self.assertEqual(self.client.pushes, [])
        for interval in 99, 3600001, 0, -1, "100", None:
            self.assertError(self.client.ask("subscribe", interval_ms=interval), "invalid", "100")

    def lines_until_reply(self):
        """Returns the lines that are pushed before the answer, with their kind."""
        pushed = []
        while "id" not in (line := self.client.line()):
            pushed.append((line["event"], line["data"]))
        return pushed

    def test_a_recorder_gets_all_events(self):
        self.server.tell("train")
        self.assertEqual(self.client.ask("record.start", interval_ms=100)["result"], {})
        self.assertEqual(self.server.did()[-1], "timeline on")
        pushed = [self.client.line() for _ in range(9)]
        self.client.send(b'{"id":2,"method":"record.stop"}\n')
        pushed = [(line["event"], line["data"]) for line in pushed] + self.lines_until_reply()
        self.assertEqual(self.server.did()[-1], "timeline off")
        self.assertEqual([kind for kind, _ in pushed[:2]], ["snapshot", "events"])
        self.assertTrue(all(data["lost"] == 0 for kind, data in pushed if kind == "events"))
        events = [event for kind, data in pushed if kind == "events" for event in data["events"]]
        first = pushed[0][1]["processes"][0]["pid"]
        phases = [(time, value) for time, kind, pid, tid, value in events if kind == "phase" and pid == first]
        self.assertEqual({later[0] - former[0] for former, later in zip(phases, phases[1:])}, {5_000_000}, "no event is missing")
        self.assertGreater(len(phases), 50)
        # The events reach up to the last snapshot, which came with the answer.
        last = [data for kind, data in pushed if kind == "snapshot"][-1]
        lag_ns = last["monotonic_ns"] - phases[-1][0]
        print(f"# the last event is {lag_ns / 1e6:.1f} ms older than the last snapshot")
        if tap.TIMING:
            self.assertLess(lag_ns, 10_000_000)
        for interval in 99, 3600001, "100":
            self.assertError(self.client.ask("record.start", interval_ms=interval), "invalid", "100")
        self.assertEqual(self.server.did().count("timeline on"), 1)

    def test_the_timeline_is_on_while_a_client_records(self):
        with self.server.client() as other:
            self.client.ask("record.start", interval_ms=1000)
            self.client.ask("record.start", interval_ms=500)
            other.ask("record.start", interval_ms=1000)
            other.ask("unsubscribe")
            self.assertEqual(self.server.did().count("timeline off"), 0)
            other.ask("record.start", interval_ms=1000)
        self.client.ask("record.stop")
        wait_until(lambda: "timeline off" in self.server.did(), "a client that disconnected does not record")
        self.assertEqual(self.server.did().count("timeline on"), 1)

    def test_a_slow_recorder_gets_the_number_of_lost_events_and_delays_no_other_client(self):
        self.server.tell("flood")
        self.client.ask("record.start", interval_ms=100)
        with self.server.client() as other:
            for _ in range(20):  # the recorder does not read meanwhile
                self.assertIn("result", other.ask("snapshot"))
                time.sleep(0.1)
        self.server.untell("flood")
        self.client.send(b'{"id":2,"method":"record.stop"}\n')
        lost = [data["lost"] for kind, data in self.lines_until_reply() if kind == "events"]
        self.assertGreater(sum(lost), 50000)
        self.assertIn("result", self.client.ask("snapshot"))

    def test_policy_is_checked_and_set(self):
        self.assertEqual(self.client.ask("policy.get")["result"],
                         {"rules_off": [], "reserved_percent": 30})
        for params in ({"reserved_percent": 91}, {"reserved_percent": -1}, {"rules_off": "tier"},
                       {"rules_off": ["tiger"]}, {"rules_off": [3]}, {"slice": 1}, {"reserved_percent": 1.5}):
            self.assertError(self.client.ask("policy.set", **params), "invalid")
        self.assertError(self.client.ask("policy.set", rules_off=["numa"]), "invalid", "tier, place")
        self.assertEqual(self.client.ask("policy.set", rules_off=["place"])["result"]["rules_off"], ["place"])
        self.assertEqual(self.server.did()[-1], "policy rules_off=80 reserved=30")
        self.assertEqual(self.client.ask("policy.set", rules_off=["tier", "late-loader"])["result"],
                         {"rules_off": ["late-loader", "tier"], "reserved_percent": 30})
        self.assertEqual(self.client.ask("policy.set", reserved_percent=0)["result"],
                         {"rules_off": ["late-loader", "tier"], "reserved_percent": 0})
        scheduler = self.client.ask("snapshot")["result"]["scheduler"]
        self.assertEqual((scheduler["state"], scheduler["reserved_percent"]), ("attached", 0))
        self.assertEqual(self.server.did()[-2:], ["policy rules_off=44 reserved=30", "policy rules_off=44 reserved=0"])
        self.server.said("policy.set by python3")

    def test_scheduler_attaches_and_detaches_while_watching_continues(self):
        self.assertEqual(self.client.ask("scheduler.detach")["result"], {"state": "off", "actuator": "none"})
        self.assertEqual(self.client.ask("scheduler.detach")["result"], {"state": "off", "actuator": "none"})
        self.assertEqual(len(self.client.ask("snapshot")["result"]["processes"]), 3)
        self.assertEqual(self.client.ask("scheduler.attach")["result"], {"state": "attached", "actuator": "sched_ext"})
        self.assertEqual(self.client.ask("scheduler.attach")["result"], {"state": "attached", "actuator": "sched_ext"})
        self.assertEqual(self.server.did().count("attach"), 2)

    def test_unknown_names_and_invalid_parameters(self):
        self.assertError(self.client.ask("reboot"), "unknown-method")
        self.assertError(self.client.ask("procdb.show", name="nobody"), "not-found")
        self.assertError(self.client.ask("procdb.forget", name="nobody"), "not-found")
        self.assertError(self.client.ask("procdb.forget"), "invalid")
        self.assertError(self.client.ask("procdb.forget", name="a", all=True), "invalid")
        self.assertError(self.client.ask("procdb.show"), "invalid")
        self.assertError(self.client.ask("procdb.import", image="????"), "invalid", "base64")
        self.assertError(self.client.ask("procdb.import", image="QUJD"), "invalid", "image is")
        self.assertEqual(self.client.ask("procdb.list")["result"], {"profiles": [], "next": None})

    def test_requests_sent_together_are_answered_in_order(self):
        self.client.send(b"".join(b'{"id":%d,"method":"policy.get"}\n' % i for i in range(500)))
        self.assertEqual([self.client.reply()["id"] for _ in range(500)], list(range(500)))


if __name__ == "__main__":
    tap.main()
