"""What no label tells, motion does: which bone a marker keeps its place on, and how well.

A marker on the skin stays where it is on one bone and moves about against all others. Two bones that hardly move
against each other are told apart by where people put markers: near a landmark of that bone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...human.body_parts import Role
from ..clip import FloatArray
from .landmarks import LANDMARKS, RestBone, RigBody, carrier

# Motion against a bone that is as unlikely as that distance from its nearest landmark, metres: skin moves by 5 to 10 mm
# on thighs and upper arms, and markers lie some centimetres off the places of an average body.
_MOTION: Final = 0.006
_PLACE: Final = 0.04
# A marker is on no bone from whose nearest landmark it is so far, metres.
_FARTHEST: Final = 0.22
# Fewer frames on which it is seen say nothing of a marker.
_FEWEST: Final = 5


# Landmarks that weigh less are seldom used.
_USUAL: Final = 0.5


@dataclass(frozen=True, eq=False)
class ByMotion:
    """Which bone each of M markers is on.

    Attributes:
        bones: (M,) places among the candidates; -1 where none fits.
        residuals: (M,) metres, the median distance of a marker from its usual place on that bone.
        margins: (M,) how much worse the next bone is; the larger, the surer. 1 is about as much as a marker's noise.
        offsets: (M, 3) that usual place, in the bone's frame.
    """

    bones: npt.NDArray[np.intp]
    residuals: FloatArray
    margins: FloatArray
    offsets: FloatArray


def landmarks_on(parts: Mapping[Role, str], rest: Mapping[str, RestBone]) -> dict[str, FloatArray]:
    """(K, 3) the places in its frame where people put markers, for each bone that carries some, without fingers.

    parts: the bone that stands for each role. rest: the bones.
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
    points: FloatArray, matrices: FloatArray, landmarks: Sequence[FloatArray], loosest: float, metre: float = 1.0
) -> ByMotion:
    """The bone that each marker belongs to.

    points: (F, M, 3), NaN where not seen. matrices: (F, B, 4, 4) of the bones that may carry markers, in a rough pose.
    landmarks: for each of them (K, 3) the places on it where people put markers, in its frame.
    loosest: metres; a marker is on no bone against which it moves more. metre: units to a metre.
    """
    usual, residuals = usual_places(points, matrices)
    away = np.stack(
        [np.linalg.norm(usual[:, bone, None] - places, axis=-1).min(axis=1) for bone, places in enumerate(landmarks)], 1
    )
    residuals, away = residuals / metre, away / metre
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
    return ByMotion(np.where(found, best, -1), residuals[rows, best] * metre, margins, usual[rows, best])


def usual_places(points: FloatArray, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(M, B, 3) where markers usually are in bones' frames, (M, B) the median distance from there; NaN if unseen."""
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
