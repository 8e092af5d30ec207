# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld with a kernel that refuses BPF, ejects the scheduler or requests a restart, and with a deleted socket."""
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import tap
import harness
from harness import BUILD, Case, wait_until, ZERNEL
from node import mapped_library


# The capabilities of linux/capability.h that the documentation names.
NUMBERS = {"CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SETPCAP": 8, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23,
           "CAP_DAC_READ_SEARCH": 2, "CAP_PERFMON": 38, "CAP_BPF": 39, "CAP_CHECKPOINT_RESTORE": 40}
# A program that was built with a sanitizer does not restrict its system calls.
SANITIZED = b"__asan_init" in ZERNEL.read_bytes()


def status_of(task):
    return dict(line.split(":\t") for line in (task / "status").read_text().splitlines() if ":\t" in line)


def helper(server, argument):
    """Returns the pid of a process of zernel-discover."""
    for pid in family(server.process.pid):
        if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] == [argument.encode()]:
            return pid
    return None


def bits(text):
    return {i for i in range(64) if int(text, 16) >> i & 1}


def family(pid):
    """Returns a process and all its descendants."""
    pids = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            pids += family(int(child))
    return pids


SCHED_EXT = "[scheduler]\nactuator=sched_ext\n"


class Kernel(Case):
    def test_refused_bpf_is_reported_and_tried_again(self):
        server = self.zerneld(config="[kernel]\nretry_s=1\n", wait=False)
        server.tell("refuse")
        server.stop(signal.SIGKILL)
        server.start()
        server.said("the kernel refuses BPF")
        scheduler = server.scheduler()
        self.assertEqual(scheduler["state"], "off")
        self.assertIn("refuses BPF", scheduler["reason"])
        with server.client() as client:
            self.assertEqual(client.ask("snapshot")["result"]["processes"], [])
            self.assertError(client.ask("scheduler.attach"), "failed", "refuses BPF")
            self.assertEqual(client.ask("policy.set", reserved_percent=12)["result"]["reserved_percent"], 12)
        time.sleep(2.5)
        self.assertEqual(server.text().count("cannot load the BPF programs"), 1)
        server.untell("refuse")
        wait_until(lambda: server.scheduler()["state"] == "attached", "the scheduler is attached")
        self.assertIn("policy rules_off=0 reserved=12", server.did())

    def test_without_sched_ext_zerneld_only_watches(self):
        server = self.zerneld(config=SCHED_EXT)
        server.tell("no-sched")
        server.stop()
        server.start()
        server.said("zerneld continues without the scheduler")
        self.assertIn("no sched_ext", server.scheduler()["reason"])
        with server.client() as client:
            snapshot = client.ask("snapshot")["result"]
            self.assertEqual((len(snapshot["processes"]), snapshot["lacks"], snapshot["refused"]), (3, ["scheduler"], []))
            self.assertError(client.ask("scheduler.attach"), "unsupported", "no sched_ext")

    def test_the_log_names_the_function_that_the_kernel_lacks(self):
        server = self.zerneld(config=SCHED_EXT)
        server.tell("no-func")
        server.stop()
        server.start()
        server.said("the BTF of this kernel lacks FUNC scx_bpf_kick_cpu: run `zernel doctor`; "
                    "zerneld continues without the scheduler")
        self.assertIn("lacks FUNC scx_bpf_kick_cpu", server.scheduler()["reason"])
        with server.client() as client:
            self.assertError(client.ask("scheduler.attach"), "unsupported", "scx_bpf_kick_cpu")

    def test_zerneld_waits_until_another_scheduler_is_gone(self):
        server = self.zerneld(config="[kernel]\nretry_s=1\n" + SCHED_EXT)
        server.tell("busy")
        with server.client() as client:
            client.ask("scheduler.detach")
            self.assertError(client.ask("scheduler.attach"), "failed", "another sched_ext scheduler")
        server.untell("busy")
        wait_until(lambda: server.scheduler()["state"] == "attached", "the scheduler is attached")

    def test_an_ejected_scheduler_stays_detached_until_a_client_attaches_it(self):
        server = self.zerneld(config="[kernel]\nretry_s=1\n")
        server.tell("eject")
        server.said("scheduler ejected by the kernel: runnable task stall: cc1[12]")
        self.assertIn("CPU 0: dumped", server.text())
        server.untell("eject")
        scheduler = server.scheduler()
        self.assertEqual((scheduler["state"], scheduler["ejections"]), ("ejected", 1))
        self.assertIn("runnable task stall: cc1[12] failed", scheduler["reason"])
        time.sleep(1.5)
        with server.client() as client:
            self.assertEqual(client.ask("snapshot")["result"]["scheduler"]["state"], "ejected")
            self.assertEqual(client.ask("scheduler.attach")["result"]["state"], "attached")
        self.assertEqual(server.scheduler()["reason"], "")

    def test_the_scheduler_restarts_when_the_kernel_requests_it(self):
        server = self.zerneld()
        server.tell("restart")
        wait_until(lambda: server.did().count("attach") == 2, "attached again")
        self.assertEqual(server.did().count("load"), 1)
        self.assertEqual(server.scheduler()["state"], "attached")

    def test_endless_restarts_stop(self):
        server = self.zerneld()
        end = time.monotonic() + 60
        while server.scheduler()["state"] == "attached" and time.monotonic() < end:
            server.tell("restart")
            time.sleep(0.05)
        self.assertEqual(server.scheduler()["state"], "off")
        self.assertEqual(server.did().count("attach"), 17)


class Actuator(Case):
    """zerneld-fake shows no process with evidence, so it changes no nice value."""

    def acts_with(self, server, actuator):
        wait_until(lambda: server.scheduler()["actuator"] == actuator, f"{actuator}: {server.scheduler()}")

    def set(self, server, text):
        server.config.write_text(server.config.read_text() + f"[scheduler]\n{text}\n")
        server.send(signal.SIGHUP)

    def test_auto_acts_with_nice_while_the_scheduler_is_not_attached(self):
        server = self.zerneld(config="[kernel]\nretry_s=1\n")
        self.acts_with(server, "sched_ext")
        server.tell("busy")
        with server.client() as client:
            self.assertEqual(client.ask("scheduler.detach")["result"], {"state": "off", "actuator": "none"})
            self.assertEqual(client.ask("scheduler.attach")["result"], {"state": "off", "actuator": "nice"})
        server.said("the nice actuator acts")
        self.assertIn("another sched_ext scheduler", server.scheduler()["reason"])
        status = subprocess.run([ZERNEL, "status", "--socket", server.path], capture_output=True, text=True, check=False).stdout
        self.assertRegex(status, r"(?m)^nice +acting, 0 threads changed, 0 changes$")
        server.untell("busy")
        self.acts_with(server, "sched_ext")
        server.said("the nice actuator stopped")

    def test_auto_acts_with_nice_after_an_ejection_and_under_a_limit(self):
        self.enterContext(mapped_library())  # with attach=auto, the scheduler is for ML processes
        for told, state in ("eject", "ejected"), ("cgroup_v1", "off"):
            server = self.zerneld(attach="auto")
            self.acts_with(server, "sched_ext")
            server.tell(told)
            self.acts_with(server, "nice")
            self.assertEqual(server.scheduler()["state"], state)
            nr = server.did().count("attach")
            self.set(server, "actuator=sched_ext")
            self.acts_with(server, "none")
            self.assertEqual((server.scheduler()["state"], server.did().count("attach")), (state, nr))

    def test_nice_and_none_never_attach(self):
        for actuator in "nice", "none":
            server = self.zerneld(config=f"[scheduler]\nactuator={actuator}\n")
            self.acts_with(server, actuator)
            self.assertNotIn("attach", server.did())

    def test_with_none_a_request_is_refused(self):
        server = self.zerneld(config="[scheduler]\nactuator=none\n")
        with server.client() as client:
            self.assertError(client.ask("scheduler.attach"), "failed", "actuator=none")

    def test_attach_no_stops_every_actuator(self):
        server = self.zerneld(attach="no", config="[scheduler]\nactuator=nice\n")
        self.assertEqual(server.scheduler()["actuator"], "none")
        with server.client() as client:
            self.assertEqual(client.ask("scheduler.attach")["result"]["actuator"], "nice")
            self.assertEqual(client.ask("scheduler.detach")["result"]["actuator"], "none")

    def test_a_reload_changes_the_actuator(self):
        server = self.zerneld()
        for actuator, acting in ("nice", "nice"), ("sched_ext", "sched_ext"), ("none", "none"), ("auto", "sched_ext"):
            self.set(server, f"actuator={actuator}")
            self.acts_with(server, acting)
        self.assertEqual((server.did().count("attach"), server.did().count("detach")), (3, 2))
        self.set(server, "attach=no")
        self.acts_with(server, "none")
        self.set(server, "actuator=none")
        self.set(server, "attach=yes")
        wait_until(lambda: "actuator=none" in server.scheduler()["reason"], "the reason is shown")
        self.set(server, "actuator=nice")
        self.acts_with(server, "nice")
        self.assertEqual(server.scheduler()["reason"], "")


class Life(Case):
    def test_kill_9_and_start_again(self):
        server = self.zerneld()
        with server.client() as client:
            client.ask("subscribe")
            server.stop(signal.SIGKILL)
            while client.line():
                pass
        self.assertTrue(server.path.exists())
        server.start()
        self.assertEqual(server.scheduler()["state"], "attached")

    def test_a_deleted_socket_is_recreated(self):
        server = self.zerneld()
        with server.client() as client:
            server.path.unlink()
            wait_until(server.path.exists, "the socket is recreated")
            self.assertIn("result", client.ask("snapshot"))
        server.said("was removed: socket recreated")
        self.assertTrue(server.answers())
        os.rename(server.path, str(server.path) + ".old")
        wait_until(server.path.exists, "the socket is recreated")
        subprocess.run(["rm", "-r", server.path.parent], check=True)
        wait_until(server.path.exists, "the socket and its directory are recreated")

    def test_a_file_that_is_not_a_socket_is_not_replaced(self):
        server = self.zerneld()
        server.path.unlink()
        server.path.write_text("precious")
        server.said("cannot create the socket")
        self.assertEqual(server.path.read_text(), "precious")
        server.path.unlink()
        wait_until(server.answers, "the socket is recreated")

    def test_a_second_zerneld_is_refused(self):
        server = self.zerneld()
        second = subprocess.run([harness.ZERNELD, "--config", server.config], text=True,
                                env={**os.environ, "FAKE_KERNEL": str(server.fake)},
                                capture_output=True, timeout=60, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another zerneld answers on", second.stderr)
        self.assertTrue(server.answers())

    def test_each_log_line_has_a_time_and_a_level(self):
        server = self.zerneld()
        server.said("scheduler attached")
        for line in server.text().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ zerneld-fake (error|warning|info): .")
        self.assertIn(" zerneld-fake info: scheduler attached\n", server.text())

    def test_lines_below_the_log_level_are_left_out(self):
        quiet, verbose = self.zerneld("--log-level", "error"), self.zerneld("--log-level", "debug")
        for server in quiet, verbose:
            wait_until(lambda each=server: each.scheduler()["state"] == "attached", "attached")
        self.assertEqual(quiet.text(), "")
        self.assertRegex(verbose.text(), r"zerneld-fake debug: connection from pid \d+, user 0: accepted\n")
        verbose.said("zerneld-fake info: scheduler attached")

    def test_the_journal_gets_priorities_and_no_time(self):
        """Uses a pipe instead of the stream of the journal. Without a journal, libsystemd drops the line."""
        read, write = os.pipe()
        status = os.fstat(write)
        done = subprocess.run([harness.ZERNELD, "--config", "/nonexistent"], stderr=write, check=False,
                              env={**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        os.close(write)
        with open(read, encoding="utf-8") as pipe:
            text = pipe.read()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(text, r"^(<3>/nonexistent: cannot be read.*\n)?$")

    def test_a_signal_ends_zerneld_cleanly(self):
        for number in signal.SIGTERM, signal.SIGINT:
            server = self.zerneld()
            self.assertEqual(server.stop(number), 0)
            self.assertFalse(server.path.exists())
            self.assertEqual(server.did()[-2:], ["detach", "unload"])

    def import_profiles(self, server, nr):
        source = server.directory / "source"
        subprocess.run([BUILD / "tests/daemon/make_procdb", source, str(nr)], check=True)
        subprocess.run([ZERNEL, "procdb", "import", source, "--socket", server.path], check=True,
                       capture_output=True)

    def test_an_unwritable_state_directory_is_reported_and_tried_again(self):
        server = self.zerneld(state="ro")
        server.said("cannot keep learned profiles")
        self.import_profiles(server, 10)
        server.send(signal.SIGHUP)
        server.inside("mount", "-o", "remount,rw", server.state)
        server.send(signal.SIGHUP)
        server.said("is writable now")
        server.inside("test", "-s", server.state / "procdb")

    def test_a_full_disk_is_reported_and_tried_again(self):
        server = self.zerneld(state="size=16k")
        self.import_profiles(server, 1000)
        server.send(signal.SIGHUP)
        server.said("No space left on device")
        self.assertTrue(server.answers())
        server.inside("mount", "-o", "remount,size=1m", server.state)
        server.send(signal.SIGHUP)
        server.said(f"saved {server.state}/procdb again")
        server.inside("test", "-s", server.state / "procdb")

    def test_capabilities_are_dropped(self):
        server = self.zerneld()
        tasks = pathlib.Path(f"/proc/{server.process.pid}/task")
        wait_until(lambda: len(list(tasks.iterdir())) == 2, "the thread that attaches probes is started")
        for task in tasks.iterdir():
            self.has_few_capabilities(task)

    def documented(self):
        """Yields name and capabilities of each process, from the table of docs/operate/security.md."""
        page = pathlib.Path(os.environ["ZERNEL_SOURCE"], "docs/operate/security.md").read_text(encoding="utf-8")
        for line in page.splitlines():
            if match := re.match(r"\| `(zernel[\w-]*)`(?: `\w+`)? \| [^|]+ \| ([^|]+) \|", line):
                yield match[1], {NUMBERS[name] for name in re.findall(r"`(CAP_\w+)`", match[2])}

    def test_every_thread_of_every_process_has_the_documented_capabilities(self):
        server = self.zerneld(config="[gpu]\nsample=yes\n[scheduler]\nactuator=nice\n")
        documented = list(self.documented())
        wanted = {"zerneld-fake", "zerneld-starter", "zernel-gpu", "zernel-discover", "zerneld-restore"}

        def tasks():
            return [status_of(task) for pid in family(server.process.pid) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        wait_until(lambda: {task["Name"] for task in tasks()} == wanted and
                   all(not int(task["CapInh"], 16) for task in tasks()) and
                   all(task["Seccomp"] == "2" for task in tasks() if task["Name"].startswith("zernel-") and not SANITIZED),
                   f"all processes run: {tasks()}")
        had = bits(status_of(pathlib.Path("/proc/self"))["CapPrm"])
        for task in tasks():
            name = task["Name"].replace("-fake", "")
            print("#", name, "uid", task["Uid"].split()[0], "CapEff", task["CapEff"], "CapBnd", task["CapBnd"])
            allowed = [capabilities & had for other, capabilities in documented if other == name]
            self.assertIn(bits(task["CapEff"]), allowed, name)
            self.assertEqual(task["CapEff"], task["CapPrm"], name)
            self.assertLessEqual(bits(task["CapBnd"]), bits(task["CapPrm"]), name)
            self.assertEqual((task["CapInh"], task["CapAmb"], task["NoNewPrivs"]), ("0" * 16, "0" * 16, "1"), name)
            self.assertEqual(task["Uid"].split()[0] == "0", name.startswith("zerneld"), name)
            self.assertEqual(task["Seccomp"] == "2", name.startswith("zernel-") and not SANITIZED, name)
            # The kernel's thread that makes huge pages would stop them while CPU hogs run.
            self.assertEqual(task.get("THP_enabled", "0"), "0", name)

    def has_few_capabilities(self, task):
        status = status_of(task)
        print("# CapPrm", status["CapPrm"], "CapBnd", status["CapBnd"])
        names = subprocess.run([harness.ZERNELD, "--print-capabilities"], text=True,
                               capture_output=True, check=True).stdout
        self.assertLessEqual(int(status["CapPrm"], 16).bit_count(), len(names.splitlines()))
        self.assertEqual(int(status["CapPrm"], 16) & ~int(status["CapBnd"], 16), 0)
        self.assertEqual((status["CapInh"], status["CapAmb"]), ("0" * 16, "0" * 16))
        self.assertEqual(status["NoNewPrivs"], "1")


class Libraries(Case):
    NAME = "libcudart.so.slow"

    def job(self):
        """Starts a process that has mapped a library with this name."""
        directory = tempfile.mkdtemp(prefix="zerneld-job.")
        self.addCleanup(shutil.rmtree, directory)
        library = shutil.copy(BUILD / "lab/vgpu/libcudart.so.12", f"{directory}/{self.NAME}")
        # Maps its code without loading it: a build with sanitizers could not be loaded.
        code = ("import mmap, sys; file = open(sys.argv[1]); "
                "kept = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); "
                "print(flush=True); sys.stdin.read()")
        job = subprocess.Popen(["python3", "-c", code, library],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(job.communicate)
        job.stdout.readline()

    def lines(self, server):
        return [line for line in server.did() if self.NAME in line]

    def test_zerneld_answers_while_an_attach_blocks(self):
        self.job()
        server = self.zerneld()
        server.stop()
        (server.fake / "log").unlink()
        server.tell("slow")
        server.start()
        wait_until(lambda: self.lines(server), "the attach begins")
        with server.client() as client:
            def snapshot():
                return client.ask("snapshot")["result"]
            first = snapshot()
            wait_until(lambda: snapshot()["monotonic_ns"] > first["monotonic_ns"], "zerneld takes another snapshot")
            self.assertEqual(self.lines(server), [f"attach {self.NAME}"])
            server.untell("slow")
            wait_until(lambda: len(self.lines(server)) == 2, "the attach ends")
            wait_until(lambda: snapshot()["probes"]["libraries"] > first["probes"]["libraries"],
                       "the library is counted")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.lines(server), [f"{what} {self.NAME}" for what in ("attach", "attached", "detach")])

    def test_processes_are_scanned_again_after_lost_events(self):
        for told in "lost", "blind", "reopened":
            server = self.zerneld()
            wait_until(lambda s=server: helper(s, "libraries"), "it runs")
            with server.client() as client:
                before = client.ask("snapshot")["result"]["monotonic_ns"]
                wait_until(lambda c=client, b=before: c.ask("snapshot")["result"]["monotonic_ns"] > b + 1500000000, "the first scan ended")
            self.job()
            server.tell(told)
            wait_until(lambda s=server: f"attached {self.NAME}" in s.did(), f"the library is found: {told}")
            server.stop()

    def test_a_killed_process_that_scans_is_started_again(self):
        self.job()
        server = self.zerneld()
        wait_until(lambda: f"attached {self.NAME}" in server.did(), "the library is found")
        first = helper(server, "libraries")
        os.kill(first, signal.SIGKILL)
        server.said("zernel-discover libraries ended: zerneld starts it again in 1 s")
        wait_until(lambda: helper(server, "libraries") not in (None, first), "it runs again")
        with server.client() as client:
            self.assertEqual(client.ask("snapshot")["result"]["restarts"], 1)

    def test_a_lease_delays_nothing(self):
        """A user holds a write lease on the library that the user's own process maps. Without O_NONBLOCK, an open takes 45 s."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="zerneld-lease."))
        self.addCleanup(shutil.rmtree, directory)
        library = shutil.copy(BUILD / "lab/vgpu/libcudart.so.12", directory / "libcudart.so.leased")
        code = ("import fcntl, mmap, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); "
                "file = os.open(sys.argv[1], os.O_RDWR); "
                "kept = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); "
                "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print(flush=True); sys.stdin.read()")
        holder = subprocess.Popen(["python3", "-c", code, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        holder.stdout.readline()
        self.job()
        server = self.zerneld()
        wait_until(lambda: f"attached {self.NAME}" in server.did(), "the library of the other process is found")
        with server.client() as client:
            wait_until(lambda: client.ask("snapshot")["result"]["probes"]["failed"], "the library with a lease is counted")
            self.assertEqual(client.ask("snapshot")["result"]["restarts"], 0)
        leases = pathlib.Path("/proc/locks").read_text(encoding="utf-8")
        self.assertRegex(leases, rf"LEASE +\w+ +\w+ +{holder.pid}\b", "the lease was not waited for")


class Devices(Case):
    def test_a_hanging_driver_does_not_block_zerneld(self):
        os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/daemon")
        self.addCleanup(os.environ.pop, "LD_LIBRARY_PATH")
        server = self.zerneld(config="[gpu]\nsample=yes\n")

        def gpus():
            with server.client() as client:
                return client.ask("snapshot")["result"]["gpus"]
        wait_until(lambda: len(gpus()) == 2, "GPUs are sampled")
        self.assertEqual([gpu["busy_percent"] for gpu in gpus()], [40, 41])
        self.assertEqual([gpu.get("numa_node") for gpu in gpus()], [None, 3], "only known nodes")
        wait_until(lambda: {line for line in server.did() if " node " in line} == {"gpu 1 node 3"}, "the kernel gets the node")
        wait_until(lambda: server.did()[-2:] == ["gpu 0 40%", "gpu 1 41%"], "the kernel gets the utilization")
        server.tell("hang")
        server.said("the GPU driver does not answer")
        begin = time.monotonic()
        for gpu in gpus():
            self.assertNotIn("busy_percent", gpu)
        self.assertEqual(gpus()[1]["numa_node"], 3, "the node stays known")
        print(f"# answered in {(time.monotonic() - begin) * 1000:.1f} ms while the driver hangs")
        wait_until(lambda: server.did()[-2:] == ["gpu 0 unknown", "gpu 1 unknown"], "the kernel forgets the utilization")
        server.untell("hang")
        server.said("the GPU driver answers again")
        wait_until(lambda: gpus()[0].get("busy_percent") == 40, "the GPU is sampled again")
        server.tell("hang")
        time.sleep(1.5)
        self.assertEqual(server.stop(), 0)


    def helper(self, server, name):
        for pid in family(server.process.pid):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
                return pid
        return None

    def test_a_killed_sampler_is_started_again_and_counted(self):
        os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/daemon")
        self.addCleanup(os.environ.pop, "LD_LIBRARY_PATH")
        server = self.zerneld(config="[gpu]\nsample=yes\n")

        def snapshot():
            with server.client() as client:
                return client.ask("snapshot")["result"]
        wait_until(lambda: len(snapshot()["gpus"]) == 2, "GPUs are sampled")
        self.assertEqual(snapshot()["restarts"], 0)
        first = self.helper(server, "zernel-gpu")
        os.kill(first, signal.SIGKILL)
        server.said("zernel-gpu ended: zerneld starts it again in 1 s")
        wait_until(lambda: self.helper(server, "zernel-gpu") not in (None, first), "it runs again")
        wait_until(lambda: snapshot()["gpus"][0].get("busy_percent") == 40, "the GPU is sampled again")
        after = snapshot()
        self.assertEqual(after["restarts"], 1)
        status = subprocess.run([ZERNEL, "status", "--socket", server.path], capture_output=True, text=True, check=False).stdout
        self.assertRegex(status, r"(?m)^restarts +1 ")

    def test_a_stopped_sampler_is_killed_and_no_snapshot_waits_for_it(self):
        os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/daemon")
        self.addCleanup(os.environ.pop, "LD_LIBRARY_PATH")
        server = self.zerneld(config="[gpu]\nsample=yes\n")
        with server.client() as client, server.client() as other:
            wait_until(lambda: len(client.ask("snapshot")["result"]["gpus"]) == 2, "GPUs are sampled")
            first = self.helper(server, "zernel-gpu")
            os.kill(first, signal.SIGSTOP)
            time.sleep(0.2)  # the last snapshot is not used again
            client.send(b'{"id":900,"method":"snapshot"}\n')
            # While one client waits for a sample, zerneld answers another.
            self.assertIn("result", other.ask("policy.get"))
            self.assertEqual(client.reply()["id"], 900)
            server.said("zernel-gpu does not answer: zerneld starts it again")
            wait_until(lambda: self.helper(server, "zernel-gpu") not in (None, first), "it runs again")
            wait_until(lambda: client.ask("snapshot")["result"]["gpus"][0].get("busy_percent") == 40, "the GPU is sampled again")
            self.assertGreater(client.ask("snapshot")["result"]["dropped"]["gpu_samples"], 0)

    def test_zerneld_ends_with_the_process_that_starts_the_others(self):
        server = self.zerneld(config="[gpu]\nsample=yes\n")
        wait_until(lambda: self.helper(server, "zernel-gpu") and self.helper(server, "zernel-discover"), "all processes run")
        pids = family(server.process.pid)[1:]
        os.kill(self.helper(server, "zerneld-starter"), signal.SIGKILL)
        self.assertEqual(server.process.wait(harness.SECONDS), 1)
        server.said("the process zerneld-starter ended")
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/comm").exists() for pid in pids), "all processes have ended")

    def test_the_processes_end_with_zerneld(self):
        server = self.zerneld(config="[gpu]\nsample=yes\n")
        wait_until(lambda: self.helper(server, "zernel-gpu") and self.helper(server, "zernel-discover"), "all processes run")
        pids = family(server.process.pid)
        server.stop(signal.SIGKILL)
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/comm").exists() for pid in pids), "all processes have ended")


class Learned(Case):
    """zernel procdb, with and without zerneld."""

    def zernel(self, server, *words, status=0):
        done = subprocess.run([ZERNEL, "procdb", *words, "--file", server.state / "procdb", "--socket", server.path],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def test_zernel_procdb_uses_zerneld_while_it_runs(self):
        server = self.zerneld()
        source = server.directory / "source"
        subprocess.run([BUILD / "tests/daemon/make_procdb", source, "600"], check=True)
        self.assertIn("600 profiles imported", self.zernel(server, "import", source))
        self.assertIn("0 profiles imported", self.zernel(server, "import", source))
        self.assertEqual(len(self.zernel(server, "list").splitlines()), 601)
        self.assertIn('"name": "prog7"', self.zernel(server, "show", "prog7", "--json"))
        wait_until(lambda: "predict prog7" in server.did(), "the profile is predicted")
        self.assertIn("1 profiles forgotten", self.zernel(server, "forget", "prog7"))
        self.assertIn("withdraw prog7", server.did())
        self.assertIn("no learned profile of prog7", self.zernel(server, "show", "prog7", status=1))
        copy = server.directory / "copy"
        self.zernel(server, "export", copy)
        live = self.zernel(server, "list")
        server.stop()
        # The file that zerneld saved at its end has the same content.
        self.assertEqual(len(self.zernel(server, "list").splitlines()), 600)
        names = sorted(line.split()[0] for line in live.splitlines())
        self.assertEqual(names, sorted(line.split()[0] for line in self.zernel(server, "list").splitlines()))
        self.assertIn("1 profiles imported", self.zernel(server, "import", source))

    def starts_with(self, server, content, *sayings):
        server.stop()
        path = server.state / "procdb"
        path.write_bytes(content)
        server.start()
        for saying in sayings:
            server.said(saying.replace("PATH", str(path)))
        return path

    def test_the_log_says_how_many_profiles_were_loaded(self):
        server = self.zerneld()
        path = server.state / "procdb"
        server.said(f"{path} does not exist: started with an empty database")
        entry = struct.pack("<16sB7xQQQQII", b"cc1", 0, 3_000_000, 0, 20, 30, 4, 4)
        old = b"PDDB" + struct.pack("<II", 2, 2) + entry + entry.replace(b"cc1", b"ld\0")
        self.starts_with(server, old, "loaded 2 profiles (version 2) from PATH")
        self.assertNotIn("ignored", server.text())
        self.starts_with(server, old + b"12345", "loaded 2 profiles (version 2) from PATH",
                         "PATH: 5 bytes follow the last of 2 entries of version 2 and are ignored")
        self.assertIn('"wakeups_per_s": 200', self.zernel(server, "show", "cc1", "--json"))
        subprocess.run([BUILD / "tests/daemon/make_procdb", server.directory / "new", "3"], check=True)
        self.starts_with(server, (server.directory / "new").read_bytes(), "loaded 3 profiles (version 3) from PATH")

    def test_the_log_says_why_a_file_was_refused(self):
        server = self.zerneld()
        refused = (
            (b"PDDB", "4 bytes are too few: the header has 12"),
            (b"\x7fELF" + bytes(60), "the first four bytes are 7f 45 4c 46, not PDDB"),
            (b"PDDB" + struct.pack("<II", 9, 0), "version 9 is unknown, versions 1 to 3 are known"),
            (b"PDDB" + struct.pack("<II", 3, 4), "356 of 368 bytes are missing (4 entries of version 3)"),
            (b"PDDB" + struct.pack("<III", 3, 0, 1), "the checksum of the 16 bytes is wrong"),
        )
        for number, (content, why) in enumerate(refused, 1):
            path = self.starts_with(server, content,
                                    f"refused PATH: {why}; moved it to PATH.bad-{number}, started with an empty database")
            self.assertEqual(path.with_name(f"procdb.bad-{number}").read_bytes(), content)

    def test_all_profiles_can_be_forgotten(self):
        server = self.zerneld()
        source = server.directory / "source"
        subprocess.run([BUILD / "tests/daemon/make_procdb", source, "10"], check=True)
        self.zernel(server, "import", source)
        self.assertIn("10 profiles forgotten", self.zernel(server, "forget", "--all"))
        self.assertEqual(len(self.zernel(server, "list").splitlines()), 1)


if __name__ == "__main__":
    tap.main()
