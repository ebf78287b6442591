"""Limits of joints on many frames: what their own poses have beyond they may keep, and limbs may be kept bent."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, FloatArray
from ..core.backend import array as many
from ..core.kernel.bodies import Bodies
from ..core.limits.base import FeasibleSet, Limit
from ..core.limits.hinge import Hinge
from ..core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

# Radians: what is beyond a limit by more; and how near limits are looked at, as far as a joint turns in a step.
PASSED: Final = 1e-6
LONGEST_TURN: Final = 0.6
# Radians (8 degrees): a limb that is kept bent is bent by as much, where its own pose is by more. As a leg of 0.9 m
# comes near to straight its knee goes aside faster than its hip goes up, by the reciprocal of this: 7 times here, 29
# times at 2 degrees. It is 2 mm short.
_BENT: Final = 0.14


class FrameLimits:
    """The limits of B bodies on F frames."""

    def __init__(
        self, bodies: Bodies, limits: Mapping[str, Limit], own: FloatArray, shares: FloatArray, *, bent: bool = False
    ) -> None:
        """Take note of (F, B, 4) own poses, and of how much (F,) of their way beyond they may not keep.

        bent: hinges of limbs stop short of straight, or where their own pose has them if that is nearer.
        """
        self._bodies = bodies
        names = [bodies.skeleton.names[bone] for bone in bodies.bones]
        ranges = self._bent(limits, own) if bent else {}
        self._joints = [
            _Joint(body, limits[name], ranges.get(body, limits[name]), own[:, body], shares)
            for body, name in enumerate(names)
            if name in limits and bodies.counts[body]
        ]

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, B, 4) inside the limits."""
        result = local.copy()
        for joint in self._joints:
            result[:, joint.body] = joint.clamped(local[:, joint.body])
        return result

    def constraints(self, local: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The sides of limits near (F, B, 4) rotations: (F, W, Dt) in the turning columns, and (F, W) up to them."""
        bodies, rows, gaps = self._bodies, [], []
        body_of = bodies.body_of[: bodies.turning]
        for joint in self._joints:
            columns = np.flatnonzero(body_of == joint.body)
            for normal, gap in joint.constraints(local[:, joint.body]):
                row = np.zeros((len(local), len(body_of)))
                row[:, columns] = normal @ bodies.axes[columns].T
                rows.append(row)
                gaps.append(np.maximum(gap, 0.0))
        return (np.stack(rows, axis=1), np.stack(gaps, axis=1)) if rows else None

    def _bent(self, limits: Mapping[str, Limit], own: FloatArray) -> dict[int, FeasibleSet]:
        """By body the range of each hinge below another bone, narrowed on each frame for the limb to stay bent."""
        bodies = self._bodies
        found: dict[int, FeasibleSet] = {}
        for body, bone in enumerate(bodies.bones.tolist()):
            limit = limits.get(bodies.skeleton.names[bone])
            if not isinstance(limit, Hinge) or bodies.parents[body] < 0:
                continue
            straight = _straight(bodies, body, np.array(limit.turn_axis))
            away = limit.angle(many, many.quaternion(own[:, body])) - straight
            kept = np.minimum(np.abs(away), _BENT)
            # What is dead straight folds toward the middle of its range.
            inward = np.where(np.abs(away) > PASSED, away, limit.bounds.middle - straight) > 0.0
            low, high = limit.bounds.low, limit.bounds.high
            lowest = np.where(inward, np.clip(straight + kept, low, high), low)
            highest = np.where(inward, high, np.clip(straight - kept, low, high))
            found[body] = replace(limit.bounds, low=lowest, high=highest)
        return found


def _straight(bodies: Bodies, body: int, axis: FloatArray) -> float:
    """The angle of a hinge about a unit axis (3,) at which what is above and below its head make the longest limb."""
    skeleton, below = bodies.skeleton, np.flatnonzero(bodies.parents == body)
    bone = int(bodies.bones[body])
    upper = bodies.rest_turns[body].T @ skeleton.head_offset(bone)
    lower = skeleton.head_offset(int(bodies.bones[below[0]])) if len(below) else (0.0, skeleton.lengths[bone], 0.0)
    across, wanted = (each - (each @ axis) * axis for each in (np.asarray(lower), upper))
    if min(np.linalg.norm(across), np.linalg.norm(wanted)) < ROUNDING:
        return 0.0
    return float(np.arctan2(np.cross(across, wanted) @ axis, across @ wanted))


class _Joint:
    """A limited joint on F frames: its limit, turned by what of its own poses' way beyond they may keep."""

    def __init__(self, body: int, limit: Limit, inside: FeasibleSet, own: FloatArray, shares: FloatArray) -> None:
        """own: (F, 4) the poses. shares: (F,) how much of it they may not keep. inside: what rotations may be."""
        self.body, self._limit = body, inside
        self._beyond: FloatArray | None = None
        away = rotation_vector_from_quaternion(product(own, conjugate(self.clamped(own))))
        if np.abs(away).max() > PASSED and limit.turn_axis is None:
            self._beyond = quaternion_from_rotation_vector((1.0 - shares)[:, None] * away)

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, 4) inside."""
        inside = many.stack([self._limit.clamp(many, many.quaternion(self._seen(local)))], len(local))[:, 0]
        return inside if self._beyond is None else product(self._beyond, inside)

    def constraints(self, local: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """(F, 3) normals in the frame that carries the joint, and (F,) radians up to each side that is near."""
        for constraint in self._limit.constraints(many, many.quaternion(self._seen(local)), LONGEST_TURN):
            yield many.stack([constraint.normal], len(local))[:, 0], many.row([constraint.gap], len(local))[:, 0]

    def _seen(self, local: FloatArray) -> FloatArray:
        return local if self._beyond is None else product(conjugate(self._beyond), local)
