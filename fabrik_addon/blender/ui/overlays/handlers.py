"""The overlays in the 3D viewport: their switches, and the handlers through which Blender has them drawn.

The handlers are there from registration on, and called at every redraw. So they ask at once whether there may be
anything to draw, and only where there is do they import what draws it.
"""

from collections.abc import Callable
from typing import Any, Final

import bpy

from ...settings.rig import rig_settings
from ...settings.why_not import ARMATURES

# Properties of the scene.
LIMITS_SWITCH: Final = "fabrik_show_limits"
GOALS_SWITCH: Final = "fabrik_show_goals"


class DrawingHandlers:
    """Functions that Blender calls to draw into a viewport, each with when ("POST_VIEW", "POST_PIXEL")."""

    def __init__(self, *draws: tuple[Callable[[], None], str]) -> None:
        self._draws = draws
        self._handles: list[object] = []

    def start(self) -> None:
        """Draw from now on, where there are windows."""
        if not bpy.app.background:
            for draw, kind in self._draws:
                self._handles.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", kind))

    def stop(self) -> None:
        """Draw no more."""
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")


def draw_limits_switch(self: bpy.types.Panel, context: bpy.types.Context) -> None:
    """The switch in the popover of the viewport's bone overlays."""
    if context.mode == "POSE":
        self.layout.prop(context.scene, LIMITS_SWITCH)


def draw_goals_switch(self: bpy.types.Panel, context: bpy.types.Context) -> None:
    """The switch in the popovers of the viewport's overlays."""
    self.layout.prop(context.scene, GOALS_SWITCH)


def shown_rigs(context: bpy.types.Context) -> list[bpy.types.Object]:
    """The visible armatures with goals or capsules to draw, in Object and Pose mode; none if their overlay is off."""
    if not getattr(context.scene, GOALS_SWITCH) or context.mode not in {"OBJECT", "POSE"}:
        return []
    kept = ((rig, rig_settings(rig)) for rig in ARMATURES.visible())
    return [rig for rig, settings in kept if len(settings.effectors) or settings.show_capsules]


def shows_limits(context: bpy.types.Context) -> bool:
    """Whether limits are drawn: where an armature is posed, and their overlay is on."""
    rig = context.active_object
    return context.mode == "POSE" and rig is not None and getattr(context.scene, LIMITS_SWITCH)


def _draw_limits() -> None:
    """Blender's handler: the limits of the active and the selected bones."""
    context: Any = bpy.context
    overlay = context.space_data.overlay
    if overlay.show_overlays and overlay.show_bones and shows_limits(context):
        from .limits import draw_limits

        draw_limits(context)


def _draw_marker_errors() -> None:
    """Blender's handler: the lines from the active rig's markers to their bones."""
    context: Any = bpy.context
    rig = context.active_object
    if not context.space_data.overlay.show_overlays or rig is None or rig.type != "ARMATURE":
        return
    if rig_settings(rig).capture.show_errors:
        from .markers import draw_errors

        draw_errors(rig, context)


def _draw_goals() -> None:
    """Blender's handler: goals, pins and bend targets."""
    context: Any = bpy.context
    rigs = shown_rigs(context) if context.space_data.overlay.show_overlays else []
    if rigs:
        from .goals import draw_goals

        draw_goals(rigs, context)


def _draw_goal_labels() -> None:
    """Blender's handler: how far goals that are missed are from their effectors."""
    context: Any = bpy.context
    rigs = shown_rigs(context) if context.space_data.overlay.show_overlays else []
    if rigs:
        from .goals import draw_labels

        draw_labels(rigs, context)


def shown_motion(context: bpy.types.Context) -> bpy.types.Object | None:
    """The rig whose trails or ghosts are drawn: the active one in Pose mode; None where both are off."""
    rig = context.active_object
    if rig is None or rig.type != "ARMATURE" or context.mode != "POSE":
        return None
    view = rig_settings(rig).view
    return rig if view.show_trails or view.show_ghosts else None


def _draw_motion() -> None:
    """Blender's handler: trails and ghosts of the active rig."""
    context: Any = bpy.context
    rig = shown_motion(context) if context.space_data.overlay.show_overlays else None
    if rig is not None:
        from .motion import draw_motion

        draw_motion(context, rig)


HANDLERS: Final = DrawingHandlers(
    (_draw_limits, "POST_VIEW"),
    (_draw_marker_errors, "POST_VIEW"),
    (_draw_motion, "POST_VIEW"),
    (_draw_goals, "POST_VIEW"),
    (_draw_goal_labels, "POST_PIXEL"),
)
