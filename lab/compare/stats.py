# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics. Pure: takes runs, returns rows; the caller passes the random generator.

A cell is all runs of one scenario under one scheduler, by boot. Two boots with the same
command differ more than two runs of one boot, and consecutive steps of a run are
correlated. So the bootstrap draws boots first, then runs within them, and then blocks of
consecutive steps, never single steps.
"""
import math

BLOCK_STEPS = 10
FIRST_STEPS = 3
RESAMPLES = 2000
CONFIDENCE = 0.95
# The 97.5 % quantile of Student's t distribution with 1, 2, ... degrees of freedom, and of the normal distribution.
T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL_QUANTILE = 1.960


def quantile(ordered, per_cent):
    """sorted[min(floor(p n), n - 1)], and sorted[n / 2] for the median."""
    return ordered[min(len(ordered) * per_cent // 100, len(ordered) - 1)]


def summarise(runs):
    """Returns mean, median and 99th percentile over the steps of all runs."""
    ordered = sorted(value for run in runs for value in run)
    return {"mean": math.fsum(ordered) / len(ordered), "p50": quantile(ordered, 50),
            "p99": quantile(ordered, 99)}


def slowest_first(runs):
    """Returns the slowest of the first steps of any run: how long a new process waits for its first results."""
    return max(value for run in runs for value in run[:FIRST_STEPS])


def blocks_of(run):
    """Returns (sum, count) of each block of consecutive steps."""
    parts = [run[at:at + BLOCK_STEPS] for at in range(0, len(run), BLOCK_STEPS)]
    return [(math.fsum(part), len(part)) for part in parts]


def boots_factor(boots):
    """By how much the spread of the draws is too small: a few boots, drawn with replacement, differ less than new ones."""
    if boots < 2:
        return 1.0
    quantile_t = T_QUANTILES[boots - 2] if boots - 2 < len(T_QUANTILES) else NORMAL_QUANTILE
    return quantile_t / NORMAL_QUANTILE * math.sqrt(boots / (boots - 1))


def resampled_means(boots, rng, resamples=RESAMPLES):
    """`boots` has a list of runs for each boot. With one boot, the means have only the spread within it."""
    blocks = [[blocks_of(run) for run in runs] for runs in boots]
    means = []
    for _ in range(resamples):
        total, count = 0.0, 0
        for boot in rng.choices(blocks, k=len(blocks)):
            for drawn in rng.choices(boot, k=len(boot)):
                for block_sum, block_count in rng.choices(drawn, k=len(drawn)):
                    total += block_sum
                    count += block_count
        means.append(total / count)
    middle, factor = math.fsum(means) / len(means), boots_factor(len(boots))
    return [middle + (mean - middle) * factor for mean in means]


def interval(values):
    """Returns the central interval that contains CONFIDENCE of the values."""
    ordered = sorted(values)
    cut = (1 - CONFIDENCE) / 2
    return ordered[int(cut * len(ordered))], ordered[min(int((1 - cut) * len(ordered)), len(ordered) - 1)]


def recovered(eevdf, this, quiet):
    """Returns which part of the delay by noise under EEVDF a scheduler removes: 0 is none of it, 1 is all of it."""
    return (eevdf - this) / (eevdf - quiet)


def recovered_row(means, resampled, is_eevdf):
    """Returns (value, low, high); each is None where EEVDF with noise is not measurably slower than without.

    `means` and `resampled` contain the figures of `eevdf`, `this` and `quiet`.
    """
    if not all(key in means for key in ("eevdf", "this", "quiet")):
        return None, None, None
    gap_low, _ = interval([e - q for e, q in zip(resampled["eevdf"], resampled["quiet"])])
    if gap_low <= 0:
        return None, None, None
    if is_eevdf:
        return 0.0, 0.0, 0.0
    draws = [recovered(e, t, q) for e, t, q in
             zip(resampled["eevdf"], resampled["this"], resampled["quiet"]) if e > q]
    return (recovered(means["eevdf"], means["this"], means["quiet"]), *interval(draws))
