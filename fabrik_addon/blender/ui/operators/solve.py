"""Posing the present frame."""

from bpy.props import EnumProperty
from bpy.types import Context, Operator

from ...settings.why_not import why_no_solve
from .asking import can_run, says_why_not

STARTS = (
    ("PRESENT", "Present Pose", "Go from the present pose to the nearest one that meets the targets"),
    ("REST", "Rest", "Start from the rest pose, so that the result depends on the targets only"),
)


class FABRIK_OT_solve(Operator):
    """Pose the rig so that its effectors meet their targets on the present frame"""

    bl_idname = "fabrik.solve"
    bl_label = "Solve"
    bl_options = {"REGISTER", "UNDO"}

    start: EnumProperty(name="Start From", description="The pose that solving starts from", items=STARTS)

    @classmethod
    def poll(cls, context: Context) -> bool:
        """On an armature with something to reach."""
        return can_run(cls, why_no_solve(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Pose the rig and say how well it went."""
        from ...posing.solve_frame import solve_frame

        result = solve_frame(context, context.object, self.start)
        for sentence in result.left_alone:
            self.report({"WARNING"}, sentence)
        self.report({"INFO"}, result.line)
        return {"FINISHED"}


CLASSES = (FABRIK_OT_solve,)
