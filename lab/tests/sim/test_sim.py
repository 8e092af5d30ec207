#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the simulator of the scheduler on a small and a larger machine, and judges what operations cost.

All figures are counts of a deterministic run, so they do not depend on the machine that runs the test.
"""
import functools
import os
import re
import subprocess
import unittest

import tap

COUNTS = ("work", "scans", "cpus", "queued", "locks", "written", "read", "kicks")

# Mean counts of an operation, then its largest work. A budget is 12 percent above the figure of the day when it was set.
BUDGETS = {
    #                            work,  scans,   cpus, queued,  locks, writte,   read,  kicks, larges
    ("16", "select_cpu"): (   9.0,      0,      0,      0,      0,      0,      0,      0,    9.0),
    ("16", "enqueue"):    (   227,   0.01,   0.02,      0,    1.1,    1.6,   10.7,   0.02,    294),
    ("16", "dispatch"):   (    65,      0,      0,    2.2,    3.1,    0.5,    2.6,      0,    330),
    ("16", "running"):    (    65,      0,      0,      0,      0,   0.03,   0.05,      0,     72),
    ("16", "stopping"):   (   110,      0,      0,      0,      0,    1.1,    4.5,      0,    148),
    ("16", "tick"):       (  15.7,      0,      0,      0,      0,      0,    1.1,      0,     53),
    ("16", "timer"):      (    36,    1.1,    1.5,    1.2,    1.2,    0.9,    1.2,    1.1,    152),
    ("64", "select_cpu"): (  14.6,      0,      0,      0,      0,      0,      0,      0,     41),
    ("64", "enqueue"):    (   221,      0,      0,      0,    1.1,    2.0,   12.1,   0.02,    333),
    ("64", "dispatch"):   (    72,      0,      0,    2.2,    3.3,    0.9,    2.9,      0,    330),
    ("64", "running"):    (    65,      0,      0,      0,      0,   0.03,    0.1,      0,     73),
    ("64", "stopping"):   (   105,      0,      0,      0,      0,    1.2,    4.9,      0,    172),
    ("64", "tick"):       (  17.3,      0,      0,      0,      0,      0,    1.1,      0,     53),
    ("64", "timer"):      (    37,      0,      0,    1.3,    1.3,    1.1,    1.5,    1.2,    240),
}


@functools.cache
def run(row, seed=1):
    done = subprocess.run([os.environ["ZERNEL_SIM"], "--seed", str(seed), row], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"sim {row}: {done.stderr}")
    return done.stdout


def operations(row):
    """Returns {operation: {count: (mean, max)}}."""
    found = {}
    for line in run(row).splitlines():
        words = line.split()
        if len(words) != 3 + 2 * len(COUNTS) or words[0] != row:
            continue
        values = [float(word) for word in words[3:]]
        found[words[1]] = dict(zip(COUNTS, zip(values[::2], values[1::2])))
    return found


def waits(row):
    """Returns {kind of tasks: (number, waits, p50, p99, longest, share of CPUs)}, times in ms."""
    lines = (line.split() for line in run(row).splitlines())
    return {words[1]: tuple(map(float, words[2:])) for words in lines if len(words) == 8 and words[0] == row}


def hogs(row):
    """Returns CPU time of the mean hog in ms, and that of the least and of the most served one relative to it."""
    return tuple(map(float, re.search(rf"^{row} +hogs: mean ([\d.]+) ms, least ([\d.]+) and most ([\d.]+)", run(row), re.M).groups()))


def caches(row):
    """Returns the mean CPU time of hogs in the least and in the most served cache, relative to their mean."""
    return tuple(map(float, re.search(rf"^{row} +hogs of a cache: .*least ([\d.]+) and most ([\d.]+)", run(row), re.M).groups()))


def busiest_lock(row):
    """Returns how often the busiest lock of a queue is taken each ms."""
    return int(re.search(rf"^{row} +each ms: the busiest lock of a queue is taken (\d+) times", run(row), re.M)[1])


def mean_step(row):
    return float(re.search(rf"^{row} +steps: .*mean ([\d.]+) ms", run(row), re.M)[1])


class Sim(unittest.TestCase):
    def test_equal_seeds_give_equal_output(self):
        self.assertEqual(run("16"), run.__wrapped__("16"))
        self.assertNotEqual(run("16"), run("16", 2))

    def test_operations_stay_within_their_budgets(self):
        over = []
        for (row, operation), budget in BUDGETS.items():
            found = operations(row)[operation]
            values = [found[count][0] for count in COUNTS] + [found["work"][1]]
            for count, value, most in zip((*COUNTS, "largest work"), values, budget, strict=True):
                if value > most:
                    over.append(f"{row} CPUs, {operation}: {count} is {value}, budget {most}")
        self.assertEqual(over, [])

    def test_every_operation_has_a_budget(self):
        for row in ("16", "64"):
            self.assertEqual(set(operations(row)), {operation for name, operation in BUDGETS if name == row})

    def test_operations_cost_the_same_on_a_larger_machine(self):
        small, large = operations("64"), operations("384")
        for operation in ("enqueue", "dispatch", "running", "stopping", "tick", "timer"):
            self.assertLess(large[operation]["work"][0], 1.2 * small[operation]["work"][0], operation)
            self.assertEqual(large[operation]["cpus"][1], 0, operation)
            # The sweep of a cache visits all tasks there, in a timer.
            if operation != "timer":
                self.assertLessEqual(large[operation]["work"][1], BUDGETS["64", operation][-1], operation)

    def test_no_queue_is_that_of_a_hundred_cpus(self):
        # 759 without shards.
        self.assertLess(busiest_lock("large"), 200)

    def test_hogs_of_all_caches_have_equal_shares(self):
        for row in ("16", "64", "384"):
            least, most = caches(row)
            self.assertGreater(least, 0.9, row)
            self.assertLess(most, 1.1, row)

    def test_feeders_do_not_wait(self):
        for row in ("noisy", "16", "64"):
            self.assertLess(waits(row)["launcher"][3], 0.1, row)

    def test_tasks_on_one_cpu_leave_time_for_another_user(self):
        """Overdue tasks that are bound to a CPU took all of it: 2,181 ms."""
        self.assertLess(waits("bound")["interactive"][3], 250)

    def test_loaders_move_to_faster_caches(self):
        """They moved only while ordinary tasks waited too: 257 ms."""
        self.assertLess(waits("16")["loader"][4], 100)

    def test_pollers_find_their_work_when_it_is_there(self):
        # 5 ms of the device, 2 ms of the core, and 0.2 ms for the launches.
        self.assertLess(mean_step("engine"), 7.3)

    def test_kernel_threads_do_not_wait_for_a_slice(self):
        for row in ("16", "64"):
            self.assertLess(waits(row)["kthread"][3], 0.1, row)

    def test_the_cpus_are_used_once(self):
        for row in ("noisy", "16", "64"):
            self.assertLess(abs(sum(kind[5] for kind in waits(row).values()) - 100), 1, row)

    def test_hogs_of_one_cache_have_equal_shares(self):
        least, most = hogs("noisy")[1:]
        self.assertGreater(least, 0.95)
        self.assertLess(most, 1.05)

    def test_a_limit_holds(self):
        mean, least, most = hogs("limit")
        self.assertAlmostEqual(mean * least, 800, delta=40)  # a fifth of 4 s
        self.assertAlmostEqual(mean * most, 4000, delta=40)


if __name__ == "__main__":
    tap.main()
