# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats the figures as a Markdown table and a picture. Pure: takes rows, returns text."""
from html import escape

COLUMNS = ("scenario", "scheduler", "mean step, ms [{}]", "p50, ms", "p99, ms", "slowest of the first 3, ms", "GPU busy", "CPU time of the job",
           "CPU time of the noise", "noise compared with EEVDF", "recovered [{}]", "valid runs")
NAMES = {"eevdf": "EEVDF", "nice": "EEVDF with nice", "fifo": "EEVDF with SCHED_FIFO", "zernel": "Zernel",
         "zernel-nice": "Zernel with nice", "watched": "EEVDF, watched", "nice-watched": "EEVDF with nice, watched"}


def name_of(row):
    """Returns the name of a scheduler for readers; `--sched` and the JSON use the short one."""
    return NAMES.get(row["sched"], row["sched"])


def number(value, form="{:.1f}"):
    return "-" if value is None else form.format(value)


def with_interval(value, low, high, form):
    return "-" if value is None else f"{form} [{form}, {form}]".format(value, low, high)


def verdict(row):
    """Returns how many runs are valid, and why the remaining runs are not."""
    text = f"{row['runs_good']}/{row['runs']}"
    if row["ejected"]:
        text += f", ejected {row['ejected']} x"
    elif row["trouble"]:
        text += f", {row['trouble'][0]}"
    return text if row["truth_ok"] else text + ", truth is inconsistent"


def cells_of(row, figures, name):
    recovered = [figures[key] for key in ("recovered", "recovered_low", "recovered_high")]
    return (name, name_of(row),
            with_interval(figures["step_mean_ms"], figures["step_mean_low"], figures["step_mean_high"], "{:.1f}"),
            number(figures["step_p50_ms"]), number(figures["step_p99_ms"]), number(figures["step_first_ms"]), number(figures["gpu_busy"], "{:.0%}"),
            number(figures["cpu_share"], "{:.1%}"),
            number(row["noise_share"], "{:.0%}"), number(row["noise_vs_eevdf"], "{:.0%}"),
            with_interval(*recovered, "{:.2f}"), verdict(row))


def lines_of(row):
    """Yields one line for each job."""
    jobs = row.get("jobs") or [row]
    for figures in jobs:
        name = row["scenario"] if len(jobs) == 1 else f"{row['scenario']}: {figures['job']}"
        yield cells_of(row, figures, name)


def interval_label(boots):
    """An interval from one boot says nothing about the next boot, so it must not be read as one that does."""
    return "95 %, within one boot" if boots == 1 else f"95 %, over {boots} boots"


def table(rows, boots=1):
    lines = [tuple(column.format(interval_label(boots)) for column in COLUMNS), *(line for row in rows for line in lines_of(row))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def distribution_table(distributions):
    """Shows how much each scheduler recovered over scenarios that were drawn at random."""
    lines = ["| scheduler | scenarios with a delay | recovered, median | tenth percentile | minimum | more than 2 % slower than EEVDF | "
             "noise compared with EEVDF, median |", "|---|---|---|---|---|---|---|"]
    for row in distributions:
        lines.append(f"| {name_of(row)} | {row['measured']} of {row['scenarios']} | {row['median']:.2f} | {row['p10']:.2f} | "
                     f"{row['min']:.2f} | {row['slower']} | {number(row['noise_median'], '{:.0%}')} |")
    return "\n".join(lines)


def spread(row, by):
    """Returns the means of each round or boot and their spread in words; None for a single one."""
    means = row[f"step_mean_ms_{by}s"]
    if len(means) < 2:
        return None
    return (f"{row['scenario']} under {name_of(row)}, by {by}: {', '.join(f'{value:.2f}' for value in means)} ms, "
            f"spread {(max(means) - min(means)) / min(means):.1%}")


def spreads(rows, references):
    """Yields the spread of each quiet row between its rounds, and of all rows between boots. Differences below it mean nothing."""
    lines = [spread(row, "round") for row in references] + [spread(row, "boot") for row in rows + references]
    yield from (line for line in lines if line)


BAR, GAP, LABEL, WIDTH, CAP = 14, 10, 190, 560, 5.0
COLOURS = ("#888888", "#4c78a8", "#72b7b2", "#eeca3b", "#f58518", "#d62728", "#54a24b", "#b279a2")


def bar(row, top, colour):
    """Draws a bar, its interval and its figure. A bar longer than CAP is cut off; the figure shows its real length."""
    middle = top + BAR - 4
    out = [f'<text x="{LABEL - 6}" y="{middle}" text-anchor="end">{escape(name_of(row))}</text>']
    slow = row["slowdown"]
    if slow is None:
        out.append(f'<text x="{LABEL + 6}" y="{middle}">{escape(verdict(row))}</text>')
        return out
    scale = WIDTH / CAP

    def x_of(value):
        return LABEL + min(value, CAP) * scale

    out.append(f'<rect x="{LABEL}" y="{top}" width="{x_of(slow) - LABEL:.1f}" height="{BAR - 3}" fill="{colour}"/>')
    low, high = (slow * row[key] / row["step_mean_ms"] for key in ("step_mean_low", "step_mean_high"))
    line = top + (BAR - 3) / 2
    out.append(f'<line x1="{x_of(low):.1f}" x2="{x_of(high):.1f}" y1="{line}" y2="{line}" stroke="black"/>')
    ejected = ", ejected" if row["ejected"] else ""
    out.append(f'<text x="{x_of(max(slow, high)) + 5:.1f}" y="{middle}">{slow:.2f} x, '
               f'{row["step_mean_ms"]:.1f} ms{ejected}</text>')
    return out


def svg(rows, title, boots=1):
    """Draws the mean step (or time to first token) divided by that of the quiet twin."""
    scheds = list(dict.fromkeys(row["sched"] for row in rows))
    body, top, scenario = [], 44, None
    for row in rows:
        if row["scenario"] != scenario:
            scenario, top = row["scenario"], top + (GAP if scenario else 0)
            body.append(f'<text x="4" y="{top + BAR - 4}" font-weight="bold">{escape(scenario)}</text>')
        body += bar(row, top, COLOURS[scheds.index(row["sched"]) % len(COLOURS)])
        top += BAR
    quiet = LABEL + WIDTH / CAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + WIDTH + 170}" height="{top + 16}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="white"/><text x="4" y="16" font-size="13">{escape(title)}</text>',
        '<text x="4" y="32">Mean step (serving: mean time to first token) divided by that of the same job without noise. '
        f'Dashed: as fast as without noise. Lines: intervals ({interval_label(boots)}).</text>',
        *body,
        f'<line x1="{quiet}" x2="{quiet}" y1="40" y2="{top}" stroke="black" stroke-dasharray="4 3"/>',
        "</svg>", ""])
