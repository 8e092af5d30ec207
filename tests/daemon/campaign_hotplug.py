# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `hotplug`, in a guest: a CPU goes offline and comes back, and the guest tries to suspend, beside a job.

ZERNEL_SIZE has the numbers of both. Each process that then maps a GPU library on that CPU must be found, and every 50th is a
training job that must be followed. The kernel allows new perf events in half of the cycles only (perf_event_paranoid).
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import mapped_library

harness.SECONDS = 120
harness.ZERNELD = BUILD / "src/daemon/zerneld"
NR_CYCLES, NR_SUSPENDS = map(int, os.environ.get("ZERNEL_SIZE", "4 2").split())
CPU = 1
ONLINE = pathlib.Path(f"/sys/devices/system/cpu/cpu{CPU}/online")
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
STATE = pathlib.Path("/sys/kernel/sched_ext/state")
JOB_INTERVAL = 50
SOON_SECONDS = 5  # zerneld notices a change of the CPUs after 1 s, and that an event has stopped 1 s later
TRAIN = [BUILD / "lab/train/train", *"--seconds 1000000 --loaders 1 --sync block --kernel-us 20000 --load-cpu-us 20000".split()]
ENVIRONMENT = {"LD_LIBRARY_PATH": str(BUILD / "lab/vgpu"), "VGPU_SHM": "/dev/shm/hotplug"}


@contextlib.contextmanager
def on_cpu():
    """What is started inside runs on the CPU that came back."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CPU})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def train():
    with subprocess.Popen(TRAIN, stdout=subprocess.DEVNULL, env=ENVIRONMENT, start_new_session=True) as job:
        try:
            yield job
        finally:
            os.killpg(job.pid, signal.SIGKILL)


class Hotplug(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = harness.Zerneld()
        cls.addClassCleanup(cls.server.remove)
        cls.job = cls.enterClassContext(train())

    def snapshot(self):
        with self.server.client() as client:
            return client.ask("snapshot")["result"]

    def launcher(self, job):
        """The state of the process of a job that uses the GPU."""
        assert job.poll() is None, "the job ended"
        for process in self.snapshot()["processes"]:
            with contextlib.suppress(ProcessLookupError):
                if process["launcher_tid"] and os.getsid(process["pid"]) == job.pid:
                    return process
        return None

    def makes_steps(self, job):
        first = wait_until(lambda: self.launcher(job), f"the job is followed: {self.server.text()[-500:]}")["steps"]
        wait_until(lambda: self.launcher(job)["steps"] > first, "the job makes steps")

    def nr_found(self):
        return self.snapshot()["probes"]["processes"]

    def only_the_job_is_left(self):
        """Its processes are its first one, the one that uses the GPU and the loader."""
        wait_until(lambda: self.nr_found() == 3, f"3 processes are known, not {self.nr_found()}")

    def finds_a_process(self):
        """Returns the time until a process that maps a library is found."""
        self.only_the_job_is_left()
        with on_cpu():
            process = mapped_library()
            process.__enter__()
        begin = time.monotonic()
        wait_until(lambda: self.nr_found() == 4, f"the process is found: {self.server.text()[-500:]}")
        took = time.monotonic() - begin
        process.__exit__(None, None, None)
        self.only_the_job_is_left()
        return took

    def follows_a_job(self):
        with on_cpu():
            job = train()
            process = job.__enter__()
        self.makes_steps(process)
        job.__exit__(None, None, None)

    def cycle(self):
        for state in "01":
            ONLINE.write_text(state, encoding="ascii")
        time.sleep(1)  # zerneld checks the events once a second

    def test_1_every_job_is_followed_after_each_hotplug(self):
        self.makes_steps(self.job)
        wait_until(lambda: self.snapshot()["probes"]["libraries"] == 3, "all libraries of the job are probed")
        attached = self.server.text().count("scheduler attached")
        times = {3: [], 2: []}
        for number in range(NR_CYCLES):
            paranoid = 3 if number < NR_CYCLES / 2 else 2
            PARANOID.write_text(str(paranoid), encoding="ascii")
            self.cycle()
            times[paranoid].append(self.finds_a_process())
            if number % JOB_INTERVAL == 0:
                self.follows_a_job()
                print(f"# {number + 1} of {NR_CYCLES} cycles", flush=True)
        self.makes_steps(self.job)
        for paranoid, found in times.items():
            print(f"# perf_event_paranoid {paranoid}: {len(found)} cycles, all processes found, median {sorted(found)[len(found) // 2]:.2f} s, "
                  f"longest {max(found):.2f} s")
            self.assertLess(max(found), SOON_SECONDS)
        self.assertEqual(STATE.read_text().strip(), "enabled")
        self.assertEqual(self.server.text().count("scheduler attached"), attached, "the scheduler stayed attached")

    def test_2_every_job_is_followed_after_each_suspend(self):
        done = 0
        for number in range(NR_SUSPENDS):
            kind = "freeze" if number % 2 else "mem"
            for text in "0", "+2":
                pathlib.Path("/sys/class/rtc/rtc0/wakealarm").write_text(text, encoding="ascii")
            try:
                pathlib.Path("/sys/power/state").write_text(kind, encoding="ascii")
                done += 1
            except OSError as error:
                reason = f"{kind}: {error.strerror}"
            self.finds_a_process()
        print(f"# {NR_SUSPENDS} suspends, {done} complete" + (f"; {reason}" if done < NR_SUSPENDS else ""))
        self.makes_steps(self.job)
        self.assertEqual(self.server.process.poll(), None)

    def test_3_the_kernel_log_has_no_warnings(self):
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(log, "WARNING:|BUG:|sched_ext:.*(error|stall)")


if __name__ == "__main__":
    tap.main()
