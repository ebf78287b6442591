"""What a rig follows: the rig's mapped markers, or its effectors."""

from collections.abc import Sequence
from typing import TypeAlias

import bpy

from ..rig.armature import RigError
from ..settings.effector import FabrikEffector
from ..settings.markers import FabrikMarker
from ..settings.why_not import enabled_effectors, is_in_scene, mapped_markers, why_no_rig
from .effectors import check_effectors, why_no_target

Followed: TypeAlias = "FabrikEffector | FabrikMarker"


def follows_markers(rig: bpy.types.Object, source: str) -> bool:
    """Whether a bake from "AUTO", "MARKERS" or "EFFECTORS" goes by the markers."""
    return source == "MARKERS" or (source == "AUTO" and bool(mapped_markers(rig)))


def followed(rig: bpy.types.Object, source: str) -> Sequence[Followed]:
    """The markers or the effectors that a bake goes by."""
    return mapped_markers(rig) if follows_markers(rig, source) else enabled_effectors(rig)


def check_followed(scene: bpy.types.Scene, rig: bpy.types.Object, source: str) -> None:
    """Raise RigError, naming the trouble, unless there is something to follow and all of it is there."""
    if not follows_markers(rig, source):
        check_effectors(scene, rig)
        return
    trouble = why_no_rig(rig)
    if trouble:
        raise RigError(trouble)
    markers = mapped_markers(rig)
    if not markers:
        raise RigError(f"{rig.name!r} has no mapped markers: match its markers to bones first")
    for marker in markers:
        _check_marker(scene, rig, marker)


def _check_marker(scene: bpy.types.Scene, rig: bpy.types.Object, marker: FabrikMarker) -> None:
    """Raise RigError where a marker's bone or object is gone, such as after a renaming."""
    if marker.bone not in rig.pose.bones:
        raise RigError(
            f"Marker {marker.name!r}: {rig.name!r} has no bone {marker.bone!r} (was it renamed?): choose it again"
        )
    if marker.target is None:
        raise RigError(f"Marker {marker.name!r} has no object (was it deleted?): choose one, or disable the marker")
    if not is_in_scene(scene, marker.target):
        raise RigError(
            f"Marker {marker.name!r}: its object {marker.target.name!r} is not in scene {scene.name!r}: choose another"
        )
    reason = why_no_target(rig, marker.target, marker.target_bone)
    if reason:
        raise RigError(f"Marker {marker.name!r}: {reason}")
