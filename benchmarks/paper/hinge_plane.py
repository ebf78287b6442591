"""Figure 7: hinges by projecting the joints onto the plane of root and oriented target, compared with our hinges."""

import numpy as np
from support.checker import judge, matrices, placed
from support.families import ball, hinge, limb
from support.solvers.chains import PointChain, fabrik
from support.solvers.loop import iterate, met

from benchmarks.paper import chain
from benchmarks.tables import table
from fabrik_addon.core import Options, Solver

RANGES_DEG = ((0, 150), (0, 80))
FAMILY = limb((300.0, 250.0, 180.0), ball(100), *(hinge("X", low, high) for low, high in RANGES_DEG))
TARGETS = 200
ROUNDING_DEG = 0.01


def targets(count=TARGETS):
    """(count, 1, 3) targets that poses inside the limits reach, and (count, 3) the normals of their planes."""
    poses = FAMILY.poses(np.random.default_rng(7), count)
    frames, _ = placed(FAMILY.skeleton, matrices(poses), np.zeros(3))
    return FAMILY.points(poses), frames[:, 0, :, 0]


def project(target, normal, most=2000):
    """The paper's method: project the joints onto the plane of root and oriented target, then FABRIK in that plane.

    Returns the points (4, 3), the iterations and the hinges' angles in degrees.
    """
    points = np.vstack([[0.0, 0.0, 0.0], np.cumsum(FAMILY.skeleton.lengths)[:, None] * [[0.0, 1.0, 0.0]]])
    points[1:] += np.array([[60.0], [90.0], [0.0]]) * [[0.0, 0.0, 1.0]]
    flat = points - (points @ normal)[:, None] * normal
    run = PointChain(fabrik, flat, target)
    run.lengths = FAMILY.skeleton.lengths
    trace = iterate(run, met(chain.TOLERANCE), most)
    return run.points, trace.iterations, hinge_angles(run.points, normal)


def hinge_angles(points, normal):
    """Degrees by which each link of a planar chain is rotated relative to the one before, about the plane's normal."""
    links = np.diff(points, axis=0)
    before, after = links[:-1], links[1:]
    return np.degrees(np.arctan2(np.cross(before, after) @ normal, (before * after).sum(axis=1)))


def out_of_plane(points):
    """How far (N, 3) points are from the plane that fits them best."""
    return np.linalg.svd(points - points.mean(axis=0))[1][-1]


def are_inside(angles):
    """Whether hinges' angles in degrees are all inside their ranges."""
    low, high = np.transpose(RANGES_DEG)
    return bool(((angles >= low - ROUNDING_DEG) & (angles <= high + ROUNDING_DEG)).all())


def shipped():
    """The extension's solver on the limb, with a tolerance of 1e-3 mm."""
    options = Options(tolerance=chain.TOLERANCE / FAMILY.size)
    return Solver(FAMILY.skeleton, FAMILY.effectors, limits=FAMILY.limits, options=options)


def joints(solution):
    """(F, 4, 3) the joints of a solution of F frames."""
    return np.concatenate([solution.heads[:, :1], solution.tails], axis=1)


def measure():
    header = (
        "hinges",
        "reached to 1e-3 mm, %",
        "iterations",
        "largest distance from the plane, mm",
        "poses within the hinges' ranges, %",
    )
    return table(
        f"Figure 7: a ball and two hinges (0° to 150°, 0° to 80°), {TARGETS} targets in reach within the limits",
        header,
        [_projected_row(), _our_row()],
    )


def _projected_row():
    wanted, normals = targets()
    poses = [project(target[0], normal) for target, normal in zip(wanted, normals, strict=True)]
    points = np.array([pose[0] for pose in poses])
    misses = np.linalg.norm(points[:, -1] - wanted[:, 0], axis=1)
    inside = [are_inside(angles) for _, _, angles in poses]
    return _row("joints projected, then FABRIK", misses, [count for _, count, _ in poses], points, inside)


def _our_row():
    wanted, _ = targets()
    solution = shipped().solve(wanted)
    breaks = judge(FAMILY.skeleton, FAMILY.limits, FAMILY.effectors, solution).break_deg
    inside = breaks.max(axis=1) < ROUNDING_DEG
    return _row("hinge limits of this extension", solution.errors[:, 0], solution.iterations, joints(solution), inside)


def _row(name, misses, counts, points, inside):
    return (
        name,
        f"{100.0 * (misses <= chain.TOLERANCE).mean():.0f}",
        f"{np.mean(counts):.1f}",
        f"{max(out_of_plane(pose) for pose in points):.1g}",
        f"{100.0 * np.mean(inside):.0f}",
    )
