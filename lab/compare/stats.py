# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics. Pure: takes runs, returns rows; the caller passes the random generator.

A cell is all runs of one scenario under one scheduler. Consecutive steps of a
run are correlated, so the bootstrap draws runs first and then blocks of
consecutive steps within them, never single steps.
"""
import math

BLOCK_STEPS = 10
RESAMPLES = 2000
CONFIDENCE = 0.95


def quantile(ordered, per_cent):
    """sorted[min(floor(p n), n - 1)], and sorted[n / 2] for the median."""
    return ordered[min(len(ordered) * per_cent // 100, len(ordered) - 1)]


def summarise(runs):
    """Returns mean, median and 99th percentile over the steps of all runs."""
    ordered = sorted(value for run in runs for value in run)
    return {"mean": math.fsum(ordered) / len(ordered), "p50": quantile(ordered, 50),
            "p99": quantile(ordered, 99)}


def blocks_of(run):
    """Returns (sum, count) of each block of consecutive steps."""
    parts = [run[at:at + BLOCK_STEPS] for at in range(0, len(run), BLOCK_STEPS)]
    return [(math.fsum(part), len(part)) for part in parts]


def resampled_means(runs, rng, resamples=RESAMPLES):
    blocks = [blocks_of(run) for run in runs]
    means = []
    for _ in range(resamples):
        total, count = 0.0, 0
        for drawn in rng.choices(blocks, k=len(blocks)):
            for block_sum, block_count in rng.choices(drawn, k=len(drawn)):
                total += block_sum
                count += block_count
        means.append(total / count)
    return means


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
