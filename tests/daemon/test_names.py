# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of jobs, from the logs of a node and from the environment of a process.

The first process of the fake BPF programs is zerneld itself. Its cgroup is a file of the test.
"""
import pathlib
import tempfile

import tap
from harness import Case, wait_until

POD = "0d1d2d3d-4d5d-6d7d-8d9d-adbdcdddedfd"
ID = "0d1d2d3d4d5d6d7d8d9dadbdcdddedfd" * 2
SLURM = {"SLURM_JOB_NAME": "train\033[31m", "SLURM_JOB_ACCOUNT": "phys", "SLURM_ARRAY_JOB_ID": "12",
         "SLURM_ARRAY_TASK_ID": "3"}


class Names(Case):
    def start(self, cgroup, logs=(), **options):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name)
        path.chmod(0o755)
        (path / "cgroup").write_text(f"0::{cgroup}\n")
        (path / "log/containers").mkdir(parents=True)
        for log in logs:  # a kubelet links logs; here the targets do not even exist
            (path / "log/containers" / log).symlink_to("/absent")
        return self.zerneld(mount=f"mount --bind {path}/cgroup /proc/$$/cgroup && mount --bind {path}/log /var/log && ",
                            **options)

    def job(self, server):
        with server.client() as client:
            snapshot = client.ask("snapshot")["result"]
        process = next(p for p in snapshot["processes"] if p["pid"] == server.process.pid)
        return snapshot["jobs"][process["job"] - 1]

    def test_a_pod(self):
        server = self.start(f"/kubepods/burstable/pod{POD}/{ID}",
                            [f"other_ns_c-{'f' * 64}.log", f"trainer-0_ml_main-{ID}.log"])
        job = wait_until(lambda: (j := self.job(server))["pod"] and j, "the pod has a name")
        self.assertEqual((job["kind"], job["namespace"], job["pod"], job["container_name"], job["container"]),
                         ("pod", "ml", "trainer-0", "main", ID))
        self.assertEqual(job["uid"], 0)
        # It keeps them, although the log is gone.
        server.inside("umount", "/var/log")
        self.assertEqual(self.job(server)["pod"], "trainer-0")

    def test_a_slurm_job_claims_names(self):
        server = self.start("/system.slice/slurmstepd.scope/job_12/step_0/user/task_0", environment=SLURM)
        job = wait_until(lambda: (j := self.job(server))["claimed_name"] and j, "the job has a name")
        self.assertEqual((job["name"], job["claimed_name"], job["claimed_account"], job["claimed_array"]),
                         ("slurm-12", "train?[31m", "phys", "12_3"))

    def test_other_jobs_have_no_names(self):
        server = self.start("/system.slice/a.service", [f"trainer-0_ml_main-{ID}.log"], environment=SLURM)
        job = self.job(server)
        self.assertEqual([job[k] for k in ("pod", "namespace", "container_name", "claimed_name", "claimed_account")],
                         [""] * 5)


if __name__ == "__main__":
    tap.main()
