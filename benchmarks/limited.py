"""Joint limits: the share of reachable targets that is solved, by family, compared with the paper's plain method."""

import numpy as np
from support.families import FAMILIES

from benchmarks.tables import Aim, Part, clock, table
from fabrik_addon.core import Options, Status, solve

TARGETS = 2000
PLAIN_TARGETS = 300


def measure_families():
    """Targets from random poses inside the limits, solved from rest to a tolerance of 1e-3."""
    rows = [_row(name, family) for name, family in FAMILIES.items()]
    header = ("family", "solved %", "ms a target", "sweeps alone, 20: %", "the paper's plain method, 60: %")
    title = f"Limited rigs: {TARGETS:,} reachable targets, cold start, tolerance 1e-3 of the length"
    aims = [
        Aim.at_least(
            "Reachable targets solved", 99.9, float(row[1]), " %", case=row[0], other=f"{row[-1]} % (published FABRIK)"
        )
        for row in rows
    ]
    return Part(table(title, header, rows), tuple(aims))


def _row(name, family):
    targets = family.targets(np.random.default_rng(11), TARGETS)
    with clock() as c:
        share = _solved(family, targets, Options(tolerance=1e-3))
    some = targets[:PLAIN_TARGETS]
    sweeps = _solved(family, some, Options(tolerance=1e-3, finish=False, max_sweeps=20))
    plain = _solved(family, some, Options(tolerance=1e-3, plain=True, max_sweeps=60))
    return name, f"{share:.2f}", f"{1000 * c.seconds / TARGETS:.3f}", f"{sweeps:.1f}", f"{plain:.1f}"


def _solved(family, targets, options):
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=options)
    return 100.0 * (solution.status == Status.SOLVED).mean()
