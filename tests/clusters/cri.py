# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged containerd, asked through its CRI socket for what a kubelet asks for."""
import os
import pathlib
import uuid

import grpc

import image
from node import Unit, output, wait_until

SOCKET = pathlib.Path("/run/containerd/containerd.sock")
LOGS = pathlib.Path("/var/log/containers")
PLUGIN = 'plugins."io.containerd.grpc.v1.cri"'
DRIVERS = {"systemd": "true", "cgroupfs": "false"}  # of cgroups; each one is a runtime handler
CONFIG = f'version = 2\n[{PLUGIN}]\nsandbox_image = "{image.NAME}"\n' \
    f'[{PLUGIN}.containerd]\ndefault_runtime_name = "systemd"\n' + "".join(
    f'[{PLUGIN}.containerd.runtimes.{driver}]\nruntime_type = "io.containerd.runc.v2"\n'
    f'[{PLUGIN}.containerd.runtimes.{driver}.options]\nSystemdCgroup = {flag}\n' for driver, flag in DRIVERS.items())
NETWORK_NODE = 2  # namespace modes of CRI
PID_CONTAINER = 1


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def message(*fields):
    """A protobuf message: pairs of a number and a value, which is an int, a text or a message."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def first_text(data):
    """The first field of a reply, an ID of 64 digits."""
    return data[2:2 + data[1]].decode() if data else ""


def call(method, *fields):
    with grpc.insecure_channel(f"unix://{SOCKET}") as channel:
        return first_text(channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(message(*fields), timeout=300))


def start():
    pathlib.Path("/etc/containerd").mkdir(exist_ok=True)
    pathlib.Path("/etc/containerd/config.toml").write_text(CONFIG, encoding="ascii")
    Unit("containerd").ctl("start")
    wait_until(SOCKET.exists, Unit("containerd").log)
    output("ctr", "--namespace", "k8s.io", "images", "import", str(image.FILE))
    LOGS.mkdir(parents=True)


class Pod:
    """A pod with one container, with the cgroup and the log link that a kubelet makes."""

    def __init__(self, driver, qos, command, variables, device):
        self.driver, self.qos = driver, qos
        self.uid = str(uuid.uuid4())
        self.name, self.namespace, self.container = f"train-{driver}-{qos}", f"team-{qos}", "main"
        self.job = f"pod-{self.uid}"
        folder = f"/var/log/pods/{self.namespace}_{self.name}_{self.uid}"
        os.makedirs(f"{folder}/{self.container}")
        namespaces = message((1, NETWORK_NODE), (2, PID_CONTAINER))
        config = message((1, message((1, self.name), (2, self.uid), (3, self.namespace))), (3, folder),
                         (8, message((1, self.parent()), (2, message((1, namespaces))))))
        self.sandbox = call("RunPodSandbox", (1, config), (2, driver))
        container = message(
            (1, message((1, self.container))), (2, message((1, image.NAME))), *((3, str(word)) for word in command),
            *((6, message((1, key), (2, value))) for key, value in variables.items()),
            (8, message((1, device), (2, device), (3, "rw"))), (11, f"{self.container}/0.log"),
            (15, message((2, message((3, namespaces))))))
        self.id = call("CreateContainer", (1, self.sandbox), (2, container), (3, config))
        (LOGS / f"{self.name}_{self.namespace}_{self.container}-{self.id}.log").symlink_to(f"{folder}/{self.container}/0.log")
        call("StartContainer", (1, self.id))
        self.log = pathlib.Path(f"{folder}/{self.container}/0.log")

    def parts(self):
        """The levels of the cgroup tree. Guaranteed pods have no level of their class."""
        return ["kubepods", *([] if self.qos == "guaranteed" else [self.qos]), f"pod{self.uid}"]

    def parent(self):
        parts = self.parts()
        if self.driver == "cgroupfs":
            return "/" + "/".join(parts)
        parts = [part.replace("-", "_") for part in parts]
        return "/" + "/".join("-".join(parts[:i + 1]) + ".slice" for i in range(len(parts)))

    def cgroup(self):
        return f"{self.parent()}/" + (self.id if self.driver == "cgroupfs" else f"cri-containerd-{self.id}.scope")

    def stop(self):
        call("StopPodSandbox", (1, self.sandbox))
