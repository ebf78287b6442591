"""Retargets another armature's motion to the current rig."""

from inspect import get_annotations
from typing import TYPE_CHECKING, Any

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator

from ....settings.bake_options import RETARGET_OPTIONS, KeyOptions
from ....settings.rig import ASIDE, rig_settings
from ....settings.why_not import rig_at_hand
from ..bake import ReportsBake
from ..in_steps import InSteps

if TYPE_CHECKING:
    from ....bake.bake import Steps


class FABRIK_OT_retarget(ReportsBake, InSteps, KeyOptions, Operator):
    """Copy another armature's motion to the rig as keyframes. Unset options use the sidebar's values"""

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
        """The retargeting, with the rig's settings except for the keywords given."""
        from ....retarget.door import retarget_from
        from ....retarget.matching import pairs_of

        rig = rig_at_hand(context)
        kept = rig_settings(rig)
        how: dict[str, Any] = {name: getattr(kept.retarget, name) for name in RETARGET_OPTIONS}
        bake: dict[str, Any] = {name: getattr(kept.bake, name) for name in get_annotations(KeyOptions)}
        bake.update(self.given(*bake))
        chosen = {"SCENE": context.scene, "OWN": kept.bake}.get(kept.bake.frame_range)
        given = self.given("frame_start", "frame_end")
        frames = [given.get(end, getattr(chosen, end, None)) for end in ("frame_start", "frame_end")]
        source = bpy.data.objects.get(self.source) or self.source or kept.retarget.source
        # The list belongs to the rig's source.
        pairs = pairs_of(rig) if source == kept.retarget.source else ()
        return retarget_from(context, rig, source, frames, how, {**bake, "action_name": self.action_name}, pairs)


CLASSES = (FABRIK_OT_retarget,)
