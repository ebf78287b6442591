"""Section 5.3: the 10-joint chain with limited joints, FABRIK compared with CCD with the same limits."""

import numpy as np
from support.families import Family, ball
from support.solvers.ccd import ccd
from support.solvers.figure import Figure
from support.solvers.loop import Turning, iterate, met, met_or_still, miss

from benchmarks.paper import chain
from benchmarks.tables import clock, table
from fabrik_addon.core import Options, Solver

LIMIT_DEG = 40
MOST = 100
TARGETS = 20
FAMILY = Family(
    chain.SKELETON, {name: ball(LIMIT_DEG, (-LIMIT_DEG, LIMIT_DEG)) for name in chain.SKELETON.names}, (chain.END,)
)
WAYS = {
    "FABRIK, this extension": {},
    "only its sweeps": {"finish": False, "max_sweeps": MOST},
    "FABRIK, the paper's way: limits clamped at each step": {"plain": True, "max_sweeps": MOST},
}


def targets(count=TARGETS):
    """(count, 1, 3) positions of the tip in random poses inside the limits."""
    return FAMILY.targets(np.random.default_rng(2), count)


def run_fabrik(options, wanted):
    """Misses in mm (N,), iterations (N,) and milliseconds per target, one after the other from rest."""
    options = Options(tolerance=chain.TOLERANCE / chain.REACH, **options)
    solver = Solver(FAMILY.skeleton, FAMILY.effectors, limits=FAMILY.limits, options=options)
    with clock() as c:
        solutions = [solver.solve(target) for target in wanted]
    misses = np.array([solution.errors[0] for solution in solutions])
    return misses, np.array([solution.iterations for solution in solutions]), 1000.0 * c.seconds / len(wanted)


def run_ccd(wanted, limits):
    """Errors, iterations and milliseconds of CCD, from a slight bend, since CCD never bends a straight chain."""
    is_done = met_or_still(chain.TOLERANCE, 1e-2 * chain.TOLERANCE) if limits else met(chain.TOLERANCE)
    misses, counts, seconds = [], [], 0.0
    for target in wanted:
        run = Turning(ccd, Figure(FAMILY.skeleton, [chain.END], limits=limits, rotations=chain.slightly_bent()), target)
        trace = iterate(run, is_done, MOST)
        misses.append(miss(run))
        counts.append(trace.iterations)
        seconds += trace.seconds[-1]
    return np.array(misses), np.array(counts), 1000.0 * seconds / len(wanted)


def measure():
    wanted = targets()
    rows = [_row(name, *run_fabrik(options, wanted)) for name, options in WAYS.items()]
    rows.append(_row("CCD with the same limits", *run_ccd(wanted, FAMILY.limits)))
    rows.append(_row("CCD without limits", *run_ccd(wanted, {})))
    header = (
        "method",
        "reached to 1e-3 mm, %",
        "iterations (max)",
        "median error, mm",
        "largest error, mm",
        "ms per target",
    )
    return table(
        f"Section 5.3: the chain with each joint limited to {LIMIT_DEG}° of swing and twist, {TARGETS} targets"
        " in reach",
        header,
        rows,
    )


def _row(name, misses, counts, ms):
    met_share = 100.0 * (misses <= chain.TOLERANCE * 1.001).mean()
    return (
        name,
        f"{met_share:.0f}",
        f"{counts.mean():.1f} ({counts.max()})",
        f"{np.median(misses):.2g}",
        f"{misses.max():.2g}",
        f"{ms:.1f}",
    )
