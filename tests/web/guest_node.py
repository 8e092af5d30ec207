# SPDX-License-Identifier: GPL-2.0-or-later
"""A node in a guest: zerneld with its BPF programs, a job of the lab, and the gateway at a port that the machine outside reaches.

Usage: guest_node.py PORT FILE. FILE has the latest output of `zernel why --json`. Runs until a client of the port sends STOP.
"""
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
LAB = BUILD / "lab"
WORK = pathlib.Path("/tmp/node")
GROUP = pathlib.Path("/sys/fs/cgroup/training")
ADDRESS = "10.0.2.15"  # QEMU forwards to it
READERS, USER = 4242, "nobody"
STOP = b"STOP"
stopped = threading.Event()
# Two ranks whose GPU waits for data most of the time.
JOB = "--ranks 2 --loaders 1 --launches 4 --kernel-us 20000 --optimizer-us 3000 --sync block --load-cpu-us 300000 --prefetch 1 " \
    "--startup-ms 30000 --seconds 100000"


def run(*command):
    subprocess.run(command, check=True)


def start_network():
    run("modprobe", "virtio_net")
    name = next(each.name for each in pathlib.Path("/sys/class/net").iterdir() if each.name != "lo")
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", name)
    run("ip", "link", "set", name, "up")


def start_node(port):
    WORK.mkdir()
    WORK.chmod(0o755)
    config, groups, gpus = WORK / "zernel.conf", WORK / "group", WORK / "vgpu"
    config.write_text(f"[scheduler]\nattach=no\n[learning]\nstate_directory={WORK}/state\n[socket]\npath={WORK}/zernel.sock\n"
                      "[gpu]\ndevice_files=/dev/zernel-vgpu0\nsample=no\n[serve]\ntoken_file=\n")
    groups.write_text(pathlib.Path("/etc/group").read_text() + f"zernel:x:{READERS}:{USER}\n")
    run("mount", "--bind", groups, "/etc/group")
    gpus.touch()
    gpus.chmod(0o666)
    GROUP.mkdir()
    subprocess.Popen([BUILD / "src/daemon/zerneld", "--config", config])
    # The first calls come after zerneld knows the process.
    while subprocess.run([BUILD / "src/cli/zernel", "status", "--socket", WORK / "zernel.sock"], capture_output=True, check=False).returncode:
        time.sleep(1)
    subprocess.Popen([BUILD / "src/cli/zernel", "serve", "--config", config, "--socket", WORK / "zernel.sock", "--port", str(port), "--user", USER])
    subprocess.Popen([LAB / "train/train", *JOB.split()], stdout=subprocess.DEVNULL,
                     env={**os.environ, "LD_LIBRARY_PATH": str(LAB / "vgpu"), "VGPU_SHM": str(gpus), "VGPU_DEVICES": "2"},
                     preexec_fn=lambda: (GROUP / "cgroup.procs").write_text("0"))


def copy(source, target, data=b""):
    try:
        while data := data or source.recv(1 << 16):
            target.sendall(data)
            data = b""
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def pass_on(outside, port):
    data = outside.recv(1 << 16)
    if data == STOP:
        stopped.set()
        return
    try:
        inside = socket.create_connection(("127.0.0.1", port))
    except OSError:  # the gateway is not started yet
        outside.close()
        return
    threading.Thread(target=copy, args=(inside, outside), daemon=True).start()
    copy(outside, inside, data)


def forward(port):
    """The gateway listens on loopback, because it has no certificate here."""
    server = socket.create_server((ADDRESS, port))
    while True:
        threading.Thread(target=pass_on, args=(server.accept()[0], port), daemon=True).start()


def main():
    port, answer = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    start_network()
    start_node(port)
    threading.Thread(target=forward, args=(port,), daemon=True).start()
    while not stopped.is_set():
        done = subprocess.run([BUILD / "src/cli/zernel", "why", "--json", "--seconds", "20", "--socket", WORK / "zernel.sock"],
                              stdout=subprocess.PIPE, check=False)
        if done.returncode == 0:
            part = answer.with_suffix(".part")
            part.write_bytes(done.stdout)
            part.rename(answer)
        time.sleep(1)


if __name__ == "__main__":
    main()
