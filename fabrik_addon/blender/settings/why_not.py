"""What of a rig counts, and why an object can't be worked on: asked by polls, panels and handlers all the time.

Nothing here needs the solver, so that asking does not load it.
"""

import bpy

from .effector import FabrikEffector
from .markers import FabrikMarker
from .rig import rig_settings


def why_no_rig(rig: bpy.types.Object | None) -> str:
    """What keeps the add-on from working on an object, and what to do; "" where nothing does."""
    if rig is None or rig.type != "ARMATURE":
        return "Select an armature"
    if rig.library is not None:
        return f"{rig.name!r} is linked from another file: make a library override of it first"
    if rig.mode == "EDIT":
        return "Leave Edit mode first"
    return ""


def why_no_solve(rig: bpy.types.Object | None) -> str:
    """What keeps an object from being solved or baked, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    if not len(rig_settings(rig).effectors):
        return f"{rig.name!r} has no effector: pick a bone in Pose mode and add one"
    if not enabled_effectors(rig):
        return f"All effectors of {rig.name!r} are switched off: enable one"
    return ""


def why_no_mapped(rig: bpy.types.Object | None) -> str:
    """What keeps an object from having markers on its bones, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    return "" if mapped_markers(rig) else "No marker is on a bone: match the markers first"


def why_no_bake(rig: bpy.types.Object | None) -> str:
    """What keeps an object from being baked, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    return "" if mapped_markers(rig) else why_no_solve(rig)


def enabled_effectors(rig: bpy.types.Object) -> list[FabrikEffector]:
    """The effectors that count: switched on, with a weight."""
    return [effector for effector in rig_settings(rig).effectors if effector.enabled and effector.weight > 0.0]


def mapped_markers(rig: bpy.types.Object) -> list[FabrikMarker]:
    """The markers that count: on a bone, switched on, with a weight."""
    markers = rig_settings(rig).capture.markers
    return [marker for marker in markers if marker.bone and marker.enabled and marker.weight > 0.0]
