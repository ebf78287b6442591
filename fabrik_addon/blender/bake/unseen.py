"""What a bone does while no target says anything about it: it goes from the pose before the gap to the one after."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...core import Solution
from ...core.arrays import BoolArray, FloatArray
from ...core.rotations import slerp


def fill_unseen(solution: Solution, turned_by: BoolArray, seen: BoolArray) -> Solution:
    """The solution with each bone interpolated over the frames on which no target moves it.

    Such bones have a start pose there that has nothing to do with their motion, and would jump. Targets that are
    seen are met as before, since none of them depends on the bones that change.

    solution: F frames, J bones. turned_by: (E, J) whether turning a bone moves an effector.
    seen: (F, E). A bone that is never moved by a seen target stays as it is.
    """
    known = (seen.astype(np.int64) @ turned_by.astype(np.int64)) > 0
    rotations = np.array(solution.rotations)
    for bone in np.flatnonzero(turned_by.any(axis=0)):
        rotations[:, bone] = _fill_turns(rotations[:, bone], known[:, bone])
    lengths = np.array(solution.lengths)
    for bone in np.flatnonzero(turned_by.any(axis=0)):
        lengths[:, [bone]] = _fill_points(lengths[:, [bone]], known[:, bone])
    location = _fill_points(np.array(solution.root_location), seen.any(axis=1))
    return replace(solution, rotations=rotations, root_location=location, lengths=lengths)


def _between(known: BoolArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]:
    """(F,) for each frame the known frame before it, the one after it, and how far it is from one to the other."""
    frames = np.arange(len(known))
    places = np.flatnonzero(known)
    after = np.minimum(np.searchsorted(places, frames), len(places) - 1)
    before = np.maximum(np.searchsorted(places, frames, side="right") - 1, 0)
    first, last = places[before], places[after]
    share = (frames - first) / np.maximum(last - first, 1)
    return first, last, np.clip(share, 0.0, 1.0)


def _fill_points(points: FloatArray, known: BoolArray) -> FloatArray:
    """(F, 3) points, on a straight line where they are not known."""
    if known.all() or not known.any():
        return points
    first, last, share = _between(known)
    return points[first] + share[:, None] * (points[last] - points[first])


def _fill_turns(turns: FloatArray, known: BoolArray) -> FloatArray:
    """(F, 4) unit quaternions, on the shorter arc where they are not known."""
    if known.all() or not known.any():
        return turns
    first, last, share = _between(known)
    filled = slerp(turns[first], turns[last], share)
    return np.where(known[:, None], turns, filled)
