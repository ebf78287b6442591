"""What a bone does while no target says anything about it: it goes from the pose before the gap to the one after."""

from dataclasses import replace

import numpy as np

from ...core import Solution
from ...core.arrays import BoolArray
from ...markers.gaps.long import fill_points, fill_rotations

# Over gaps of more frames than this, half a second at 24 a second, the motion at their edges carries less far.
_CARRIED = 12.0


def fill_unseen(solution: Solution, turned_by: BoolArray, seen: BoolArray) -> Solution:
    """The solution with each bone interpolated over the frames on which no target moves it.

    Such bones have a start pose there that has nothing to do with their motion, and would jump. Targets that are
    seen are met as before, since none of them depends on the bones that change.

    solution: F frames, J bones. turned_by: (E, J) whether turning a bone moves an effector.
    seen: (F, E). A bone that is never moved by a seen target stays as it is.
    """
    known = (seen.astype(np.int64) @ turned_by.astype(np.int64)) > 0
    rotations, lengths = np.array(solution.rotations), np.array(solution.lengths)
    for bone in np.flatnonzero(turned_by.any(axis=0)):
        rotations[:, [bone]] = fill_rotations(rotations[:, [bone]], known[:, bone], _CARRIED)
        lengths[:, [bone]] = fill_points(lengths[:, [bone]], known[:, bone], _CARRIED)
    location = fill_points(solution.root_location, seen.any(axis=1), _CARRIED)
    return replace(solution, rotations=rotations, root_location=location, lengths=lengths)
