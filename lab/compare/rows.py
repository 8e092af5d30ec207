# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns the runs of the guests into one row for each scenario and scheduler."""
import random
import zlib

from . import draws, scenarios, stats


class Cells:
    """Runs by (scenario, scheduler). Means and their resamples are computed once and cached."""

    def __init__(self, runs, seed):
        self.runs, self.seed, self.cache = {}, seed, {}
        for run in runs:
            self.runs.setdefault((run["scenario"], run["sched"]), []).append(run)

    def good(self, key):
        """Returns the runs with figures of all jobs. A run whose scheduler was ejected is not valid."""
        return [run for run in self.runs.get(key, []) if run["jobs"] and not run["trouble"]]

    def boots(self, key, job=0):
        """Returns the steps of each run, by boot."""
        boots = {}
        for run in self.good(key):
            boots.setdefault(run["boot"], []).append(run["jobs"][job]["values_ms"])
        return list(boots.values())

    def values(self, key, job=0):
        return [values for runs in self.boots(key, job) for values in runs]

    def means(self, key, job=0):
        """Returns (mean, resampled means); None without a valid run."""
        values = self.values(key, job)
        if not values:
            return None
        if (key, job) not in self.cache:
            # Each cell has its own generator, so that a row does not depend on the choice of the rows.
            rng = random.Random(zlib.crc32(repr((self.seed, key, job)).encode()))
            self.cache[key, job] = (stats.summarise(values)["mean"], stats.resampled_means(self.boots(key, job), rng))
        return self.cache[key, job]

    def noise_share(self, key):
        shares = [run["noise_share"] for run in self.good(key) if run["noise_share"] is not None]
        return sum(shares) / len(shares) if shares else None


def mean_of(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def job_figures(cells, scenario, sched, job):
    """Returns the figures of one job of a cell. Every key is present; unknown figures are None."""
    key = (scenario.name, sched)
    figures = dict.fromkeys(("step_mean_ms", "step_mean_low", "step_mean_high", "step_p50_ms", "step_p99_ms",
                             "step_first_ms", "gpu_busy", "cpu_share", "slowdown", "recovered", "recovered_low", "recovered_high"))
    figures["job"] = scenario.jobs[job].name
    this = cells.means(key, job)
    if not this:
        return figures
    summary = stats.summarise(cells.values(key, job))
    figures.update(step_mean_ms=summary["mean"], step_p50_ms=summary["p50"], step_p99_ms=summary["p99"],
                   step_first_ms=stats.slowest_first(cells.values(key, job)),
                   gpu_busy=mean_of(run["jobs"][job]["gpu_busy"] for run in cells.good(key)),
                   cpu_share=mean_of(run["jobs"][job]["cpu_share"] for run in cells.good(key)))
    figures["step_mean_low"], figures["step_mean_high"] = stats.interval(this[1])
    twin = scenarios.twin_of(scenario)
    known = {"this": this, "eevdf": cells.means((scenario.name, "eevdf"), job),
             "quiet": cells.means((twin.name, "eevdf"), job)}
    known = {name: found for name, found in known.items() if found}
    if "quiet" in known:
        figures["slowdown"] = this[0] / known["quiet"][0]
    if twin.name != scenario.name:
        figures["recovered"], figures["recovered_low"], figures["recovered_high"] = stats.recovered_row(
            {name: found[0] for name, found in known.items()},
            {name: found[1] for name, found in known.items()}, sched == "eevdf")
    return figures


def make_row(cells, scenario, sched):
    key = (scenario.name, sched)
    runs, good = cells.runs.get(key, []), cells.good(key)
    share, eevdf_share = cells.noise_share(key), cells.noise_share((scenario.name, "eevdf"))
    jobs = [job_figures(cells, scenario, sched, job) for job in range(len(scenario.jobs))]
    row = {"scenario": scenario.name, "sched": sched, **jobs[0], "noise_share": share,
           "noise_vs_eevdf": share / eevdf_share if share is not None and eevdf_share else None,
           "step_mean_ms_rounds": [stats.summarise([values])["mean"] for values in cells.values(key)],
           "step_mean_ms_boots": [stats.summarise(runs)["mean"] for runs in cells.boots(key)],
           "runs": len(runs), "runs_good": len(good),
           "truth_ok": all(job["truth_ok"] for run in runs for job in run["jobs"]),
           "ejected": sum((run["trouble"] or "").startswith("ejected") for run in runs),
           "trouble": [run["trouble"] for run in runs if run["trouble"]]}
    if len(jobs) > 1:
        row["jobs"] = jobs
    return row


def make_rows(runs, names, scheds, seed):
    """Returns the rows in the requested order, and the rows of the quiet twins."""
    cells = Cells(runs, seed)
    wanted = [draws.find(name) for name in names]
    rows = [make_row(cells, scenario, sched) for scenario in wanted for sched in scheds]
    twins = {twin.name: twin for twin in map(scenarios.twin_of, wanted)}
    references = [make_row(cells, twin, "eevdf") for twin in twins.values()]
    return rows, references
