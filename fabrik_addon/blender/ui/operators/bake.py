"""The operators that bake and retarget, and match the bones of two armatures.

In a window, a bake shows progress, and Esc stops it.
"""

from typing import TYPE_CHECKING, Any

import bpy
from bpy.props import IntProperty, StringProperty
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ...settings.bake_options import KEY_OPTIONS, OPTIONS, RETARGET_OPTIONS, BakeOptions, MarkerOptions
from ...settings.rig import ASIDE, rig_settings
from ...settings.why_not import rig_at_hand, why_no_bake
from ..translations import told
from .base import Done, InSteps, OnJson, OnRig, chosen_path, report_all, takes

if TYPE_CHECKING:
    from ...bake.bake import Steps
    from ...bake.report import BakeResult


@takes(KEY_OPTIONS)
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

    def done(self, result: "BakeResult") -> set[str]:
        """Report the result."""
        warnings = (*result.warnings, *result.report.doubts)
        report_all(self, "{}: {} ({})".format(*map(told, result.lines)), map(told, warnings))
        return {"FINISHED"}


@takes(BakeOptions.__annotations__ | MarkerOptions.__annotations__)
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
        } | self.given(*OPTIONS)
        first, last = chosen_range(context.scene, rig, options["source"])
        frames = {"frame_start": first, "frame_end": last} | self.given("frame_start", "frame_end")
        return bake_steps(context, rig, BakeSettings(**frames, action_name=self.action_name, **options))


class FABRIK_OT_match_bones(OnRig, Operator):
    """Map the source's bones to the rig's bones by name"""

    bl_idname = "fabrik.match_bones"
    bl_label = "Map Bones"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import match_bones

        return f"{len(match_bones(context, rig))} bones mapped", []


class FABRIK_OT_save_bone_map(OnJson, Operator, ExportHelper):
    """Save the bone mapping to a JSON file"""

    bl_idname = "fabrik.save_bone_map"
    bl_label = "Save Bone Map"
    bl_options = {"REGISTER"}

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import save_pairs

        return f"{save_pairs(rig, chosen_path(self))} bones saved to {chosen_path(self).name}", []


class FABRIK_OT_load_bone_map(OnJson, Operator, ImportHelper):
    """Load the bone mapping from a JSON file"""

    bl_idname = "fabrik.load_bone_map"
    bl_label = "Load Bone Map"

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ...retarget.retarget import load_pairs

        return f"{load_pairs(rig, chosen_path(self))} bones loaded", []


@takes(RETARGET_OPTIONS)
class FABRIK_OT_retarget(ReportsBake, InSteps, Operator):
    """Copy another armature's motion to the rig as keyframes"""

    bl_idname = "fabrik.retarget"
    bl_label = "Retarget Animation"
    doing = "retargeting"

    source: StringProperty(
        name="Source",
        description="The armature to retarget from, or a .bvh, .fbx, .glb, .usd, .npz or .mvnx file. "
        "Defaults to the rig's source",
        options=ASIDE,
    )

    def steps(self, context: Context) -> "Steps":
        """Start the retargeting with the rig's settings and the given keywords."""
        from ...bake.jobs import preview_range
        from ...retarget.door import retarget_from
        from ...retarget.retarget import pairs_of

        rig = rig_at_hand(context)
        kept = rig_settings(rig)
        how: dict[str, Any] = {name: getattr(kept.retarget, name) for name in RETARGET_OPTIONS}
        how |= self.given(*RETARGET_OPTIONS)
        bake: dict[str, Any] = {name: getattr(kept.bake, name) for name in KEY_OPTIONS} | self.given(*KEY_OPTIONS)
        given = self.given("frame_start", "frame_end")
        first, last = preview_range(context.scene) or (None, None)
        frames = given.get("frame_start", first), given.get("frame_end", last)
        source = bpy.data.objects.get(self.source) or self.source or kept.retarget.source
        # The list of bone pairs is only valid for the rig's own source.
        pairs = pairs_of(rig) if source == kept.retarget.source else ()
        return retarget_from(context, rig, source, frames, how, {**bake, "action_name": self.action_name}, pairs)


CLASSES = (
    FABRIK_OT_bake,
    FABRIK_OT_match_bones,
    FABRIK_OT_save_bone_map,
    FABRIK_OT_load_bone_map,
    FABRIK_OT_retarget,
)
