# SPDX-License-Identifier: GPL-2.0-or-later
"""Which processes the scheduler believes to use a GPU, in a guest. The tests without evidence run first: no class of the
scheduler that promotes may have been used until then."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import tap
import harness
from harness import BUILD, Case, wait_until

harness.SECONDS = 60
harness.ZERNELD = BUILD / "src/daemon/zerneld"
DEVICE = "/dev/zernel-vgpu0"
NOBODY = 65534
PROMOTED = ("feeder", "wanted_loader", "late_loader", "loader", "spinner")
STEPS = 20
# The first calls come after the probes are attached. The loader is late, so that it would be promoted.
TRAIN = [str(BUILD / "lab/train/train"), *"--seconds 100000 --startup-ms 3000 --loaders 1 --load-cpu-us 20000".split()]
# Opens a file and executes the rest of its arguments: FLAGS INHERITABLE PATH COMMAND...
OPEN_AND_EXEC = """
import os, sys
fd = os.open(sys.argv[3], int(sys.argv[1]))
os.set_inheritable(fd, sys.argv[2] == "yes")
os.execv(sys.argv[4], sys.argv[4:])
"""

BURN_SECONDS = 0.4
BURN = f"import time\nend = time.process_time() + {BURN_SECONDS}\nwhile time.process_time() < end: pass\n"
# Opens the file and uses the CPU, like the process that it forks.
OPEN_AND_FORK = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\nchild = os.fork()\n" + BURN + "child and os.wait()\n"
# Opens the file and starts another process, which executes a program: PATH COMMAND...
OPEN_AND_START = "import os, subprocess, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\nsubprocess.call(sys.argv[2:])\n"


def open_and_exec(flags, inheritable, path):
    return [sys.executable, "-c", OPEN_AND_EXEC, str(flags), "yes" if inheritable else "no", path, *TRAIN]


@contextlib.contextmanager
def job(command=None, device=DEVICE):
    """A training job of a user other than root. Without a device, the virtual GPU opens no file."""
    environment = {"LD_LIBRARY_PATH": str(BUILD / "lab/vgpu"), "VGPU_SHM": "/dev/shm/trust", "VGPU_DEVICE_FILE": device}
    with subprocess.Popen(command or TRAIN, user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.DEVNULL,
                          env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def open_files(pid):
    """The open files of a process: their paths, and their device numbers."""
    files = [fd for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir() if fd.exists()]
    return {str(fd.readlink()) for fd in files}, {fd.stat().st_rdev for fd in files}


class Trust(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = harness.Zerneld(config="[scheduler]\nattach=yes\n")
        cls.addClassCleanup(cls.server.remove)

    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def find(self, process):
        """Returns the rank of the job, which is a child of its first process."""
        assert process.poll() is None, "the job ended too early"
        return next((one for one in self.snapshot()["processes"]
                     if one["launcher_tid"] and session_of(one["pid"]) == process.pid), None)

    def makes_steps(self, process):
        """Returns the process after it made some steps."""
        first = wait_until(lambda: self.find(process), f"the job is followed: {self.server.text()}")["steps"]
        return wait_until(lambda: (now := self.find(process))["steps"] >= first + STEPS and now, "the job makes steps")

    def promoted(self):
        """Decisions and CPU time of all classes that an ordinary task never has."""
        classes = self.snapshot()["scheduler"]["classes"]
        return {name: (sum(classes[name]["decisions"].values()), classes[name]["ran_ns"]) for name in PROMOTED}

    def zernel(self, *words):
        return subprocess.run([harness.ZERNEL, *words, "--socket", self.server.path], capture_output=True, text=True,
                              check=False, env={**os.environ, "NO_COLOR": "1"}).stdout

    def assertUnproven(self, process):
        state = self.makes_steps(process)
        self.assertEqual(state["gpu_evidence"], "none")
        self.assertTrue(state["launcher_tid"])
        self.assertEqual(self.promoted(), dict.fromkeys(PROMOTED, (0, 0)))
        return state["pid"]

    def assertProven(self, process):
        before = self.promoted()
        self.makes_steps(process)
        wait_until(lambda: self.find(process)["gpu_evidence"] == "device", "there is evidence")
        self.makes_steps(process)
        after = self.promoted()
        print("#", after)
        self.assertGreater(after["feeder"][0], before["feeder"][0])
        self.assertGreater(after["feeder"][1], before["feeder"][1])

    def test_01_calls_without_an_open_gpu_are_shown_and_promote_nothing(self):
        with job(device="") as process:
            pid = self.assertUnproven(process)
            self.assertIn("train (unproven)", self.zernel("status"))
            self.assertIn(f"unproven: process {pid} has opened no GPU", self.zernel("why", "--seconds", "2"))
            self.assertRegex(self.zernel("doctor"), r"unproven processes: \d+; ")

    def test_02_a_regular_file_with_the_name_of_a_gpu_is_no_evidence(self):
        path = pathlib.Path("/tmp/nvidia0")
        path.touch()
        path.chmod(0o666)
        with job(device=str(path)) as process:
            self.assertIn(str(path), open_files(self.assertUnproven(process))[0])

    def test_03_a_device_that_was_not_opened_for_use_is_no_evidence(self):
        with job(open_and_exec(os.O_PATH, True, DEVICE), device="") as process:
            self.assertIn(DEVICE, open_files(self.assertUnproven(process))[0])

    def test_04_another_device_is_no_evidence(self):
        with job(device="/dev/null") as process:
            self.assertUnproven(process)

    def burns(self, *command):
        """Runs a program as another user; returns the CPU time that each class got meanwhile, in seconds."""
        before = self.promoted()
        subprocess.run([sys.executable, "-c", *command], user=NOBODY, group=NOBODY, extra_groups=[], check=True)
        after = self.promoted()
        grown = {name: (after[name][1] - before[name][1]) / 1e9 for name in PROMOTED}
        print("#", grown)
        return grown

    def test_05_a_process_that_opens_a_gpu_is_promoted_before_its_calls_are_known(self):
        grown = self.burns(OPEN_AND_FORK, DEVICE)
        self.assertGreater(grown["wanted_loader"], BURN_SECONDS / 2)
        self.assertGreater(grown["late_loader"], BURN_SECONDS / 2)
        self.assertEqual(grown["feeder"], 0)
        grown = self.burns(OPEN_AND_START, DEVICE, sys.executable, "-c", BURN)
        self.assertGreater(grown["late_loader"], BURN_SECONDS / 2)

    def test_06_a_program_is_not_promoted_for_a_gpu_that_another_one_opened(self):
        grown = self.burns(OPEN_AND_EXEC, str(os.O_RDWR), "no", DEVICE, sys.executable, "-c", BURN)
        self.assertLess(sum(grown.values()), BURN_SECONDS / 2)
        grown = self.burns(OPEN_AND_START, DEVICE, "timeout", str(BURN_SECONDS), "sh", "-c", "while :; do :; done")
        self.assertLess(grown["late_loader"], BURN_SECONDS / 2)
        grown = self.burns(OPEN_AND_FORK, "/dev/null")
        self.assertEqual(sum(grown.values()), 0)

    def test_07_exec_ends_the_evidence(self):
        """The program that opened the device is promoted until exec."""
        with job(open_and_exec(os.O_RDWR, False, DEVICE), device="") as process:
            self.makes_steps(process)
            before = self.promoted()
            self.assertEqual(self.makes_steps(process)["gpu_evidence"], "none")
            self.assertEqual(self.promoted(), before)

    def test_08_an_open_gpu_is_evidence(self):
        with job() as process:
            self.assertProven(process)
            self.assertNotIn("unproven", self.zernel("status"))
            self.assertNotIn("unproven", self.zernel("doctor"))

    def test_09_an_inherited_gpu_is_evidence(self):
        with job(open_and_exec(os.O_RDWR, True, DEVICE), device="") as process:
            self.assertProven(process)

    def test_10_a_gpu_that_was_opened_before_zerneld_started_is_evidence(self):
        self.server.stop()
        with job() as process:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_until(lambda: any(os.stat(DEVICE).st_rdev in open_files(pid)[1]
                                   for pid in children.read_text().split()), "the device is open")
            self.server.start()
            self.assertProven(process)

    def test_11_a_device_counts_as_soon_as_the_configuration_lists_it(self):
        text = self.server.config.read_text()
        self.server.config.write_text(text.replace(f"device_files={DEVICE}\n", ""))
        self.server.stop()
        self.server.start()
        with job() as process:
            self.assertUnproven(process)
            self.server.config.write_text(text)
            self.server.send(signal.SIGHUP)
            self.assertProven(process)


if __name__ == "__main__":
    tap.main()
