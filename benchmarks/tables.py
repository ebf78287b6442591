"""Helpers of the benchmarks: clocks, medians of interleaved repeats, Markdown tables, figures and their aims."""

import time
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Aim:
    """A measured figure and its aim.

    badness: larger is worse, to find the worst of several cases of the same aim; case: the rig, path or recording that
    was measured; other: the figure of the best other method, with its name.
    """

    what: str
    aim: str
    figure: str
    met: bool
    badness: float
    case: str = ""
    other: str = ""

    @classmethod
    def at_least(cls, what, least, figure, unit="×", **more):
        """More is better."""
        return cls(what, f"≥ {least:g}{unit}", f"{figure:.3g}{unit}", bool(figure >= least), -float(figure), **more)

    @classmethod
    def at_most(cls, what, most, figure, unit, **more):
        """Less is better."""
        aim, found = (f"{sign}{value:.3g} {unit}".strip() for sign, value in (("≤ ", most), ("", figure)))
        return cls(what, aim, found, bool(figure <= most), float(figure), **more)


@dataclass(frozen=True)
class Part:
    """One part of the results: tables in Markdown, and the aims."""

    text: str
    aims: tuple[Aim, ...] = ()


def table(title, header, rows):
    """A Markdown table under a heading."""
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def aims_table(title, aims):
    """One row for each aim, with the worst of its cases; aims that are not met come first."""
    cases = {}
    for aim in aims:
        cases.setdefault((aim.what, aim.aim), []).append(aim)
    rows = []
    for (what, wanted), found in sorted(cases.items(), key=lambda item: all(aim.met for aim in item[1])):
        worst = max(found, key=lambda aim: aim.badness)
        met = sum(aim.met for aim in found)
        ours = worst.figure if met == len(found) else f"**{worst.figure}**"
        if len(found) > 1:
            ours += f" ({worst.case}; {met} of {len(found)} met)"
        rows.append((what, ours, worst.other, wanted))
    return table(title, ("what", "ours, the worst case", "best other", "aim"), rows)


def rows_of(text):
    """The cells of all tables of a Markdown text: pairs of a table's title and a dictionary of a row by its columns."""
    title, header = "", []
    for line in text.splitlines():
        if line.startswith("## "):
            title, header = line[3:], []
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line[1:].rstrip("|").split("|")]
            if not header:
                header = cells
            elif set(line) != set("|-"):
                yield title, dict(zip(header, cells, strict=True))


class Clock:
    """The seconds that a block took."""

    seconds = 0.0


@contextmanager
def clock():
    """Time a block; the value of `with` contains the seconds."""
    measured = Clock()
    began = time.perf_counter()
    yield measured
    measured.seconds = time.perf_counter() - began


def seconds_of(function, now=time.perf_counter):
    """Seconds that one call takes, by the clock or by another one."""
    began = now()
    function()
    return now() - began


def best_of(times, function):
    """The least seconds of several calls."""
    return min(seconds_of(function) for _ in range(times))


def interleaved(repeats, functions, now=time.perf_counter):
    """Median seconds of each function by name; they run in turn, so that a slow period affects all equally."""
    spent = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            spent[name].append(seconds_of(function, now))
    return {name: median(seconds) for name, seconds in spent.items()}
