"""What the benchmarks share: clocks, medians of interleaved repeats, Markdown tables, and figures beside their aims."""

import time
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Aim:
    """A figure that was aimed at, and what has come of it."""

    what: str
    aim: str
    figure: str
    met: bool

    @classmethod
    def at_least(cls, what, least, figure, unit="×"):
        """More is better."""
        return cls(what, f"≥ {least:g}{unit}", f"{figure:.3g}{unit}", figure >= least)

    @classmethod
    def at_most(cls, what, most, figure, unit):
        """Less is better."""
        return cls(what, f"≤ {most:g} {unit}", f"{figure:.3g} {unit}", figure <= most)


@dataclass(frozen=True)
class Part:
    """One part of the results: Markdown, and the aims that it speaks of."""

    text: str
    aims: tuple[Aim, ...] = ()


def table(title, header, rows):
    """A Markdown table under a heading."""
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def aims_table(aims):
    """Every aim with its figure beside it."""
    rows = [(aim.what, aim.aim, aim.figure, "yes" if aim.met else "**no**") for aim in aims]
    return table("Aims", ("what", "aim", "measured", "met"), rows)


class Clock:
    """Seconds that a block took."""

    seconds = 0.0


@contextmanager
def clock():
    """Time a block; its seconds are in what `with` gives."""
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
    """Median seconds of each function by name, all of them run in turn, so that a slow spell hits them alike."""
    spent = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            spent[name].append(seconds_of(function, now))
    return {name: median(seconds) for name, seconds in spent.items()}
