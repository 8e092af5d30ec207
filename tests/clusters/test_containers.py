# SPDX-License-Identifier: GPL-2.0-or-later
"""
Jobs in containers of podman and containerd, in a guest. Device 0 of each job is GPU 2 of the machine. Each test uses the
state of the previous one.
"""
import json
import os
import pathlib
import subprocess
import unittest

import cri
import image
import podman
import tap
from node import BUILD, SOCKET, Unit, install, note, output, wait_until

GPU = 2
NR_GPUS = 4
DEVICE = "/dev/zernel-vgpu0"
VARIABLES = {"VGPU_DEVICES": str(NR_GPUS), "VGPU_CONTAINER": str(GPU)}
# NVML of the node. The jobs have their own file in their own /dev/shm: the virtual driver does not know PIDs of other namespaces.
NVML = {"LD_LIBRARY_PATH": f"{BUILD}/lab/vgpu", "VGPU_DEVICES": str(NR_GPUS), "VGPU_SHM": "/dev/shm/node"}
QOS = "guaranteed", "burstable", "besteffort"
# One long launch in a step: there are many jobs. They wait until zerneld has found the libraries, which takes seconds.
COMMAND = f"""{image.JOB} --startup-ms 40000 --seconds 3000 --launches 1 --kernel-us 200000 --loaders 1 --load-cpu-us 2000
    --optimizer-us 2000 --copy-bytes 65536 --sync block""".split()
NAMES = "pod", "namespace", "container_name"
ROOT = pathlib.Path("/run/node")  # the root of the guest, for a container
FORM = "{:<10} {:<9} {:<11} {:<40} {:<29} {:<15} {:<9} {:<4} {}"
zerneld = Unit("zerneld")


def answer(*words):
    """The answer of a command of zernel, or None."""
    done = subprocess.run([BUILD / "src/cli/zernel", *words, "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def give_nvml():
    """The service finds the NVML of the lab."""
    lines = "".join(f"Environment={key}={value}\n" for key, value in NVML.items())
    pathlib.Path("/etc/systemd/system/zerneld.service.d/nvml.conf").write_text(f"[Service]\n{lines}", encoding="ascii")
    output("systemctl", "daemon-reload")


def make_pod(driver, qos):
    return cri.Pod(driver, qos, COMMAND, VARIABLES, DEVICE)


def jobs_of_snapshot(command):
    """The names of each job, with the GPUs of its processes and what they are based on: from `status` or `top`."""
    snapshot = answer(command) or {"jobs": [], "processes": []}
    found = {}
    for number, job in enumerate(snapshot["jobs"]):
        tasks = [process["task"] for process in snapshot["processes"] if process["job"] == number + 1]
        found[job["name"]] = (*(job[key] for key in NAMES), *gpus((task["gpu_id"], task["gpu_basis"]) for task in tasks))
    return found


def jobs_of_why():
    found = answer("why", "--seconds", "20") or {"jobs": []}
    return {job["name"]: (*(job.get(key, "") for key in NAMES),
                          *gpus((process["gpu"], process["gpu_basis"]) for process in job["processes"]))
            for job in found["jobs"]}


def gpus(pairs):
    """The single GPU of processes that use one, or all of them."""
    used = {pair for pair in pairs if pair[1] != "none"}
    return used.pop() if len(used) == 1 else (sorted(used), "")


def names_of(case):
    return case.name, case.namespace, case.container


def pid_of(case):
    """The first process of the container, by its cgroup: podman and crun may make another one below."""
    path = pathlib.Path(f"/sys/fs/cgroup{case.cgroup()}")
    files = wait_until(lambda: [file for file in path.rglob("cgroup.procs") if file.read_text(encoding="ascii").split()],
                       f"no process in {path}")
    return int(files[0].read_text(encoding="ascii").split()[0])


def namespaces(pid):
    return [os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("mnt", "pid", "cgroup")]


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install("[scheduler]\nattach=no\n")
        give_nvml()
        image.make()
        output("systemctl", "start", "dbus")
        cri.start()
        podman.start()
        zerneld.ctl("start")
        wait_until(lambda: answer("status"), zerneld.log)
        cls.cases = [podman.Container(driver, COMMAND, VARIABLES, DEVICE) for driver in podman.PARENTS]
        cls.cases += [make_pod(driver, qos) for driver in cri.DRIVERS for qos in QOS]

    def logs(self):
        return "\n".join(case.log.read_text(encoding="utf-8", errors="replace") for case in self.cases if case.log.exists()) \
            + json.dumps(answer("status")) + zerneld.log()

    def assert_agree(self, what, jobs, cases):
        """Each job has its names and the right GPU. Waits: a GPU is known after its first use, names when a scan found them."""
        wanted, seen = {case.job: (*names_of(case), GPU, "runtime") for case in cases}, {}

        def found():
            seen.update(jobs())
            return all(seen.get(job) == names for job, names in wanted.items())

        wait_until(found, lambda: f"{what}: {seen}\nwanted: {wanted}\n{self.logs()}")
        return seen

    def test_01_each_job_is_in_a_container_of_its_own(self):
        own = namespaces("self")
        for case in self.cases:
            pid = pid_of(case)
            path = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").strip()
            note(f"cgroup of {names_of(case)[0] or case.job}: {path}")
            self.assertTrue(path.startswith(f"0::{case.cgroup()}"), (path, case.cgroup()))
            self.assertEqual([kind for kind, other in zip(own, namespaces(pid)) if kind == other], [])
        self.assertFalse(pathlib.Path(image.JOB).exists())

    def test_02_status_has_names_and_the_right_gpu(self):
        self.assert_agree("status", lambda: jobs_of_snapshot("status"), self.cases)

    def test_03_top_has_names_and_the_right_gpu(self):
        self.assert_agree("top", lambda: jobs_of_snapshot("top"), self.cases)

    def test_04_why_has_names_and_the_right_gpu(self):
        found = self.assert_agree("why", jobs_of_why, self.cases)
        note(FORM.format("RUNTIME", "DRIVER", "CLASS", "JOB", "POD", "NAMESPACE", "CONTAINER", "GPU", "BASIS"))
        for case in self.cases:
            row = [cell or "-" for cell in found[case.job]]
            note(FORM.format("containerd" if case.qos else "podman", case.driver, case.qos or "-", case.job, *row))

    def test_05_no_job_has_another_gpu(self):
        snapshot = answer("status")
        used = {process["task"]["gpu_id"] for process in snapshot["processes"]} - {None}
        note(f"{len(snapshot['processes'])} processes, GPUs {used}, conflicts {snapshot['gpu_conflicts']}")
        self.assertEqual((used, snapshot["gpu_conflicts"]), ({GPU}, 0))

    def test_06_zerneld_in_a_container_sees_the_same_names(self):
        zerneld.ctl("stop")
        ROOT.mkdir()
        output("mount", "--bind", "/", str(ROOT))
        folders = "/etc", "/var/log/containers", str(SOCKET.parent), "/dev/shm", str(BUILD)
        number = podman.run_zerneld(str(ROOT), folders, NVML, f"{BUILD}/src/daemon/zerneld")
        wait_until(lambda: answer("status"), lambda: output(*podman.PODMAN, "logs", number))
        wanted = {case.job: names_of(case) for case in self.cases}
        wait_until(lambda: {job: row[:3] for job, row in jobs_of_snapshot("status").items()} == wanted,
                   lambda: f"{jobs_of_snapshot('status')}\nwanted: {wanted}")
        # The GPU, too, of a job that starts now.
        self.cases[-1].stop()
        late = make_pod("systemd", "burstable")
        self.assert_agree("status", lambda: jobs_of_snapshot("status"), [late])
        note(f"zerneld in {number[:12]}: {late.job}: {jobs_of_snapshot('status')[late.job]}")

    def test_07_the_kernel_logged_no_warnings(self):
        self.assertNotRegex(output("dmesg"), "WARNING:|BUG:")


if __name__ == "__main__":
    tap.main()
