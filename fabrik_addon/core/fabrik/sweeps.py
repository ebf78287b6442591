"""Sweeps over many frames: both passes, again and again, until each frame is met or moves no more."""

import numpy as np

from ..model.bodies import SweepPose
from ..state import State
from .passes import Passes, SweepTargets, sweep_targets

# A frame whose effectors move less than this share of their tolerances in a sweep has come to rest.
_NO_CHANGE = 0.01


def sweep_frames(passes: Passes, state: State, most: int) -> None:
    """Sweep F frames in place until each is met, moves no more, or has had the most sweeps."""
    bodies, frames, part = passes.bodies, np.arange(len(state.targets)), state
    pose = part.pose(bodies)
    targets, before = _targets(passes, part, pose), part.points_of(bodies, pose)
    for _ in range(most):
        _sweep(passes, part, pose, targets)
        points = part.points_of(bodies, pose)
        part.stationary = ~part.moved(points, before, _NO_CHANGE)
        going = part.unmet(part.misses(points)) & ~part.stationary
        before = points
        if not going.all():
            state.replace(frames, part)
            kept = np.flatnonzero(going)
            if not len(kept):
                return
            frames, part, before = frames[kept], part.part(kept), points[kept]
            pose = part.pose(bodies)
            targets = _targets(passes, part, pose)
        elif state.residuals.loops:
            targets = _targets(passes, part, pose)
    state.replace(frames, part)


def _targets(passes: Passes, state: State, pose: SweepPose) -> SweepTargets:
    """What the next sweep wants; it stays the same where no loop is closed."""
    backend, residuals = passes.backend, state.residuals
    places, shares = residuals.sweep_positions(backend, passes.bodies, pose, state.targets, state.weights)
    positions = [backend.vector(places[:, end]) for end in range(residuals.ends)]
    weights = [backend.scalar(shares[:, end]) for end in range(residuals.ends)]
    orientations = residuals.sweep_orientations(backend, state.target_rotations, state.weights)
    return sweep_targets(backend, passes.bodies, positions, weights, orientations)


def _sweep(passes: Passes, state: State, pose: SweepPose, targets: SweepTargets) -> None:
    """Sweep the bodies once from the pose in which they stand; it changes in place."""
    turning = [
        rest if body.limit is None else local
        for body, rest, local in zip(passes.bodies, state.rest, state.local, strict=True)
    ]
    state.local = passes.sweep(pose, turning, state.bound, targets)
    state.root = pose.heads[0]
    state.iterations += 1
