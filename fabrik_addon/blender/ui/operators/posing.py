"""Between poses, keys and targets."""

from bpy.types import Context, Operator

from ...settings.why_not import why_no_solve
from .asking import can_run, says_why_not


class _OnSolvedRig:
    """An operator for an armature with something to reach."""

    @classmethod
    def poll(cls, context: Context) -> bool:
        """On an armature with something to reach."""
        return can_run(cls, why_no_solve(context.object))


class FABRIK_OT_key_pose(_OnSolvedRig, Operator):
    """Insert keys on this frame for the bones that solving moves, and for no others"""

    bl_idname = "fabrik.key_pose"
    bl_label = "Key Pose"
    bl_options = {"REGISTER", "UNDO"}

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Key the pose."""
        from ...posing.key_pose import key_pose

        bones = key_pose(context, context.object)
        self.report({"INFO"}, f"Keyed {len(bones)} bones on frame {context.scene.frame_current}")
        return {"FINISHED"}


class FABRIK_OT_snap_targets(_OnSolvedRig, Operator):
    """Move targets, bend targets and pins to where the pose is, so that solving goes on from it without a jump"""

    bl_idname = "fabrik.snap_targets"
    bl_label = "Snap Targets to Pose"
    bl_options = {"REGISTER", "UNDO"}

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Move the targets."""
        from ...posing.snap_targets import snap_targets

        count, stays = snap_targets(context, context.object)
        for sentence in stays:
            self.report({"WARNING"}, sentence)
        self.report({"INFO"}, f"{count} targets are where the pose is")
        return {"FINISHED"}


CLASSES = (FABRIK_OT_key_pose, FABRIK_OT_snap_targets)
