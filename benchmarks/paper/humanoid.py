"""Table 2: a humanoid's inner joints, found from its pelvis, head, wrists and ankles, at 3 Hz and at 25 Hz."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from support.solvers import jacobian
from support.solvers.ccd import ccd
from support.solvers.figure import Figure
from support.solvers.loop import Turning, iterate, met_or_still

from benchmarks.paper import chain, motions
from benchmarks.tables import clock, table
from fabrik_addon.core import Effector, Options, Solver

DATA = Path(os.environ.get("FABRIK_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
TOLERANCE = 1.0
STILL = 0.01
MOST = 100
# Iterations, milliseconds a frame (MATLAB) and median joint error in mm, of the paper's dance.
PAPER = {
    "FABRIK, the paper's loop": (65, 1.6, 58.68),
    "CCD": (67, 20.5, 69.99),
    "Jacobian transpose": (1352, 1928.0, 137.42),
    "Jacobian DLS": (804, 1533.0, 84.84),
    "FABRIK, the paper's loop, limits": ("", 3.0, "about 30"),
}


@dataclass(frozen=True)
class Outcome:
    """The result of a method for each frame: bone tails (F, J, 3), iterations (F,), and milliseconds per frame."""

    tails: np.ndarray
    iterations: np.ndarray
    ms: float

    def error(self, motion):
        """(F, H) mm between the hidden joints and their true positions."""
        found = self.tails[:, [motion.skeleton.index(name) for name in motion.hidden]]
        return np.linalg.norm(found - np.stack([motion.joints[name] for name in motion.hidden], axis=1), axis=2)

    def miss(self, motion):
        """(F,) mm: the largest error of an end effector."""
        found = self.tails[:, [motion.skeleton.index(end) for end in motions.ENDS]]
        return np.linalg.norm(found - motion.targets, axis=2).max(axis=1)


def _solver(motion, limits, **options):
    effectors = [Effector(end) for end in motions.ENDS]
    reaches = [motion.skeleton.lengths[motion.skeleton.path(motion.skeleton.index(end))].sum() for end in motions.ENDS]
    options = Options(tolerance=TOLERANCE / max(reaches), **options)
    return Solver(motion.skeleton, effectors, limits=limits, options=options)


def each_by_itself(motion, limits):
    """The shipped solver on all frames at once, each from rest."""
    solver = _solver(motion, limits)
    with clock() as c:
        solution = solver.solve(motion.targets, start=motion.start, start_location=motion.root)
    return Outcome(solution.tails, solution.iterations, 1000.0 * c.seconds / len(motion.root))


def one_after_the_other(motion, limits, **options):
    """FABRIK, each frame from the pose before."""
    solver, pose, solutions = _solver(motion, limits, **options), motion.start, []
    with clock() as c:
        for target, root in zip(motion.targets, motion.root, strict=True):
            solutions.append(solver.solve(target, start=pose, start_location=root))
            pose = solutions[-1].rotations
    tails = np.array([solution.tails for solution in solutions])
    return Outcome(tails, np.array([s.iterations for s in solutions]), 1000.0 * c.seconds / len(solutions))


def by_turning(motion, limits, iteration):
    """A comparison method, each frame from the pose before."""
    figure = Figure(motion.skeleton, motions.ENDS, limits=limits, rotations=motion.start)
    tails, counts, seconds = [], [], 0.0
    for target, root in zip(motion.targets, motion.root, strict=True):
        figure.move_root(root)
        trace = iterate(Turning(iteration, figure, target), met_or_still(TOLERANCE, STILL), MOST)
        tails.append(figure.tails)
        counts.append(trace.iterations)
        seconds += trace.seconds[-1]
    return Outcome(np.array(tails), np.array(counts), 1000.0 * seconds / len(tails))


def ways(motion):
    """Name -> a function that follows the motion; with limits if the motion has them."""
    unit = float(np.median(motion.skeleton.lengths))
    jacobians = {
        name: partial(jacobian.step, rule=chain.RULES[name], unit=unit, longest=chain.LONGEST_STEP)
        for name in ("Jacobian transpose", "Jacobian DLS")
    }
    found = {
        "FABRIK, this extension": partial(each_by_itself, motion, {}),
        "the same, from the previous frame": partial(one_after_the_other, motion, {}),
        "FABRIK, the paper's loop": partial(one_after_the_other, motion, {}, plain=True, max_sweeps=MOST),
        "CCD": partial(by_turning, motion, {}, ccd),
        **{name: partial(by_turning, motion, {}, rule) for name, rule in jacobians.items()},
    }
    limited = {
        "FABRIK, this extension, limits": partial(each_by_itself, motion, motion.limits),
        "the same, from the previous frame, limits": partial(one_after_the_other, motion, motion.limits),
        "FABRIK, the paper's loop, limits": partial(
            one_after_the_other, motion, motion.limits, plain=True, max_sweeps=MOST
        ),
        "CCD, limits": partial(by_turning, motion, motion.limits, ccd),
    }
    return found | limited if motion.limits else found


def all_motions():
    """Each motion at 3 Hz and at 25 Hz."""
    found = [motions.dance(3, 10), motions.dance(25, 1), motions.walk(3, 4), motions.walk(25, 1)]
    path = DATA / "Pose2Sim_markers.trc"
    if path.exists():
        found += [motions.recording(path, 3, 1.7), motions.recording(path, 25, 1)]
    return found


def measure():
    rows = []
    for rate, motion in zip((3, 25) * 3, all_motions(), strict=False):
        for name, follow in ways(motion).items():
            rows.append(_row(motion, rate, name, follow()))
    header = (
        "motion",
        "method",
        "iterations per frame",
        "ms per frame",
        "median joint error, mm",
        "median error of the effectors, mm",
        "the paper: iterations, ms, mm",
    )
    return table("Table 2: a humanoid whose inner joints are hidden", header, rows)


def _row(motion, rate, name, outcome):
    paper = ", ".join(str(figure) or "–" for figure in PAPER[name]) if motion.name == "dance" and name in PAPER else ""
    return (
        f"{motion.name}, {rate} Hz, {len(motion.root)} frames",
        name,
        f"{outcome.iterations.mean():.1f}",
        f"{outcome.ms:.2f}",
        f"{np.median(outcome.error(motion)):.1f}",
        f"{np.median(outcome.miss(motion)):.2g}",
        paper,
    )
