"""Making a rig and a recording fit: size, where each marker sits on its bone, and the pose at a reference.

The pose at the reference is solved for from the mapping's guesses, with the joint limits, so it may be any pose. Then
each marker's offset is read off that pose. Unless told otherwise markers are scaled to the rig and the rig stays as
it is; "limbs" finds the recorded person's proportions as well, and solves a skeleton of those.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver
from ...core.arrays import IntArray
from ...core.limits.base import Limit
from ..clip import BoolArray, Clip, FloatArray
from ..mapping.marker_map import MappedMarker
from ..steps import at_once, within
from .expected_pose import Kind, moving_pose, told_pose
from .fit import Fit
from .fitting import Search, at_best_scale, over_reference, over_take
from .offsets import guessed_offsets, make_effectors
from .size import CalibrationError, first_scale

Scale = Literal["uniform", "limbs"] | float

# So many frames of a reference are looked at, and of a take where offsets are refined: with 9 and 120 joints came out
# 0.1 mm elsewhere, for twice the time.
_REFERENCE_FRAMES = 5
_TAKE_FRAMES = 80
# Of a take, the share of its frames that counts as still; of the most markers, the share that has to be seen there.
_STILL_SHARE = 0.1
_NEARLY_ALL = 0.9
# The share of the time until the reference has been measured, where the take refines it.
MEASURED = 0.3


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was found out about a rig and a recording; distances in the rig's units, armature space.

    Attributes:
        skeleton: the body that is solved: the rig's own, or with limbs as long as the recorded person's.
        markers: the mapped markers with a weight, each with its measured offset.
        scale: positions times this are at the rig's size.
        bone_factors: (J,) lengths in `skeleton` over those of the rig.
        rotations: (J, 4) local rotations of the pose at the reference.
        root_location: (3,) the root's head there.
        residuals: (M,) RMS distances of the markers from where the pose has them; NaN where not seen.
        guesses: (M, 3) offsets as the mapping had them.
        pose: what the person was taken to do at the reference.
        poses: those of the frames that were measured on last, the reference's or some of the take's.
    """

    skeleton: Skeleton
    markers: tuple[MappedMarker, ...]
    scale: float
    bone_factors: FloatArray
    rotations: FloatArray
    root_location: FloatArray
    residuals: FloatArray
    guesses: FloatArray
    pose: Kind
    poses: Solution

    @cached_property
    def effectors(self) -> tuple[Effector, ...]:
        """One for each marker."""
        return make_effectors(self.markers, self.offsets)

    @cached_property
    def offsets(self) -> FloatArray:
        """(M, 3) of the markers, in their bones' frames."""
        return guessed_offsets(self.skeleton, self.markers)

    @property
    def moved(self) -> FloatArray:
        """(M,) from each guess to the measured offset."""
        moved: FloatArray = np.linalg.norm(self.offsets - self.guesses, axis=1)
        return moved

    def targets(self, clip: Clip) -> FloatArray:
        """(F, M, 3) where the markers of a clip are at the rig's size."""
        return positions_of(clip, self.markers) * self.scale

    def solver(self, limits: Mapping[str, Limit] | None = None, options: Options | None = None) -> Solver:
        """A solver for `targets`, its root free."""
        return Solver(self.skeleton, self.effectors, limits=limits, root="FREE", options=options)


def calibrate_steps(
    skeleton: Skeleton,
    mapping: Sequence[MappedMarker],
    clip: Clip,
    frames: tuple[int, int] | None = None,
    *,
    limits: Mapping[str, Limit] | None = None,
    scale: Scale = "uniform",
    refine: bool = False,
) -> Generator[float, None, Calibration]:
    """Find size, offsets and pose from a reference, in small steps: yields the share done.

    Args:
        skeleton: the rig's bones at rest.
        mapping: which marker is on which bone, and about where.
        clip: the recording, in the armature's axes.
        frames: the first and last reference frame, counted from 0; the stillest with the most markers when None.
        limits: bone name to limit.
        scale: one factor for everything, the proportions of the limbs as well, or a factor that is known.
        refine: improve the offsets over the whole clip.

    Raises:
        CalibrationError: where a marker is not in the clip, the frames are not, or none of the markers is seen there.
    """
    mapping = _used(mapping, clip)
    positions = positions_of(clip, mapping)
    reference = _reference(positions, frames)
    guesses = guessed_offsets(skeleton, mapping)
    fit = Fit(skeleton, mapping, guesses, dict(limits or {}), np.ones(len(skeleton)), moving_pose(skeleton))
    resize = isinstance(scale, str)
    fit, poses = yield from within(0.0, 0.5 * MEASURED, _sized(fit, positions, reference, scale))
    fit = replace(fit, expected=told_pose(skeleton, poses))
    placing = over_reference(fit, reference, poses, resize=resize, limbs=scale == "limbs")
    fit, poses = yield from within(0.5 * MEASURED, MEASURED if refine else 1.0, placing)
    found = _result(fit, poses, reference, guesses)
    if not refine:
        return found
    return (yield from within(MEASURED, 1.0, refined_steps(found, clip, limits=limits, resize=resize)))


calibrate = at_once(calibrate_steps)


def refined_steps(
    calibration: Calibration, clip: Clip, *, limits: Mapping[str, Limit] | None = None, resize: bool = True
) -> Generator[float, None, Calibration]:
    """The calibration with offsets that fit a whole clip: poses and offsets found together, outliers left out.

    In small steps: yields the share done.
    resize: find the scale, or where limbs differ from the rig's their lengths, anew as well.
    Raises CalibrationError where a marker is not in the clip or none is ever seen.
    """
    mapping = _used(calibration.markers, clip)
    positions = _spread(positions_of(clip, mapping), _TAKE_FRAMES)
    skeleton, offsets = calibration.skeleton, calibration.offsets
    factors, scale = calibration.bone_factors, calibration.scale
    before = Fit(skeleton, mapping, offsets, dict(limits or {}), factors, moving_pose(skeleton), scale)
    fit, poses = yield from over_take(before, positions, resize=resize)
    found = _result(fit, poses, positions, calibration.guesses)
    rotations, root = calibration.rotations, calibration.root_location
    return replace(found, rotations=rotations, root_location=root, pose=calibration.pose)


refined = at_once(refined_steps)


def positions_of(clip: Clip, mapping: Sequence[MappedMarker]) -> FloatArray:
    """(F, M, 3) the mapped markers of a clip, in the mapping's order."""
    return np.array(clip.positions[:, [clip.names.index(entry.marker) for entry in mapping]])


def _sized(fit: Fit, positions: FloatArray, reference: FloatArray, scale: Scale) -> Search:
    """The fit at a size that is known, or that the reference (F, M, 3) wants, begun from all positions (F, M, 3)."""
    if not isinstance(scale, str):
        fit = replace(fit, scale=_checked_scale(scale))
        return fit, fit.solve(reference)
    if scale not in {"uniform", "limbs"}:
        raise CalibrationError(f"The scale is {scale!r}: it must be 'uniform', 'limbs' or a number")
    first = first_scale(fit.skeleton, fit.mapping, fit.offsets, positions)
    return (yield from at_best_scale(fit, reference, first))


def _result(fit: Fit, poses: Solution, positions: FloatArray, guesses: FloatArray) -> Calibration:
    """What a fit says, its poses those that the markers alone want."""
    solution = fit.free.solve(positions, start=poses)
    middle = len(positions) // 2
    return Calibration(
        skeleton=fit.skeleton,
        markers=tuple(
            replace(entry, point="OFFSET", offset=(float(x), float(y), float(z)))
            for entry, (x, y, z) in zip(fit.mapping, fit.offsets, strict=True)
        ),
        scale=fit.scale,
        bone_factors=fit.factors,
        rotations=solution.rotations[middle],
        root_location=solution.root_location[middle],
        residuals=_rms(fit.distances(solution, positions)),
        guesses=guesses,
        pose=fit.expected.kind,
        poses=solution,
    )


def _used(mapping: Sequence[MappedMarker], clip: Clip) -> tuple[MappedMarker, ...]:
    """The entries that count; raises where there is none or one is not in the clip."""
    used = tuple(entry for entry in mapping if entry.weight > 0.0)
    if not used:
        raise CalibrationError("No mapped marker has a weight: map markers to bones first")
    for entry in used:
        if entry.marker not in clip.names:
            raise CalibrationError(
                f"Marker {entry.marker!r} is mapped but not in {clip.source or 'the recording'}: leave it out"
            )
    return used


def _checked_scale(scale: float) -> float:
    if not (np.isfinite(scale) and scale > 0.0):
        raise CalibrationError(f"The scale is {scale}: it must be more than 0")
    return float(scale)


def _reference(positions: FloatArray, frames: tuple[int, int] | None) -> FloatArray:
    """Some frames (F, M, 3) of the reference, on each of which something is seen."""
    if frames is None:
        return positions[_stillest(positions)]
    first, last = frames
    if not 0 <= first <= last < len(positions):
        raise CalibrationError(
            f"The reference is frames {first} to {last}, but it must be from 0 to {len(positions) - 1}"
        )
    return _spread(positions[first : last + 1], _REFERENCE_FRAMES)


def _spread(positions: FloatArray, most: int) -> FloatArray:
    """At most so many of the frames on which some marker is seen, evenly spread."""
    seen = np.flatnonzero(~np.isnan(positions).any(axis=2).all(axis=1))
    if not len(seen):
        raise CalibrationError("None of the mapped markers is seen on the frames to calibrate with: choose others")
    return np.asarray(positions[seen[spread_places(len(seen), most)]])


def _stillest(positions: FloatArray) -> IntArray:
    """(R,) some of the frames on which markers move least, of those on which nearly the most are seen.

    Several, since one alone may be the turning point of a jump.
    """
    if not _seen(positions).any():
        raise CalibrationError("None of the mapped markers is seen on the frames to calibrate with: choose others")
    count = _seen(positions).sum(axis=1)
    steps = np.linalg.norm(np.diff(positions, axis=0, prepend=positions[:1]), axis=2)
    steps[0] = steps[1] if len(steps) > 1 else 0.0
    speeds = np.where(np.isnan(steps), 0.0, steps).sum(axis=1) / np.maximum((~np.isnan(steps)).sum(axis=1), 1)
    frames = np.flatnonzero(count >= _NEARLY_ALL * count.max())
    still = frames[np.argsort(speeds[frames], kind="stable")[: max(1, round(_STILL_SHARE * len(frames)))]]
    return np.sort(still)[spread_places(len(still), _REFERENCE_FRAMES)]


def spread_places(count: int, most: int) -> IntArray:
    """At most so many places of a list, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))


def _seen(positions: FloatArray) -> BoolArray:
    flags: BoolArray = ~np.isnan(positions).any(axis=-1)
    return flags


def _rms(distances: FloatArray) -> FloatArray:
    """(M,) root mean squares of (F, M), NaN where nothing is seen."""
    seen = ~np.isnan(distances)
    count = seen.sum(axis=0)
    squares = (np.where(seen, distances, 0.0) ** 2).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, np.sqrt(squares), np.nan)
