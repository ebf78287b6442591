"""Finds the bones of markers without known labels from their motion, and how certain they are.

A marker on the skin keeps its position on one bone and moves relative to all others. Two bones that hardly move
relative to each other are distinguished by where people attach markers: near a landmark of the bone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...human.body_parts import Role
from ...human.rest_body import RestBone
from ..clip import FloatArray
from .landmarks import LANDMARKS, RigBody, carrier

# Meters by which a marker usually moves relative to its own bone: skin moves by 5 to 10 mm on thighs and upper arms.
_MOTION: Final = 0.006
# Usual distance in meters from a marker to the nearest landmark of its bone.
_PLACE: Final = 0.04
# Meters: a marker farther than this from all landmarks of a bone is not on that bone.
_FARTHEST: Final = 0.22
# A marker seen on fewer frames is not assigned.
_FEWEST: Final = 5


# Landmarks of less weight are left out, since studios seldom use them.
_USUAL: Final = 0.5


@dataclass(frozen=True, eq=False)
class ByMotion:
    """The bone of each of M markers.

    Attributes:
        bones: (M,) indices into the candidates; -1 if none fits.
        residuals: (M,) meters, the median distance of a marker from its usual position on that bone.
        margins: (M,) how much worse the second-best bone fits, in units of a marker's noise; larger is more certain.
        offsets: (M, 3) the usual positions, in the frames of the bones.
    """

    bones: npt.NDArray[np.intp]
    residuals: FloatArray
    margins: FloatArray
    offsets: FloatArray


def landmarks_on(parts: Mapping[Role, str], rest: Mapping[str, RestBone]) -> dict[str, FloatArray]:
    """By bone, (K, 3) positions of its landmarks, in its frame; only bones with landmarks, without fingers.

    parts: the bone of each role. rest: the bones at rest.
    """
    body = RigBody(parts, rest)
    places: dict[str, list[FloatArray]] = {}
    for landmark in LANDMARKS.values():
        if landmark.weight < _USUAL or landmark.finger:
            continue
        for side in ("L", "R", ""):
            bone = carrier(landmark, side, parts)
            spot = None if bone is None else body.spot(landmark, side, bone)
            if bone is not None and spot is not None:
                end = (0.0, rest[bone].length if spot.end == "TAIL" else 0.0, 0.0)
                places.setdefault(bone, []).append(np.array(spot.offset or end))
    return {bone: np.array(found) for bone, found in places.items()}


def bones_by_motion(
    points: FloatArray, matrices: FloatArray, landmarks: Sequence[FloatArray], loosest: float, meter: float = 1.0
) -> ByMotion:
    """Find the bone of each marker from how it moves.

    points: (F, M, 3), NaN where not seen. matrices: (F, B, 4, 4) of the candidate bones, in approximate poses. Both are
    in armature units and space. landmarks: (K, 3) for each candidate, in its frame. loosest: meters; a marker that
    moves by more relative to a bone is not on it. meter: armature units in a meter.
    """
    usual, residuals = usual_positions(points, matrices)
    away = np.stack(
        [np.linalg.norm(usual[:, bone, None] - places, axis=-1).min(axis=1) for bone, places in enumerate(landmarks)], 1
    )
    residuals, away = residuals / meter, away / meter
    costs = np.hypot(residuals / _MOTION, away / _PLACE)
    costs = np.where((away > _FARTHEST) | (residuals > loosest) | ~np.isfinite(residuals), np.inf, costs)
    best = np.argmin(costs, axis=1)
    rows = np.arange(len(best))
    lowest = costs[rows, best]
    others = costs.copy()
    others[rows, best] = np.inf
    second = others.min(axis=1)
    found = np.isfinite(lowest)
    margins = np.where(found, second - np.where(found, lowest, 0.0), 0.0)
    return ByMotion(np.where(found, best, -1), residuals[rows, best] * meter, margins, usual[rows, best])


def usual_positions(points: FloatArray, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(M, B, 3) median marker positions in the bones' frames, and (M, B) median distances from them; NaN if unseen.

    points: (F, M, 3). matrices: (F, B, 4, 4). Both in armature space.
    """
    count, bones = points.shape[1], matrices.shape[1]
    usual, residuals = np.zeros((count, bones, 3)), np.full((count, bones), np.nan)
    seen = ~np.isnan(points).any(axis=2)
    for marker in np.flatnonzero(seen.sum(axis=0) >= _FEWEST):
        frames = matrices[seen[:, marker]]
        away = points[seen[:, marker], marker][:, None] - frames[..., :3, 3]
        local = np.einsum("fbji,fbj->fbi", frames[..., :3, :3], away)
        usual[marker] = np.median(local, axis=0)
        residuals[marker] = np.median(np.linalg.norm(local - usual[marker], axis=2), axis=0)
    return usual, residuals
