"""Bones that the markers leave undecided, kept from trembling.

Several bones in a row with few markers (a spine between pelvis and chest) meet their markers equally well in many
ways, and frames that are solved each by itself pick now one, now another. Here each pose is drawn toward what the
frames about it do in the mean, by a weight that counts for almost nothing where markers say where a bone is.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Final

import numpy as np

from ...core import Effector, Solution, Solver
from ...core.model.kinematics import forward_kinematics, tails
from ..calibrate.offsets import effector_points
from ..clip import FloatArray
from .determined import uncertainty

# Seconds over which poses are averaged (one standard deviation), and over which the odd one out is left out before.
_SPREAD: Final = 0.1
# What a bone's wish to be as usual counts beside one marker: first so that it tells, in the end next to nothing.
_WEIGHTS: Final = (1e-2, 1e-3, 1e-4)
# A bone is undecided whose turn all markers together leave this unsure (radians).
_UNSURE: Final = 0.5
# The points of a bone that are to be where they usually are, as shares of its length along its own axes.
_POINTS: Final = ((0.5, 0.5, 0.0), (-0.25, 0.5, 0.45), (-0.25, 0.5, -0.45))
_CHUNK: Final = 1000


def regularise_steps(
    solver: Solver, solution: Solution, targets: FloatArray, weights: FloatArray, rate: float
) -> Generator[float, None, Solution]:
    """Solve F frames again with undecided bones as the frames about them have them; yields the share done.

    Where that is no smoother than it was, the poses stay as they are.

    solver: its effectors are the markers. solution: the poses found frame by frame. targets: (F, E, 3). weights: (F, E)
    of the markers, 0 for outliers. rate: frames a second.
    """
    bones = [int(bone) for bone in np.flatnonzero(uncertainty(solver, solution) > _UNSURE)] if len(targets) > 1 else []
    if not bones:
        return solution
    before = solution
    mean = float(np.mean([effector.weight for effector in solver.effectors]))
    both = _with_anchors(solver, bones)
    for turn, share in enumerate(_WEIGHTS):
        every_bone = np.moveaxis(solution.rotations, 1, 0)
        usual = np.stack([usual_rotations(turns, _SPREAD * rate) for turns in every_bone], axis=1)
        calmer = Solution.empty(solver.skeleton, len(targets), len(solver.effectors))
        for first in range(0, len(targets), _CHUNK):
            part = slice(first, first + _CHUNK)
            roots = solution.root_location[part]
            wanted = _anchor_targets(solver, usual[part], roots, bones)
            every = np.concatenate([targets[part], wanted], axis=1)
            weight = np.concatenate([weights[part], np.full(wanted.shape[:2], share * mean)], axis=1)
            found = both.solve(every, weights=weight, start=usual[part], start_location=roots)
            calmer.put(part, _of_markers(solver, found, targets[part]))
            yield (turn + min(1.0, part.stop / len(targets))) / len(_WEIGHTS)
        solution = replace(calmer, rotation_errors=before.rotation_errors, status=before.status)
    return solution if _roughness(solution) < _roughness(before) else before


def _roughness(solution: Solution) -> float:
    """How much the bones' ends tremble: the mean square of what their steps change by from frame to frame."""
    count = len(solution.status)
    sums = [
        (np.diff(_tails(solution, slice(first, first + _CHUNK + 2)), 2, axis=0) ** 2).sum(axis=0)
        for first in range(0, count - 2, _CHUNK)
    ]
    return float(np.sum(sums)) / count


def _tails(solution: Solution, part: slice) -> FloatArray:
    """(N, J, 3) the bones' ends on some frames."""
    matrices = forward_kinematics(solution.skeleton, solution.rotations[part], solution.root_location[part])
    return tails(solution.skeleton, matrices)


def _with_anchors(solver: Solver, bones: list[int]) -> Solver:
    """The solver with points on the bones that have targets of their own."""
    names = solver.skeleton.names
    anchors = [Effector(names[bone], _point(solver, bone, share)) for bone in bones for share in _POINTS]
    return Solver(
        solver.skeleton,
        [*solver.effectors, *anchors],
        limits=solver.limits,
        root="FREE" if solver.free_root else "FIXED",
        options=replace(solver.options, max_sweeps=0, restarts=0),
    )


def _of_markers(solver: Solver, found: Solution, targets: FloatArray) -> Solution:
    """What was found, with the errors of the markers alone."""
    count = len(solver.effectors)
    points = effector_points(solver.skeleton, solver.effectors, found.matrices)
    errors = np.linalg.norm(points - targets, axis=2)
    return replace(found, errors=errors, rotation_errors=found.rotation_errors[:, :count])


def usual_rotations(rotations: FloatArray, spread: float) -> FloatArray:
    """(F, ..., 4) rotations, each the mean of those about it: of the three next ones first, then with Gauss's weights.

    spread: the standard deviation in frames.
    """
    signs = np.sign((rotations[1:] * rotations[:-1]).sum(axis=-1, keepdims=True))
    signs = np.concatenate([np.ones_like(rotations[:1, ..., :1]), np.where(signs == 0.0, 1.0, signs)]).cumprod(axis=0)
    turned = rotations * signs
    reach = int(np.ceil(3.0 * spread))
    middle = np.median(np.stack([_shifted(turned, step) for step in range(-2, 3)]), axis=0)
    total = sum(np.exp(-0.5 * (step / spread) ** 2) * _shifted(middle, step) for step in range(-reach, reach + 1))
    mean: FloatArray = np.asarray(total)
    return np.asarray(mean / np.linalg.norm(mean, axis=-1, keepdims=True))


def _shifted(values: FloatArray, step: int) -> FloatArray:
    """(F, ...) values, each taken from so many frames later; the first and the last go on for ever."""
    places = np.clip(np.arange(len(values)) + step, 0, len(values) - 1)
    shifted: FloatArray = values[places]
    return shifted


def _point(solver: Solver, bone: int, share: tuple[float, float, float]) -> tuple[float, float, float]:
    length = float(solver.skeleton.lengths[bone])
    return share[0] * length, share[1] * length, share[2] * length


def _anchor_targets(solver: Solver, usual: FloatArray, roots: FloatArray, bones: list[int]) -> FloatArray:
    """(F, 3 B, 3) where the points of the bones would be in the usual pose."""
    matrices = forward_kinematics(solver.skeleton, usual, roots)
    points = [
        matrices[:, bone, :3, :3] @ np.array(_point(solver, bone, share)) + matrices[:, bone, :3, 3]
        for bone in bones
        for share in _POINTS
    ]
    return np.stack(points, axis=1)
