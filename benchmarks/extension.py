"""Near full extension, where plain FABRIK converges slowly: steps until the target is met; Blender's IK error."""

import numpy as np
from support import plain_fabrik

from benchmarks import cases
from benchmarks.one_pose import BlenderIK
from benchmarks.tables import Aim, Part, table

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999)
TARGETS = 20
BONES = 10
TOLERANCE = 1e-5
MOST_SWEEPS = 50_000
SWEEP_BUDGET_TARGETS = 2


def measure():
    """Targets in random directions, at shares of a chain's reach, solved from rest."""
    case = cases.free_chain(BONES)
    directions = np.random.default_rng(4).normal(size=(TARGETS, 1, 3))
    directions *= case.size / np.linalg.norm(directions, axis=-1, keepdims=True)
    targets = {share: directions * share for share in SHARES}
    blender = BlenderIK(case, np.concatenate(list(targets.values())))
    blender.run()
    theirs = dict(zip(SHARES, np.split(blender.errors, len(SHARES)), strict=True))
    rows = [_row(case, share, targets[share], theirs[share]) for share in SHARES]
    header = ("reach %", "this: sweeps and steps", "this: error", "plain FABRIK: sweeps", "Blender's IK: error")
    title = f"Near full extension: chain of {BONES}, medians of {TARGETS} targets, errors as shares of the length"
    aims = [
        Aim.at_most(
            "Error near full extension, relative to the length", TOLERANCE, float(row[2]), "", case=f"reach {row[0]} %",
            other=f"{row[4]} (Blender's IK)",
        )
        for row in rows
    ]  # fmt: skip
    return Part(table(title, header, rows), tuple(aims))


def _row(case, share, targets, theirs):
    solver = case.solver(tolerance=TOLERANCE)
    solutions = [solver.solve(target) for target in targets]
    steps = np.median([solution.iterations for solution in solutions])
    errors = [solution.errors.max() / case.size for solution in solutions]
    sweeps = np.median([_plain_sweeps(case, target[0]) for target in targets[:SWEEP_BUDGET_TARGETS]])
    theirs = np.median(theirs) / case.size
    return f"{100 * share:g}", f"{steps:.0f}", f"{np.median(errors):.1e}", f"{sweeps:,.0f}", f"{theirs:.1e}"


def _plain_sweeps(case, target):
    points = [tuple(head) for head in case.skeleton.rest[:, :3, 3].tolist()] + [(0.0, 0.0, case.size)]
    lengths = case.skeleton.lengths.tolist()
    return plain_fabrik.solve(points, lengths, tuple(target.tolist()), TOLERANCE * case.size, MOST_SWEEPS)[1]
