# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the idle share of a device, as a range, with the truth, and prints a table by scenario."""
import collections
from dataclasses import dataclass

import device_truth

MARGIN = 0.01  # the ends of the compared span are known to about 1 % of its length
MIN_IDLE = 0.05  # below this, there is no cause to name
TIE = 0.03  # causes whose true shares of the time differ by less are equally large; zernel why prints a number if it is that sure
# Largest width of a range, by the counter that narrows it. Without a counter it depends on the job: calls alone narrow it
# where syncs or a full queue show that the device works.
WIDTHS = {"gpm": 0.05, "utilization": 0.10}
WIDTHS_BY_CALLS = {"noisy": 0.30, "async": 0.30}
UNEXPLAINED = 0.30  # at most this part of a range can hide which cause is the largest
COLUMNS = ("counter", "scenario", "true idle", "range", "widest, points", "in range", "largest cause: true", "detected", "correct",
           "steps: true", "found", "basis")


@dataclass(frozen=True)
class Share:
    counter: str
    scenario: str
    where: str
    true: float
    low: float
    high: float
    cause: str  # the true one; "-": no idle time to explain
    ties: frozenset  # causes that are as large as the true one
    seen: str
    steps: int
    steps_seen: int
    basis: str  # how steps were found; "": not reported

    @property
    def width(self):
        return self.high - self.low

    @property
    def is_in_range(self):
        return self.low - MARGIN <= self.true <= self.high + MARGIN

    @property
    def is_cause_right(self):
        return self.cause == "-" or self.seen in self.ties


def fold(causes):
    """Adds up the causes that the truth cannot distinguish."""
    folded = collections.Counter()
    for cause, ns in causes.items():
        folded[cause if cause in device_truth.CAUSES else "other"] += ns
    return folded


def largest(causes):
    return max(causes, key=causes.get) if any(causes.values()) else "-"


def make(counter, scenario, where, truth, pid, span, low, high, causes, steps_seen, basis):
    """`low` and `high` are shares of the span; `causes` are the detected ones."""
    true, length = truth.idle_causes(pid, *span), span[1] - span[0]
    idle = sum(end - start for start, end, _ in truth.idle_spans(pid, *span)) / length
    steps = sum(span[0] < end <= span[1] for _, end in truth.ranks[pid].steps)
    # The time between both ends of the range has no cause, so it does not tell causes apart.
    tie = max(TIE, min(high - low, UNEXPLAINED))
    ties = frozenset(cause for cause, ns in true.items() if max(true.values()) - ns < tie * length)
    return Share(counter, scenario, where, idle, low, high, largest(true) if idle >= MIN_IDLE else "-", ties,
                 largest(fold(causes)), steps, steps_seen, basis)


def judge(tap, share):
    tap.check(share.is_in_range, f"{share.where}: true idle share {share.true:.1%}, "
              f"range {share.low:.1%} to {share.high:.1%}, {share.width * 100:.1f} points wide")
    width = WIDTHS.get(share.counter) or WIDTHS_BY_CALLS.get(share.scenario)
    if width:
        tap.check(share.width <= width, f"{share.where}: the range is at most {width * 100:g} points wide")
    tap.check(share.is_cause_right, f"{share.where}: the largest cause is {share.seen}, truth {share.cause}")


def row(shares):
    """One row of the table: all runs and ranks of a scenario."""
    nr, causes = len(shares), [share for share in shares if share.cause != "-"]

    def mean(name):
        return sum(getattr(share, name) for share in shares) / nr

    def common(name, of):
        return collections.Counter(getattr(share, name) for share in of).most_common(1)[0][0] if of else "-"

    return (shares[0].counter, shares[0].scenario, f"{mean('true'):.1%}", f"{mean('low'):.1%} to {mean('high'):.1%}",
            f"{max(share.width for share in shares) * 100:.1f}", f"{sum(share.is_in_range for share in shares)} of {nr}",
            common("cause", causes), common("seen", causes), f"{sum(share.is_cause_right for share in causes)} of {len(causes)}",
            str(sum(share.steps for share in shares)), str(sum(share.steps_seen for share in shares)),
            common("basis", shares) or "-")


def print_table(shares):
    groups = collections.defaultdict(list)
    for share in shares:
        groups[share.counter, share.scenario].append(share)
    lines = [COLUMNS, *map(row, groups.values())]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for place, line in enumerate(lines):
        print("# | " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
        if place == 0:
            print("# |" + "|".join("-" * (width + 2) for width in widths) + "|")
    right = sum(share.is_in_range for share in shares)
    causes = [share for share in shares if share.cause != "-"]
    print(f"# true idle share in the range: {right} of {len(shares)} ranks; largest cause correct: "
          f"{sum(share.is_cause_right for share in causes)} of {len(causes)} ranks")
