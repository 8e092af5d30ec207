# SPDX-License-Identifier: GPL-2.0-or-later
"""Inside the guest: executes a plan and writes one line of JSON for each run."""
import contextlib
import json
import os
import pathlib
import shutil
import stat
import struct
import subprocess
import sys
import time

from . import draws, scenarios, schedulers

WORK = pathlib.Path("/tmp/lab")
CGROUP = pathlib.Path("/sys/fs/cgroup/lab")
SHM = "/dev/shm/lab-vgpu"
SETTLE_SECONDS = 0.3  # time for all of the noise to start, after its first process runs
NOISE_SECONDS = 0.1  # CPU time of noise that has started
GRACE_SECONDS = 40  # a job that exceeds its time by this much is stuck

# lab/truth/truth.h
HEADER_BYTES = 64
RECORD = struct.Struct("=QQQQQIHH")  # start, end, a, b, c, tid, sub, kind
KIND_STEP, KIND_REQUEST, KIND_TOKEN = 3, 5, 16
CHUNK_RECORDS = 4096


class RunError(Exception):
    """A run that produced no figures; the text says why."""


def cgroup(name):
    """Creates a cgroup without controllers: it counts CPU time and changes nothing."""
    path = CGROUP / name.replace(" ", "-")
    path.mkdir(parents=True, exist_ok=True)
    return path


def cpu_seconds(group):
    for line in (group / "cpu.stat").read_text().splitlines():
        key, value = line.split()
        if key == "usage_usec":
            return int(value) / 1e6
    return 0.0


def start(command, group, nice, env=None):
    def prepare():
        (group / "cgroup.procs").write_text("0")
        os.setpriority(os.PRIO_PROCESS, 0, nice)

    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=prepare, env={**os.environ, **(env or {})})


def end(process):
    try:
        process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def noise(plan, scenario, nice):
    """Yields the cgroup of the noise; None for a scenario without noise."""
    if not scenario.noise:
        yield None
        return
    group = cgroup("noise")
    WORK.mkdir(exist_ok=True)
    program = shutil.copy(f"{plan['build']}/lab/noise/noise-static", WORK)
    processes = [start([program, *kind.split()], group, nice) for kind in scenario.noise.split(scenarios.AND)]
    try:
        # While the guest waits for a file of a busy host, its virtual time advances fast.
        before = cpu_seconds(group)
        if not schedulers.wait_for(lambda: cpu_seconds(group) > before + NOISE_SECONDS, GRACE_SECONDS):
            raise RunError("the noise does not run")
        time.sleep(SETTLE_SECONDS)
        yield group
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            end(process)


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def raise_launchers(job, process):
    if job.launchers == 0:
        schedulers.put_launcher_into_fifo(process.pid)
        return
    schedulers.wait_for(lambda: len(children(process.pid)) >= job.launchers, GRACE_SECONDS)
    for pid in children(process.pid):
        schedulers.put_launcher_into_fifo(pid)


def records(path):
    """Yields the records of a truth log, up to the part that was never written."""
    with open(path, "rb") as stream:
        stream.seek(HEADER_BYTES)
        while chunk := stream.read(CHUNK_RECORDS * RECORD.size):
            if not any(chunk):
                return
            yield from RECORD.iter_unpack(chunk[:len(chunk) // RECORD.size * RECORD.size])


def durations_ms(job, truth_dir):
    """Returns the steps of rank 0, the times to first token or the times between tokens, ordered by their start."""
    of_serving = KIND_TOKEN if job.tokens else KIND_REQUEST
    found = []
    for path in truth_dir.glob(f"{job.program}.*.truth"):
        for begin, end, _, b, _, _, _, kind in records(path):
            if kind == of_serving or (kind == KIND_STEP and b == 0):
                found.append((begin, round((end - begin) / 1e6, 4)))
    return [duration for _, duration in sorted(found)]


def finish(job, process, seconds):
    try:
        out, err = process.communicate(timeout=seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RunError(f"{job.name} is stuck") from None
    if process.returncode != 0:
        raise RunError(f"{job.name} failed: {' / '.join(err.splitlines()[:2])}")
    return json.loads(out)


def judge(plan, job, truth_dir, summary):
    values = durations_ms(job, truth_dir)
    if not values:
        raise RunError(f"{job.name} completed no step")
    check = subprocess.run([f"{plan['build']}/lab/truth/truth", "check", truth_dir],
                           capture_output=True, text=True, check=False)
    return {"name": job.name, "values_ms": values, "gpu_busy": summary["gpu_busy"], "cpu_share": summary["cpu_share"],
            "truth_ok": check.returncode == 0, "truth_says": (check.stdout + check.stderr)[-300:]}


def run_jobs(plan, scenario, scheduler, noise_group):
    """Runs all jobs in parallel. Returns (job, truth directory, summary) of each, and the noise's share of all CPUs."""
    seconds = plan["seconds"]
    pathlib.Path(SHM).unlink(missing_ok=True)
    shutil.rmtree(WORK / "truth", ignore_errors=True)
    (WORK / "truth").mkdir()
    groups = [cgroup(job.name) for job in scenario.jobs] + ([noise_group] if noise_group else [])
    begin, used = time.monotonic(), [cpu_seconds(group) for group in groups]
    started = []
    for job in scenario.jobs:
        truth_dir = WORK / "truth" / job.name.replace(" ", "-")
        command = [f"{plan['build']}/lab/{job.program}/{job.program}", *job.args.split(),
                   "--seconds", str(seconds), "--truth", str(truth_dir)]
        process = start(command, cgroup(job.name), scheduler.job_nice, {**dict(job.env), "VGPU_SHM": SHM})
        started.append((job, process, truth_dir))
    try:
        if scheduler.fifo_launcher:
            for job, process, _ in started:
                raise_launchers(job, process)
        summaries = [finish(job, process, seconds) for job, process, _ in started]
    finally:
        for _, process, _ in started:
            process.kill()
    used = [cpu_seconds(group) - before for group, before in zip(groups, used)]
    # Read the clock last: the noise can delay this process between two reads, and all shares together are at most 1.
    lasted = time.monotonic() - begin
    shares = [total / lasted / scenarios.CPUS for total in used]
    finished = [(job, truth_dir, summary | {"cpu_share": share})
                for (job, _, truth_dir), summary, share in zip(started, summaries, shares)]
    return finished, shares[-1] if noise_group else None


def run_one(plan, scenario, scheduler):
    result = {"jobs": [], "noise_share": None, "trouble": None}
    try:
        with schedulers.running(scheduler, plan["places"], WORK / "scheduler.log") as attached:
            with noise(plan, scenario, scheduler.noise_nice) as noise_group:
                try:
                    finished, result["noise_share"] = run_jobs(plan, scenario, scheduler, noise_group)
                finally:
                    result["trouble"] = attached.trouble()
        # Check the truth only now: it would use CPU time during the run.
        result["jobs"] = [judge(plan, *job) for job in finished]
    except (RunError, schedulers.SchedulerError, OSError) as error:
        result["trouble"] = result["trouble"] or str(error)
    return result


def make_io_device():
    subprocess.run(["modprobe", "null_blk", "nr_devices=1", "gb=1", "memory_backed=1", "irqmode=2",
                    f"completion_nsec={scenarios.IO_LATENCY_NS}"], check=True)
    # Create a separate device node, because the guest may share the /dev of the machine.
    major, minor = map(int, pathlib.Path("/sys/block/nullb0/dev").read_text().split(":"))
    os.mknod(scenarios.IO_DEVICE, stat.S_IFBLK | 0o600, os.makedev(major, minor))


class Messages:
    """Writes the kernel messages of each run to a file, as they appear."""

    def __init__(self, path):
        self.kernel, self.path = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), path
        self.write("boot")

    def read(self):
        while True:
            try:
                fields, text = os.read(self.kernel, 8192).decode(errors="replace").split(";", 1)
            except BlockingIOError:
                return
            except BrokenPipeError:  # the kernel overwrote messages before this process read them
                yield "(messages are missing here)"
                continue
            seconds = int(fields.split(",")[2]) / 1e6
            yield f"[{seconds:12.6f}] {text.splitlines()[0]}"

    def write(self, title):
        with open(self.path, "a", encoding="utf-8") as out:
            out.write("".join(f"{line}\n" for line in (f"== {title}", *self.read())))


def describe(result):
    parts = [f"{job['name']} {sum(job['values_ms']) / len(job['values_ms']):.1f} ms x {len(job['values_ms'])}"
             for job in result["jobs"]]
    if result["noise_share"] is not None:
        parts.append(f"noise {result['noise_share']:.2f}")
    return ", ".join(parts + ([result["trouble"]] if result["trouble"] else []))


def main(plan_path, result_path):
    plan = json.loads(pathlib.Path(plan_path).read_text())
    if os.cpu_count() != scenarios.CPUS:
        sys.exit(f"lab: the guest has {os.cpu_count()} CPUs, but the scenarios need {scenarios.CPUS}")
    WORK.mkdir(exist_ok=True)
    if any(draws.find(run["scenario"]).needs_io_device for run in plan["runs"]):
        make_io_device()
    messages = Messages(plan["messages"])
    with open(result_path, "w", encoding="utf-8") as out:
        for run in plan["runs"]:
            result = run_one(plan, draws.find(run["scenario"]), schedulers.find(run["sched"], plan["external"]))
            messages.write(f"round {run['round']}: {run['scenario']} | {run['sched']}")
            out.write(json.dumps({**run, **result}) + "\n")
            out.flush()
    return 0
