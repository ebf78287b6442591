"""The operator that bakes. In a window it shows progress, and Esc stops it."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bpy.props import IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.bake_options import KEY_OPTIONS, OPTIONS
from ...settings.rig import ASIDE, rig_settings
from ...settings.why_not import rig_at_hand, why_no_bake
from ..translations import told
from .base import InSteps, keyword, report_all

if TYPE_CHECKING:
    from ...bake.bake import Steps
    from ...bake.report import BakeResult


_GIVEN: Any = SimpleNamespace(**{name: keyword(declared) for name, declared in KEY_OPTIONS.items()})


class ReportsBake:
    """An operator whose steps return the result of a bake. Keywords that are not given use the rig's settings."""

    frame_start: IntProperty(
        name="Start", description="First frame. Defaults to the start of the preview range, or of the source"
    )
    frame_end: IntProperty(
        name="End", description="Last frame. Defaults to the end of the preview range, or of the source"
    )
    action_name: StringProperty(
        name="Action Name", description="Name of the new action. Defaults to the rig's name", options=ASIDE
    )

    step: _GIVEN.step
    action: _GIVEN.action
    bones: _GIVEN.bones
    root_motion: _GIVEN.root_motion
    key_angle: _GIVEN.key_angle
    self_collision: _GIVEN.self_collision
    plant_feet: _GIVEN.plant_feet

    def done(self, result: "BakeResult") -> set[str]:
        """Report the result."""
        warnings = (*result.warnings, *result.report.doubts)
        report_all(self, "{}: {} ({})".format(*map(told, result.lines)), map(told, warnings))
        return {"FINISHED"}


class FABRIK_OT_bake(ReportsBake, InSteps, Operator):
    """Bake the rig's targets or markers to keyframes"""

    bl_idname = "fabrik.bake"
    bl_label = "Bake to Keyframes"
    why_not = staticmethod(why_no_bake)
    doing = "baking"

    def steps(self, context: Context) -> "Steps":
        """Start the bake with the rig's settings and the given keywords."""
        from ...bake.bake import bake_steps
        from ...bake.jobs import BakeSettings, chosen_range

        rig = rig_at_hand(context)
        kept = rig_settings(rig)
        options: dict[str, Any] = {
            name: getattr(kept.bake if hasattr(kept.bake, name) else kept.capture, name) for name in OPTIONS
        } | self.given(*KEY_OPTIONS)
        first, last = chosen_range(context.scene, rig, options["source"])
        frames = {"frame_start": first, "frame_end": last} | self.given("frame_start", "frame_end")
        return bake_steps(context, rig, BakeSettings(**frames, action_name=self.action_name, **options))


CLASSES = (FABRIK_OT_bake,)
