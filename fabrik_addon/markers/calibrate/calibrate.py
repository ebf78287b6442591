"""Calibration: finds the scale, each marker's offset on its bone, and the pose at a reference.

Any pose can be the reference: it is solved within the joint limits from the offsets that the mapping guesses. Each
marker's offset is then read from that pose. By default markers are scaled to the rig, which does not change. With
"limbs" the recorded person's proportions are found too, and a skeleton of these proportions is solved.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver
from ...core.arrays import FloatArray, evenly_spread, lengths
from ...core.limits import Limit
from ...human.naming_schemes import match
from ..clip import Clip
from ..mapping.marker_map import MappedMarker
from ..steps import within
from .fit import Fit, Kind, any_pose, at_best_scale, given_pose, in_clusters, moving_pose, over_reference, over_take
from .size import CalibrationError, bones_of, first_scale, guessed_offsets, make_effectors

Scale = Literal["uniform", "limbs"] | float

# Maximum number of frames used: of a reference, and of a take when offsets are refined. Twice as many
# take longer, and change joint positions by 0.2 to 4 mm.
_REFERENCE_FRAMES = 5
_TAKE_FRAMES = 50
# The fraction of a take that counts as its stillest frames, and the least number of markers on them, as a fraction of
# the largest number.
_STILL_SHARE, _NEARLY_ALL = 0.1, 0.9
# A person is upright if the distance from feet to head is at least this fraction of its largest value (this
# percentile). The crouch before a jump is not upright.
_UPRIGHT_SHARE = 0.92
_TALLEST_PERCENT = 95.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """The fit of a recording to a rig, with distances in the rig's units, armature space.

    Attributes:
        skeleton: the skeleton to solve: the rig's own, or one with limbs as long as the recorded person's.
        markers: the mapped markers that have a weight, with their measured offsets.
        scale: the factor from recorded positions to the rig's size.
        bone_factors: (J,) bone lengths in `skeleton` divided by those of the rig.
        residuals: (M,) RMS distances between the markers and their positions in the pose; NaN if never seen.
        guesses: (M, 3) offsets from the mapping.
        pose: the pose that the person is assumed to hold at the reference.
        stature: distance from feet to head in that pose, as a fraction of the distance at rest; NaN if feet and head
            are not recognized from bone names.
        height: distance from feet to head of the recorded person at rest, before scaling; NaN in the same case.
        poses: the poses measured last, of the reference or of frames of the take.
    """

    skeleton: Skeleton
    markers: tuple[MappedMarker, ...]
    scale: float
    bone_factors: FloatArray
    residuals: FloatArray
    guesses: FloatArray
    pose: Kind
    stature: float
    height: float
    poses: Solution

    @cached_property
    def effectors(self) -> tuple[Effector, ...]:
        """One effector for each marker."""
        return make_effectors(self.markers, self.offsets)

    @cached_property
    def offsets(self) -> FloatArray:
        """(M, 3) marker offsets in their bones' frames."""
        return guessed_offsets(self.skeleton, self.markers)

    @property
    def is_unsure(self) -> bool:
        """Whether offsets are uncertain: most markers are in clusters, and no calibration pose was recognized."""
        bones = bones_of(self.skeleton, self.markers)
        return self.pose == "MOVING" and bool(in_clusters(bones, self.guesses).mean() > 0.5)

    def targets(self, clip: Clip) -> FloatArray:
        """(F, M, 3) marker positions of a clip at the rig's size, armature space."""
        targets = positions_of(clip, self.markers)
        targets *= self.scale
        return targets

    def solver(self, limits: Mapping[str, Limit] | None = None, options: Options | None = None) -> Solver:
        """A solver for `targets`, with a free root."""
        return Solver(self.skeleton, self.effectors, limits=limits, root="FREE", options=options)


def calibrate_steps(
    skeleton: Skeleton,
    mapping: Sequence[MappedMarker],
    clip: Clip,
    frames: tuple[int, int] | None = None,
    *,
    limits: Mapping[str, Limit] | None = None,
    scale: Scale = "uniform",
) -> Generator[float, None, Calibration]:
    """Find scale, offsets and pose from a reference, in small steps; yields progress, 0 to 1.

    Args:
        skeleton: the rig's bones at rest.
        mapping: the bone of each marker, and its approximate position there.
        clip: the recording, in the armature's axes.
        frames: the first and last reference frame, counted from 0; None: the stillest frames with the most markers.
        limits: bone name to limit.
        scale: "uniform" finds one factor for everything, "limbs" also the proportions of the limbs; or a known factor.

    Raises:
        CalibrationError: if a marker or the frames are not in the clip, or no marker is seen on them.
    """
    mapping = _used(mapping, clip)
    positions = positions_of(clip, mapping)
    reference = _reference(positions, frames, _statures(skeleton, mapping, positions))
    guesses = guessed_offsets(skeleton, mapping)
    fit = Fit(skeleton, mapping, guesses, dict(limits or {}), np.ones(len(skeleton)), moving_pose(skeleton))
    resize = isinstance(scale, str)
    if isinstance(scale, str):
        if scale not in {"uniform", "limbs"}:
            raise CalibrationError(f"The scale is {scale!r}: it must be 'uniform', 'limbs' or a number")
        search = at_best_scale(fit, reference, first_scale(skeleton, mapping, guesses, positions))
        fit, poses = yield from within(0.0, 0.5, search)
    else:
        if not (np.isfinite(scale) and scale > 0.0):
            raise CalibrationError(f"The scale is {scale}: it must be more than 0")
        fit = replace(fit, scale=float(scale))
        poses = fit.solve(reference)
    fit = replace(fit, expected=given_pose(skeleton, poses))
    placing = over_reference(fit, reference, poses, resize=resize, limbs=scale == "limbs")
    fit, poses = yield from within(0.5, 1.0, placing)
    return _result(fit, poses, reference, guesses)


def refined_steps(
    calibration: Calibration, clip: Clip, *, limits: Mapping[str, Limit] | None = None, resize: bool = True
) -> Generator[float, None, Calibration]:
    """Find poses and offsets together over a whole clip, ignoring outliers, in small steps; yields progress, 0 to 1.

    resize: also find the scale again, or the lengths of limbs if they differ from the rig's. Raises CalibrationError if
    a marker is not in the clip or if no marker is ever seen.
    """
    mapping = _used(calibration.markers, clip)
    positions = _spread(positions_of(clip, mapping), _TAKE_FRAMES)
    skeleton, factors, expected = calibration.skeleton, calibration.bone_factors, moving_pose(calibration.skeleton)
    fit = Fit(skeleton, mapping, calibration.offsets, dict(limits or {}), factors, expected, calibration.scale)
    fit, poses = yield from over_take(fit, positions, resize=resize)
    found = _result(fit, poses, positions, calibration.guesses)
    return replace(found, pose=calibration.pose, stature=calibration.stature)


# The markers were placed differently in two recordings if they are off by more than _FAR_OFF, a fraction of the rig's
# size (12 mm for a person; usually 7), and _WORSE times as far as without the first recording.
_FAR_OFF: Final = 0.005
_WORSE: Final = 2.0
# The number of the take's frames that are compared.
_TRIED: Final = 20
# The fraction of the work that measuring the reference takes, if the positions are then refined with the take.
_MEASURED: Final = 0.3


def calibrate_take_steps(
    skeleton: Skeleton,
    mapping: Sequence[MappedMarker],
    take: Clip,
    frames: tuple[int, int] | None = None,
    static: tuple[Clip, Sequence[MappedMarker]] | None = None,
    *,
    limits: Mapping[str, Limit],
    scale: Scale,
    refine: bool,
) -> Generator[float, None, tuple[Calibration, tuple[float, float] | None]]:
    """Calibrate on a static recording, if there is one, or on the take, in small steps; yields progress, 0 to 1.

    If the take fits clearly worse with the static recording than without it, the recording is rejected. Also returns
    the median errors of the take's markers with and without it, None unless it was rejected.

    frames: as for `calibrate_steps`. static: the static recording, with the markers to measure in it. refine: use the
    whole take to improve the positions. The calibration has the markers of `mapping`: measured positions, and guesses
    for markers that are never seen.
    """
    clip, there = static or (take, mapping)
    rejected, half = None, 0.5 * _MEASURED
    measuring = calibrate_steps(skeleton, there, clip, frames, limits=limits, scale=scale)
    found = _with_markers((yield from within(0.0, half, measuring)), mapping)
    off = _usually_off(found, take, limits) if static else 0.0
    if off > _FAR_OFF * skeleton.size:
        alone = calibrate_steps(skeleton, mapping, take, limits=limits, scale=scale)
        without = _with_markers((yield from within(half, _MEASURED, alone)), mapping)
        off_without = _usually_off(without, take, limits)
        if off > _WORSE * off_without:
            found, rejected = without, (off, off_without)
    if refine:
        refining = refined_steps(found, take, limits=limits, resize=isinstance(scale, str))
        found = yield from within(_MEASURED, 1.0, refining)
    return found, rejected


def _usually_off(found: Calibration, take: Clip, limits: Mapping[str, Limit]) -> float:
    """The median error of a take's markers with a calibration, in the rig's units."""
    targets = found.targets(take)
    targets = targets[evenly_spread(len(targets), _TRIED)]
    solution = found.solver(limits, Options(restarts=0)).solve(targets)
    return float(np.nanmedian(solution.errors))


def _with_markers(found: Calibration, mapping: Sequence[MappedMarker]) -> Calibration:
    """The calibration with the mapping's markers: measured positions, and guesses for markers that are never seen."""
    indices = {entry.marker: place for place, entry in enumerate(found.markers)}
    scales = dict(zip(found.skeleton.names, found.bone_factors.tolist(), strict=True))
    markers = [entry.scaled(scales[entry.bone]) for entry in mapping]
    guesses, residuals = guessed_offsets(found.skeleton, markers), np.full(len(mapping), np.nan)
    for row, entry in enumerate(mapping):
        if (place := indices.get(entry.marker)) is not None:
            markers[row], residuals[row] = found.markers[place], found.residuals[place]
            guesses[row] = found.guesses[place]
    return replace(found, markers=tuple(markers), residuals=residuals, guesses=guesses)


def positions_of(clip: Clip, mapping: Sequence[MappedMarker]) -> FloatArray:
    """(F, M, 3) positions of the mapped markers of a clip, in the mapping's order."""
    return np.asarray(clip.positions[:, [clip.names.index(entry.marker) for entry in mapping]])


def _used(mapping: Sequence[MappedMarker], clip: Clip) -> tuple[MappedMarker, ...]:
    """The entries that have a weight; raises CalibrationError if there are none or if one is not in the clip."""
    used = tuple(entry for entry in mapping if entry.weight > 0.0)
    if not used:
        raise CalibrationError("No matched marker has a weight: match markers to bones first")
    for entry in used:
        if entry.marker not in clip.names:
            raise CalibrationError(
                f"Marker {entry.marker!r} is in the map but not in {clip.source or 'the recording'}: remove it "
                "from the map"
            )
    return used


def _statures(skeleton: Skeleton, mapping: Sequence[MappedMarker], positions: FloatArray) -> FloatArray:
    """(F,) distances from the markers of the feet to the highest ones of the trunk; NaN if either are not seen."""
    roles = match(skeleton.names)
    parts = [roles[entry.bone].part if entry.bone in roles else "" for entry in mapping]
    ends = []
    for groups in (("foot", "toe"), ("shin",)), (("head", "neck"), ("chest", "shoulder", "upper_arm")):
        columns = next((found for group in groups if (found := [part in group for part in parts]) and any(found)), None)
        if columns is None:
            return np.full(len(positions), np.nan)
        ends.append(positions[:, columns].mean(axis=1))
    return lengths(ends[1] - ends[0])


def _reference(positions: FloatArray, frames: tuple[int, int] | None, statures: FloatArray) -> FloatArray:
    """Frames (F, M, 3) of the reference on which at least one marker is seen.

    Without a range, these are the frames on which markers move least, among those that show nearly the most markers and
    an upright person. There are several, since a single frame may be the top of a jump. statures: (F,), see
    `_statures`.
    """
    if frames is not None:
        first, last = frames
        if not 0 <= first <= last < len(positions):
            raise CalibrationError(
                f"The reference frames are {first} to {last}: they must be from 0 to {len(positions) - 1}"
            )
        return _spread(positions[first : last + 1], _REFERENCE_FRAMES)
    count = (~np.isnan(positions).any(axis=2)).sum(axis=1)
    steps = np.zeros(positions.shape[:2])
    steps[1:] = lengths(np.diff(positions, axis=0))
    steps[:1] = steps[1:2] if len(steps) > 1 else 0.0
    speeds = np.nansum(steps, axis=1) / np.maximum((~np.isnan(steps)).sum(axis=1), 1)
    good = np.flatnonzero(count >= max(_NEARLY_ALL * count.max(initial=0), 1))
    if np.isfinite(statures[good]).any():
        tallest = np.nanpercentile(statures[good], _TALLEST_PERCENT)
        good = good[statures[good] >= _UPRIGHT_SHARE * tallest]
    still = good[np.argsort(speeds[good], kind="stable")[: max(1, round(_STILL_SHARE * len(good)))]]
    return _spread(positions[np.sort(still)], _REFERENCE_FRAMES)


def _spread(positions: FloatArray, max_count: int) -> FloatArray:
    """At most `max_count` of the frames on which at least one marker is seen, evenly spread."""
    seen = np.flatnonzero(~np.isnan(positions).any(axis=2).all(axis=1))
    if not len(seen):
        raise CalibrationError("None of the matched markers is seen on the frames to calibrate from: choose others")
    return np.asarray(positions[seen[evenly_spread(len(seen), max_count)]])


def _result(fit: Fit, poses: Solution, positions: FloatArray, guesses: FloatArray) -> Calibration:
    solution = replace(fit, expected=any_pose(fit.skeleton)).solve(positions, start=poses)
    distances = fit.distances(solution, positions)
    count = (~np.isnan(distances)).sum(axis=0)
    squares = np.nansum(distances**2, axis=0) / np.maximum(count, 1)
    posed, height = _heights(solution)
    return Calibration(
        skeleton=fit.skeleton,
        markers=tuple(
            replace(entry, point="OFFSET", offset=(float(x), float(y), float(z)))
            for entry, (x, y, z) in zip(fit.mapping, fit.offsets, strict=True)
        ),
        scale=fit.scale,
        bone_factors=fit.factors,
        residuals=np.where(count > 0, np.sqrt(squares), np.nan),
        guesses=guesses,
        pose=fit.expected.kind,
        stature=posed / height,
        height=height / fit.scale,
        poses=solution,
    )


def _heights(solution: Solution) -> tuple[float, float]:
    """Median distance from feet to head in F poses, and the distance at rest; NaN if either is missing."""
    skeleton, roles = solution.skeleton, match(solution.skeleton.names)
    heads, feet = (
        [bone for bone, name in enumerate(skeleton.names) if name in roles and roles[name].part == part]
        for part in ("head", "foot")
    )
    if not heads or not feet:
        return np.nan, np.nan
    posed, rest = (
        float(np.median(lengths(places[:, heads].mean(axis=1) - places[:, feet].mean(axis=1))))
        for places in (solution.heads, skeleton.rest[None, :, :3, 3])
    )
    return posed, rest
