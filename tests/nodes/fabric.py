# SPDX-License-Identifier: GPL-2.0-or-later
"""A separate network for the calling process, with nodes in it.

The network belongs to this process and its children, so nothing is left when they end.
"""
import os
import subprocess

SUBNET = "10.0.0"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def leave():
    """Moves this process to a new network namespace that has only a loopback interface."""
    os.unshare(os.CLONE_NEWNET)
    ip("link", "set", "lo", "up")


class Fabric:
    """Nodes on one switch, each in a network namespace. After leave(), the caller is on the switch too."""

    def __init__(self, nr_nodes):
        self.names = [f"node{i}" for i in range(nr_nodes)]
        ip("link", "add", "fabric", "type", "bridge")
        ip("address", "add", f"{SUBNET}.254/24", "dev", "fabric")
        ip("link", "set", "fabric", "up")
        for i, name in enumerate(self.names):
            self._plug_in(name, self.address(i))

    @staticmethod
    def _plug_in(name, address):
        ip("netns", "add", name)
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"to-{name}", "master", "fabric", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")

    @staticmethod
    def address(i):
        return f"{SUBNET}.{i + 1}"

    def launcher(self, i):
        """The command prefix that runs a command on a node."""
        return ["nsenter", f"--net=/run/netns/{self.names[i]}"]

    def remove(self):
        for name in self.names:
            ip("netns", "delete", name)
        ip("link", "delete", "fabric")
