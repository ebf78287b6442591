"""Markdown tables and clocks for the benchmarks."""

import time
from contextlib import contextmanager


def table(title, header, rows):
    """A Markdown table under a heading."""
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


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


def best_of(times, function):
    """The least seconds of several runs of a function."""
    measured = []
    for _ in range(times):
        with clock() as c:
            function()
        measured.append(c.seconds)
    return min(measured)
