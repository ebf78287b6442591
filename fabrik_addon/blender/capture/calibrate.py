"""Fits a recording to a rig: its size, the positions of the markers on their bones, and the person's proportions."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np
from bpy.types import Context, Object, Scene
from mathutils import Vector

from ...core.errors import FabrikError
from ...human.naming_schemes import match as match_bones
from ...markers.calibrate.calibrate import Calibration, Scale, calibrate_take_steps
from ...markers.calibrate.fit import Kind
from ...markers.doubts import calibration_doubts
from ...markers.feet import lift_off_floor
from ...markers.mapping.labels import match, parts_of
from ...markers.steps import within
from ..goals.effectors import check_followed
from ..rig.armature import RigError, check_editable, check_rig, meters_per_unit, read_rest
from ..rig.pose_writer import PoseKeeper, set_rest
from ..settings.in_use import add_item
from ..settings.limit_properties import read_limits
from ..settings.rig import rig_settings, take_name
from . import matching

_SCALES: Final[Mapping[str, Scale]] = {"UNIFORM": "uniform", "LIMBS": "limbs", "REST": "limbs", "NONE": 1.0}

_POSES: Final[Mapping[Kind, str]] = {
    "REST": "standing in the rig's rest pose",
    "STANDING": "standing with arms hanging",
    "A_POSE": "standing in an A pose",
    "T_POSE": "standing in a T pose",
}


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
    reference: Sequence[int] = (0, 0),
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
        calibrating = _calibrations(scene, rig, take, other, reference, proportions=proportions, refine=refine)
        found, left_out = yield from calibrating
    # World displacement that moves the scaled markers so that the feet are on the rig's floor.
    lift, factor = np.zeros(3), found[0].scale
    if on_floor and proportions != "NONE":
        lifts = (each for each in map(lift_off_floor, (each.poses for each in found)) if each.any())
        lift = np.array(rig.matrix_world)[:3, :3] @ next(lifts, lift)
    if proportions == "REST":
        # The rig is fitted to the person, so the markers are not scaled.
        for each in found:
            skeleton, heads = each.skeleton, each.skeleton.rest[:, :3, 3] / each.scale
            tails = heads + skeleton.rest[:, :3, 1] * (skeleton.lengths / each.scale)[:, None]
            ends = zip(map(Vector, heads), map(Vector, tails), strict=True)
            set_rest(context, rig, dict(zip(skeleton.names, ends, strict=True)))
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


def _check_proportions(rig: Object, proportions: str, holders: Sequence[Object]) -> None:
    """Raise a FabrikError if the rig, or else the objects of its markers, can't be scaled as chosen."""
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


def _calibrations(
    scene: Scene,
    rig: Object,
    take: matching.Markers,
    other: matching.Markers,
    reference: Sequence[int],
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
    if any(reference):
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
    mapping, rest = matching.mapping_of(capture), read_rest(rig)
    found, left_out = list[Calibration](), None
    having = [(skeleton, own) for skeleton, own in matching.marked_skeletons(rig, mapping) if own]
    for index, (skeleton, own) in enumerate(having):
        static, limits = None, read_limits(rig, skeleton.names)
        if other:
            # Guesses from motion are not valid for another recording.
            listed, seen = capture.markers, measured_clip.names
            there = [entry for entry in own if entry.marker in seen and not listed[entry.marker].is_guess]
            # Add markers that only the static recording has, such as those on the inner side of a joint.
            known = {entry.marker for entry in own} | set(listed.keys())
            labels = [name for name in seen if name not in known]
            others = match(labels, parts_of(match_bones(rest)), rest, capture.preset or None).markers
            static = measured_clip, [*there, *(entry for entry in others if entry.bone in skeleton.names)]
        steps = calibrate_take_steps(
            skeleton, own, take_clip, frames, static, limits=limits, scale=scale, refine=refine
        )
        each, rejected = yield from within(index / len(having), (index + 1) / len(having), steps)
        found.append(each)
        left_out = left_out or rejected
        # The tree with the most markers determines the size of the person.
        scale = found[0].scale
    meters = meters_per_unit(rig)
    return found, None if left_out is None else (meters * left_out[0], meters * left_out[1])


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
