# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld with the real BPF programs, in a guest. Each test continues from the state of the previous test."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import tap
import harness
import node
import task_truth
from compare import run, scenarios
from harness import BUILD, Case, wait_until

harness.SECONDS = 90
harness.ZERNELD = BUILD / "src/daemon/zerneld"
LAB = BUILD / "lab"
STATE = pathlib.Path("/sys/kernel/sched_ext/state")
NOBODY = 65534
NR_GPUS = 2
VGPU = {}  # environment of processes that use the virtual GPUs
LOOKS = 40
NR_LIBRARIES = 3  # of GPU and collective runtimes that the job maps
# Phases that are long enough for samples, and a sync that sleeps. The first calls come after zerneld knows the process.
STEPS = "--startup-ms 5000 --sync block --launches 5 --kernel-us 20000 --optimizer-us 3000 --load-cpu-us 160000 --prefetch 1".split()
PHASE_DETECTION = {"io_wait_threshold": 0.3, "optimizer_burst_max_ns": 5000000, "gpu_idle_threshold": 10,
                   "gpu_active_threshold": 80, "phase_stability_count": 3, "nccl_detection_enabled": False}


def sched_ext_is(state):
    wait_until(lambda: STATE.read_text().strip() == state, f"sched_ext is {state}")


def train(seconds, *options, **environment):
    """A training job of a user other than root."""
    return subprocess.Popen([LAB / "train/train", "--seconds", str(seconds), "--loaders", "1", *options], user=NOBODY,
                            group=NOBODY, extra_groups=[], stdout=subprocess.DEVNULL,
                            env={**VGPU, **environment})


def make_gpus():
    """Creates virtual GPUs that processes of all users share."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    devices = folder / "vgpu"
    devices.touch()
    devices.chmod(0o666)
    VGPU.update(LD_LIBRARY_PATH=str(LAB / "vgpu"), VGPU_SHM=str(devices), VGPU_DEVICES=str(NR_GPUS))
    os.environ.update(VGPU)


class PhaseJob:
    """A process whose phase must be inferred: see phase_job.c."""

    def __init__(self, guest, *arguments):
        self.guest = guest
        self.process = subprocess.Popen([BUILD / "tests/daemon/phase_job", *arguments])
        wait_until(lambda: "sync_wait" in (self.state() or {"hists": ()})["hists"], "the process is followed")
        self.process.send_signal(signal.SIGUSR1)

    def state(self):
        assert self.process.poll() is None, "the process ended"
        for process in self.guest.snapshot()["processes"]:
            if process["pid"] == self.process.pid:
                return process
        return None

    def becomes(self, phase, **settings):
        """Applies settings and waits for the phase that the rules give for them."""
        begin = time.monotonic()
        before = self.state()
        self.guest.detect_phases(settings)
        wait_until(lambda: self.state()["phase"] == phase, f"{phase} with {settings}: {self.state()}")
        after = self.state()
        print(f"# {settings}: {before['phase']} -> {phase} in {(time.monotonic() - begin) * 1000:.0f} ms,"
              f" {after['transitions'] - before['transitions']} transitions")
        time.sleep(1)
        self.guest.assertEqual(self.state()["phase"], phase, f"the phase stays, with {settings}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Guest(Case):
    @classmethod
    def setUpClass(cls):
        # zerneld cannot distinguish the library of the virtual GPU from the vendor's library.
        make_gpus()
        cls.server = harness.Zerneld(config="sample=yes\n[kernel]\nretry_s=2\nmeasure_run_time=yes\n")
        cls.addClassCleanup(cls.server.remove)

    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def followed(self, job):
        """Returns the process of the job in the snapshot, after its first measured sync."""
        def find():
            assert job.poll() is None, "the job ended too early"
            for process in self.snapshot()["processes"]:
                if process["comm"] == "train" and "sync_wait" in process["hists"]:
                    return process
            return None
        return wait_until(find, f"the job is followed: {self.server.text()}")

    def detect_phases(self, settings):
        """Applies settings of the phase detector without a restart. Other settings have their defaults."""
        drop_ins = pathlib.Path(f"{self.server.config}.d")
        drop_ins.mkdir(exist_ok=True)
        (drop_ins / "phases.conf").write_text(
            "[phase_detection]\n" + "".join(f"{key}={str(value).lower()}\n" for key, value in settings.items()), encoding="ascii")
        self.server.send(signal.SIGHUP)
        wait_until(lambda: self.snapshot()["phase_detection"] == {**PHASE_DETECTION, **settings}, f"{settings} take effect")

    def test_01_zerneld_attaches_the_scheduler_and_drops_capabilities(self):
        sched_ext_is("enabled")
        self.assertEqual(self.server.scheduler()["state"], "attached")
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text(encoding="utf-8")
        print("#", " ".join(line.replace("\t", " ") for line in status.splitlines() if line.startswith("Cap")))
        self.assertNotIn("CapPrm:\t000001ffffffffff", status)

    def test_02_a_job_of_another_user_is_followed(self):
        job = train(600)
        try:
            process = self.followed(job)
            # New data appears in the snapshot with a short delay.
            wait_until(lambda: self.snapshot()["scheduler"]["classes"]["feeder"]["ran_ns"], "the job feeds a GPU")
            wait_until(lambda: self.snapshot()["roles"]["launcher"], "the job has a launcher")
            wait_until(lambda: self.snapshot()["gpus"], "GPUs are sampled")
            wait_until(lambda: "active_ns" in self.snapshot()["gpus"][0], "the activity of the GPU is known")
            wait_until(lambda: self.followed(job)["steps"] > process["steps"] + 10, "the job makes steps")
            later = self.followed(job)
            self.assertGreater(later["busy_ns"], process["busy_ns"])
            self.assertGreater(later["idle_ns"]["cpu"], 0)
            self.assertFalse([cause for cause, ns in later["idle_ns"].items() if ns < process["idle_ns"][cause]])
            cost = self.snapshot()["cost"]
            self.assertGreater(cost["bpf_run_ns"], 0)
            probes = self.snapshot()["probes"]
            print("# probes:", probes)
            self.assertGreaterEqual(probes["libraries"], 2)  # the runtime and the driver
            self.assertGreater(probes["probes"], probes["libraries"])
            self.assertEqual(probes["failed"], 0)
            self.assertIn("launch", process["hists"])
            print("# cost:", cost)
        finally:
            job.kill()
            job.wait()
        wait_until(lambda: not self.snapshot()["processes"], "the end of the job is noticed")
        snapshot = self.snapshot()
        self.assertGreaterEqual(snapshot["gone"]["sync_wait"]["count"], process["hists"]["sync_wait"]["count"])
        print("# phase_transitions:", snapshot["phase_transitions"], "of them", later["transitions"], "at the last sample")
        self.assertGreater(snapshot["phase_transitions"], later["transitions"])  # includes those of the loader

    def look(self, pid):
        """Returns the state of a task and of its loader."""
        snapshot = self.snapshot()
        process, = (process for process in snapshot["processes"] if process["pid"] == pid)
        loader, = (process for process in snapshot["processes"] if process["consumer_pid"] == pid)
        return task_truth.Look(snapshot["monotonic_ns"], process["start_ns"], process["task"]), loader["task"]

    @contextlib.contextmanager
    def libraries_probed(self):
        """A process that only maps the libraries: all calls of a job that starts later are seen."""
        holder = train(600, "--startup-ms", "600000000")
        try:
            wait_until(lambda: self.snapshot()["probes"]["libraries"] == NR_LIBRARIES, "all libraries are probed")
            yield
        finally:
            holder.kill()
            holder.wait()

    def test_02_the_task_state_agrees_with_the_truth(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        os.chown(folder, NOBODY, NOBODY)
        with self.libraries_probed():
            looks, loader, pid = self.watch_a_job(folder)
        print("# task:", json.dumps(looks[-1].task))
        print("# task of its loader:", json.dumps(loader))
        self.assertEqual((loader["current_phase"], loader["gpu_id"], loader["last_gpu_sync_ns"]), ("DataLoading", None, 0))
        truth = task_truth.Truth(LAB / "truth/truth", folder, pid)
        verdicts = list(task_truth.verdicts(looks, truth, gpu=1))
        print("\n".join(f"# {'yes' if holds else 'NO'}: {what}" for holds, what in verdicts))
        self.assertEqual([what for holds, what in verdicts if not holds], [])
        wait_until(lambda: not self.snapshot()["processes"], "the end of the job is noticed")

    def watch_a_job(self, folder):
        """Runs a job that writes its truth to a folder. Returns states of its task, that of its loader, and its pid."""
        job = train(600, *STEPS, "--truth", folder, CUDA_VISIBLE_DEVICES="1")
        try:
            pid = self.followed(job)["pid"]
            wait_until(lambda: self.followed(job)["steps"] > 5, "the job makes steps")
            looks = []
            for _ in range(LOOKS):
                time.sleep(0.13)  # a snapshot may be 0.1 s old
                look, loader = self.look(pid)
                looks.append(look)
            self.assertEqual([gpu["numa_node"] for gpu in self.snapshot()["gpus"]], [0] * NR_GPUS)
            return looks, loader, pid
        finally:
            job.kill()
            job.wait()

    def test_03_detach_and_attach(self):
        with self.server.client() as client:
            self.assertEqual(client.ask("scheduler.detach")["result"]["state"], "off")
            sched_ext_is("disabled")
            job = train(600)
            self.followed(job)
            self.assertEqual(client.ask("scheduler.attach")["result"]["state"], "attached")
            sched_ext_is("enabled")
            job.kill()
            job.wait()

    def test_03b_settings_of_the_phase_detector_change_the_phases_of_running_jobs(self):
        """Does not test nccl_detection_enabled, which needs ranks: see the next test."""
        run.make_io_device()
        with PhaseJob(self, "io", scenarios.IO_DEVICE) as job:
            job.becomes("data_loading")
            self.assertGreater(job.state()["task"]["io_wait_fraction"], 0.3)
            job.becomes("unknown", io_wait_threshold=1)
            job.becomes("data_loading", io_wait_threshold=0.5)
            job.becomes("unknown", gpu_idle_threshold=0)
            # With a large count, an inferred phase does not take effect yet.
            job.becomes("unknown", phase_stability_count=1000)
            job.becomes("data_loading", phase_stability_count=1)
            with PhaseJob(self, "busy"):
                wait_until(lambda: 30 < self.snapshot()["gpus"][0]["busy_percent"] < 70, "the GPU is half busy")
                job.becomes("data_loading")
                job.becomes("gpu_compute", gpu_active_threshold=20)
                job.becomes("data_loading", gpu_active_threshold=80)
        with PhaseJob(self, "burst") as job:
            job.becomes("unknown", optimizer_burst_max_ns=500000)
            job.becomes("optimizer_step", optimizer_burst_max_ns=1000000000)
            job.becomes("unknown", optimizer_burst_max_ns=400000)
            bursts = [self.pause(0.13) or job.state()["task"]["cpu_burst_duration_ns"] for _ in range(10)]
            print("# cpu_burst_duration_ns of bursts of 4 ms:", bursts)
            # An emulated CPU can pause during a burst. The work between two bursts is short.
            self.assertTrue(any(3_900_000 < burst < 8_000_000 for burst in bursts), bursts)
        self.detect_phases({})

    @staticmethod
    def pause(seconds):
        time.sleep(seconds)  # a snapshot may be 0.1 s old

    def ranks(self):
        return [process for process in self.snapshot()["processes"] if process["launcher_tid"]]

    def phases_seen(self):
        """Returns the phases of all ranks within a few seconds."""
        return {rank["phase"] for _ in range(30) if not self.pause(0.13) for rank in self.ranks()}

    def test_03c_collectives_without_probes_are_found_while_detection_is_enabled(self):
        job = subprocess.Popen([LAB / "train/train", "--seconds", "600", *scenarios.HIDDEN.args.split()], user=NOBODY,
                               group=NOBODY, extra_groups=[], stdout=subprocess.DEVNULL, env=VGPU, start_new_session=True)
        try:
            wait_until(lambda: len(self.ranks()) == 2 and all(rank["steps"] > 3 for rank in self.ranks()), "the ranks make steps")
            wait_until(lambda: all(rank["task"]["nccl_active"] for rank in self.ranks()), "the collective buffers are found")
            self.assertNotIn("nccl_collective", self.phases_seen())
            self.detect_phases({"nccl_detection_enabled": True})
            self.assertIn("nccl_collective", self.phases_seen())
            self.detect_phases({})
            self.pause(1)
            self.assertNotIn("nccl_collective", self.phases_seen())
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        wait_until(lambda: not self.snapshot()["processes"], "the end of the ranks is noticed")

    def test_04_a_policy_takes_effect_at_once(self):
        with self.server.client() as client:
            begin = time.monotonic()
            self.assertEqual(client.ask("policy.set", rules_off=["tier"], reserved_percent=10)["result"],
                             {"rules_off": ["tier"], "reserved_percent": 10})
            print(f"# policy.set took {(time.monotonic() - begin) * 1000:.1f} ms")
        scheduler = self.server.scheduler()
        self.assertEqual((scheduler["state"], scheduler["reserved_percent"]), ("attached", 10))

    def test_05_a_scheduler_that_the_administrator_detaches_stays_detached(self):
        pathlib.Path("/proc/sysrq-trigger").write_text("S", encoding="ascii")
        sched_ext_is("disabled")
        wait_until(lambda: self.server.scheduler()["state"] != "attached", "zerneld notices it")
        scheduler = self.server.scheduler()
        print("# state", scheduler["state"], "reason", scheduler["reason"])
        self.assertIn("sysrq", scheduler["reason"].lower())
        time.sleep(3)
        self.assertEqual(STATE.read_text().strip(), "disabled")
        with self.server.client() as client:
            self.assertEqual(client.ask("scheduler.attach")["result"]["state"], "attached")

    def test_06_a_cpu_may_go_offline_and_online(self):
        online = pathlib.Path("/sys/devices/system/cpu/cpu1/online")
        if not online.exists():
            self.skipTest("the guest has only one CPU")
        before = self.server.text().count("scheduler attached")
        for state in "01":
            online.write_text(state, encoding="ascii")
            time.sleep(2)
            self.assertEqual(STATE.read_text().strip(), "enabled")
        self.assertEqual(self.server.text().count("scheduler attached"), before)
        self.assertEqual(self.server.scheduler()["reserved_percent"], 10)

    def test_06b_a_job_on_a_cpu_that_came_back_is_followed(self):
        """The kernel stops the events of a CPU that goes offline, and does not start them again."""
        wait_until(lambda: not self.snapshot()["probes"]["processes"], "no process with a library is left")
        all_cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(all_cpus)})
        self.addCleanup(os.sched_setaffinity, 0, all_cpus)
        # A job with several processes could be found by an event of another CPU.
        with node.mapped_library():
            wait_until(lambda: self.snapshot()["probes"]["processes"] == 1, f"the process is found: {self.server.text()}")
        wait_until(lambda: not self.snapshot()["probes"]["processes"], "its end is noticed")

    def test_07_kill_9_detaches_the_scheduler_and_a_new_zerneld_attaches_it(self):
        with self.server.client() as client:
            self.server.stop(signal.SIGKILL)
            self.assertIsNone(client.line())
        sched_ext_is("disabled")
        self.server.start()
        sched_ext_is("enabled")

    def test_08_a_deleted_socket_is_recreated(self):
        self.server.path.unlink()
        wait_until(self.server.path.exists, "the socket is recreated")
        self.assertTrue(self.server.answers())

    def test_09_zerneld_ends_cleanly(self):
        self.assertEqual(self.server.stop(), 0)
        sched_ext_is("disabled")
        self.assertFalse(self.server.path.exists())
        print("#", [line for line in self.server.text().splitlines() if "loop iterations" in line][-1])

    def test_10_without_privilege_the_snapshot_says_that_bpf_is_refused(self):
        directory = pathlib.Path("/tmp/unprivileged")
        directory.mkdir()
        os.chown(directory, NOBODY, NOBODY)
        config = directory / "zernel.conf"
        config.write_text(f"[socket]\npath={directory}/sock\n[learning]\nstate_directory={directory}/state\n")
        with open(directory / "log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([harness.ZERNELD, "--config", config], user=NOBODY, group=NOBODY,
                                       extra_groups=[], stderr=log)
        def refused():
            try:
                with harness.Client(directory / "sock") as client:
                    return client.ask("snapshot")["result"]["scheduler"]
            except OSError:
                return None
        scheduler = wait_until(refused, "zerneld answers")
        self.assertEqual(scheduler["state"], "off")
        self.assertIn("refuses BPF", scheduler["reason"])
        process.terminate()
        self.assertEqual(process.wait(harness.SECONDS), 0)

    def test_11_the_kernel_log_has_no_warnings(self):
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(log, "WARNING:|BUG:|sched_ext:.*(error|stall)")


if __name__ == "__main__":
    tap.main()
