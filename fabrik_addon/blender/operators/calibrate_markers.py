"""Measuring where the markers are on the rig."""

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ..marker_settings import PROPORTIONS, FabrikCapture
from ..settings import rig_settings
from ..why_not import why_no_mapped
from .asking import can_run, says_why_not

_KEPT = ("proportions", "refine")


class FABRIK_OT_calibrate_markers(Operator):
    """Measure where each marker is on its bone, and how large the person is; what is not given is from the sidebar"""

    bl_idname = "fabrik.calibrate_markers"
    bl_label = "Calibrate"
    bl_options = {"REGISTER", "UNDO"}

    proportions: EnumProperty(
        name="Proportions", description="How a recorded person of another build meets the rig", items=PROPORTIONS
    )
    static: StringProperty(
        name="Static Take",
        description="Collection with the markers of the same person standing, to measure on instead of the take",
        search=lambda _self, _context, _typed: [collection.name for collection in bpy.data.collections],
    )
    reference_start: IntProperty(name="Reference Start", description="First frame to measure on")
    reference_end: IntProperty(
        name="Reference End", description="Last frame to measure on; the first alone if not given"
    )
    refine: BoolProperty(name="Refine", description="Improve the markers' places over the whole take", default=True)

    @classmethod
    def poll(cls, context: Context) -> bool:
        """On an armature with markers on its bones."""
        return can_run(cls, why_no_mapped(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Calibrate."""
        from ..calibrate_markers import calibrate_markers

        kept = rig_settings(context.object).capture
        given = self.properties.is_property_set
        choices = {name: getattr(self if given(name) else kept, name) for name in _KEPT}
        static = _collection(self.static) if self.static else kept.static
        found = calibrate_markers(context, context.object, reference=self._reference(kept), static=static, **choices)
        self.report({"INFO"}, found.line)
        return {"FINISHED"}

    def _reference(self, kept: FabrikCapture) -> tuple[int, int] | None:
        """The frames to measure on: those given, those of the sidebar, or None for the stillest."""
        given = self.properties.is_property_set
        if given("reference_start") or given("reference_end"):
            first = self.reference_start if given("reference_start") else self.reference_end
            return first, self.reference_end if given("reference_end") else first
        return (kept.reference_start, kept.reference_end) if kept.use_reference else None


def _collection(name: str) -> bpy.types.Collection:
    """A collection by name; raises CalibrateError where there is none."""
    from ..calibrate_markers import CalibrateError

    if name not in bpy.data.collections:
        raise CalibrateError(f"There is no collection {name!r}.")
    return bpy.data.collections[name]


CLASSES = (FABRIK_OT_calibrate_markers,)
