# SPDX-License-Identifier: GPL-2.0-or-later
"""A case of the campaign: what it measures, and the bound of each figure."""
from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Bound:
    text: str
    holds: Callable  # of the figure of EEVDF and the figure of Zernel


def near(wanted, per_cent):
    """The figure differs from a limit or from a share by a few percent at most."""
    return Bound(f"{wanted} +- {per_cent} %", lambda eevdf, zernel: abs(zernel / wanted - 1) <= per_cent / 100)


def like_eevdf(points):
    """A share in percent differs from EEVDF's share by a few points at most."""
    return Bound(f"EEVDF +- {points} points", lambda eevdf, zernel: abs(zernel - eevdf) <= points)


def ratio_of_eevdf(low, high):
    return Bound(f"{low} to {high} x EEVDF", lambda eevdf, zernel: low * eevdf <= zernel <= high * eevdf)


def at_most(limit):
    return Bound(f"<= {limit}", lambda eevdf, zernel: zernel <= limit)


def at_least(limit):
    return Bound(f">= {limit}", lambda eevdf, zernel: zernel >= limit)


def at_most_eevdf(factor=1.0):
    return Bound(f"<= {factor} x EEVDF", lambda eevdf, zernel: zernel <= factor * eevdf)


def at_least_eevdf(factor):
    return Bound(f">= {factor} x EEVDF", lambda eevdf, zernel: zernel >= factor * eevdf)


@dataclass(frozen=True)
class Figure:
    name: str  # with its unit
    bound: Optional[Bound] = None  # None: the figure is printed only


@dataclass(frozen=True)
class Derived:
    name: str
    value: Callable  # of all figures of EEVDF and all figures of Zernel
    bound: Bound


@dataclass(frozen=True)
class Case:
    name: str
    measure: Callable  # takes seconds, returns the values of the figures in their order
    figures: tuple  # figures, then those that are derived from them


COLUMNS = ("case", "figure", "EEVDF", "Zernel", "bound", "holds")
WIDTHS = (15, 50, 7, 7, 18, 5)


def line(cells):
    return " | ".join(str(cell).ljust(width) for cell, width in zip(cells, WIDTHS)).rstrip()


def number(value):
    return "-" if value is None else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def values_of(figure, at, eevdf, zernel):
    if isinstance(figure, Derived):
        return None, figure.value(eevdf, zernel) if eevdf and zernel else None
    return tuple(figures[at] if figures else None for figures in (eevdf, zernel))


def holds(figure, values):
    needed = values[1:] if isinstance(figure, Derived) else values
    return not figure.bound or (None not in needed and figure.bound.holds(*values))


def rows(case, eevdf, zernel):
    """Yields (row, whether the bound holds) for each figure. A run that failed has no figures, and no bound holds."""
    for at, figure in enumerate(case.figures):
        values = values_of(figure, at, eevdf, zernel)
        verdict = holds(figure, values)
        yield line((case.name, figure.name, *map(number, values), figure.bound.text if figure.bound else "",
                    ("yes" if verdict else "NO") if figure.bound else "")), verdict
