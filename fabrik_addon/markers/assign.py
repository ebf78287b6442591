"""Finds the bones of markers whose labels are unknown, from how they move relative to the known markers.

Poses that fit the known markers, and otherwise stay near rest, show roughly how each bone moves. A marker is assigned
to the bone that it moves with. It then helps to find better poses, until the next markers are clear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core import Options, Skeleton, Solution, Solver, forward_kinematics
from ..core.limits.base import Limit
from ..core.model.targets import PosePrior
from ..core.rotations import IDENTITY
from ..human.body_parts import Role
from .calibrate.calibrate import evenly_spread, positions_of
from .calibrate.offsets import bones_of, guessed_offsets, make_effectors, measured_offsets
from .clip import Clip, FloatArray
from .mapping.by_motion import ByMotion, bones_by_motion, landmarks_on
from .mapping.landmarks import BoneAtRest
from .mapping.marker_map import MappedMarker

# Number of frames, evenly spread over a take, that show how its markers move. 40 did as well as 150 on five recordings.
_FRAMES: Final = 40
# With fewer known markers, or on fewer bones, the poses are not determined.
_FEWEST_KNOWN, _FEWEST_BONES = 6, 4
# Weight of a squared radian away from rest relative to a squared meter: markers 2 cm off their guesses count as much as
# half a radian.
_PRIOR: Final = 0.02**2 / 0.5**2
_SCALES: Final = np.geomspace(0.75, 1.33, 9)
_SCALED_FRAMES: Final = 5
# For each round: how much worse the second-best bone must be before a marker is used in the next round, and how far
# (meters) markers may move on their bone. The distance is large at first, while a limb without a known marker hangs as
# at rest. In the last round it is as large as the movement of skin or of a joint's keypoint; carts and balls move more.
_ROUNDS: Final = ((1.0, 0.15), (0.7, 0.15), (0.5, 0.1), (0.3, 0.06), (0.3, 0.035))
# Labels give only approximate positions: each round moves a marker by this share toward the position that the poses
# show.
_BELIEVED: Final = 0.5
# A guess weighs less than a label, and less still if another bone fits about as well.
_WEIGHT, _DOUBTED_WEIGHT, _DOUBTED = 0.2, 0.1, 0.5


@dataclass(frozen=True)
class Guess:
    """A marker and the bone that it moves with; residual: how far it moves relative to that bone, armature units."""

    entry: MappedMarker
    residual: float


def assign_by_motion(
    skeleton: Skeleton,
    known: Sequence[MappedMarker],
    clip: Clip,
    parts: Mapping[Role, str],
    rest: Mapping[str, BoneAtRest],
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
    poses = _RoughPoses(skeleton, dict(limits or {}), meter)
    positions = positions_of(clip, known)
    # Evenly spread frames, from those on which the most markers are seen.
    counts = (~np.isnan(positions).any(axis=2)).sum(axis=1)
    good = np.flatnonzero(counts >= np.median(counts))
    frames = good[evenly_spread(len(good), _FRAMES)]
    targets = positions[frames]
    points = clip.positions[frames][:, [clip.names.index(name) for name in unknown]]
    scale = poses.scale(known, targets)
    found = _rounds(poses, known, targets * scale, points * scale, unknown, landmarks)
    names = list(landmarks)
    return tuple(
        Guess(_entry(unknown[row], names[found.bones[row]], found, row), float(found.residuals[row]))
        for row in np.flatnonzero(found.bones >= 0)
    )


class _RoughPoses:
    """Poses that fit a few markers and are otherwise as near to rest as possible."""

    def __init__(self, skeleton: Skeleton, limits: dict[str, Limit], meter: float) -> None:
        self.skeleton, self.meter = skeleton, meter
        self._limits = limits
        self._options = Options(restarts=0)

    def solve(
        self, entries: Sequence[MappedMarker], offsets: FloatArray, targets: FloatArray, start: Solution | None = None
    ) -> Solution:
        """F poses that fit targets (F, M, 3). offsets: (M, 3) of the markers in their bones' frames."""
        effectors = make_effectors(entries, offsets)
        solver = Solver(self.skeleton, effectors, limits=self._limits, root="FREE", options=self._options)
        rest = np.tile(IDENTITY, (len(self.skeleton), 1))
        prior = PosePrior(rest, np.full(len(self.skeleton), _PRIOR * self.meter**2))
        if start is None:
            return solver.solve(targets, prior=prior)
        return solver.solve(targets, prior=prior, start=start.rotations, start_location=start.root_location)

    def scale(self, known: Sequence[MappedMarker], positions: FloatArray) -> float:
        """The factor that scales positions (F, M, 3) so that they fit the rig best, with rotations kept near rest."""
        few = positions[evenly_spread(len(positions), _SCALED_FRAMES)]
        tried = (_SCALES[:, None, None, None] * few).reshape(-1, *few.shape[1:])
        found = self.solve(known, guessed_offsets(self.skeleton, known), tried)
        angles = 2.0 * np.arccos(np.clip(np.abs(found.rotations[:, 1:, 0]), 0.0, 1.0))
        squares = (np.nan_to_num(found.errors) ** 2).sum(axis=1) + _PRIOR * self.meter**2 * (angles**2).sum(axis=1)
        return float(_SCALES[np.argmin(squares.reshape(len(_SCALES), -1).sum(axis=1) / _SCALES**2)])


def _rounds(
    poses: _RoughPoses,
    known: Sequence[MappedMarker],
    targets: FloatArray,
    points: FloatArray,
    unknown: Sequence[str],
    landmarks: Mapping[str, FloatArray],
) -> ByMotion:
    """Assign unknown markers at points (F, N, 3), in rounds, by their motion relative to known ones (F, M, 3)."""
    skeleton, names = poses.skeleton, list(landmarks)
    places = [skeleton.index(name) for name in names]
    own = guessed_offsets(skeleton, known)
    entries, offsets, wanted = list(known), own, targets
    solution = None
    for clear, loosest in _ROUNDS:
        solution = poses.solve(entries, offsets, wanted, solution)
        matrices = forward_kinematics(skeleton, solution.rotations, solution.root_location)
        measured, _ = measured_offsets(matrices, bones_of(skeleton, known), targets, own)
        own = own + _BELIEVED * (measured - own)
        found = bones_by_motion(points, matrices[:, places], list(landmarks.values()), loosest, poses.meter)
        sure = np.flatnonzero((found.bones >= 0) & (found.margins > clear))
        entries = [*known, *(_entry(unknown[row], names[found.bones[row]], found, row) for row in sure)]
        offsets = np.concatenate([own, found.offsets[sure]])
        wanted = np.concatenate([targets, points[:, sure]], axis=1)
    return found


def _entry(marker: str, bone: str, found: ByMotion, row: int) -> MappedMarker:
    """The mapping of an unknown marker to the bone found for it."""
    x, y, z = (float(value) for value in found.offsets[row])
    weight = _WEIGHT if found.margins[row] > _DOUBTED else _DOUBTED_WEIGHT
    return MappedMarker(marker, bone, "OFFSET", (x, y, z), weight)
