# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenarios. A scenario consists of jobs and of noise that runs beside them.

Every scenario has a quiet twin: the same jobs without noise, the best that a
scheduler can reach. A GPU step takes about 20 ms, so that a run of a few
seconds has a hundred steps or more in an emulated guest.
"""
from dataclasses import dataclass, replace

CPUS = 2  # CPUs of the guest; more than the machine has would distort every duration
AND = " and "
QUIET = ", quiet"  # ends the name of a quiet twin that is no scenario itself
IO_DEVICE = "/tmp/lab-disk"  # a null_blk device; each read takes IO_LATENCY_NS
IO_LATENCY_NS = 10_000_000


@dataclass(frozen=True)
class Job:
    name: str
    program: str  # train, serve, framework or roles
    args: str
    launchers: int = 1  # child processes that launch; 0: the job's own process launches
    env: tuple = ()
    tokens: bool = False  # of serving: measure the times between tokens, not the times to first token


@dataclass(frozen=True)
class Scenario:
    name: str
    help: str
    jobs: tuple  # the scenario measures the steps of the first job
    noise: str = ""  # arguments for lab/noise, of each kind of noise with AND between them
    quiet_jobs: tuple = ()  # jobs of the quiet twin, where removing the noise is not enough
    needs_io_device: bool = False
    compared: bool = True  # runs in a comparison that names no scenarios


STEP = "--launches 20 --kernel-us 1000 --optimizer-us 1000"
TRAIN = Job("train", "train", f"{STEP} --sync block --loaders 2 --load-cpu-us 14000")
SPIN = Job("spin", "train", f"{STEP} --sync spin --loaders 2 --load-cpu-us 14000")
SELF = Job("self", "train", f"{STEP} --sync block --loaders {4 * CPUS} --load-cpu-us 34000")
IO = Job("io", "train", f"{STEP} --sync block --loaders 2 --load-cpu-us 4000 --prefetch 1 "
         f"--load-io-bytes 65536 --load-io-file {IO_DEVICE}")
RANK = f"{STEP} --sync block --loaders 1 --load-cpu-us 4000 --allreduce-bytes 4194304"
ONE_GPU = Job("1 GPU", "train", f"{RANK} --ranks 1",
              env=(("VGPU_DEVICES", "4"), ("CUDA_VISIBLE_DEVICES", "0")))
THREE_GPUS = Job("3 GPUs", "train", f"{RANK} --ranks 3", launchers=3,
                 env=(("VGPU_DEVICES", "4"), ("CUDA_VISIBLE_DEVICES", "1,2,3")))
STRAGGLER = Job("straggler", "train", f"{RANK} --ranks 2 --slow-rank 1 --slow-factor 1.5",
                launchers=2, env=(("VGPU_DEVICES", "2"),))
HOST_STEP = Job("host-step", "train", TRAIN.args.replace("--optimizer-us 1000", "--optimizer-us 15000"))
LAUNCH_HEAVY = Job("launch-heavy", "train", "--launches 200 --kernel-us 80 --optimizer-us 1000 --sync block --loaders 3 "
                   "--load-cpu-us 6000")
HIDDEN = Job("hidden", "train", f"{STEP} --sync block --loaders 1 --load-cpu-us 4000 --ranks 2 "
             "--collective hidden --allreduce-bytes 12582912", launchers=2)
SERVE = Job("serve", "serve", "--rate 15 --tokenizers 2 --tokenize-us 3000 --prefill-us 8000 "
            "--decode-us 3000 --launches 10 --tokens 4 --sync block", launchers=0)
ONE_BY_ONE = "--tokenizers 1 --tokenize-us 1000 --launches 10 --batch 1 --sync spin"
SPIN_MIXED = Job("serve", "serve", f"--rate 7 --prefill-us 40000 --decode-us 4000 --tokens 16 {ONE_BY_ONE}",
                 launchers=0, tokens=True)
SPIN_ALTERNATE = Job("serve", "serve", f"--rate 25 --prefill-us 30000 --decode-us 2000 --tokens 2 {ONE_BY_ONE}",
                     launchers=0, tokens=True)


def framework(name, help_, args, ranks=1):
    """A job that launches without waiting for its device. Its truth says why the device was idle; schedulers are not compared."""
    env = (("VGPU_DEVICES", str(ranks)),)
    return Scenario(name, help_, (Job(name, "framework", args, launchers=ranks, env=env),), compared=False)


def roles(name, help_, job=None, ranks=1):
    """A job whose roles are hard to find, beside 4 CPU hogs per CPU."""
    return Scenario(name, f"{help_}, beside 4 CPU hogs per CPU",
                    (Job(name, "roles", job or name, launchers=ranks, env=(("VGPU_DEVICES", "2"),)),), f"hogs {4 * CPUS}")


ROLES = (
    roles("autograd-loaders", "training whose backward pass is launched by a second thread, with loaders", "autograd"),
    roles("forkserver", "training whose loaders come from a fork server"),
    roles("spawn", "training whose loaders are executed programs"),
    roles("nccl-progress", "training with 2 ranks; a service thread of NCCL creates the progress thread", ranks=2),
    roles("offload", "training whose optimizer runs on the CPU, by a team of threads"),
    roles("engine-poll", "serving (measures the time between tokens): an engine core feeds 2 workers that poll", ranks=2),
    roles("multi-device", "training with a thread for each of 2 devices"),
    roles("chain", "training with a producer, a pool and a pin thread, in one process"),
    roles("chain-socket", "as chain; producer and pool are processes that are connected by sockets"),
    roles("chain-shm", "as chain-socket, connected by shared memory and futexes"),
    roles("ckpt-fork", "training that forks processes to write checkpoints"),
    roles("rl", "reinforcement learning: environments are processes, connected by pipes"),
)

SCENARIOS = (
    Scenario("quiet", "one training job, no noise", (TRAIN,)),
    Scenario("noisy", "one training job beside 4 CPU hogs per CPU", (TRAIN,), f"hogs {4 * CPUS}"),
    Scenario("host-step", "training with an optimizer step of 15 ms on the CPU, beside 4 CPU hogs per CPU", (HOST_STEP,),
             f"hogs {4 * CPUS}"),
    Scenario("forkstorm", "one training job beside many short, compiler-like processes", (TRAIN,), f"forkstorm {20 * CPUS}"),
    Scenario("self", "training with 4 loaders per CPU; its own loaders are the noise", (SELF,),
             quiet_jobs=(replace(SELF, args=SELF.args.replace("34000", "4000")),)),
    Scenario("spin", "training whose syncs spin instead of sleeping, beside 4 CPU hogs per CPU", (SPIN,), f"hogs {4 * CPUS}"),
    Scenario("io", "training whose loaders read from a slow block device, beside 4 CPU hogs per CPU", (IO,), f"hogs {4 * CPUS}",
             needs_io_device=True),
    Scenario("two-jobs", "a training job on 3 GPUs and one on 1 GPU, beside 2 CPU hogs per CPU", (THREE_GPUS, ONE_GPU),
             f"hogs {2 * CPUS}"),
    Scenario("straggler", "training with 2 ranks, one on a GPU that is 1.5 times slower, beside 4 CPU hogs per CPU", (STRAGGLER,),
             f"hogs {4 * CPUS}"),
    Scenario("launch-heavy", "training with 200 launches of 80 us per step, beside a CPU hog per CPU and some short processes",
             (LAUNCH_HEAVY,), f"hogs {CPUS}{AND}forkstorm {5 * CPUS}"),
    Scenario("hidden", "training with 2 ranks whose collectives block and have no probes, no noise", (HIDDEN,)),
    Scenario("serve-noisy", "serving (measures time to first token) beside 4 CPU hogs per CPU", (SERVE,), f"hogs {4 * CPUS}"),
    Scenario("serve-spin-mixed", "serving whose syncs spin (measures the time between tokens): a first token of 40 ms, "
             "further tokens of 4 ms, beside 4 CPU hogs per CPU", (SPIN_MIXED,), f"hogs {4 * CPUS}"),
    Scenario("serve-spin-alternate", "as serve-spin-mixed, with tokens of 30 and 2 ms in turns", (SPIN_ALTERNATE,),
             f"hogs {4 * CPUS}"),
    framework("async", "training that never waits: the launch queue is full", "async"),
    framework("async-starved", "training that never waits for its device; its loader is too slow, about 50 % idle", "async-starved"),
    framework("launch-bound", "a slow launcher, no sync: about 60 % idle", "launch-bound"),
    framework("launch-bound-sync1", "a slow launcher, a sync after every step: about 60 % idle", "launch-bound --sync-every 1"),
    framework("launch-bound-sync100", "a slow launcher, a sync after every 100 steps: about 60 % idle", "launch-bound --sync-every 100"),
    framework("limiter", "FSDP with 2 ranks: waits for the unit before the previous one, never idle", "limiter", 2),
    framework("serve-async", "serving: a thread waits for results while the next iteration is queued", "serve-async"),
    framework("autograd", "two threads launch in turn: about 50 % idle", "autograd"),
    framework("overlap-ddp", "2 ranks, collectives on a side stream, kernels that use 70 % of the device", "overlap-ddp", 2),
    framework("overlap-ddp-slow", "overlap-ddp with one rank on a GPU that is 1.5 times slower",
              "overlap-ddp --slow-rank 1 --slow-factor 1.5", 2),
    framework("pipeline", "3 pipeline stages with different amounts of work, no straggler", "pipeline", 3),
    framework("graphs", "2 ranks, one graph launch per step, with a captured collective", "graphs", 2),
    framework("accumulate", "8 passes per optimizer step, one sync per step", "accumulate"),
    framework("accumulate-nosync", "8 passes per optimizer step, no sync", "accumulate --sync-every 0"),
    framework("moe", "a sync in every layer, 12 layers per step", "moe"),
    framework("idle-server", "a server with 5 requests per second that waits by epoll: no requests", "idle-server"),
    framework("idle-server-sleep", "a server with 5 requests per second that polls with short sleeps: no requests", "idle-server --wait sleep"),
    framework("idle-server-yield", "a server with 5 requests per second that polls with sched_yield(): no requests", "idle-server --wait yield"),
    framework("item10", "a sync after every 10 steps", "item10"),
    *ROLES,
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
COMPARED = [scenario.name for scenario in SCENARIOS if scenario.compared]


def twin_of(scenario):
    """Returns the quiet reference. Scenarios with the same jobs share one."""
    jobs = scenario.quiet_jobs or scenario.jobs
    for other in SCENARIOS:
        if not other.noise and not other.quiet_jobs and other.jobs == jobs:
            return other
    return replace(scenario, name=scenario.name + QUIET, help=f"quiet twin of {scenario.name}",
                   jobs=jobs, noise="", quiet_jobs=())


def find(name):
    """Finds a scenario or a quiet twin by name; None if not found."""
    if name in BY_NAME:
        return BY_NAME[name]
    twins = {twin_of(scenario).name: twin_of(scenario) for scenario in SCENARIOS}
    return twins.get(name)
