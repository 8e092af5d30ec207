# SPDX-License-Identifier: GPL-2.0-or-later
"""An image with the lab's job and its libraries, and nothing else."""
import hashlib
import io
import json
import os
import pathlib
import re
import tarfile

from node import BUILD, output

NAME = "localhost/job:1"
FILE = pathlib.Path("/tmp/job.tar")
JOB = "/job/lab/train/train"  # only the image has this path
WAIT = "/usr/bin/sleep"


def files_of(program):
    """The program and its libraries."""
    paths = re.findall(r"(/\S+) \(0x", output("ldd", str(program)))
    return [str(program), *(os.path.normpath(path) for path in paths)]


def layer():
    """A tar file. The files of the build are below /job."""
    found = {*files_of(BUILD / "lab/train/train"), *files_of(WAIT)}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", dereference=True) as tar:
        for path in sorted(found):
            tar.add(path, path.replace(str(BUILD), "/job", 1))
    return data.getvalue()


def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def make():
    """Writes the image, in the format of `docker save`. Without a command, it waits: it is also the image of sandboxes."""
    files = layer()
    config = {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": [WAIT, "infinity"]},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(files).hexdigest()}"]}}
    with tarfile.open(FILE, "w") as tar:
        add(tar, "layer.tar", files)
        add(tar, "config.json", json.dumps(config).encode())
        add(tar, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]).encode())
