"""Rotations clamped to limits, and the limits that contain given rotations.

A fitted limit is a hinge if all rotations are about one axis, else a ball, or optionally a polygon.
"""

from collections.abc import Mapping
from math import pi, tau
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .arrays import ROUNDING, FloatArray
from .backend import array as many
from .limits import Ball, Fixed, Hinge, Limit, Polygon, Range, swing_of, twist_of
from .model.skeleton import Skeleton
from .rotations import IDENTITY, angle_between

_ALL_ROUND: Final = (-pi, pi)
_AXES: Final = ("X", "Y", "Z")
# Radians. Smaller changes by a clamp are rounding errors.
_ROUNDING: Final = 1e-9


def legal_rotations(limit: Limit, rotations: npt.ArrayLike) -> FloatArray:
    """(F, 4) rotations within a limit nearest to `rotations` (F, 4), w x y z; rotations inside don't change."""
    given = np.asarray(rotations, dtype=np.float64)
    if not len(given):
        return given
    clamped = many.stack([limit.clamp(many, many.quaternion(given))], len(given))[:, 0]
    return np.where((angle_between(given, clamped) > _ROUNDING)[:, None], clamped, given)


def excess(limit: Limit, rotations: FloatArray) -> FloatArray:
    """(F,) radians by which rotations (F, 4) are outside a limit."""
    return angle_between(rotations, legal_rotations(limit, rotations))


def legal_pose(skeleton: Skeleton, limits: Mapping[str, Limit], rotations: FloatArray) -> FloatArray:
    """Clamp the limited bones of poses (F, J, 4) to their limits; returns (F, J, 4)."""
    legal = np.array(rotations)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        legal[:, bone] = legal_rotations(limit, legal[:, bone])
    return legal


# The number of an outline's corners; few, because they are edited by hand.
_CORNERS: Final = 12
# Radians. The margin is at least this, so that swings on a line, or all at one point, get an outline with an area.
_LEAST_MARGIN: Final = 1e-3
# Radians. A bone that never rotates by more than this gets no limit.
_STILL_THROUGHOUT: Final = 1e-4
_ROUNDS_OF_WEIGHTS: Final = 200


def window_around(swings: FloatArray, margin: float) -> FloatArray:
    """(C, 2) corners of an outline that contains (F, 2) swings and a margin around them, counterclockwise.

    Each edge touches the swings with their margin. The edges are parallel to those of a regular polygon that is
    stretched as the swings are. If a corner would be more than 180° from rest, the outline is the widest one possible.
    """
    margin = max(margin, _LEAST_MARGIN)
    azimuths = tau * np.arange(_CORNERS) / _CORNERS
    circle = np.stack([np.cos(azimuths), np.sin(azimuths)], axis=1)
    # The directions in which the swings vary most and least.
    axes = np.linalg.eigh(np.cov(swings.T, bias=True))[1].T
    axes[1] *= np.linalg.det(axes)
    normals = circle / (np.ptp(swings @ axes.T, axis=0) + 2.0 * margin) @ axes
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    reach = (normals @ swings.T).max(axis=1) + margin
    lines, ends = (np.stack([each, np.roll(each, -1, axis=0)], axis=1) for each in (normals, reach))
    corners = np.linalg.solve(lines, ends[..., None])[..., 0]
    return corners if np.linalg.norm(corners, axis=1).max() <= pi else pi * circle


def fitted_limit(
    rotations: FloatArray, margin: float = 0.0, hinge_tolerance: float = 0.0, shape: str = "FITTED"
) -> Limit:
    """The limit that contains successive rotations (F, 4), widened by a margin."""
    if angle_between(rotations, IDENTITY).max() < _STILL_THROUGHOUT:
        return Fixed()
    quaternions = many.quaternion(rotations)
    off_axis = {axis: float(excess(Hinge(axis), rotations).max()) for axis in _AXES}
    axis: Any = min(_AXES, key=off_axis.__getitem__)
    if shape == "FITTED" and off_axis[axis] <= hinge_tolerance + _STILL_THROUGHOUT:
        return Hinge(axis, *_range(np.asarray(Hinge(axis).angle(many, quaternions)), margin))
    swing = swing_of(many, quaternions)
    swings = np.stack([swing.x, swing.z], axis=-1).reshape(-1, 2)
    twist = _range(np.asarray(twist_of(many, quaternions, 0.0)), margin)
    if shape == "FITTED":
        half_axes = _half_axes(np.concatenate([swings, -swings], axis=1).T)
        return Ball(tuple(np.minimum(half_axes + margin, pi).tolist()), twist)
    corners = window_around(swings, margin)
    return Polygon(tuple((x, z) for x, z in corners.tolist()), twist)


def _range(angles: FloatArray, margin: float) -> Range:
    """The range of successive angles (F,), in radians, widened by a margin. Angles may continue beyond 180°."""
    counted = np.unwrap(angles)
    low, high = float(counted.min()) - margin, float(counted.max()) + margin
    if high - low >= tau:
        return _ALL_ROUND
    whole_turns = tau * round((low + high) / (2.0 * tau))
    return low - whole_turns, high - whole_turns


def _half_axes(swings: FloatArray) -> FloatArray:
    """(4,) half-axes of the four quarter ellipses that contain swings (4, F), with a small sum.

    With u = 1 / half-axis², squares · u <= 1 must hold for each swing. Each swing has a weight that grows while it is
    outside; the sum is smallest at u = (2 · weights · squares) to the power of -2/3.
    """
    every = np.square(np.maximum(swings.T, 0.0))
    farthest = every.max(axis=0)
    used = farthest > _STILL_THROUGHOUT**2
    squares = every[:, used]
    inverse = 1.0 / farthest[used]
    weights = np.full(len(squares), 1.0 / len(squares))
    for _ in range(_ROUNDS_OF_WEIGHTS if (squares @ inverse).max(initial=0.0) > 1.0 + _STILL_THROUGHOUT else 0):
        inverse = (2.0 * weights @ squares) ** (-2.0 / 3.0)
        weights *= squares @ inverse
    half_axes = np.zeros(4)
    half_axes[used] = np.sqrt((squares @ inverse).max(initial=1.0) / inverse)
    # Limit the half-axes to 180°, while all swings stay inside.
    while (half_axes > pi).any():
        cut = half_axes >= pi
        half_axes = np.minimum(half_axes, pi)
        room = np.maximum(1.0 - every[:, cut].sum(axis=1) / pi**2, ROUNDING)
        load = every[:, ~cut] @ np.maximum(half_axes[~cut], ROUNDING) ** -2.0
        half_axes[~cut] *= np.sqrt((load / room).max(initial=1.0))
    return half_axes
