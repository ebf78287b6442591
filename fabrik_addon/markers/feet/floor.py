"""How high feet stand over the floor that their rig stands on at rest."""

from typing import Final

import numpy as np

from ...core import Skeleton, Solution
from ...human.rest_body import RestBody, bones_of
from ...human.soles import Point, soles_of
from ..calibrate.offsets import points_on
from ..clip import FloatArray

# Percent of a take's frames on which a foot is on the floor at the least: a walk's is on 60, a run's on 30. That a sole
# goes into the floor on fewer is how it rolls.
_STANDING: Final = 20.0
# On stairs feet stand on the lowest step on few frames: where they are lower there by so much of the body's size (10 cm
# of a person), which no foot rolls by, that is the floor.
_LOWEST: Final = 4.0
_STEP: Final = 0.04
# A foot that never comes lower than so much of the body's size (5 cm of a person) over the other one does not stand.
_LIFTED: Final = 0.02


def lift_off_floor(poses: Solution) -> FloatArray:
    """(3,) from where the soles stand in F poses to the floor that they stand on at rest, along the body's own up.

    In armature space, the rig's units; zero where nothing says which bones are feet.
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
    """(F, C) how far up the corners of a sole are when bones stand at matrices (F, J, 4, 4)."""
    bones = [skeleton.index(bone) for bone, _ in sole]
    return np.asarray(points_on(matrices, bones, np.array([place for _, place in sole])) @ up)
