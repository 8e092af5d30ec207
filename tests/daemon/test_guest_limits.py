# SPDX-License-Identifier: GPL-2.0-or-later
"""zerneld with the real BPF programs and the real cgroups of a guest: where it attaches the scheduler, and where not."""
import contextlib
import pathlib
import signal
import subprocess
import time

import tap
import harness
from harness import BUILD, Case, wait_until
from node import mapped_library

harness.SECONDS = 120
STATE = pathlib.Path("/sys/kernel/sched_ext/state")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUPS_V1 = pathlib.Path("/tmp/cgroup-v1")
ZERNELD = BUILD / "src/daemon/zerneld"
# The same program on a kernel that does not inform schedulers of cpu.max.
ZERNELD_OLD = BUILD / "tests/daemon/zerneld-old"
WAITS = "no ML process; it is attached when one starts"
CPU_MAX = "cgroup /pods/pod has a CPU limit (cpu.max) that this kernel hides from schedulers"


def set_limit(text):
    (CGROUPS / "pods/pod/cpu.max").write_text(text, encoding="ascii")


@contextlib.contextmanager
def task_in(*groups):
    """Runs a sleeping process in these cgroups."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            for group in groups:
                (group / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
            yield
        finally:
            process.kill()


class Limits(Case):
    @classmethod
    def setUpClass(cls):
        (CGROUPS / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
        (CGROUPS / "pods").mkdir()
        (CGROUPS / "pods/cgroup.subtree_control").write_text("+cpu", encoding="ascii")
        (CGROUPS / "pods/pod").mkdir()

    def server(self, program, attach):
        """With attach=auto, the scheduler is attached for ML processes only."""
        harness.ZERNELD = program
        return self.zerneld(attach=attach, config="[kernel]\nretry_s=2\n")

    def becomes(self, server, state, limit):
        begin = time.monotonic()
        wait_until(lambda: (server.scheduler()["state"], server.scheduler()["limit"]) == (state, limit),
                   f"{state}, {limit}: {server.text()}")
        wait_until(lambda: STATE.read_text().strip() == ("enabled" if state == "attached" else "disabled"), "sched_ext follows")
        print(f"# {state}, limit {limit}, after {time.monotonic() - begin:.1f} s; reason: {server.scheduler()['reason']}")

    def reload_with(self, server, attach):
        server.config.write_text(server.config.read_text() + f"[scheduler]\nattach={attach}\n")
        server.send(signal.SIGHUP)

    def test_1_cpu_max_that_the_kernel_hides(self):
        self.enterContext(mapped_library())
        pod = CGROUPS / "pods/pod"
        with task_in(pod):
            set_limit("20000 100000")
            server = self.server(ZERNELD_OLD, "auto")
            self.becomes(server, "off", "cpu_max")
            self.assertEqual(server.scheduler()["reason"], CPU_MAX)
            server.said(f"the scheduler is not attached: {CPU_MAX}")
            self.assertNotIn("scheduler attached", server.text())
            set_limit("max 100000")
            self.becomes(server, "attached", "none")
            set_limit("20000 100000")
            self.becomes(server, "off", "cpu_max")
            self.reload_with(server, "yes")
            self.becomes(server, "attached", "cpu_max")
            self.reload_with(server, "auto")
            self.becomes(server, "off", "cpu_max")
        # A limit of a cgroup without tasks does not count.
        self.becomes(server, "attached", "none")
        self.assertEqual(server.stop(), 0)
        print("#", [line for line in server.text().splitlines() if "loop iterations" in line][-1])

    def test_2_no_process_and_cpu_max_that_the_scheduler_keeps(self):
        """The kernels of the tests inform schedulers of cpu.max. One zerneld for both, because loading it takes most of the time."""
        server = self.server(ZERNELD, "auto")
        self.waits_for_a_process(server)
        self.reload_with(server, "auto")
        with mapped_library(), task_in(CGROUPS / "pods/pod"):
            set_limit("20000 100000")
            self.becomes(server, "attached", "none")
            self.assertEqual(server.scheduler()["reason"], "")
        self.assertEqual(server.stop(), 0)

    def test_3_limits_of_version_1(self):
        """zerneld starts later than the mount, which its own mount namespace would not show."""
        self.enterContext(mapped_library())
        set_limit("max 100000")
        (CGROUPS / "pods/pod").rmdir()
        (CGROUPS / "pods").rmdir()
        (CGROUPS / "cgroup.subtree_control").write_text("-cpu", encoding="ascii")
        CGROUPS_V1.mkdir()
        # The controller leaves version 2 shortly after its last cgroup is removed.
        wait_until(lambda: subprocess.run(["mount", "-t", "cgroup", "-o", "cpu", "cgroup", CGROUPS_V1], capture_output=True,
                                          check=False).returncode == 0, "version 1 is mounted")
        pod = CGROUPS_V1 / "pod"
        pod.mkdir()
        server = self.server(ZERNELD, "auto")
        with task_in(pod):
            self.becomes(server, "attached", "none")
            (pod / "cpu.cfs_quota_us").write_text("20000", encoding="ascii")
            self.becomes(server, "off", "cgroup_v1")
            self.assertIn("cgroup /pod has a CPU limit of cgroups v1", server.scheduler()["reason"])
            (pod / "cpu.cfs_quota_us").write_text("-1", encoding="ascii")
            self.becomes(server, "attached", "none")
        self.assertEqual(server.stop(), 0)

    def waits_for_a_process(self, server):
        self.becomes(server, "waiting", "none")
        self.assertEqual(server.scheduler()["reason"], WAITS)
        with mapped_library():
            self.becomes(server, "attached", "none")
            self.assertEqual(server.scheduler()["reason"], "")
        with mapped_library():  # soon after the first one ended. A second detach would come after twice the time
            time.sleep(2)
            self.assertEqual(server.scheduler()["state"], "attached")
        self.becomes(server, "waiting", "none")
        self.reload_with(server, "no")
        self.becomes(server, "off", "none")
        self.assertEqual(server.scheduler()["reason"], "")
        self.reload_with(server, "auto")
        self.becomes(server, "waiting", "none")
        with server.client() as client:
            self.assertEqual(client.ask("scheduler.attach")["result"]["state"], "attached")
        self.reload_with(server, "no")
        self.becomes(server, "off", "none")

    def test_4_the_kernel_log_has_no_warnings(self):
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(log, "WARNING:|BUG:|sched_ext:.*(error|stall)")


if __name__ == "__main__":
    tap.main()
