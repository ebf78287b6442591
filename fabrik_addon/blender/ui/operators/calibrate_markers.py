"""Calibration: measures the markers' offsets on the rig."""

from inspect import get_annotations
from typing import TYPE_CHECKING, Any

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator

from ...settings.markers import CalibrationOptions
from ...settings.rig import rig_settings
from ...settings.why_not import named, rig_at_hand, why_no_mapped
from ..translations import told
from .in_steps import InSteps

if TYPE_CHECKING:
    from collections.abc import Generator

    from ...capture.calibrate import CalibrationResult


_REFINE = get_annotations(CalibrationOptions)["refine"]


class FABRIK_OT_calibrate_markers(InSteps, Operator):
    """Measure the marker positions on their bones and the person's size. Unset options use the sidebar's values"""

    bl_idname = "fabrik.calibrate_markers"
    bl_label = "Calibrate Markers"
    why_not = staticmethod(why_no_mapped)
    doing = "calibrating"

    refine: _REFINE
    static: StringProperty(
        name="Static Take",
        description="Collection with markers of the same person standing still, used instead of the take",
        search=lambda _self, _context, _typed: [collection.name for collection in bpy.data.collections],
    )

    def steps(self, context: Context) -> "Generator[float, None, CalibrationResult]":
        """The calibration."""
        from ...capture.calibrate import calibrate_markers_steps

        kept = rig_settings(rig_at_hand(context)).capture
        names = get_annotations(CalibrationOptions)
        options: dict[str, Any] = {name: getattr(kept, name) for name in names} | self.given("refine")
        options["reference"] = tuple(options["reference"]) if any(options["reference"]) else None
        static = named(bpy.data.collections, self.static, "collection") or kept.static
        return calibrate_markers_steps(context, rig_at_hand(context), static=static, **options)

    def done(self, result: "CalibrationResult") -> set[str]:
        """Report the result."""
        for doubt in result.doubts:
            self.report({"WARNING"}, told(doubt))
        self.report({"INFO"}, told(result.line))
        return {"FINISHED"}


CLASSES = (FABRIK_OT_calibrate_markers,)
