"""Baking, with a progress bar and Esc where there is a window."""

from typing import TYPE_CHECKING

from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.markers import GAPS
from ...settings.rig import ACTIONS, BAKED_BONES, ROOT_MOTIONS, SOURCES, STARTS, rig_settings
from ...settings.why_not import why_no_bake
from .in_steps import InSteps

if TYPE_CHECKING:
    from ...bake.bake import BakeResult, Steps
    from ...bake.settings import BakeSettings

# Keywords that are kept on the rig under the same name.
_KEPT = ("mend_jumps", "source", "bones", "root_motion", "key_angle", "key_distance")
# Those that are kept with its markers.
_KEPT_WITH_MARKERS = ("gaps", "robust", "steady", "low_pass", "plant_feet", "key_error")


class FABRIK_OT_bake(InSteps, Operator):
    """Key the rig's bones so that its effectors follow their targets; what is not given is taken from the sidebar"""

    bl_idname = "fabrik.bake"
    bl_label = "Bake"
    why_not = staticmethod(why_no_bake)
    doing = "baking"

    frame_start: IntProperty(name="Start", description="First frame to bake")
    frame_end: IntProperty(name="End", description="Last frame to bake")
    step: IntProperty(name="Step", description="Frames from one key to the next", default=1, min=1)
    start: EnumProperty(name="Start From", description="The pose that each frame is solved from", items=STARTS)
    action: EnumProperty(name="Action", description="Where the keyframes are written", items=ACTIONS)
    action_name: StringProperty(name="Action Name", description="Name of a new action; the rig's when empty")
    mend_jumps: BoolProperty(
        name="Mend Jumps",
        description="Solve frames on which a limb jumps, or that failed, again from the frames about them",
    )
    source: EnumProperty(name="Follow", description="What the rig follows", items=SOURCES)
    bones: EnumProperty(name="Bones", description="Which bones get keys", items=BAKED_BONES)
    root_motion: EnumProperty(name="Root Motion", description="What travels where the root is free", items=ROOT_MOTIONS)
    key_angle: FloatProperty(
        name="Fewer Keys",
        description="Leave out keys as long as no bone is turned off by more than this; 0 keeps a key on every frame",
        subtype="ANGLE",
        min=0.0,
    )
    key_distance: FloatProperty(
        name="Root Tolerance",
        description="Where keys are left out: how far off the root may be at most",
        unit="LENGTH",
        default=0.001,
        min=0.0,
    )
    gaps: EnumProperty(name="Gaps", description="What bones do whose markers are not seen", items=GAPS)
    robust: BoolProperty(
        name="Ignore Outliers",
        description="Markers that are far from where the others say, such as swapped or fallen ones, do not count",
        default=True,
    )
    steady: BoolProperty(
        name="Steady",
        description="Bones that the markers leave undecided, such as a spine's, go by the frames before and after",
        default=True,
    )
    low_pass: FloatProperty(
        name="Low-Pass",
        description="Smooth the markers: what changes faster than so many times a second is taken out; 0 leaves them",
        min=0.0,
    )
    plant_feet: BoolProperty(name="Plant Feet", description="Keep feet from sliding while they stand")
    key_error: BoolProperty(
        name="Key Error",
        description="Key each frame's RMS error as the custom property fabrik_error, to be seen in the Graph Editor",
    )

    def steps(self, context: Context) -> "Steps":
        """The bake."""
        from ...bake.bake import bake_steps

        return bake_steps(context, context.object, self._settings(context))

    def done(self, result: "BakeResult") -> set[str]:
        """Say how it went."""
        for warning in result.warnings:
            self.report({"WARNING"}, warning)
        self.report({"INFO"}, result.line)
        return {"FINISHED"}

    def _settings(self, context: Context) -> "BakeSettings":
        """What to bake: the keywords given, else the rig's settings."""
        from ...bake.settings import BakeSettings

        kept, capture = rig_settings(context.object).bake, rig_settings(context.object).capture
        source = context.scene if kept.use_scene_range else kept
        choices = {
            "frame_start": source.frame_start,
            "frame_end": source.frame_end,
            "step": kept.step,
            "start": kept.start,
            "action": kept.action,
            "action_name": "",
            **{name: getattr(kept, name) for name in _KEPT},
            **{name: getattr(capture, name) for name in _KEPT_WITH_MARKERS},
        }
        given = {name: getattr(self, name) for name in choices if self.properties.is_property_set(name)}
        return BakeSettings(**{**choices, **given})


CLASSES = (FABRIK_OT_bake,)
