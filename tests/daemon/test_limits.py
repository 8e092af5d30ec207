# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld does not schedule where a cgroup has a CPU limit that the scheduler cannot keep."""
import json
import signal
import subprocess

import tap
from harness import Case, wait_until, ZERNEL
from node import mapped_library

POD = "cgroup /kubepods/pod7 has a CPU limit"
REASONS = {
    "cpu_max": f"{POD} (cpu.max) that this kernel hides from schedulers",
    "cgroup_v1": f"{POD} of cgroups v1, which the scheduler cannot keep",
    "unverified": "cannot check all cgroups for CPU limits: /kubepods/pod7",
}


def zernel(server, *arguments):
    return subprocess.run([ZERNEL, *arguments, "--socket", server.path], capture_output=True, text=True, check=False).stdout


class Limits(Case):
    def setUp(self):
        super().setUp()
        self.enterContext(mapped_library())  # with attach=auto, the scheduler is for ML processes

    def server(self, attach, *told):
        """Starts zerneld on a machine with these limits. Without the scheduler it does not act."""
        server = self.zerneld(attach="no", config="[kernel]\nretry_s=1\n[scheduler]\nactuator=sched_ext\n")
        server.stop()
        for what in told:
            server.tell(what)
        server.config.write_text(server.config.read_text().replace("attach=no", f"attach={attach}"))
        server.start()
        return server

    def becomes(self, server, state, limit):
        wait_until(lambda: (server.scheduler()["state"], server.scheduler()["limit"]) == (state, limit),
                   f"{state}, {limit}: {server.scheduler()['state']}, {server.text()}")

    def set_attach(self, server, attach):
        server.config.write_text(server.config.read_text() + f"[scheduler]\nattach={attach}\n")
        before = server.text().count("configuration reloaded")
        server.send(signal.SIGHUP)
        wait_until(lambda: server.text().count("configuration reloaded") > before, "reloaded")

    def test_the_default_is_no(self):
        server = self.zerneld()
        server.stop()
        server.config.write_text(server.config.read_text().replace("attach=yes", ""))
        server.start()
        self.assertEqual(server.scheduler()["state"], "off")
        self.assertEqual(server.scheduler()["reason"], "")

    def test_without_limits_auto_attaches(self):
        server = self.server("auto")
        self.becomes(server, "attached", "none")
        self.assertEqual(server.scheduler()["reason"], "")

    def test_each_limit_is_refused_with_its_reason(self):
        for limit, reason in REASONS.items():
            server = self.server("auto", limit)
            scheduler = server.scheduler()
            self.assertEqual((scheduler["state"], scheduler["limit"], scheduler["reason"]), ("off", limit, reason))
            self.assertNotIn("attach", server.did())
            server.said(f"the scheduler is not attached: {reason}; zerneld attaches it when no limit was found for 1 s;")
            self.assertIn(f"off ({reason})", zernel(server, "status"))
            check = next(check for check in json.loads(zernel(server, "doctor", "--json"))["checks"] if check["name"] == "scheduler")
            self.assertEqual((check["verdict"], check["text"]), ("warning", f"zerneld refuses to attach zernel: {reason}"))
            with server.client() as client:
                self.assertError(client.ask("scheduler.attach"), "failed", reason)

    def test_a_limit_that_the_scheduler_keeps_is_not_refused(self):
        server = self.server("auto", "cpu_max", "honors")
        self.becomes(server, "attached", "none")
        server.tell("cgroup_v1")
        self.becomes(server, "off", "cgroup_v1")

    def test_a_limit_that_appears_detaches_and_its_end_attaches(self):
        server = self.server("auto")
        self.becomes(server, "attached", "none")
        server.tell("cpu_max")
        self.becomes(server, "off", "cpu_max")
        self.assertEqual(server.did().count("detach"), 1)
        server.untell("cpu_max")
        self.becomes(server, "attached", "none")
        self.assertEqual(server.scheduler()["reason"], "")
        self.assertEqual(server.did().count("attach"), 2)
        self.assertEqual(server.text().count("the scheduler is not attached"), 1)

    def test_yes_attaches_and_shows_the_limit(self):
        server = self.server("yes", "cpu_max")
        scheduler = server.scheduler()
        self.assertEqual((scheduler["state"], scheduler["limit"]), ("attached", "cpu_max"))
        self.assertEqual(scheduler["reason"], f"attach=yes: {REASONS['cpu_max']}")
        server.said("the scheduler stays attached, and CPU limits may have no effect")
        self.assertIn("zernel is attached, and CPU limits may have no effect", zernel(server, "doctor"))
        server.untell("cpu_max")
        self.becomes(server, "attached", "none")
        self.assertEqual(server.did().count("attach"), 1)

    def test_a_reload_changes_the_decision(self):
        server = self.server("auto", "cpu_max")
        self.set_attach(server, "yes")
        self.becomes(server, "attached", "cpu_max")
        self.set_attach(server, "auto")
        self.becomes(server, "off", "cpu_max")
        self.set_attach(server, "no")
        self.becomes(server, "off", "none")
        self.assertEqual(server.scheduler()["reason"], "")

    def test_a_request_is_refused_also_with_no(self):
        server = self.server("no", "cpu_max")
        self.assertEqual(server.scheduler()["limit"], "none")
        with server.client() as client:
            self.assertError(client.ask("scheduler.attach"), "failed", POD)
            server.untell("cpu_max")
            self.assertEqual(client.ask("scheduler.attach")["result"]["state"], "attached")

    def test_an_ejected_scheduler_stays_detached(self):
        server = self.server("auto")
        self.becomes(server, "attached", "none")
        server.tell("eject")
        wait_until(lambda: server.scheduler()["state"] == "ejected", "ejected")
        server.untell("eject")
        self.set_attach(server, "yes")
        self.assertEqual(server.scheduler()["state"], "ejected")


if __name__ == "__main__":
    tap.main()
