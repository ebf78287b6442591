"""Finds the bones of markers without known labels from their motion, and how certain they are.

Poses that fit the known markers, and otherwise stay near rest, show roughly how each bone moves. A marker on the skin
keeps its position on one bone and moves relative to all others. Two bones that hardly move relative to each other are
distinguished by where people attach markers: near a landmark of the bone. A marker that is assigned helps to find
better poses, which show the bones of other markers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ..core import Skeleton
from ..core.arrays import FloatArray, evenly_spread
from ..core.limits import Limit
from ..core.rotations import IDENTITY
from ..human.naming_schemes import Role
from ..human.rest_body import RestBone
from .calibrate.calibrate import positions_of
from .calibrate.fit import ExpectedPose, Fit, at_best_scale
from .calibrate.size import first_scale, guessed_offsets, measured_offsets
from .clip import Clip
from .mapping.landmarks import ON_THE_BODY, RigBody, carrier
from .mapping.marker_map import MappedMarker
from .steps import finish

# Meters by which a marker usually moves relative to its own bone.
_MOTION: Final = 0.006
# Usual distance in meters from a marker to the nearest landmark of its bone.
_PLACE: Final = 0.04
# Meters: a marker farther than this from all landmarks of a bone is not on that bone.
_FARTHEST: Final = 0.22
# A marker seen on fewer frames is not assigned.
_FEWEST: Final = 5


# Landmarks of less weight are left out.
_USUAL: Final = 0.5


@dataclass(frozen=True, eq=False)
class ByMotion:
    """The bone of each of M markers.

    Attributes:
        bones: (M,) indices into the candidates; -1 if none fits.
        residuals: (M,) meters, the median distance of a marker from its usual position on that bone.
        margins: (M,) the margin over the second-best bone, in units of a marker's noise; larger is more certain.
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
    for landmark in ON_THE_BODY.values():
        if landmark.weight < _USUAL:
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
    best, rows = np.argmin(costs, axis=1), np.arange(len(costs))
    lowest, second = np.sort(np.pad(costs, ((0, 0), (0, 1)), constant_values=np.inf), axis=1)[:, :2].T
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


# Number of frames, evenly spread over a take, that show how its markers move.
_FRAMES: Final = 40
# The smallest numbers of known markers and of their bones: with fewer, poses are not determined.
_FEWEST_KNOWN, _FEWEST_BONES = 6, 4
# Radians: expected deviation from rest. With it, half a radian at a joint counts as much as 2 cm at its markers.
_BENDS: Final = 0.06
_SCALED_FRAMES: Final = 5
# For each round: the margin (see `ByMotion`) from which a marker is used in the next round, and the meters by which
# markers may move on their bone. At first limbs without known markers are at rest, so the distance is large; in the
# last round, only carts and balls are beyond it.
_ROUNDS: Final = ((1.0, 0.15), (0.7, 0.15), (0.5, 0.1), (0.3, 0.06), (0.3, 0.035))
# Marker weight of a guess, its weight if its margin is small, and the margin below which it counts as small.
_WEIGHT, _DOUBTED_WEIGHT, _DOUBTED = 0.2, 0.1, 0.5


@dataclass(frozen=True)
class Guess:
    """A marker and the bone that it moves with. residual: its movement relative to that bone, armature units."""

    entry: MappedMarker
    residual: float


def assign_by_motion(
    skeleton: Skeleton,
    known: Sequence[MappedMarker],
    clip: Clip,
    parts: Mapping[Role, str],
    rest: Mapping[str, RestBone],
    *,
    limits: Mapping[str, Limit] | None = None,
    meter: float = 1.0,
) -> tuple[Guess, ...]:
    """Assign unknown markers of a clip to bones; empty if too few markers are known.

    skeleton, rest: the rig's bones at rest. known: the markers whose bones are known; their offsets may be guesses.
    clip: the recording, in the armature's axes. parts: the bone of each role, from `parts_of`. limits: bone name to
    limit. meter: armature units in a meter.
    """
    known = [entry for entry in known if entry.weight > 0.0 and entry.marker in clip.names]
    unknown = [name for name in clip.names if name not in {entry.marker for entry in known}]
    landmarks = {bone: places for bone, places in landmarks_on(parts, rest).items() if bone in skeleton.names}
    if (
        len(known) < _FEWEST_KNOWN
        or len({entry.bone for entry in known}) < _FEWEST_BONES
        or not unknown
        or not landmarks
    ):
        return ()
    offsets, ones = guessed_offsets(skeleton, known), np.ones(len(skeleton))
    near_rest = ExpectedPose("MOVING", np.tile(IDENTITY, (len(skeleton), 1)), _BENDS * ones)
    fit = Fit(skeleton, known, offsets, dict(limits or {}), ones, near_rest)
    positions = positions_of(clip, known)
    # Evenly spread frames among those on which the most markers are seen.
    counts = (~np.isnan(positions).any(axis=2)).sum(axis=1)
    good = np.flatnonzero(counts >= np.median(counts))
    frames = good[evenly_spread(len(good), _FRAMES)]
    targets = positions[frames]
    points = clip.positions[frames][:, [clip.names.index(name) for name in unknown]]
    few = targets[evenly_spread(len(targets), _SCALED_FRAMES)]
    fit, _ = finish(at_best_scale(fit, few, first_scale(skeleton, known, offsets, positions)))
    names, bones, places = list(landmarks), fit.bones, [skeleton.index(name) for name in landmarks]

    def entry(row: int) -> MappedMarker:
        """The mapping of an unknown marker to the bone found for it."""
        x, y, z = (float(value) for value in found.offsets[row])
        weight = _WEIGHT if found.margins[row] > _DOUBTED else _DOUBTED_WEIGHT
        return MappedMarker(unknown[row], names[found.bones[row]], "OFFSET", (x, y, z), weight)

    wanted, solution = targets, None
    for clear, loosest in _ROUNDS:
        # One step is enough, since guesses change in each round.
        solution = fit.solve(wanted, start=solution, steps=1)
        offsets = measured_offsets(solution.matrices, bones, targets * fit.scale, offsets)
        at_bones = solution.matrices[:, places]
        found = bones_by_motion(points * fit.scale, at_bones, list(landmarks.values()), loosest, meter)
        sure = np.flatnonzero((found.bones >= 0) & (found.margins > clear))
        mapping = [*known, *map(entry, sure)]
        fit = replace(fit, mapping=mapping, offsets=np.concatenate([offsets, found.offsets[sure]]))
        wanted = np.concatenate([targets, points[:, sure]], axis=1)
    return tuple(Guess(entry(row), float(found.residuals[row])) for row in np.flatnonzero(found.bones >= 0))
