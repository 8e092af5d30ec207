# SPDX-License-Identifier: GPL-2.0-or-later
"""Three processes of two users in jobs of their own, which the fake BPF programs report."""
import os
import pathlib
import subprocess
import tempfile

from harness import Case

ALICE, BOB = 4301, 4302  # neither is in a group of Zernel
JOBS = (("/system.slice/slurmstepd.scope/job_71/step_0/user/task_0", ALICE, "alices-train"),
        ("/system.slice/slurmstepd.scope/job_71/step_0/user/task_1", ALICE, "alices-eval"),
        ("/system.slice/slurmstepd.scope/job_82/step_0", BOB, "bobs-train"))


class JobCase(Case):
    def start(self, **options):
        """Starts zerneld and its processes. Their cgroups and environments are those of Slurm jobs."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name)
        path.chmod(0o755)
        mount, lines = "", ""
        for i, (cgroup, uid, name) in enumerate(JOBS):
            (path / f"cgroup{i}").write_text(f"0::{cgroup}\n")
            process = subprocess.Popen(["sleep", "inf"], env={**os.environ, "SLURM_JOB_NAME": f"{name}-claim"}, user=uid)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            mount += f"mount --bind {path}/cgroup{i} /proc/{process.pid}/cgroup && "
            lines += f"{process.pid} {uid} {name}\n"
        server = self.zerneld(mount=mount, processes=lines, **options)
        server.pids = [int(line.split()[0]) for line in lines.splitlines()]
        return server
