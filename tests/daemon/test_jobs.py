# SPDX-License-Identifier: GPL-2.0-or-later
"""Ended jobs: what zerneld remembers, and what `zernel jobs` and `zernel why --ended` print."""
import json
import os
import pathlib
import subprocess

import tap
from harness import wait_until, ZERNEL
from jobs import ALICE, JobCase

EPILOG = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "packaging/slurm/epilog.zernel"


def zernel(server, *words, status=0):
    done = subprocess.run([ZERNEL, *words, "--socket", server.path], capture_output=True, text=True, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout


class Jobs(JobCase):
    def ended(self):
        """zerneld with two ended jobs that were seen while they ran."""
        server = self.start()
        with server.client() as client:
            wait_until(lambda: all(j["claimed_name"] for j in client.ask("snapshot")["result"]["jobs"]), "names")
            self.assertEqual(client.ask("jobs.ended")["result"]["jobs"], [])
            server.tell("end-all")
            jobs = client.ask("jobs.ended")["result"]["jobs"]
        self.assertEqual(sorted(j["name"] for j in jobs), ["slurm-71", "slurm-82"])
        return server

    def test_ended_jobs_are_remembered(self):
        server = self.ended()
        with server.client() as client:
            reply = client.ask("jobs.ended", job="slurm-71")["result"]
            self.assertEqual(client.ask("snapshot")["result"]["jobs"], [])
            self.assertError(client.ask("jobs.ended", job="slurm-72"), "not-found", "zernel jobs")
            self.assertError(client.ask("jobs.ended", job=7), "invalid", "job")
        job, = reply["jobs"]
        self.assertEqual((job["uid"], job["claimed_name"], job["kind"]), (ALICE, "alices-train-claim", "slurm"))
        self.assertGreaterEqual(job["ended_ms"], job["started_ms"])
        self.assertEqual(job["peak_bytes"], 1 << 21)
        # The last steps of each process count, although no snapshot had them.
        self.assertEqual(sum(r["steps"] for r in job["gone_ranks"]), 40 + 5 + 41 + 5)
        self.assertEqual(sum(r["idle_ns"]["disk"] for r in job["gone_ranks"]), 60)
        self.assertEqual([p["pid"] for p in reply["processes"]], server.pids[:2])

    def test_zernel_jobs(self):
        server = self.start()
        self.assertIn(" running  ", zernel(server, "jobs"))
        server.tell("end-all")
        lines = zernel(server, "jobs").splitlines()
        self.assertEqual(lines[0].split()[:3], ["JOB", "USER", "STATE"])
        self.assertEqual(sorted(line.split()[:3] for line in lines[1:]),
                         [["slurm-71", str(ALICE), "ended"], ["slurm-82", "4302", "ended"]])
        jobs = {j["name"]: j for j in json.loads(zernel(server, "jobs", "--json"))["jobs"]}
        self.assertEqual(jobs["slurm-71"]["steps"], 91)
        self.assertEqual(jobs["slurm-71"]["idle_ns"]["cpu"], 140)
        self.assertEqual(jobs["slurm-71"]["state"], "ended")

    def test_why_explains_an_ended_job(self):
        server = self.ended()
        text = zernel(server, "why", "--ended", "slurm-71")
        self.assertIn("slurm-71 ended ", text)
        self.assertIn("claims the name alices-train-claim", text)
        self.assertNotIn("bobs", text)
        answer, = json.loads(zernel(server, "why", "--ended", "slurm-71", "--json"))["jobs"]
        self.assertEqual(answer["name"], "slurm-71")
        self.assertEqual([p["steps"]["count"] for p in answer["processes"]], [45, 46])
        self.assertEqual(answer["processes"][0]["causes"]["disk"], 30)
        zernel(server, "why", "--ended", "slurm-72", status=3)
        zernel(server, "why", "--ended", status=2)

    def test_the_epilog_stores_the_answer_and_never_fails(self):
        server = self.ended()
        store = server.directory / "store"
        variables = {"PATH": f"{ZERNEL.parent}:{os.environ['PATH']}", "SLURM_JOB_ID": "71",
                     "ZERNEL_STORE": str(store), "ZERNEL_SOCKET": str(server.path)}
        for change, files in ({}, ["slurm-71.json"]), ({"SLURM_JOB_ID": "72"}, []), ({"SLURM_JOB_ID": ""}, []), \
                ({"SLURM_JOB_ID": "../71"}, []), ({"ZERNEL_SOCKET": "/absent"}, []), ({"ZERNEL_STORE": "/proc/x"}, None):
            with self.subTest(change=change):
                for path in store.glob("*"):
                    path.unlink()
                subprocess.run(["sh", EPILOG], env={**variables, **change}, check=True, timeout=60)
                if files is not None:
                    self.assertEqual([p.name for p in store.glob("*")], files)
                if files:
                    self.assertEqual(json.loads((store / files[0]).read_text())["jobs"][0]["name"], "slurm-71")


if __name__ == "__main__":
    tap.main()
