# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld in a guest: it watches jobs and says what this kernel lacks, as `zernel doctor` did before."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import tap
import harness
from harness import BUILD, ZERNEL, Case, wait_until

harness.SECONDS = 90
harness.ZERNELD = BUILD / "src/daemon/zerneld"
LAB = BUILD / "lab"
PHASES = {"data_loading", "gpu_compute", "optimizer_step"}
# An optimizer step is at most 5 ms long. The sync sleeps.
STEPS = "--sync block --launches 5 --kernel-us 2000 --optimizer-us 4000 --load-cpu-us 20000 --prefetch 1 --loaders 1".split()


def doctor(socket="/nowhere"):
    """Returns the features that `zernel doctor` finds missing, by default without asking zerneld."""
    text = subprocess.run([ZERNEL, "doctor", "--json", "--socket", socket], stdout=subprocess.PIPE, text=True, check=False).stdout
    return json.loads(text)["lacks"]


class Watching(Case):
    @classmethod
    def setUpClass(cls):
        print("# kernel", os.uname().release)
        devices = pathlib.Path(tempfile.mkdtemp()) / "vgpu"
        devices.parent.chmod(0o755)
        devices.touch()
        devices.chmod(0o666)
        os.environ.update(LD_LIBRARY_PATH=str(LAB / "vgpu"), VGPU_SHM=str(devices))
        cls.predicted = doctor()
        cls.server = harness.Zerneld(config="sample=yes\n[scheduler]\nactuator=sched_ext\n")
        cls.addClassCleanup(cls.server.remove)

    def zernel(self, command):
        result = subprocess.run([ZERNEL, command, "--socket", self.server.path], stdout=subprocess.PIPE, text=True, check=False)
        print("\n".join(f"# {line}" for line in result.stdout.splitlines()))
        return result.stdout

    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def test_1_zerneld_leaves_out_what_doctor_predicted(self):
        snapshot = self.snapshot()
        print("# lacks:", snapshot["lacks"], "refused:", snapshot["refused"])
        self.assertEqual(snapshot["refused"], [], self.server.text())
        self.assertEqual(snapshot["lacks"], self.predicted)
        self.assertEqual(doctor(self.server.path), self.predicted)
        self.assertNotIn("cannot load the BPF programs", self.server.text())

    def test_2_the_scheduler_is_attached_where_the_kernel_has_it(self):
        scheduler = self.server.scheduler()
        if "scheduler" not in self.predicted:
            self.assertEqual(scheduler["state"], "attached")
            return
        self.assertEqual(scheduler["state"], "off")
        self.assertIn("no sched_ext", scheduler["reason"])
        self.assertIn("no sched_ext", self.zernel("status"))

    def launcher(self):
        """Returns the process of the job that uses the GPU, from the first measured sync on."""
        found = [process for process in self.snapshot()["processes"] if process["comm"] == "train" and process["launcher_tid"]]
        return found[0] if found and "sync_wait" in found[0]["hists"] else None

    def job(self):
        job = subprocess.Popen([LAB / "train/train", "--seconds", "600", *STEPS], stdout=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(job.wait)
        self.addCleanup(os.killpg, job.pid, signal.SIGKILL)
        wait_until(self.launcher, f"the job is followed: {self.server.text()}")

    def test_3_a_job_is_followed_with_its_phases_roles_and_steps(self):
        self.job()
        try:
            wait_until(lambda: all(map(self.launcher()["phase_ns"].get, PHASES)), "all phases have had time")
            wait_until(lambda: self.launcher()["steps"] > 10, "the job makes steps")
        finally:
            print("# time of each phase:", self.launcher()["phase_ns"])
        wait_until(lambda: self.snapshot()["roles"]["loader"], "the loader is found")
        process, snapshot = self.launcher(), self.snapshot()
        print("# hists:", sorted(process["hists"]), "idle_ns:", process["idle_ns"])
        print("# roles:", snapshot["roles"], "probes:", snapshot["probes"], "dropped:", snapshot["dropped"])
        self.assertTrue({"sync_wait", "loader_wait", "step"} <= set(process["hists"]))
        self.assertEqual("launch" in process["hists"], "launch_times" not in self.predicted)
        self.assertEqual((snapshot["roles"]["launcher"], snapshot["roles"]["loader"]), (1, 1))
        self.assertEqual(snapshot["probes"]["failed"], 0)

    def test_4_status_and_doctor_say_what_is_left_out(self):
        status, findings = self.zernel("status"), self.zernel("doctor")
        for feature in self.predicted:
            self.assertIn(feature, status)
            self.assertIn(feature, findings)

    def test_5_nice_values_act_without_the_scheduler(self):
        self.server.config.write_text(self.server.config.read_text() + "actuator=nice\n")
        self.server.send(signal.SIGHUP)
        wait_until(lambda: self.server.scheduler()["actuator"] == "nice", f"nice values act: {self.server.text()}")
        self.job()
        launcher = self.launcher()["pid"]
        children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children")
        loader = int(wait_until(lambda: children.read_text().split(), "the job has a loader")[0])

        def values():
            return [os.getpriority(os.PRIO_PROCESS, pid) for pid in (launcher, loader)]

        wait_until(lambda: max(values()) < 0, "both are promoted")
        print("# nice: launcher {}, loader {}".format(*values()))
        self.assertLess(*values())
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(values(), [0, 0])


if __name__ == "__main__":
    tap.main()
