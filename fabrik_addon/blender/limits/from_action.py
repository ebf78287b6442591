"""Sets limits to the rotations that an animation uses.

The limit of a bone that rotates about one axis only is a hinge. Other bones get a ball, or optionally a polygon.
"""

from collections.abc import Sequence
from math import cos, pi
from typing import Any, Final

import bpy
import numpy as np

from ...core import Ball, Fixed, Hinge, Polygon
from ...core.arrays import ROUNDING, FloatArray
from ...core.backend import array as many
from ...core.limits.base import Limit
from ...core.limits.swing_twist import swing_of, twist_of
from ...core.rotations import IDENTITY, angle_between
from ...human.soles import convex_hull
from ..rig.legal import excess
from ..settings.limit_properties import read_settings
from ..settings.limit_values import ALL_ROUND, AXES, Range, settings_of
from .editing import write_all
from .posed import rotations_of_action

# An outline has at most this many points, because they are edited by hand.
_MOST_CORNERS: Final = 12
# The number of points of the polygon that approximates the circle of a margin.
_ROUND: Final = 16
# Radians. Swings on a line, or all equal, still get an outline with some area.
_LEAST_MARGIN: Final = 1e-3
_FULL_TURN: Final = 2.0 * pi
# Radians. A bone that never rotates by more than this gets no limit.
_STILL: Final = 1e-4
_ROUNDS: Final = 200
# Radians (3°) by which rotations may be off a hinge's axis. Chosen by hand.
_HINGE_TOLERANCE: Final = pi / 60.0


def window_around(swings: FloatArray, margin: float) -> FloatArray:
    """(C, 2) points of an outline that contains (F, 2) swings and a margin around them, counterclockwise.

    It has at most twelve corners: edges are removed and their neighbors extended until they meet, starting with those
    that add the least area. No corner is farther than 180° from rest, the largest swing.
    """
    angles = 2.0 * pi * np.arange(_ROUND) / _ROUND
    circle = max(margin, _LEAST_MARGIN) / cos(pi / _ROUND) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    wide = (convex_hull(swings)[:, None] + circle).reshape(-1, 2)
    size = np.linalg.norm(wide, axis=1, keepdims=True)
    corners = convex_hull(np.asarray(wide * np.minimum(1.0, pi / np.maximum(size, pi))))
    while len(corners) > _MOST_CORNERS:
        ways = [(*_without(corners, edge), edge) for edge in range(len(corners))]
        added, tip, edge = min(ways, key=lambda way: way[0])
        if not np.isfinite(added):
            break
        rolled = np.roll(corners, -edge, axis=0)
        corners = np.array([tip, *rolled[2:]])
    return corners


def _without(corners: FloatArray, edge: int) -> tuple[float, FloatArray]:
    """Remove an edge: returns the added area, and the (2,) point where the neighboring edges meet."""
    before, first, second, after = (corners[(edge + step) % len(corners)] for step in (-1, 0, 1, 2))
    one, other = first - before, after - second
    slant = _cross(one, other)
    # Neighboring edges that are nearly parallel, or diverge, do not meet nearby.
    if slant <= 1e-9 * float(np.linalg.norm(one) * np.linalg.norm(other)):
        return np.inf, first
    tip = first + one * (_cross(second - first, other) / slant)
    if np.linalg.norm(tip) > pi:
        return np.inf, first
    return abs(_cross(tip - first, second - first)) / 2.0, tip


def _cross(one: FloatArray, other: FloatArray) -> float:
    return float(one[0] * other[1] - one[1] * other[0])


def limits_from_action(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    bones: Sequence[bpy.types.PoseBone],
    margin: float,
    shape: str = "FITTED",
) -> tuple[str, list[str]]:
    """Limit bones to their rotations in the rig's current action, widened by a margin.

    margin: radians on each side. shape: "FITTED", a hinge or a ball, or "POLYGON".
    Returns a line for the user, and sentences about skipped bones. Raises RigError if there is no action or it rotates
    none of the bones, LimitPropertyError if a limit can't be stored; then nothing is changed.
    """
    found = rotations_of_action(context, rig, bones)
    limits = [fitted_limit(each.rotations, margin, _HINGE_TOLERANCE, shape) for each in found]
    turned = [each.bone for each in found]
    wanted = [settings_of(limit, read_settings(bone)) for bone, limit in zip(turned, limits, strict=True)]
    write_all(turned, wanted)
    still = [bone.name for bone in bones if bone.name not in {each.name for each in turned}]
    left = [f"Not rotated by the action: {', '.join(map(repr, still))}"] if still else []
    return f"{len(turned)} bones are now limited to their rotations in action {rig.animation_data.action.name!r}", left


def fitted_limit(
    rotations: FloatArray, margin: float = 0.0, hinge_tolerance: float = 0.0, shape: str = "FITTED"
) -> Limit:
    """The limit that contains successive rotations (F, 4), widened by a margin."""
    if angle_between(rotations, IDENTITY).max() < _STILL:
        return Fixed()
    quaternions = many.quaternion(rotations)
    off_axis = {axis: float(excess(Hinge(axis), rotations).max()) for axis in AXES}
    axis: Any = min(AXES, key=off_axis.__getitem__)
    if shape == "FITTED" and off_axis[axis] <= hinge_tolerance + _STILL:
        return Hinge(axis, *_range(np.asarray(Hinge(axis).angle(many, quaternions)), margin))
    lean = swing_of(many, quaternions)
    swings = np.stack([lean.x, lean.z], axis=-1).reshape(-1, 2)
    twist = _range(np.asarray(twist_of(many, quaternions, 0.0)), margin)
    if shape == "FITTED":
        half_axes = _half_axes(np.concatenate([swings, -swings], axis=1).T)
        return Ball(tuple(np.minimum(half_axes + margin, pi).tolist()), twist)
    corners = window_around(swings, margin)
    return Polygon(tuple((x, z) for x, z in corners.tolist()), twist)


def _range(angles: FloatArray, margin: float) -> Range:
    """The range of successive angles, (F,) radians, widened by a margin. Angles may continue beyond half a turn."""
    counted = np.unwrap(angles)
    low, high = float(counted.min()) - margin, float(counted.max()) + margin
    if high - low >= _FULL_TURN:
        return ALL_ROUND
    whole_turns = _FULL_TURN * round((low + high) / (2.0 * _FULL_TURN))
    return low - whole_turns, high - whole_turns


def _half_axes(swings: FloatArray) -> FloatArray:
    """(4,) half-axes of the four quarter ellipses that contain swings (4, F), with a small sum.

    With u = 1 half-axis², squares · u <= 1 must hold for each swing. Each swing has a weight that grows while it is
    outside; the sum is smallest at u = (2 · weights · squares) to the power of -2/3.
    """
    every = np.square(np.maximum(swings.T, 0.0))
    farthest = every.max(axis=0)
    used = farthest > _STILL**2
    squares = every[:, used]
    inverse = 1.0 / farthest[used]
    weights = np.full(len(squares), 1.0 / len(squares))
    for _ in range(_ROUNDS if (squares @ inverse).max(initial=0.0) > 1.0 + _STILL else 0):
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
