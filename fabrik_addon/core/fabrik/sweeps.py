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
from .passes import Passes, SweepTargets, sweep_targets

# A frame is at rest if its effectors move less than this share of their tolerances in a sweep.
_NO_CHANGE = 0.01


def sweep_frames(passes: Passes, bodies: Bodies, goals: Goals, state: State, most: int) -> None:
    """Sweep F frames in place until each is solved, stops moving, or has had the most sweeps."""
    frames, part = np.arange(len(state.weights)), state
    rest = state.pose.local.copy()
    bound = np.zeros(rest.shape[:2], dtype=bool)
    residual = goals.residual(part.pose, part.wanted)
    for _ in range(most):
        pose, before = _sweep(passes, bodies, goals, part, rest[frames], bound), residual
        part = replace(part, pose=pose, iterations=part.iterations + 1)
        residual = goals.residual(pose, part.wanted)
        moved = lengths(residual - before) > _NO_CHANGE * part.tolerances
        part.stationary = ~(moved & (part.weights > 0.0)).any(axis=1)
        is_going = part.unmet(residual) & ~part.stationary
        if not is_going.all():
            going = np.flatnonzero(is_going)
            state.put(frames, part)
            frames, part, residual, bound = frames[going], part.part(going), residual[going], bound[going]
            if not len(frames):
                return
    state.put(frames, part)


def _sweep(passes: Passes, bodies: Bodies, goals: Goals, state: State, rest: FloatArray, bound: BoolArray) -> Pose:
    """The pose after one sweep; limited bodies rotate from their current rotation, others from `rest` (F, B, 4)."""
    backend = passes.backend
    limited = np.array([body.limit is not None for body in passes.bodies])
    turning = np.where(limited[:, None], state.pose.local, rest)
    own = _as_list(backend, state.pose.local)
    pose = place_bodies(passes.bodies, own, backend.vector(state.pose.root))
    flags = [backend.scalar(flag) > 0.5 for flag in bound.T.astype(float)]
    local = passes.sweep(pose, _as_list(backend, turning), flags, _targets(passes, goals, state))
    for body, flag in enumerate(flags):
        bound[:, body] = flag
    root = backend.stack([pose.heads[0]], len(rest))[:, 0]
    return bodies.pose(backend.stack(local, len(rest)), root, state.pose.factors)


def _as_list(backend: Backend, rotations: FloatArray) -> list[Quaternion]:
    return backend.quaternions(rotations, range(rotations.shape[1]))


def _targets(passes: Passes, goals: Goals, state: State) -> SweepTargets:
    """The targets of the next sweep; both sides of a loop go to the midpoint between them."""
    backend = passes.backend
    count, oriented = goals.count, goals.oriented
    points, weights, found = state.wanted.points, state.weights[:, :count], goals.points(state.pose)
    if found.shape[1] > count:
        middle = 0.5 * (found[:, goals.loops] + found[:, count:])
        points = np.concatenate([points, middle], axis=1)
        points[:, goals.loops] = middle
        weights = np.concatenate([weights, weights[:, goals.loops]], axis=1)
    shares = np.where(state.weights[:, count:] > 0.0, goals.shares, 0.0)
    wanted = quaternion_from_matrix(state.wanted.frames)
    holders = goals.on[oriented].tolist()
    orientations: dict[int, tuple[Quaternion, Scalar]] = {
        holder: (backend.quaternion(wanted[:, place]), backend.scalar(shares[:, place]))
        for place, holder in enumerate(holders)
    }
    positions: list[Vector] = [backend.vector(points[:, end]) for end in range(points.shape[1])]
    pulls: list[Scalar] = [backend.scalar(weights[:, end]) for end in range(points.shape[1])]
    return sweep_targets(backend, passes.bodies, positions, pulls, orientations)
