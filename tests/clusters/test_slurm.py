# SPDX-License-Identifier: GPL-2.0-or-later
"""A job of four tasks on a node of Slurm, in a guest. Each test uses the state of the previous one."""
import json
import os
import pathlib
import pwd
import re
import subprocess
import unittest

import slurm
import tap
from node import BUILD, Unit, ask_gateway, install, note, output, ready, wait_until

USER = "student"
RANKS = 4
SLOW = 2  # the rank that is a straggler
NAME = "lab-train"
PATH = pathlib.Path("/usr/local/bin")
TMUX = ["tmux", "-u", "-f", "/dev/null"]
zerneld, serve = Unit("zerneld"), Unit("zernel-serve")


def put_on_path():
    """/usr is shared by all guests and read-only."""
    output("mount", "-t", "tmpfs", "tmpfs", PATH)
    (PATH / "zernel").symlink_to(BUILD / "src/cli/zernel")


def pasted(*words):
    """Runs a command of zernel and prints what a user sees."""
    done = subprocess.run(["zernel", *words], capture_output=True, text=True, check=False)
    show(f"zernel {' '.join(words)}", done.stdout + done.stderr)
    return done.stdout


def show(command, text):
    note(f"$ {command}")
    for line in text.rstrip().splitlines():
        note(f"  {line.rstrip()}")


def answer(*words):
    """The answer of a command of zernel, or None."""
    done = subprocess.run(["zernel", *words, "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def series(name):
    """The series of a metric, as label sets with their value."""
    text = ask_gateway("/metrics")[1]
    return [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value))
            for labels, value in re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)]


def start_job():
    """
    One process for each rank; the straggler computes before each launch. Launches are long: an emulated CPU needs
    milliseconds for the probes around them. For the same reason, the ranks wait before they open a communicator: zerneld
    must have found the libraries by then.
    """
    words = f"""{BUILD}/lab/train/train --join /tmp/train --ranks {RANKS} --startup-ms 30000 --seconds 3000 --launches 4
        --kernel-us 5000 --loaders 1 --load-cpu-us 2000 --optimizer-us 2000 --allreduce-bytes 65536 --sync block"""
    usual = ",".join(str(rank) for rank in range(RANKS) if rank != SLOW)
    programs = pathlib.Path("/tmp/programs")
    command = " ".join(words.split())
    programs.write_text(f"{usual} {command}\n{SLOW} {command} --launch-gap-us 20000\n", encoding="ascii")
    return slurm.Srun(USER, f"--ntasks={RANKS}", f"--job-name={NAME}", "--kill-on-bad-exit", "--multi-prog", programs,
                      LD_LIBRARY_PATH=f"{BUILD}/lab/vgpu", VGPU_DEVICES=str(RANKS))


def why_of_steps():
    """The answer of `zernel why`, once it has steps of all ranks."""
    found = answer("why", "--seconds", "10") or {"jobs": []}
    steps = [process["steps"]["count"] for job in found["jobs"] for process in job["processes"]]
    return found if len(steps) >= RANKS and min(steps) > 1 else None


def screen_of_ranks():
    """The screen of `zernel top`, once it has all ranks."""
    text = output(*TMUX, "capture-pane", "-p")
    return text if text.count("train ") >= RANKS else None


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install("[scheduler]\nattach=no\n")
        put_on_path()
        output("useradd", "--no-create-home", USER)
        slurm.start()
        zerneld.ctl("start")
        serve.ctl("start")
        wait_until(ready, serve.log)
        cls.srun = start_job()
        cls.addClassCleanup(cls.srun.process.wait)
        cls.addClassCleanup(cls.srun.process.kill)
        cls.number = cls.srun.job_id()
        cls.job = f"slurm-{cls.number}"

    def assert_is_the_job(self, found):
        """The answer has a single job: this one, with its names, all ranks and the straggler."""
        self.assertEqual([job["name"] for job in found["jobs"]], [self.job])
        job = found["jobs"][0]
        self.assertEqual((job["claimed_name"], job["uid"]), (NAME, pwd.getpwnam(USER).pw_uid))
        self.assertEqual(sorted(process["rank"] for process in job["processes"]), list(range(RANKS)))
        self.assertEqual(job["straggler"]["rank"], SLOW)

    def test_01_slurm_puts_each_task_into_its_own_cgroup(self):
        tree = pathlib.Path("/sys/fs/cgroup")
        tasks = wait_until(lambda: [path for path in tree.rglob(f"job_{self.number}/step_0/user/task_*/cgroup.procs")
                                    if path.read_text(encoding="ascii")], self.srun.text)
        show("cgroups of the tasks", "\n".join(f"/{path.parent.relative_to(tree)}" for path in sorted(tasks)))
        self.assertEqual(len(tasks), RANKS)
        self.assertEqual(slurm.show(self.number)["JobName"], NAME)

    def test_02_why_names_the_job_and_its_straggler(self):
        self.assert_is_the_job(wait_until(why_of_steps, lambda: self.srun.text() + pasted("status")))
        pasted("why", "--seconds", "20", self.job)

    def test_03_status_and_top_show_one_job(self):
        text = pasted("status")
        self.assertEqual(text.count("slurm-"), 1)
        self.assertRegex(text, rf"(?m)^{self.job} +{USER} +\d+ +{RANKS} +claims the name {NAME} ")
        subprocess.run([*TMUX, "new-session", "-d", "-x", "110", "-y", "16", "zernel", "top"], check=True,
                       env={**os.environ, "NO_COLOR": "1"})
        self.addCleanup(output, *TMUX, "kill-server")
        text = wait_until(screen_of_ranks, lambda: output(*TMUX, "capture-pane", "-p"))
        show("zernel top", text)
        self.assertEqual(text.count("slurm-"), 1)
        self.assertIn(f'{self.job} "{NAME}"', text)

    def test_04_metrics_have_one_job(self):
        [(labels, value)] = series("zernel_job_info")
        show("zernel_job_info", json.dumps(labels))
        self.assertEqual((labels["job_name"], labels["claimed_name"], value), (self.job, NAME, 1))
        self.assertEqual(labels["user"], USER)
        steps = series("zernel_steps_total")
        show("zernel_steps_total", "\n".join(f"{labels} {value:g}" for labels, value in steps))
        self.assertEqual([labels["job_name"] for labels, _ in steps], [self.job] * RANKS)
        self.assertEqual(sorted(labels["rank"] for labels, _ in steps), [str(rank) for rank in range(RANKS)])

    def test_05_the_ended_job_can_be_queried(self):
        output("scancel", self.number)
        ended = wait_until(lambda: answer("why", "--ended", self.job), lambda: pasted("jobs"))
        self.assert_is_the_job(ended)
        pasted("why", "--ended", self.job)
        pasted("jobs")
        [job] = [job for job in answer("jobs")["jobs"] if job["name"] == self.job]
        self.assertEqual((job["name"], job["state"], job["claimed_name"]), (self.job, "ended", NAME))
        self.assertGreater(job["steps"], 0)

    def test_06_the_packaged_epilog_has_stored_the_answer(self):
        wait_until(lambda: "idle" in output("sinfo", "-h", "-o", "%T"), Unit("slurmd").log)
        file = slurm.STORE / f"{self.job}.json"
        self.assertTrue(file.exists(), Unit("slurmd").log())
        self.assert_is_the_job(json.loads(file.read_text(encoding="utf-8")))
        self.assertEqual(slurm.STORE.stat().st_mode & 0o777, 0o700)

    def test_07_the_kernel_logged_no_warnings(self):
        self.assertNotRegex(output("dmesg"), "WARNING:|BUG:")


if __name__ == "__main__":
    tap.main()
