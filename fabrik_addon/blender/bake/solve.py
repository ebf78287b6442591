"""Solves the trees of a bake, for markers or for the targets of effectors."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...core import Solution, Solver
from ...markers.steps import within
from ...markers.take import TakeSettings, solve_take_steps
from ..rig.legal import legal_pose
from .jobs import BakedTree, Job
from .unseen import fill_unseen


def solve(jobs: Sequence[Job]) -> Generator[float, None, tuple[BakedTree, ...]]:
    """Solve the trees one after the other; yields the share done."""
    trees = []
    for place, job in enumerate(jobs):
        stage = _solve_effectors(job) if job.take is None else _solve_take(job, job.take)
        trees.append((yield from within(place / len(jobs), (place + 1) / len(jobs), stage)))
    return tuple(trees)


def _solve_take(job: Job, settings: TakeSettings) -> Generator[float, None, BakedTree]:
    """Solve a tree for markers; yields the share done."""
    goals, root = job.goals, "FREE" if job.root_heads is None else "FIXED"
    solver = Solver(goals.tree.skeleton, goals.effectors, limits=goals.all_limits, root=root)
    steps = solve_take_steps(solver, job.places.points, settings, root_heads=job.root_heads, factors=job.factors)
    found = yield from steps
    tree = _baked(job, found.solution)
    keyed = found.keyed if settings.gaps == "UNKEYED" else None
    stances = () if found.planted is None else found.planted.stances
    return replace(tree, keyed=keyed, filled=found.filled, outliers=found.outliers, stances=stances)


def _solve_effectors(job: Job) -> Generator[float, None, BakedTree]:
    """Solve a tree for the targets of effectors; yields the share done."""
    parts = []
    for part, done in _solve_from_rest(job):
        parts.append(part)
        yield done
    names = [field.name for field in fields(Solution) if field.name != "skeleton"]
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    solution = replace(parts[0], **joined)
    return _baked(job, fill_unseen(_others_kept(job, solution), job.goals.turned_by, job.seen))


def _baked(job: Job, solution: Solution) -> BakedTree:
    """The tree with its rotations clamped to their limits, because interpolated poses may be outside."""
    solution = _others_kept(job, solution)
    names = tuple(solution.skeleton.names[bone] for bone in job.bones)
    legal = legal_pose(solution.skeleton, job.goals.limits, solution.rotations)
    return BakedTree(job.goals, names, replace(solution, rotations=legal), job.scale)


def _solve_from_rest(job: Job) -> Iterator[tuple[Solution, float]]:
    """Solve each frame from rest, in large parts; yields the share done."""
    solver, count = job.solver, len(job.places.points)
    start = job.goals.tree.rotations.copy()
    start[job.bones] = (1.0, 0.0, 0.0, 0.0)
    for first in range(0, count, solver.frames_at_once):
        part = slice(first, first + solver.frames_at_once)
        heads = None if job.root_heads is None else job.root_heads[part]
        yield job.places.part(part).solve(solver, start, heads), min(1.0, part.stop / count)


def _others_kept(job: Job, solution: Solution) -> Solution:
    """The solution in which bones without keys are unchanged, although the solver may have bent a straight limb."""
    rotations = np.array(solution.rotations)
    others = np.setdiff1d(np.arange(len(solution.skeleton)), job.bones)
    rotations[:, others] = job.goals.tree.rotations[others]
    return replace(solution, rotations=rotations)
