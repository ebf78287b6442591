"""Measuring where the markers are on the rig."""

from typing import TYPE_CHECKING

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.markers import PROPORTIONS, FabrikCapture
from ...settings.rig import rig_settings
from ...settings.why_not import named, rig_at_hand, why_no_mapped
from ..translations import told
from .in_steps import InSteps

if TYPE_CHECKING:
    from collections.abc import Generator

    from ...capture.calibrate import CalibrationResult

_KEPT = ("proportions", "refine", "on_floor")


class FABRIK_OT_calibrate_markers(InSteps, Operator):
    """Measure the marker positions on their bones and the person's size. Unset options use the sidebar's values"""

    bl_idname = "fabrik.calibrate_markers"
    bl_label = "Calibrate Markers"
    why_not = staticmethod(why_no_mapped)
    doing = "calibrating"

    proportions: EnumProperty(
        name="Proportions", description="How to fit a person to a rig of different proportions", items=PROPORTIONS
    )
    static: StringProperty(
        name="Static Take",
        description="Collection with markers of the same person standing still, used instead of the take",
        search=lambda _self, _context, _typed: [collection.name for collection in bpy.data.collections],
    )
    reference_start: IntProperty(name="Reference Start", description="First frame to calibrate with")
    reference_end: IntProperty(
        name="Reference End", description="Last frame to calibrate with. Defaults to the first frame"
    )
    refine: BoolProperty(name="Refine", description="Improve the marker positions with the whole take", default=True)

    on_floor: BoolProperty(
        name="Feet on the Floor",
        description="Move the markers vertically so that the feet are on the rig's floor",
        default=True,
    )

    def steps(self, context: Context) -> "Generator[float, None, CalibrationResult]":
        """The calibration."""
        from ...capture.calibrate import calibrate_markers_steps

        kept = rig_settings(rig_at_hand(context)).capture
        choices = {name: getattr(kept, name) for name in _KEPT} | self.given(*_KEPT)
        static = named(bpy.data.collections, self.static, "collection") or kept.static
        reference = self._reference(kept)
        return calibrate_markers_steps(context, rig_at_hand(context), reference=reference, static=static, **choices)

    def done(self, result: "CalibrationResult") -> set[str]:
        """Say what was found."""
        for doubt in result.doubts:
            self.report({"WARNING"}, told(doubt))
        self.report({"INFO"}, told(result.line))
        return {"FINISHED"}

    def _reference(self, kept: FabrikCapture) -> tuple[int, int] | None:
        """The frames to measure on: those given, those of the sidebar, or None for the stillest."""
        given = self.given("reference_start", "reference_end")
        if given:
            first = given.get("reference_start", self.reference_end)
            return first, given.get("reference_end", first)
        return (kept.reference_start, kept.reference_end) if kept.use_reference else None


CLASSES = (FABRIK_OT_calibrate_markers,)
