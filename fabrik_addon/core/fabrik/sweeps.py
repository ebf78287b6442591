"""Sweeps over many frames: both passes, repeated until each frame is solved or stops moving."""

from dataclasses import replace

import numpy as np

from ..arrays import BoolArray, FloatArray, lengths
from ..backend.protocol import Backend, Quaternion, Scalar, Vector
from ..kernel.bodies import Bodies, Pose
from ..kernel.goals import Goals
from ..model.bodies import place_bodies
from ..rotations import quaternion_from_matrix
from ..state import State
from .chain import NO_CHANGE
from .passes import Passes, SweepTargets, sweep_targets


def sweep_frames(passes: Passes, bodies: Bodies, goals: Goals, state: State, most: int, at_once: int = 1) -> None:
    """Sweep F frames in place until each is solved, stops moving, or reaches the largest number of sweeps.

    at_once: the number of sweeps between two checks.
    """
    frames, part = np.arange(len(state.weights)), state
    rest = state.pose.local.copy()
    bound = np.zeros(rest.shape[:2], dtype=bool)
    times = 1 if goals.loops else at_once
    for done in range(0, most, times):
        pose, before = _swept(passes, bodies, goals, part, rest[frames], bound, times), part.residual
        residual = goals.residual(pose, part.wanted)
        part = replace(part, pose=pose, residual=residual, iterations=part.iterations + times)
        moved = lengths(residual - before) > NO_CHANGE * part.tolerances
        part.stationary = ~(moved & (part.weights > 0.0)).any(axis=1)
        is_going = part.unmet() & ~part.stationary
        if not is_going.all() and done + times < most:
            going = np.flatnonzero(is_going)
            state.put(frames, part)
            frames, part, bound = frames[going], part.part(going), bound[going]
            if not len(frames):
                return
    state.put(frames, part)


def _swept(
    passes: Passes, bodies: Bodies, goals: Goals, state: State, rest: FloatArray, bound: BoolArray, times: int
) -> Pose:
    """The pose after some sweeps; limited bodies rotate from their current rotation, others from `rest` (F, B, 4)."""
    backend, targets = passes.backend, _targets(passes, goals, state)
    local, begun = _as_list(backend, state.pose.local), _as_list(backend, rest)
    pose = place_bodies(passes.bodies, local, backend.vector(state.pose.root))
    flags = [backend.scalar(flag) > 0.5 for flag in bound.T.astype(float)]
    for _ in range(times):
        turning = [begun[body] if each.limit is None else local[body] for body, each in enumerate(passes.bodies)]
        local = passes.sweep(pose, turning, flags, targets)
    for body, flag in enumerate(flags):
        bound[:, body] = flag
    root = backend.stack([pose.heads[0]], len(rest))[:, 0]
    return bodies.pose(backend.stack(local, len(rest)), root, state.pose.factors)


def _as_list(backend: Backend, rotations: FloatArray) -> list[Quaternion]:
    return backend.quaternions(rotations, range(rotations.shape[1]))


def _targets(passes: Passes, goals: Goals, state: State) -> SweepTargets:
    """The targets of the next sweep; for a loop, both sides go to the midpoint between them."""
    backend = passes.backend
    count, oriented = goals.count, goals.oriented
    points, weights = state.wanted.points, state.weights[:, :count]
    if goals.loops:
        found = goals.points(state.pose)
        middle = 0.5 * (found[:, goals.loops] + found[:, count:])
        points = np.concatenate([points, middle], axis=1)
        points[:, goals.loops] = middle
        weights = np.concatenate([weights, weights[:, goals.loops]], axis=1)
    orientations: dict[int, tuple[Quaternion, Scalar]] = {}
    if len(oriented):
        shares = np.where(state.weights[:, count:] > 0.0, goals.shares, 0.0)
        wanted = quaternion_from_matrix(state.wanted.frames)
        for place, holder in enumerate(goals.on[oriented].tolist()):
            orientations[holder] = backend.quaternion(wanted[:, place]), backend.scalar(shares[:, place])
    positions: list[Vector] = [backend.vector(points[:, end]) for end in range(points.shape[1])]
    pulls: list[Scalar] = [backend.scalar(weights[:, end]) for end in range(points.shape[1])]
    return sweep_targets(backend, passes.bodies, positions, pulls, orientations)
