# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers of the packaged podman, which crun runs."""
import pathlib

import image
from node import output

# vfs: the file system of the guest is no base for an overlay.
PODMAN = "podman", "--root=/var/lib/podman", "--runroot=/run/podman", "--storage-driver=vfs", "--events-backend=file", "--runtime=crun"
RUN = "run", "--detach", "--network=none", "--cgroupns=private", "--log-driver=k8s-file"
PARENTS = {"systemd": "/machine.slice/libpod-{id}.scope", "cgroupfs": "/libpod_parent/libpod-{id}"}  # by driver


def start():
    output(*PODMAN, "load", "--input", str(image.FILE))


class Container:
    qos = name = namespace = container = ""

    def __init__(self, driver, command, variables, device):
        self.driver = driver
        words = [f"--env={key}={value}" for key, value in variables.items()]
        self.id = output(*PODMAN, f"--cgroup-manager={driver}", *RUN, *words, f"--device={device}",
                         f"--entrypoint={command[0]}", image.NAME, *map(str, command[1:])).strip()
        self.job = f"libpod-{self.id[:12]}"
        self.log = pathlib.Path(f"/var/lib/podman/vfs-containers/{self.id}/userdata/ctr.log")

    def cgroup(self):
        return PARENTS[self.driver].format(id=self.id)

    def stop(self):
        output(*PODMAN, f"--cgroup-manager={self.driver}", "kill", self.id)


def run_zerneld(root, folders, variables, program):
    """
    zerneld in a container: the processes of the host, a cgroup namespace of its own, and the cgroups of the host at
    another place.
    """
    words = [f"--volume={folder}:{folder}" for folder in folders] + [f"--env={key}={value}" for key, value in variables.items()]
    return output(*PODMAN, "--cgroup-manager=systemd", *RUN, "--privileged", "--pid=host", "--read-only",
                  "--volume=/sys/fs/cgroup:/mnt:ro", *words, "--rootfs", root, program).strip()
