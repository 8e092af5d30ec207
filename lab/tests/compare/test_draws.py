# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the scenarios that are drawn at random, and the distribution of their figures."""
import pathlib
import re
import unittest

import tap
from compare import cli, draws, report, scenarios


def numbers_of(job):
    return {name: int(value) for name, value in re.findall(r"--([a-z-]+) (\d+)", job.args)}


class Random(unittest.TestCase):
    def test_a_name_always_means_the_same_scenario(self):
        for name in draws.names(7, 20):
            self.assertEqual(draws.find(name), draws.find(name))
            twin = scenarios.twin_of(draws.find(name))
            self.assertEqual(draws.find(twin.name), twin)
            self.assertEqual((twin.noise, twin.jobs), ("", draws.find(name).jobs))
        self.assertNotEqual([draws.find(name).help for name in draws.names(7, 5)], [draws.find(name).help for name in draws.names(8, 5)])
        self.assertIsNone(draws.find("random-7"))

    def test_draws_lie_in_the_ranges_and_reach_their_ends(self):
        seen = {}
        for number in range(2000):
            scenario = draws.draw(1, number)
            kind, numbers = scenario.jobs[0].program, numbers_of(scenario.jobs[0])
            noise, amount = scenario.noise.split()
            for name, value in [("noise " + noise, int(amount)), *((f"{kind} {name}", value) for name, value in numbers.items())]:
                seen.setdefault(name, set()).add(value)
        for kind, parameters in draws.RANGES.items():
            for name, (low, high) in parameters.items():
                values = seen.get(f"{kind} {name}", ())
                if values and name not in ("rate", "ranks"):  # further rules limit these
                    self.assertTrue(low <= min(values) <= low * 1.2 and high * 0.8 <= max(values) <= high, (kind, name, min(values), max(values)))
        self.assertLessEqual(max(seen["serve rate"]), draws.RANGES["serve"]["rate"][1])

    def test_servers_can_answer_their_requests(self):
        for number in range(300):
            job = draws.draw(2, number).jobs[0]
            values = numbers_of(job)
            if job.program == "serve" and values["rate"] > 1:
                busy = values["rate"] * (values["prefill-us"] + values["tokens"] * values["decode-us"]) / 1e6
                self.assertLessEqual(busy, draws.MOST_DEVICE)

    def test_every_kind_is_drawn(self):
        drawn = [draws.draw(3, number) for number in range(300)]
        self.assertEqual({scenario.jobs[0].program for scenario in drawn}, set(draws.KINDS))
        self.assertEqual({scenario.noise.split()[0] for scenario in drawn}, set(draws.NOISE))
        self.assertEqual({scenario.jobs[0].name for scenario in drawn} - {"train", "serve"}, {scenario.name for scenario in scenarios.ROLES})

    def test_documented_ranges_are_those_of_the_code(self):
        text = (pathlib.Path(__file__).parents[3] / "docs/contributing/lab.md").read_text(encoding="utf-8")
        for kind, parameters in draws.RANGES.items():
            for name, (low, high) in parameters.items():
                self.assertIn(f"| {kind} | {name} | {low} to {high} |", text)

    def test_distribution(self):
        made = [{"scenario": f"s{i}", "sched": sched, "recovered": recovered, "noise_vs_eevdf": noise, "step_mean_ms": mean}
                for i in range(10) for sched, recovered, noise, mean in
                (("eevdf", 0.0, 1.0, 40), ("mine", i / 10 if i < 9 else None, 0.5 + i / 100, 41 if i == 0 else 30))]
        found = draws.distribution(made, "mine")
        self.assertEqual({key: found[key] for key in ("scenarios", "measured", "median", "p10", "min", "slower", "noise_median")},
                         {"scenarios": 10, "measured": 9, "median": 0.4, "p10": 0.0, "min": 0.0, "slower": 1, "noise_median": 0.55})
        self.assertIn("| mine | 9 of 10 | 0.40 | 0.00 | 0.00 | 1 | 55% |", report.distribution_table([found]))
        self.assertIsNone(draws.distribution(made, "other"))

    def test_command_line(self):
        args = cli.parser().parse_args(["compare", "--random", "3", "--seed", "5"])
        cli.choose(args)
        self.assertEqual((args.scenario, args.sched), (["random-5-0", "random-5-1", "random-5-2"], ["eevdf", "nice", "zernel"]))
        cells = {(run["scenario"], run["sched"]) for run in cli.make_plans(args)[0]["runs"]}
        self.assertEqual(len(cells), 3 * 4)
        self.assertEqual(cli.parser().parse_args(["compare", "--scenario", "random-5-1"]).scenario, ["random-5-1"])


if __name__ == "__main__":
    tap.main()
