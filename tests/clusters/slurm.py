# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster of one node: the packaged munge, slurmctld and slurmd, which contains tasks by cgroup v2."""
import os
import pathlib
import shutil
import socket
import subprocess

from node import PACKAGING, Unit, output, wait_until

NODE = "node1"
ADDRESS = "10.0.0.1"  # slurmctld does not start on a node with addresses 127.0.0.0/8 only
STORE = pathlib.Path("/var/log/zernel-jobs")  # of the packaged epilog
ETC = pathlib.Path("/etc/slurm")
CONF = f"""
ClusterName=lab
SlurmctldHost={NODE}({ADDRESS})
SlurmUser=slurm
AuthType=auth/munge
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
StateSaveLocation=/var/lib/slurmctld
SlurmdSpoolDir=/var/lib/slurmd
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
ReturnToService=2
# An emulated node is slow.
MessageTimeout=100
SlurmdTimeout=600
Epilog={ETC}/epilog.zernel
NodeName={NODE} NodeAddr={ADDRESS} CPUs={os.cpu_count()}
PartitionName=main Nodes=ALL Default=YES State=UP
"""
CGROUP = """
CgroupPlugin=cgroup/v2
ConstrainCores=yes
ConstrainRAMSpace=yes
"""


def make_folders():
    """/var belongs to the guest and is empty: the folders that the packages made are missing."""
    for path, user in (("/var/lib/munge", "munge"), ("/var/log/munge", "munge"), ("/var/lib/slurmctld", "slurm"),
                       ("/var/lib/slurmd", "root")):
        os.makedirs(path, mode=0o700, exist_ok=True)
        shutil.chown(path, user, user)


def start():
    socket.sethostname(NODE)
    with open("/etc/hosts", "a", encoding="utf-8") as hosts:
        hosts.write(f"{ADDRESS} {NODE}\n")
    output("ip", "address", "add", ADDRESS, "dev", "lo")
    make_folders()
    (ETC / "slurm.conf").write_text(CONF)
    (ETC / "cgroup.conf").write_text(CGROUP)
    shutil.copy(PACKAGING / "slurm/epilog.zernel", ETC)
    (ETC / "epilog.zernel").chmod(0o755)
    for unit in ("dbus", "munge", "slurmctld", "slurmd"):
        if subprocess.run(["systemctl", "start", unit], check=False).returncode != 0:
            raise AssertionError(f"{unit} does not start:\n{Unit(unit).log()}")
    wait_until(lambda: "idle" in output("sinfo", "-h", "-o", "%T"),
               lambda: Unit("slurmctld").log() + Unit("slurmd").log())


def show(job):
    """What Slurm knows about a job, as a dictionary."""
    words = output("scontrol", "-o", "show", "job", str(job)).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


class Srun:
    """srun of an ordinary user, with its own output."""

    def __init__(self, user, *words, **variables):
        self.log = pathlib.Path(f"/tmp/srun-{user}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["srun", *map(str, words)], stdout=log, stderr=log, user=user, group=user,
                                            extra_groups=[], cwd="/tmp", env={**os.environ, **variables})

    def job_id(self):
        """The number of the job, once it runs."""
        return wait_until(lambda: output("squeue", "-h", "-t", "running", "-o", "%A").strip(), self.text)

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")
