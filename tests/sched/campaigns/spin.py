# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures jobs whose syncs spin: the scheduler predicts when the GPU is done."""
import contextlib
import os
from dataclasses import dataclass

from compare import run, scenarios, stats

from . import machine
from .machine import check

LOST_MS = 500  # a launcher that the scheduler forgot waits for the sweep, 1 to 1.25 s


@dataclass(frozen=True)
class Case:
    name: str
    scenario: scenarios.Scenario
    bound: float = 1.2  # p99 under Zernel with noise / p99 under EEVDF without
    cpus: tuple = ()  # CPUs of the jobs; empty: all
    times: int = 1  # how much longer the run under Zernel takes


def trainers(*kernel_us):
    """Training jobs with steps of different lengths, so that their syncs meet at all distances."""
    return scenarios.Scenario("trainers", "training jobs whose syncs spin, beside 4 CPU hogs per CPU", tuple(
        scenarios.Job(f"spin-{us}", "train", f"--launches 10 --kernel-us {us} --optimizer-us 500 --sync spin --loaders 0",
                      env=(("VGPU_DEVICES", str(len(kernel_us))), ("CUDA_VISIBLE_DEVICES", str(gpu))))
        for gpu, us in enumerate(kernel_us)), f"hogs {4 * scenarios.CPUS}")


CASES = (
    Case("serve-spin-mixed", scenarios.BY_NAME["serve-spin-mixed"]),
    # Half of its tokens are short, so the reserved share of the other tasks shows in the p99. Only a lost launcher counts.
    Case("serve-spin-alternate", scenarios.BY_NAME["serve-spin-alternate"], bound=100),
    # Two launchers compete for the CPUs that ordinary tasks leave to them, so only a lost one counts.
    Case("two-spinners", trainers(700, 1100), bound=100, times=4),
    Case("spinner-on-cpu-0", trainers(1100), cpus=(0,)),
    Case("spinner-on-cpu-1", trainers(1100), cpus=(1,)),
)


@contextlib.contextmanager
def bound_to(cpus):
    """Children that start in the body of the with statement run on these CPUs; None: on all CPUs."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus or every)
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def durations(scenario, seconds, cpus=None):
    """Returns the sorted durations of all jobs, in ms. The jobs run on `cpus`, the noise runs on all CPUs."""
    plan = {"build": str(machine.BUILD), "seconds": seconds}
    run.WORK.mkdir(exist_ok=True)
    with run.noise(plan, scenario, 0) as noise, bound_to(cpus):
        finished, _ = run.run_jobs(plan, scenario, machine.EEVDF, noise)
    return sorted(value for job, truth, _ in finished for value in run.durations_ms(job, truth))


def row(case, configuration, values):
    return (f"{case.name:21} | {configuration:17} | {sum(values) / len(values):8.2f} | {stats.quantile(values, 50):7.2f} | "
            f"{stats.quantile(values, 99):7.2f} | {values[-1]:9.2f} | {len(values)}")


def problem(case, values, quiet):
    """Returns None, or which bound does not hold."""
    lost = sum(value > LOST_MS for value in values)
    if lost:
        return f"{case.name}: {lost} of {len(values)} took longer than {LOST_MS} ms"
    ratio = stats.quantile(values, 99) / stats.quantile(quiet, 99)
    return f"{case.name}: p99 is {ratio:.2f} x quiet, more than {case.bound}" if ratio > case.bound else None


def spin(seconds):
    """Run serving and training whose syncs spin beside hogs: p99 between tokens at most 1.2 x quiet, no lost launcher."""
    problems, quiet = [], {}
    yield "case                  | configuration     | mean, ms | p50, ms | p99, ms | worst, ms | number"
    for case in CASES:
        quiet[case] = durations(scenarios.twin_of(case.scenario), seconds, case.cpus)
        yield row(case, "EEVDF, no noise", quiet[case])
        yield row(case, "EEVDF, with noise", durations(case.scenario, seconds, case.cpus))
    with machine.attached() as attached, machine.libraries_held():
        for case in CASES:
            values = durations(case.scenario, seconds * case.times, case.cpus)
            yield row(case, "Zernel, all rules", values)
            problems.append(problem(case, values, quiet[case]))
        check(attached.trouble() is None, attached.trouble())
    problems = list(filter(None, problems))
    check(not problems, "\n".join(problems))
