"""How far a take's feet are above or below the floor."""

from typing import Final

import numpy as np

from ...core import Skeleton, Solution
from ...human.rest_body import RestBody, bones_of
from ...human.soles import Point, soles_of
from ..calibrate.offsets import points_on
from ..clip import FloatArray

# A foot is on the floor on at least this percentage of a take's frames (60 in a walk, 30 in a run). A sole that is
# below the floor on fewer frames is only rolling.
_STANDING: Final = 20.0
# On stairs, feet are on the lowest step on few frames. If they are lower there by this percentage of the body's size
# (10 cm on a person), more than any foot rolls, that step is the floor.
_LOWEST: Final = 4.0
_STEP: Final = 0.04
# A foot that always stays higher than the other by this share of the body's size (5 cm on a person) is not in contact.
_LIFTED: Final = 0.02


def lift_off_floor(poses: Solution) -> FloatArray:
    """(3,) translation that moves F poses onto the floor on which the soles are at rest, along the body's own up axis.

    In armature space, the rig's units; zero if no bones are known to be feet.
    """
    skeleton = poses.skeleton
    body = RestBody(bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    feet = soles_of(body).values()
    if body.axes is None or not feet:
        return np.zeros(3)
    up = body.axes.up
    floor = min(float(_heights(skeleton, skeleton.rest[None], sole, up).min()) for sole in feet)
    lows = [_heights(skeleton, poses.matrices, sole, up).min(axis=1) for sole in feet]
    lowest, heights = np.percentile(lows, [_LOWEST, _STANDING], axis=1)
    if (heights - lowest).max() > _STEP * skeleton.size:
        heights = lowest
    standing = heights <= heights.min() + _LIFTED * skeleton.size
    return np.asarray((floor - heights[standing].mean()) * up)


def _heights(skeleton: Skeleton, matrices: FloatArray, sole: tuple[Point, ...], up: FloatArray) -> FloatArray:
    """(F, C) heights of a sole's corners along `up`; matrices: (F, J, 4, 4) of the bones."""
    bones = [skeleton.index(bone) for bone, _ in sole]
    return np.asarray(points_on(matrices, bones, np.array([place for _, place in sole])) @ up)
