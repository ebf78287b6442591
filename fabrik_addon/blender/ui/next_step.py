"""The line at the top of each tab, with the next step for the current rig."""

import bpy
from bpy.types import Context

from ..capture.takes import imported_takes, record_of
from ..settings.control import may_be_control_rig
from ..settings.in_use import seen
from ..settings.why_not import mapped_markers, why_no_rig
from .operators.bake import FABRIK_OT_bake
from .operators.markers import FABRIK_OT_calibrate_markers, FABRIK_OT_match_markers
from .operators.posing import FABRIK_OT_use_control_rig
from .operators.retarget import FABRIK_OT_retarget


def next_in_pose(rig: bpy.types.Object | None) -> str:
    """The next step in the Pose tab."""
    reason = why_no_rig(rig)
    if reason or rig is None:
        return reason
    kept = seen(rig)
    if may_be_control_rig(rig):
        return "Constraints move the rig's bones: set up a control rig, then drag controls"
    if any(effector.kind == "TARGET" for effector in kept.effectors):
        return _next_with_targets(rig)
    if rig.mode != "POSE":
        return "Enter Pose mode to drag bones"
    if rig.data.bones.active is None:
        return "Press F over a bone and move the mouse"
    return "F drags the bone; pins stay in place" if len(kept.effectors) else "F drags a bone; P pins bones in place"


def _next_with_targets(rig: bpy.types.Object) -> str:
    """The next step for a rig with targets."""
    if not seen(rig).live:
        return "Turn on Live, then move the targets"
    # In Pose mode a click selects only bones.
    in_pose_mode = rig.mode == "POSE"
    return "Leave Pose mode (Ctrl Tab) to move targets" if in_pose_mode else "Move the targets to pose the rig"


def next_in_motion(context: Context, rig: bpy.types.Object | None) -> tuple[str, str]:
    """The next step from a recording to keyframes, and its operator or ""."""
    takes = imported_takes(context.scene)
    reason = why_no_rig(rig)
    if not takes and (rig is None or not mapped_markers(rig)):
        return _without_a_take(None if reason else rig)
    if reason or rig is None:
        return reason, ""
    if not mapped_markers(rig):
        return "Match the markers to bones", FABRIK_OT_match_markers.bl_idname
    record = record_of(rig)
    if record is not None and record.action is not None:
        return "Baked: see the report below", ""
    if record is None or not record.calibrated:
        return "Calibrate the markers", FABRIK_OT_calibrate_markers.bl_idname
    return "Bake the take to keyframes", FABRIK_OT_bake.bl_idname


def _without_a_take(rig: bpy.types.Object | None) -> tuple[str, str]:
    """The next step if no markers were imported; another armature can be the source."""
    kept = None if rig is None else seen(rig).retarget
    if rig is not None and kept is not None and kept.source is not None:
        if may_be_control_rig(rig):
            return "Constraints move the rig's bones: set up a control rig first", FABRIK_OT_use_control_rig.bl_idname
        if kept.brought == kept.source.name:
            return "Retargeted: see the result below", FABRIK_OT_retarget.bl_idname
        return "Press Retarget Animation to copy the source's motion to the rig", FABRIK_OT_retarget.bl_idname
    if rig is not None and len(bpy.data.armatures) > 1:
        return "Import markers, or choose an animated armature as the source below", ""
    return "Import markers here, or a .bvh or .fbx armature with File ▸ Import", ""
