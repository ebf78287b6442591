"""Fits a recording to a rig: its size, the positions of the markers on their bones, and the person's proportions."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Object, Scene
from mathutils import Vector

from ...core import Options, Skeleton
from ...core.arrays import evenly_spread
from ...core.errors import FabrikError
from ...core.limits import Limit
from ...human.naming_schemes import match as match_bones
from ...markers.calibrate.calibrate import Calibration, Scale, calibrate_steps, refined_steps
from ...markers.calibrate.fit import Kind
from ...markers.calibrate.size import guessed_offsets
from ...markers.clip import Clip
from ...markers.feet import lift_off_floor
from ...markers.mapping.labels import match, parts_of
from ...markers.mapping.marker_map import MappedMarker
from ...markers.report import calibration_doubts
from ...markers.steps import at_once, within
from ..goals.effectors import check_followed
from ..rig.armature import RigError, check_editable, check_rig, meters_per_unit, read_rest
from ..rig.pose_writer import PoseKeeper, in_object_mode, set_mode
from ..settings.in_use import add_item
from ..settings.limit_properties import read_limits
from ..settings.rig import rig_settings, take_name
from . import matching

Frames: TypeAlias = tuple[int, int]

_SCALES: Final[Mapping[str, Scale]] = {"UNIFORM": "uniform", "LIMBS": "limbs", "REST": "limbs", "NONE": 1.0}

_POSES: Final[Mapping[Kind, str]] = {
    "REST": "standing in the rig's rest pose",
    "STANDING": "standing with arms hanging",
    "A_POSE": "standing in an A pose",
    "T_POSE": "standing in a T pose",
}

# The markers were placed differently in the two recordings if they are off by more than _FAR_OFF, a fraction of the
# rig's size (12 mm for a person; usually 7), and _WORSE times as far as without the static recording.
_FAR_OFF: Final = 0.005
_WORSE: Final = 2.0
# The number of the take's frames that are compared.
_TRIED: Final = 20
# The fraction of the work that measuring the reference takes, if the positions are then refined with the take.
_MEASURED: Final = 0.3


@dataclass(frozen=True)
class CalibrationResult:
    """The result of a calibration.

    take: the name of the recording. scale: the factor by which the markers in the scene were scaled. rms: the error of
    the markers in meters, on the reference frames or over the take. worst: the label of the marker with the largest
    error, and this error. pose: the detected pose on the reference frames. lift: meters by which the markers were moved
    up so that the feet are on the floor. doubts: reasons why the result may be wrong, as sentences.
    """

    take: str
    markers: int
    scale: float
    rms: float
    worst: tuple[str, float]
    pose: Kind
    lift: float
    doubts: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, str, str]:
        """The result in short lines: errors, scale and detected pose."""
        name, distance = self.worst
        height = f"{100.0 * abs(self.lift):.1f}"
        moved = f"moved up by {height} cm" if self.lift > 0.0 else f"moved down by {height} cm"
        return (
            f"RMS {1000.0 * self.rms:.1f} mm, worst {name} {1000.0 * distance:.1f} mm",
            f"scaled by {self.scale:.4g}" + (f", {moved}" if self.lift else ""),
            f"detected pose: {_POSES[self.pose]}" if self.pose in _POSES else "no calibration pose detected",
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        return f"{self.markers} markers{matching.of_take(self.take)} calibrated: {'; '.join(self.lines)}"


def calibrate_markers_steps(
    context: Context,
    rig: Object,
    *,
    proportions: str = "LIMBS",
    reference: Sequence[int] | None = None,
    static: bpy.types.Collection | None = None,
    refine: bool = True,
    on_floor: bool = True,
) -> Generator[float, None, CalibrationResult]:
    """Measure the positions of the rig's markers on their bones, and scale the markers in the scene to the rig.

    Works in small steps: yields progress, and may be closed at any time. The keywords are those of
    `CalibrationOptions`, and `static`, the markers of another recording of the same person, to measure on instead of
    the take. Raises a FabrikError, with nothing changed, that names the thing that is missing or does not fit.
    """
    scene, capture = context.scene, rig_settings(rig).capture
    take, other = matching.listed_markers(capture), matching.in_collection(static) if static is not None else {}
    holders = list(dict.fromkeys(holder for holder, _ in (*take.values(), *other.values())))
    check_followed(scene, rig, "MARKERS")
    _check_proportions(rig, proportions, holders)
    with PoseKeeper(scene, rig):
        context.view_layer.update()
        chosen = (reference[0], reference[1]) if reference is not None and any(reference) else None
        calibrating = _calibrations(scene, rig, take, other, chosen, proportions=proportions, refine=refine)
        found, left_out = yield from calibrating
    # World displacement that moves the scaled markers so that the feet are on the rig's floor.
    lift, factor = np.zeros(3), found[0].scale
    if on_floor and proportions != "NONE":
        lifts = (each for each in map(lift_off_floor, (each.poses for each in found)) if each.any())
        lift = np.array(rig.matrix_world)[:3, :3] @ next(lifts, lift)
    if proportions == "REST":
        # The rig is fitted to the person, so the markers are not scaled.
        _fit_rest_pose(context, rig, found)
        lift, factor = lift / factor, 1.0
    _keep(rig, found, proportions)
    matching.scale_markers(holders, np.array(rig.matrix_world.translation), factor, lift)
    residuals = meters_per_unit(rig) * np.concatenate([calibration.residuals for calibration in found])
    names = [marker.marker for calibration in found for marker in calibration.markers]
    place, rms = int(np.argmax(np.nan_to_num(residuals))), float(np.sqrt(np.nanmean(residuals**2)))
    worst, pose = (names[place], float(residuals[place])), found[0].pose
    # "As Recorded" does not measure the person's size.
    height = np.nan if proportions == "NONE" else meters_per_unit(rig) * found[0].height
    doubts = tuple(calibration_doubts(found[0].stature, left_out, height, is_unsure=found[0].is_unsure))
    result = CalibrationResult(take_name(rig), len(names), factor, rms, worst, pose, float(lift[2]), doubts)
    capture.calibrated, capture.calibration_doubts = "\n".join(result.lines), "\n".join(doubts)
    return result


calibrate_markers = at_once(calibrate_markers_steps)


def _check_proportions(rig: Object, proportions: str, holders: Sequence[Object]) -> None:
    """Raise a FabrikError if the rig, or else the objects of its markers, can't be scaled as chosen."""
    if proportions not in _SCALES:
        raise FabrikError(f"The proportions are {proportions!r}: they must be one of {', '.join(_SCALES)}")
    check_rig(rig)
    check_editable(rig)
    data = rig.data
    if proportions == "REST":
        if rig.override_library is not None or data.library is not None or data.override_library is not None:
            raise RigError(
                f"The bones of {rig.name!r} are linked from another file: set Proportions to an option other than "
                "Fit Rig"
            )
        if data.users > 1:
            raise RigError(f"The armature of {rig.name!r} is used by {data.users} objects: make it single-user first")
    elif proportions != "NONE":
        matching.check_scalable(holders)


def _fit_rest_pose(context: Context, rig: Object, found: Sequence[Calibration]) -> None:
    with in_object_mode(context):
        set_mode(context, "EDIT", rig)
        for each in found:
            skeleton, heads = each.skeleton, each.skeleton.rest[:, :3, 3] / each.scale
            tails = heads + skeleton.rest[:, :3, 1] * (skeleton.lengths / each.scale)[:, None]
            for name, head, tail in zip(skeleton.names, heads, tails, strict=True):
                bone = rig.data.edit_bones[name]
                bone.head, bone.tail = Vector(head), Vector(tail)


def _calibrations(
    scene: Scene,
    rig: Object,
    take: matching.Markers,
    other: matching.Markers,
    reference: Frames | None,
    *,
    proportions: str,
    refine: bool,
) -> Generator[float, None, tuple[list[Calibration], tuple[float, float] | None]]:
    """A calibration for each tree of bones with markers; yields progress.

    Also returns the median errors of the take's markers in meters, with and without the static recording; None unless
    that was rejected.
    """
    measured = other or take
    span = matching.recorded_range(scene, measured.values())
    frames = None
    if reference is not None:
        first, last = reference
        if not span[0] <= first <= last <= span[1]:
            raise FabrikError(
                f"The reference frames are {first} to {last}: they must be within {span[0]} to {span[1]}, the "
                "frames of the markers"
            )
        frames = first - span[0], last - span[0]
    measured_clip = matching.marker_clip(scene, rig, measured)
    take_clip = matching.marker_clip(scene, rig, take) if other else measured_clip
    capture, scale = rig_settings(rig).capture, _SCALES[proportions]
    mapping, rest, left_out = matching.mapping_of(capture), read_rest(rig), list[tuple[float, float]]()

    def calibrated(
        skeleton: Skeleton, mapping: Sequence[MappedMarker], scale: Scale
    ) -> Generator[float, None, Calibration]:
        """The calibration of one tree, with the markers of the mapping; yields progress.

        If the take fits clearly worse with a static recording than without it, the recording is rejected.
        """
        limits, there, half = read_limits(rig, skeleton.names), list(mapping), 0.5 * _MEASURED
        if other:
            # Guesses from motion are not valid for another recording.
            listed, seen = capture.markers, measured_clip.names
            there = [entry for entry in mapping if entry.marker in seen and not listed[entry.marker].is_guess]
            # Add markers that only the static recording has, such as those on the inner side of a joint.
            known = {entry.marker for entry in mapping} | set(listed.keys())
            labels = [name for name in seen if name not in known]
            others = match(labels, parts_of(match_bones(rest)), rest, capture.preset or None).markers
            there += [entry for entry in others if entry.bone in skeleton.names]
        measuring = calibrate_steps(skeleton, there, measured_clip, frames, limits=limits, scale=scale)
        found = _with_markers((yield from within(0.0, half, measuring)), mapping)
        off = _usually_off(found, take_clip, limits) if other else 0.0
        if off > _FAR_OFF * skeleton.size:
            alone = calibrate_steps(skeleton, mapping, take_clip, limits=limits, scale=scale)
            without = _with_markers((yield from within(half, _MEASURED, alone)), mapping)
            off_without = _usually_off(without, take_clip, limits)
            if off > _WORSE * off_without:
                found = without
                left_out.append((meters_per_unit(rig) * off, meters_per_unit(rig) * off_without))
        if refine:
            refining = refined_steps(found, take_clip, limits=limits, resize=isinstance(scale, str))
            found = yield from within(_MEASURED, 1.0, refining)
        return found

    found = list[Calibration]()
    having = [(skeleton, own) for skeleton, own in matching.marked_skeletons(rig, mapping) if own]
    for index, (skeleton, own) in enumerate(having):
        steps = calibrated(skeleton, own, scale)
        found.append((yield from within(index / len(having), (index + 1) / len(having), steps)))
        # The tree with the most markers determines the size of the person.
        scale = found[0].scale
    return found, left_out[0] if left_out else None


def _usually_off(found: Calibration, take: Clip, limits: Mapping[str, Limit]) -> float:
    """The median error of a take's markers with a calibration, in the rig's units."""
    targets = found.targets(take)
    targets = targets[evenly_spread(len(targets), _TRIED)]
    solution = found.solver(limits, Options(restarts=0)).solve(targets)
    return float(np.nanmedian(solution.errors))


def _with_markers(found: Calibration, mapping: Sequence[MappedMarker]) -> Calibration:
    """The calibration with the mapping's markers: measured positions, and guesses for markers that are never seen."""
    indices = {entry.marker: place for place, entry in enumerate(found.markers)}
    scales = {name: found.bone_factors[found.skeleton.index(name)] for name in found.skeleton.names}
    guessed = [matching.scaled_entry(entry, scales[entry.bone]) for entry in mapping]
    guesses = guessed_offsets(found.skeleton, guessed)
    markers, residuals = list(guessed), np.full(len(mapping), np.nan)
    for row, entry in enumerate(mapping):
        if entry.marker in indices:
            place = indices[entry.marker]
            markers[row], residuals[row] = found.markers[place], found.residuals[place]
            guesses[row] = found.guesses[place]
    return replace(found, markers=tuple(markers), residuals=residuals, guesses=guesses)


def _keep(rig: Object, found: Sequence[Calibration], proportions: str) -> None:
    """Store the positions of the markers, and the bone lengths of the person if the rig's do not change."""
    settings = rig_settings(rig)
    settings.root = "FREE"
    capture = settings.capture
    capture.factors.clear()
    # An earlier bake used the former calibration.
    capture.action = None
    for calibration in found:
        size = 1.0 / calibration.scale if proportions == "REST" else 1.0
        for marker in calibration.markers:
            entry = capture.markers[marker.marker]
            entry.point = marker.point
            entry.offset = [size * value for value in marker.offset or (0.0, 0.0, 0.0)]
        if proportions == "LIMBS":
            for name, factor in zip(calibration.skeleton.names, calibration.bone_factors, strict=True):
                add_item(capture.factors, name=name, factor=factor)
