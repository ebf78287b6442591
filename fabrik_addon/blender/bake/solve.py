"""Solving the trees of a bake, for markers or for effectors' targets."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from ...core import Solution, Solver
from ...markers.steps import within
from ...markers.take import TakeSettings, solve_take_steps
from ..rig.legal import legal_pose
from .jobs import BakedTree, Job
from .settings import BakeSettings
from .unseen import fill_unseen

# Frames between two looks at the Esc key.
_SOLVED_IN_ORDER: Final = 20


def solve(jobs: Sequence[Job], settings: BakeSettings) -> Generator[float, None, tuple[BakedTree, ...]]:
    """Solve the trees one after the other; yields the share done."""
    trees = []
    for place, job in enumerate(jobs):
        stage = _solve_effectors(job, settings) if job.take is None else _solve_take(job, job.take)
        trees.append((yield from within(place / len(jobs), (place + 1) / len(jobs), stage)))
    return tuple(trees)


def _solve_take(job: Job, settings: TakeSettings) -> Generator[float, None, BakedTree]:
    """The tree for markers; yields the share done."""
    goals, root = job.goals, "FREE" if job.root_heads is None else "FIXED"
    solver = Solver(goals.tree.skeleton, goals.effectors, limits=goals.all_limits, root=root)
    steps = solve_take_steps(solver, job.places.points, settings, root_heads=job.root_heads, factors=job.factors)
    found = yield from steps
    tree = _baked(job, found.solution)
    keyed = found.keyed if settings.gaps == "UNKEYED" else None
    stances = () if found.planted is None else found.planted.stances
    return replace(tree, keyed=keyed, filled=found.filled, outliers=found.outliers, stances=stances)


def _solve_effectors(job: Job, settings: BakeSettings) -> Generator[float, None, BakedTree]:
    """The tree for effectors' targets; yields the share done."""
    stage = _solve_in_order(job) if settings.start == "PREVIOUS" else _solve_from_rest(job)
    parts = []
    for part, done in stage:
        parts.append(part)
        yield done
    solution = _joined(parts, np.concatenate)
    if settings.mend_jumps and settings.start == "REST":
        for _ in job.places.repair(job.solver, solution, job.root_heads):
            yield 1.0
    return _baked(job, fill_unseen(_others_kept(job, solution), job.goals.turned_by, job.seen))


def _baked(job: Job, solution: Solution) -> BakedTree:
    """The tree with its poses inside the limits: between two that are there may be one that is not."""
    solution = _others_kept(job, solution)
    names = tuple(solution.skeleton.names[bone] for bone in job.bones)
    legal = legal_pose(solution.skeleton, job.goals.limits, solution.rotations)
    return BakedTree(job.goals, names, replace(solution, rotations=legal), job.scale)


def _solve_from_rest(job: Job) -> Iterator[tuple[Solution, float]]:
    """The frames in large parts, each frame by itself from rest, with the share done."""
    solver, count = job.solver, len(job.places.points)
    start = job.goals.tree.rotations.copy()
    start[job.bones] = (1.0, 0.0, 0.0, 0.0)
    for first in range(0, count, solver.frames_at_once):
        part = slice(first, first + solver.frames_at_once)
        heads = None if job.root_heads is None else job.root_heads[part]
        yield job.places.part(part).solve(solver, start, heads), min(1.0, part.stop / count)


def _solve_in_order(job: Job) -> Iterator[tuple[Solution, float]]:
    """The frames in small parts, each frame from the one before, the first from the present pose."""
    solver, count = job.solver, len(job.places.points)
    rotations, head = job.goals.tree.rotations, job.goals.tree.root_location
    for first in range(0, count, _SOLVED_IN_ORDER):
        found = []
        for frame in range(first, min(count, first + _SOLVED_IN_ORDER)):
            head = head if job.root_heads is None else job.root_heads[frame]
            found.append(job.places.part(frame).solve(solver, rotations, head))
            rotations, head = found[-1].rotations, found[-1].root_location
        yield _joined(found, np.stack), min(1.0, (first + len(found)) / count)


def _others_kept(job: Job, solution: Solution) -> Solution:
    """The solution with the bones that get no keys as they are: the solver may have bent a limb that was straight."""
    rotations = np.array(solution.rotations)
    others = np.setdiff1d(np.arange(len(solution.skeleton)), job.bones)
    rotations[:, others] = job.goals.tree.rotations[others]
    return replace(solution, rotations=rotations)


def _joined(parts: Sequence[Solution], join: Callable[[list[Any]], Any]) -> Solution:
    """Solutions of successive frames as one."""
    names = [field.name for field in fields(Solution) if field.name != "skeleton"]
    return replace(parts[0], **{name: join([getattr(part, name) for part in parts]) for name in names})
