"""Poses over frames, and changes of them: spread from some of the frames to all, and made smooth."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray, IntArray
from ..core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

# Frames of the mean over time: one standard deviation, and how many to each side.
_SPREAD: Final = 3.0
_BESIDE: Final = 8
# Frames to each side over which the worst counts: one standard deviation, for the mean to miss no less.
_BEFORE: Final = 3


@dataclass(frozen=True)
class MotionPoses:
    """F poses.

    rotations: (F, J, 4) local. roots: (F, 3) the root's head. errors: (F, E) distances of effectors from their targets.
    """

    rotations: FloatArray
    roots: FloatArray
    errors: FloatArray


def smoothed(found: MotionPoses, own: MotionPoses) -> MotionPoses:
    """Poses whose change from the frames' own ones is smooth over F frames, and none at the ends."""
    rotation_vectors = rotation_vector_from_quaternion(product(found.rotations, conjugate(own.rotations)))
    share = _from_the_ends(len(rotation_vectors))
    changes = [rotation_vectors.reshape(len(rotation_vectors), -1), found.roots - own.roots]
    calm = [each + share * (_mean(each) - each) for each in changes]
    turned = product(quaternion_from_rotation_vector(calm[0].reshape(rotation_vectors.shape)), own.rotations)
    return MotionPoses(turned, own.roots + calm[1], np.empty(0))


def _from_the_ends(count: int) -> FloatArray:
    """(F, 1) shares that rise from 0 at the first and the last of F frames to 1 within a standard deviation."""
    frames = np.arange(count)
    return np.clip(np.minimum(frames, frames[::-1]) / _SPREAD, 0.0, 1.0)[:, None]


def _mean(values: FloatArray) -> FloatArray:
    """(F, n) each with its neighbours', by Gauss's weights; the first and the last go on for ever."""
    weights = np.exp(-0.5 * (np.arange(-_BESIDE, _BESIDE + 1) / _SPREAD) ** 2)
    padded = np.pad(values, ((_BESIDE, _BESIDE), (0, 0)), mode="edge")
    shifted = (weight * padded[step : step + len(values)] for step, weight in enumerate(weights))
    return np.asarray(sum(shifted) / weights.sum())


def widened(missing: FloatArray, now: int) -> FloatArray:
    """(F, R) what is missing on each of F frames as on the worst about it, smooth over time.

    At the place `now` it is what is missing there, and nothing at the ends.
    """
    padded = np.pad(missing, ((_BEFORE, _BEFORE), (0, 0)), mode="edge")
    about = np.arange(len(missing))[:, None] + np.arange(2 * _BEFORE + 1)
    worst = np.linalg.norm(padded, axis=1)[about].argmax(axis=1)
    wide = _mean(padded[about[:, 0] + worst])
    beside = np.exp(-0.5 * ((np.arange(len(missing)) - now) / _SPREAD) ** 2)
    return np.asarray(_from_the_ends(len(missing)) * (wide + beside[:, None] * (missing[now] - wide[now])))


def between(found: MotionPoses, knots: IntArray, rotations: FloatArray, roots: FloatArray) -> MotionPoses:
    """Poses near to what K of F frames have come to: what changed there, in straight lines over those in between.

    knots: (K,) rising, the first frame and the last among them. rotations: (F, J, 4), roots: (F, 3) as they were.
    """
    changed = product(found.rotations, conjugate(rotations[knots]))
    changed = np.where(changed[..., :1] < 0.0, -changed, changed)
    frames = np.arange(len(rotations))
    after = np.clip(np.searchsorted(knots, frames, side="right"), 1, len(knots) - 1)
    share = ((frames - knots[after - 1]) / (knots[after] - knots[after - 1]))[:, None]
    turn = changed[after - 1] + share[..., None] * (changed[after] - changed[after - 1])
    shift = found.roots - roots[knots]
    moved = roots + shift[after - 1] + share * (shift[after] - shift[after - 1])
    turned = product(turn / np.linalg.norm(turn, axis=-1, keepdims=True), rotations)
    return MotionPoses(turned, moved, np.empty(0))
