"""Updates trails of rigs whose motion only Blender can evaluate."""

import bpy
from bpy.types import Context, Operator

from ....settings.control import control_rig
from ....settings.unset import seen
from ....settings.why_not import of_a_rig
from ...overlays.later import shown_motion
from ..base import Done, OnRig


def has_to_be_played(rig: bpy.types.Object) -> bool:
    """Whether strips or controls move a rig, so that its keys do not determine the positions of its bones."""
    animation = rig.animation_data
    return animation is not None and (animation.action is None or control_rig(rig) is not None)


def play_again(context: Context, spread: int) -> None:
    """Update trails after a drag that changed other frames, if the trails depend on more than keys."""
    rig = shown_motion(context) if spread else None
    if rig is not None and has_to_be_played(rig):
        from ...overlays.motion import work_out

        work_out(context, rig)


@of_a_rig
def _why_no_trails(rig: bpy.types.Object) -> str:
    """Why an object's trails can't be updated, and what to do; "" if they can."""
    return "" if seen(rig).show_trails else f"No trails of {rig.name!r} are shown: turn on Trails first"


class FABRIK_OT_work_out_trails(OnRig, Operator):
    """Recalculate trails of control rigs and NLA strips by playing the frames"""

    bl_idname = "fabrik.work_out_trails"
    bl_label = "Update Trails"
    why_not = staticmethod(_why_no_trails)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ....rig.armature import RigError
        from ...overlays.motion import work_out

        if not work_out(context, rig):
            raise RigError(f"{rig.name!r} has no keys, so nothing moves: bake or key a motion first")
        return f"Updated the trails of {rig.name!r}", []


CLASSES = (FABRIK_OT_work_out_trails,)
