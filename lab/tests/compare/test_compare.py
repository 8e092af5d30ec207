# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests statistics, rows and report of the comparer with figures whose result is known."""
import contextlib
import io
import json
import pathlib
import random
import re
import struct
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

import tap
from compare import cli, report, rows, run, scenarios, schedulers, stats

REQUIRED = {"scenario", "sched", "step_mean_ms", "step_p50_ms", "step_p99_ms", "gpu_busy", "noise_share",
            "recovered", "recovered_low", "recovered_high"}


def steps(mean, count=100, seed=1):
    rng = random.Random(seed)
    return [mean + rng.uniform(-1, 1) for _ in range(count)]


def made_run(scenario, sched, mean, noise=None, trouble=None, truth_ok=True, seed=1, boot=0):
    jobs = [{"name": job.name, "values_ms": steps(mean, seed=seed), "gpu_busy": 0.5, "cpu_share": 0.2,
             "truth_ok": truth_ok}
            for job in scenarios.find(scenario).jobs]
    return {"boot": boot, "round": 0, "scenario": scenario, "sched": sched, "jobs": jobs, "noise_share": noise,
            "trouble": trouble}


class Stats(unittest.TestCase):
    def test_quantiles_follow_the_specification(self):
        summary = stats.summarise([[4.0, 1.0], [3.0, 2.0]])
        self.assertEqual(summary, {"mean": 2.5, "p50": 3.0, "p99": 4.0})
        hundred = stats.summarise([[float(value) for value in range(200)]])
        self.assertEqual((hundred["p50"], hundred["p99"]), (100.0, 198.0))

    def test_slowest_first_step_is_that_of_any_run(self):
        self.assertEqual(stats.slowest_first([[2.0, 3.0, 1.0, 9.0], [1.0, 5.0, 1.0]]), 5.0)

    def test_blocks_contain_every_step(self):
        blocks = stats.blocks_of([1.0] * 25)
        self.assertEqual(blocks, [(10.0, 10), (10.0, 10), (5.0, 5)])

    def test_interval_contains_95_percent(self):
        self.assertEqual(stats.interval(range(1000)), (25, 975))

    def test_bootstrap_covers_the_mean(self):
        """About 95 of 100 intervals should contain the true mean; blocks make it slightly fewer."""
        rng, held = random.Random(7), 0
        for _ in range(100):
            runs = [[rng.gauss(20, 3) for _ in range(100)] for _ in range(5)]
            low, high = stats.interval(stats.resampled_means([runs], rng, 300))
            held += low <= 20 <= high
        self.assertGreaterEqual(held, 85)
        self.assertLessEqual(held, 100)

    def held_across_boots(self, boots):
        """How many of 100 intervals contain the true mean, when boots differ more than runs and steps."""
        rng, held = random.Random(9), 0
        for _ in range(100):
            means = [rng.gauss(50, 7) for _ in range(boots)]
            runs = [[[rng.gauss(mean, 3) for _ in range(30)] for _ in range(2)] for mean in means]
            low, high = stats.interval(stats.resampled_means(runs, rng, 200))
            held += low <= 50 <= high
        return held

    def test_bootstrap_covers_the_mean_across_boots(self):
        self.assertLess(self.held_across_boots(1), 30)  # what one boot cannot know
        self.assertGreaterEqual(self.held_across_boots(3), 90)
        self.assertGreaterEqual(self.held_across_boots(4), 90)

    def test_interval_contains_boots_that_differ(self):
        """Four boots of scenario noisy under EEVDF that were measured."""
        boots = [[steps(mean, seed=s) for s in range(3)] for mean in (43.9, 52.0, 58.4, 60.9)]
        alone = stats.interval(stats.resampled_means(boots[:1], random.Random(1)))
        low, high = stats.interval(stats.resampled_means(boots, random.Random(1)))
        self.assertLess(alone[1] - alone[0], 1)
        self.assertTrue(low < 46 and high > 60, (low, high))

    def test_interval_is_wide_when_rounds_differ(self):
        alike = stats.interval(stats.resampled_means([[steps(20, seed=s) for s in range(3)]], random.Random(1)))
        apart = stats.interval(stats.resampled_means([[steps(m) for m in (10, 20, 30)]], random.Random(1)))
        self.assertLess(alike[1] - alike[0], 1)
        self.assertGreater(apart[1] - apart[0], 10)

    def test_recovered_is_0_at_eevdf_and_1_at_quiet(self):
        self.assertEqual(stats.recovered(30, 30, 20), 0)
        self.assertEqual(stats.recovered(30, 20, 20), 1)
        self.assertEqual(stats.recovered(30, 25, 20), 0.5)
        self.assertLess(stats.recovered(30, 40, 20), 0)


class Rows(unittest.TestCase):
    def make(self, runs, names=("noisy",), scheds=("eevdf", "nice")):
        return rows.make_rows(runs, names, scheds, seed=3)

    def test_recovered_is_computed_from_known_figures(self):
        made, references = self.make([made_run("quiet", "eevdf", 20), made_run("noisy", "eevdf", 40, 0.8),
                                      made_run("noisy", "nice", 25, 0.4)])
        eevdf, nice = made
        self.assertEqual(eevdf["recovered"], 0)
        self.assertAlmostEqual(nice["recovered"], 0.75, places=2)
        self.assertLess(nice["recovered_low"], nice["recovered"])
        self.assertGreater(nice["recovered_high"], nice["recovered"])
        self.assertAlmostEqual(nice["noise_vs_eevdf"], 0.5)
        self.assertAlmostEqual(nice["slowdown"], 1.25, places=2)
        self.assertEqual([row["scenario"] for row in references], ["quiet"])
        for row in made + references:
            self.assertLessEqual(REQUIRED, row.keys())
        json.dumps(made)

    def test_recovered_is_none_when_noise_does_not_slow_eevdf(self):
        made, _ = self.make([made_run("quiet", "eevdf", 20), made_run("noisy", "eevdf", 20, 0.8, seed=1),
                             made_run("noisy", "nice", 18, 0.4)])
        self.assertEqual([row["recovered"] for row in made], [None, None])

    def test_ejected_run_is_shown_and_its_figures_are_left_out(self):
        made, _ = self.make([made_run("quiet", "eevdf", 20), made_run("noisy", "eevdf", 40, 0.8),
                             made_run("noisy", "nice", 25, 0.4),
                             made_run("noisy", "nice", 1000, 0.4, trouble="ejected: stall")])
        self.assertEqual((made[1]["ejected"], made[1]["runs"], made[1]["runs_good"]), (1, 2, 1))
        self.assertLess(made[1]["step_mean_ms"], 30)
        self.assertIn("ejected 1 x", report.table(made))

    def test_inconsistent_truth_is_shown(self):
        made, _ = self.make([made_run("noisy", "eevdf", 40, 0.8, truth_ok=False)])
        self.assertFalse(made[0]["truth_ok"])
        self.assertIn("truth is inconsistent", report.table(made))

    def test_runs_are_grouped_by_boot(self):
        made, _ = self.make([made_run("noisy", "eevdf", mean, 0.8, seed=seed, boot=boot)
                             for boot, mean in enumerate((30, 50)) for seed in (1, 2)], scheds=("eevdf",))
        self.assertEqual([round(mean) for mean in made[0]["step_mean_ms_boots"]], [30, 50])
        self.assertEqual(len(made[0]["step_mean_ms_rounds"]), 4)
        self.assertTrue(made[0]["step_mean_low"] < 30 and made[0]["step_mean_high"] > 50)

    def test_cell_without_runs_has_every_key(self):
        made, _ = self.make([])
        self.assertLessEqual(REQUIRED, made[0].keys())
        self.assertIsNone(made[0]["step_mean_ms"])
        report.table(made)
        report.svg(made, "nothing")

    def test_each_of_two_jobs_has_its_own_line(self):
        twin = scenarios.twin_of(scenarios.BY_NAME["two-jobs"]).name
        made, _ = self.make([made_run(twin, "eevdf", 20), made_run("two-jobs", "eevdf", 40, 0.5)],
                            ("two-jobs",), ("eevdf",))
        self.assertEqual([job["job"] for job in made[0]["jobs"]], ["3 GPUs", "1 GPU"])
        text = report.table(made)
        self.assertIn("two-jobs: 3 GPUs", text)
        self.assertIn("two-jobs: 1 GPU", text)


class Report(unittest.TestCase):
    def test_table_has_one_line_per_row_and_aligned_columns(self):
        made, _ = rows.make_rows([made_run("quiet", "eevdf", 20)], ["quiet"], ["eevdf"], 1)
        lines = report.table(made).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_scheduler_names_are_readable(self):
        made, _ = rows.make_rows([made_run("noisy", "eevdf", 20)], ["noisy"], ["eevdf", "nice", "zernel"], 1)
        text = report.table(made)
        for name in ("| EEVDF ", "| EEVDF with nice ", "| Zernel "):
            self.assertIn(name, text)

    def test_picture_is_well_formed_and_has_one_bar_per_row(self):
        runs = [made_run("quiet", "eevdf", 20), made_run("noisy", "eevdf", 400, 0.8),
                made_run("noisy", "nice", 25, 0.4)]
        made, _ = rows.make_rows(runs, ["quiet", "noisy"], ["eevdf", "nice"], 1)
        picture = xml.etree.ElementTree.fromstring(report.svg(made, "a < b & c"))
        bars = [e for e in picture if e.tag.endswith("rect") and e.get("fill") in report.COLOURS]
        self.assertEqual(len(bars), 3)  # scenario quiet was not run under scheduler nice
        self.assertTrue(all(float(e.get("width")) <= report.WIDTH for e in bars))

    def test_spread_is_relative_to_the_smallest_round(self):
        runs = [made_run("quiet", "eevdf", 20), made_run("quiet", "eevdf", 21)]
        _, references = rows.make_rows(runs, ["quiet"], ["eevdf"], 1)
        self.assertRegex("\n".join(report.spreads([], references)), r"by round: .* spread 5\.\d%$")

    def test_spread_between_boots_is_shown(self):
        runs = [made_run("noisy", "eevdf", 20), made_run("noisy", "eevdf", 30, boot=1)]
        made, _ = rows.make_rows(runs, ["noisy"], ["eevdf"], 1)
        self.assertRegex("\n".join(report.spreads(made, [])), r"^noisy under EEVDF, by boot: .* spread (49|50|51)\.\d%$")

    def test_interval_of_one_boot_is_labelled(self):
        made, _ = rows.make_rows([made_run("quiet", "eevdf", 20)], ["quiet"], ["eevdf"], 1)
        self.assertIn("mean step, ms [95 %, within one boot]", report.table(made))
        self.assertIn("mean step, ms [95 %, over 4 boots]", report.table(made, 4))
        self.assertIn("over 4 boots", report.svg(made, "title", 4))


class Following(unittest.TestCase):
    def test_remaining_time_is_that_of_the_clock(self):
        now = iter([100, 130, 160])
        progress = cli.Progress(6, lambda: next(now))
        self.assertRegex(progress.line(made_run("quiet", "eevdf", 20)), r"^\[1/6\] quiet \| eevdf: train 20\.\d ms x 100  \(2:30 left\)$")
        self.assertIn("(2:00 left)", progress.line(made_run("quiet", "eevdf", 20)))

    def test_runs_are_read_until_the_guest_ends(self):
        """A line that is not complete yet is not lost."""
        text = "".join(json.dumps(made_run("quiet", "eevdf", mean)) + "\n" for mean in (20, 30))
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()) as shown:
            path = pathlib.Path(name, "runs.json")
            path.write_text(text[:-100])

            def poll(states=iter([None, 0])):
                state = next(states)
                path.write_text(text if state == 0 else text[:-100])
                return state

            guest = unittest.mock.Mock(poll=poll)
            with unittest.mock.patch.object(cli.time, "sleep"):
                runs = cli.follow(guest, path, cli.Progress(2))
        self.assertEqual([run["jobs"][0]["values_ms"][0] > 25 for run in runs], [False, True])
        self.assertEqual(len(shown.getvalue().splitlines()), 2)


class Plan(unittest.TestCase):
    def test_seed_determines_the_order(self):
        orders = [cli.make_order(["quiet", "noisy", "spin"], ["eevdf", "zernel"], 2, seed) for seed in (1, 1, 2)]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_every_round_contains_every_cell_and_twin_once(self):
        order = cli.make_order(["noisy", "spin"], ["zernel"], 3, 1)
        cells = [(r["scenario"], r["sched"]) for r in order if r["round"] == 1]
        self.assertEqual(sorted(cells), [("noisy", "eevdf"), ("noisy", "zernel"), ("quiet", "eevdf"),
                                         ("spin", "eevdf"), ("spin", "zernel"), ("spin, quiet", "eevdf")])
        self.assertEqual(len(order), 3 * len(cells))

    def test_twins_have_no_noise_and_are_found_by_name(self):
        for scenario in scenarios.SCENARIOS:
            twin = scenarios.twin_of(scenario)
            self.assertEqual(twin.noise, "")
            self.assertEqual(scenarios.find(twin.name), twin)
            self.assertEqual(len(twin.jobs), len(scenario.jobs))
        self.assertEqual(scenarios.twin_of(scenarios.BY_NAME["noisy"]).name, "quiet")
        self.assertNotEqual(scenarios.twin_of(scenarios.BY_NAME["self"]).jobs, scenarios.BY_NAME["self"].jobs)

    def test_every_scenario_names_a_job(self):
        """The tables of jobs are in C; a scenario with a misspelled job would fail only in a guest."""
        for program, table in (("framework", "framework/jobs.c"), ("roles", "roles/main.c")):
            jobs = (pathlib.Path(__file__).parents[2] / table).read_text(encoding="utf-8")
            named = {job.args.split()[0] for scenario in scenarios.SCENARIOS for job in scenario.jobs if job.program == program}
            self.assertEqual(named, set(re.findall(r'^\t\{ "([a-z0-9-]+)",', jobs, re.MULTILINE)))
        self.assertFalse(any(scenarios.BY_NAME[name].jobs[0].program == "framework" for name in scenarios.COMPARED))

    def test_every_boot_has_its_own_order(self):
        args = cli.parser().parse_args(["compare", "--boots", "3", "--sched", "eevdf,nice", "--seed", "1"])
        cli.choose(args)
        plans = cli.make_plans(args)
        self.assertEqual([{run["boot"] for run in plan["runs"]} for plan in plans], [{0}, {1}, {2}])
        orders = [[(run["scenario"], run["sched"]) for run in plan["runs"]] for plan in plans]
        self.assertNotEqual(orders[0], orders[1])
        self.assertEqual(sorted(orders[0]), sorted(orders[1]))
        self.assertEqual(len({plan["messages"] for plan in plans}), 3)

    def test_names_are_unique(self):
        self.assertEqual(len(scenarios.BY_NAME), len(scenarios.SCENARIOS))
        self.assertEqual(len(schedulers.BY_NAME), len(schedulers.SCHEDULERS))


class Ejection(unittest.TestCase):
    def test_reason_is_found_below_a_dump(self):
        example = "local=1\nSCX_EV_ENQ_SKIP_EXITING: 1\nEXIT: runnable task stall (hog[7] failed to run)\n"
        ours = "2026-11-16T01:30:10Z zerneld error: scheduler ejected by the kernel: stall; the kernel's own scheduler is back\n"
        self.assertEqual(schedulers.exit_reason(example), "runnable task stall (hog[7] failed to run)")
        self.assertEqual(schedulers.exit_reason(ours), "stall; the kernel's own scheduler is back")
        self.assertEqual(schedulers.exit_reason("local=1\n"), "no reason found in the log")


class TruthLog(unittest.TestCase):
    def test_steps_of_rank_0_are_read_in_order(self):
        record = struct.Struct("=QQQQQIHH")
        logged = [(5_000_000, 9_000_000, 1, 0, 0, 1, 0, run.KIND_STEP),  # step 1
                  (1_000_000, 5_000_000, 0, 1, 0, 1, 0, run.KIND_STEP),  # step of rank 1
                  (1_000_000, 3_000_000, 0, 0, 0, 1, 2, 2),  # a phase
                  (2_000_000, 5_000_000, 0, 0, 0, 1, 0, run.KIND_STEP)]  # step 0
        with tempfile.TemporaryDirectory() as name:
            content = bytes(64) + b"".join(record.pack(*r) for r in logged) + bytes(48 * 20000)
            (pathlib.Path(name) / "train.17.truth").write_bytes(content)
            (pathlib.Path(name) / "loader.18.truth").write_bytes(content)
            self.assertEqual(run.durations_ms(scenarios.TRAIN, pathlib.Path(name)), [3.0, 4.0])

    def test_serving_measures_first_tokens_or_the_time_between_tokens(self):
        logged = [(1_000_000, 9_000_000, 0, 0, 0, 1, 0, run.KIND_REQUEST), (9_000_000, 13_000_000, 1, 0, 0, 1, 0, run.KIND_TOKEN)]
        with tempfile.TemporaryDirectory() as name:
            content = bytes(run.HEADER_BYTES) + b"".join(run.RECORD.pack(*record) for record in logged)
            (pathlib.Path(name) / "serve.17.truth").write_bytes(content)
            self.assertEqual(run.durations_ms(scenarios.SERVE, pathlib.Path(name)), [8.0])
            self.assertEqual(run.durations_ms(scenarios.SPIN_MIXED, pathlib.Path(name)), [4.0])


if __name__ == "__main__":
    tap.main()
