"""Converts the scene's markers to a recording in an armature's space, and scales them in the scene."""

from collections.abc import Iterable, Sequence
from typing import Final

import bpy
import numpy as np
from mathutils import Vector

from ...core.arrays import FloatArray
from ...markers.clip import Clip
from ...markers.steps import finish
from ..goals.effectors import Target
from ..goals.places import has_other_drivers, sample_steps
from ..rig import keyframes
from ..rig.keyframes import bone_path
from ..rig.spaces import world_to_armature
from ..settings.markers import TAKE_RATE
from ..settings.rig import rig_settings
from .matching import MarkerError, SceneMarker

# Frames per second. Smaller differences are ignored, because Blender stores rates in single precision.
_SAME_RATE: Final = 1e-3
# Factors that differ from 1 by less than this are ignored.
_SAME: Final = 1e-9


def scene_rate(scene: bpy.types.Scene) -> float:
    """The scene's frames per second."""
    return float(scene.render.fps / scene.render.fps_base)


def recorded_range(scene: bpy.types.Scene, targets: Iterable[Target]) -> tuple[int, int]:
    """The first and the last whole frame with keys of markers; the scene's range if there are no keys."""
    times = list[float]()
    for holder, bone in targets:
        path = bone_path(bone, "location") if bone else "location"
        for curve in () if holder is None else keyframes.curves(holder):
            if curve.data_path == path and len(curve.keyframe_points):
                times += [curve.keyframe_points[place].co[0] for place in (0, -1)]
    if not times:
        return scene.frame_start, scene.frame_end
    return int(np.ceil(min(times) - 1e-3)), int(np.floor(max(times) + 1e-3))


def targets_of(markers: Iterable[SceneMarker]) -> list[Target]:
    """The targets from which the markers are sampled."""
    return [(marker.holder, marker.bone) for marker in markers]


def marker_clip(
    scene: bpy.types.Scene, rig: bpy.types.Object, markers: Sequence[SceneMarker], frames: tuple[int, int]
) -> Clip:
    """The markers on the frames from first to last, in the rig's armature space and units.

    Raises TargetError if an object is not part of the evaluated scene.
    """
    times = np.arange(frames[0], frames[1] + 1)
    world, rigs = finish(sample_steps(scene, targets_of(markers), [(rig, "")], times, recorded=True))
    local = world_to_armature(world, rigs[:, 0])
    return Clip(tuple(marker.label for marker in markers), scene_rate(scene), local, up_axis="Z", source=scene.name)


def check_scalable(markers: Iterable[SceneMarker]) -> None:
    """Raise MarkerError, naming the object, if markers can't be scaled."""
    for holder in _holders(markers):
        if holder.library is not None:
            raise MarkerError(
                f"{holder.name!r} is linked from another file and can't be scaled: set Proportions to As Recorded"
            )
        own = (curve for curve in keyframes.curves(holder) if not curve.data_path.startswith("pose.bones"))
        moved = any(curve.data_path != "location" or curve.modifiers for curve in own)
        if has_other_drivers(holder) or moved:
            raise MarkerError(
                f"{holder.name!r} is moved by more than location keys and can't be scaled: set "
                "Proportions to As Recorded"
            )


def scale_markers(markers: Iterable[SceneMarker], centre: FloatArray, factor: float, lift: FloatArray) -> None:
    """Scale checked markers about a point `centre` (3,), then move them by `lift` (3,), both in world space."""
    if abs(factor - 1.0) < _SAME and np.abs(lift).max() < _SAME:
        return
    for holder in _holders(markers):
        shift = (1.0 - factor) * (centre - np.array(holder.delta_location)) + lift
        holder.location = Vector((factor * np.array(holder.location) + shift).tolist())
        for curve in keyframes.curves(holder):
            if curve.data_path == "location":
                keyframes.scale_values(curve, factor, float(shift[curve.array_index]))
        if holder.type == "ARMATURE":
            holder.scale = holder.scale * factor


def _holders(markers: Iterable[SceneMarker]) -> list[bpy.types.Object]:
    """The objects of the markers, without duplicates."""
    return list(dict.fromkeys(marker.holder for marker in markers))


def why_another_speed(scene: bpy.types.Scene, rig: bpy.types.Object) -> str:
    """Why the rig's take does not play at its recorded speed; "" if it does."""
    take = rig_settings(rig).capture.take
    rate, now = None if take is None else take.get(TAKE_RATE), scene_rate(scene)
    if take is None or rate is None or abs(now - rate) < _SAME_RATE:
        return ""
    return (
        f"{take.name!r} was imported at {rate:g} fps, but the scene now plays at {now:g} fps: set "
        "the scene's frame rate back, or import the recording again"
    )
