"""Figures 9 to 12: the distance to one target over iterations and over time, the poses, and FTL's broken lengths."""

from dataclasses import dataclass

import numpy as np
from support.solvers.chains import PointChain, fabrik, follow_the_leader
from support.solvers.loop import Trace, iterate, met, still

from benchmarks.paper import chain, table1
from benchmarks.tables import best_of, table

DISTANCES_AT = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Course:
    """A method's path to the figures' target: its trace, and the final joints (10, 3)."""

    trace: Trace
    joints: np.ndarray


def target():
    """(3,) the target, 600 mm from the tip of the slightly bent chain, at 0.7 of its reach."""
    tip = chain.joints(chain.slightly_bent())[-1]
    return chain.targets_away(np.random.default_rng(8), tip, 1, 0.699, 0.701)[0]


def courses():
    """Every method's course."""
    result = {table1.OURS: _our_course()}
    for name in chain.METHODS:
        run = chain.start_method(name, chain.slightly_bent(), target())
        is_done = still(chain.TOLERANCE) if name == "Follow-the-Leader" else met(chain.TOLERANCE)
        trace = iterate(run, is_done, 1 if name == "Triangulation" else table1.MOST)
        figure = getattr(run, "figure", None)
        points = run.points if figure is None else np.vstack([figure.heads, figure.tails[-1]])
        result[name] = Course(trace, points)
    return result


def _our_course():
    """The sweeps one by one, then the exact finish as one step."""
    start, wanted = chain.slightly_bent(), target()
    solver = chain.shipped()
    whole = solver.solve(wanted[None], start=start)
    trace = Trace([float(np.linalg.norm(chain.joints(start)[-1] - wanted))])
    for sweeps in range(1, int(whole.iterations) + 1):
        part = chain.shipped(finish=False, max_sweeps=sweeps).solve(wanted[None], start=start)
        trace.errors.append(float(part.errors[0]))
    trace.errors[-1] = float(whole.errors[0])
    seconds = best_of(20, lambda: solver.solve(wanted[None], start=start))
    trace.seconds = list(np.linspace(0.0, seconds, len(trace.errors)))
    return Course(trace, np.vstack([whole.heads, whole.tails[-1]]))


def distances_table(all_courses):
    """Figure 11 in numbers."""
    rows = []
    for name, course in all_courses.items():
        errors = course.trace.errors
        cells = [_in_mm(errors[at]) if at < len(errors) else "" for at in DISTANCES_AT]
        rows.append((name, *cells, course.trace.iterations, f"{1000 * course.trace.seconds[-1]:.2f}"))
    header = ("distance to the target in mm, after iterations", *map(str, DISTANCES_AT), "total iterations", "total ms")
    return table("Figures 11 and 12: one target at 0.7 of the reach, 600 mm from the tip", header, rows)


def _in_mm(error):
    return f"{error:.1f}" if error >= 0.1 else f"{error:.1g}"


def lengths_table():
    """Figure 10: errors of the link lengths of Follow-the-Leader by iteration, and FABRIK's."""
    beyond = table1.targets(False)[0]
    counts = (1, 2, 5, 10, 21, 50, 100)
    rows = []
    for name, iteration, wanted in (
        ("Follow-the-Leader, reachable", follow_the_leader, target()),
        ("Follow-the-Leader, unreachable", follow_the_leader, beyond),
        ("FABRIK, reachable", fabrik, target()),
        ("FABRIK, unreachable", fabrik, beyond),
    ):
        rows.append((name, *(f"{100 * stretch_after(iteration, wanted, count):.2g}" for count in counts)))
    return table(
        "Figure 10: the largest change of a link's length, in %",
        ("method, after iterations", *map(str, counts)),
        rows,
    )


def stretch_after(iteration, wanted, count):
    """The largest change of a link's length after some iterations, as a share of it."""
    run = PointChain(iteration, chain.joints(chain.slightly_bent()), wanted)
    iterate(run, lambda *_: False, count)
    return run.stretch
