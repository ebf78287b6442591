"""Fills gaps in which no target moves a bone: blends from the pose before the gap to the pose after it."""

from dataclasses import replace

import numpy as np

from ...core import Solution
from ...core.arrays import BoolArray
from ...markers.gaps import fill_points, fill_rotations

# Frames a second, to which the time constants of fills refer.
_RATE = 24.0


def fill_unseen(solution: Solution, turned_by: BoolArray, seen: BoolArray) -> Solution:
    """The solution with each bone interpolated over the frames on which no target moves it.

    Without this, such bones would jump to their start pose. Targets that are seen are still met, because none of them
    depends on the bones that change.

    solution: F frames, J bones. turned_by: (E, J) whether rotating a bone moves an effector. seen: (F, E) whether a
    target is seen. A bone that no seen target ever moves does not change.
    """
    known = (seen.astype(np.int64) @ turned_by.astype(np.int64)) > 0
    rotations, lengths = np.array(solution.rotations), np.array(solution.lengths)
    for bone in np.flatnonzero(turned_by.any(axis=0)):
        rotations[:, [bone]] = fill_rotations(rotations[:, [bone]], known[:, bone], _RATE)
        lengths[:, [bone]] = fill_points(lengths[:, [bone]], known[:, bone], _RATE)
    location = fill_points(solution.root_location, seen.any(axis=1), _RATE)
    return replace(solution, rotations=rotations, root_location=location, lengths=lengths)
