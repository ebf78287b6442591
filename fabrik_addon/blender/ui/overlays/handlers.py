"""The overlays in the 3D viewport: their switches, and their draw handlers.

A handler is added when a rig uses its overlay, and is called at every redraw. It first checks whether there is anything
to draw, and only then imports the drawing code.
"""

from collections.abc import Callable
from typing import Any, Final

import bpy
from bpy.app.handlers import persistent

from ...settings import in_use
from ...settings.in_use import Use, seen
from ...settings.why_not import ARMATURES
from .later import call_later, shown_motion, stop_timers

# The names of the scene's properties for the switches.
LIMITS_SWITCH: Final = "fabrik_show_limits"
GOALS_SWITCH: Final = "fabrik_show_goals"


class DrawingHandlers:
    """Functions that Blender calls to draw into a viewport, each with its stage ("POST_VIEW" or "POST_PIXEL")."""

    def __init__(self, *draws: tuple[Callable[[], None], str]) -> None:
        self._draws = draws
        self._handles: list[object] = []
        self.is_on = False

    def start(self) -> None:
        """Add the handlers, if there are windows."""
        if not (self.is_on or bpy.app.background):
            for draw, kind in self._draws:
                self._handles.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", kind))
        self.is_on = True

    def stop(self) -> None:
        """Remove the handlers."""
        self.is_on = False
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")


def draw_limits_switch(self: bpy.types.Panel, context: bpy.types.Context) -> None:
    """Draw the switch in the pop-over of the viewport's bone overlays."""
    if context.mode == "POSE":
        self.layout.prop(context.scene, LIMITS_SWITCH)


def draw_goals_switch(self: bpy.types.Panel, context: bpy.types.Context) -> None:
    """Draw the switch in the pop-overs of the viewport's overlays."""
    self.layout.prop(context.scene, GOALS_SWITCH)


def shown_rigs(context: bpy.types.Context) -> list[bpy.types.Object]:
    """The visible armatures with goals or capsules to draw, in Object and Pose mode; empty if the overlay is off."""
    if not getattr(context.scene, GOALS_SWITCH) or context.mode not in {"OBJECT", "POSE"}:
        return []
    rigs = ((rig, seen(rig)) for rig in ARMATURES.visible())
    return [rig for rig, settings in rigs if len(settings.effectors) or settings.show_capsules]


def shows_limits(context: bpy.types.Context) -> bool:
    """Whether limits are drawn: in Pose mode, if their overlay is on."""
    rig = context.active_object
    return context.mode == "POSE" and rig is not None and getattr(context.scene, LIMITS_SWITCH)


def _draw_limits() -> None:
    """Draw handler: the limits of the active and the selected bones."""
    context: Any = bpy.context
    overlay = context.space_data.overlay
    if overlay.show_overlays and overlay.show_bones and shows_limits(context):
        from .limits import draw_limits

        draw_limits(context)


def _draw_marker_errors() -> None:
    """Draw handler: the lines from the active rig's markers to their bones."""
    context: Any = bpy.context
    rig = context.active_object
    if not context.space_data.overlay.show_overlays or rig is None or rig.type != "ARMATURE":
        return
    if seen(rig).capture.show_errors:
        from .goals import draw_errors

        draw_errors(rig, context)


def _draw_goals() -> None:
    """Draw handler: goals, pins and pole targets."""
    context: Any = bpy.context
    rigs = shown_rigs(context) if context.space_data.overlay.show_overlays else []
    if rigs:
        from .goals import draw_goals

        draw_goals(rigs, context)


def _draw_goal_labels() -> None:
    """Draw handler: the distances of missed goals."""
    context: Any = bpy.context
    rigs = shown_rigs(context) if context.space_data.overlay.show_overlays else []
    if rigs:
        from .goals import draw_labels

        draw_labels(rigs, context)


def _draw_motion() -> None:
    """Draw handler: trails of the active rig."""
    context: Any = bpy.context
    rig = shown_motion(context) if context.space_data.overlay.show_overlays else None
    if rig is not None:
        from .motion import draw_motion

        draw_motion(context, rig)


# The draw handlers by feature in use. A type annotation would keep a reference to the class in `typing`, and Blender's
# module would hang at exit.
OVERLAYS: Final = {
    "limits": DrawingHandlers((_draw_limits, "POST_VIEW")),
    "errors": DrawingHandlers((_draw_marker_errors, "POST_VIEW")),
    "motion": DrawingHandlers((_draw_motion, "POST_VIEW")),
    "effectors": DrawingHandlers((_draw_goals, "POST_VIEW"), (_draw_goal_labels, "POST_PIXEL")),
}


def start() -> None:
    """Add handlers for the features that the file uses, now and later."""
    in_use.LISTENERS.extend((_used, ARMATURES.note))
    in_use.listen(_after_load, "load_post", on=True)
    if hasattr(bpy.data, "objects"):
        in_use.note_all(LIMITS_SWITCH)
    elif not bpy.app.background:
        # Wait, because Blender's data can't be accessed while it enables an extension.
        call_later(_note_all, 0.0)


def stop() -> None:
    """Remove all handlers."""
    stop_timers()
    in_use.listen(_after_load, "load_post", on=False)
    in_use.LISTENERS.clear()
    _forget()


def add_missing_handlers(rig: bpy.types.Object) -> None:
    """Add the handlers for an appended rig, because Blender does not report this. Call it while Blender draws."""
    if len(seen(rig).effectors) and not OVERLAYS["effectors"].is_on:
        call_later(_note_all, 0.0)


def _note_all() -> None:
    in_use.note_all(LIMITS_SWITCH)


def _used(use: Use) -> None:
    if use in OVERLAYS:
        OVERLAYS[use].start()


@persistent  # type: ignore[untyped-decorator]
def _after_load(*_arguments: object) -> None:
    """Handle the opening of a file."""
    _forget()
    in_use.note_all(LIMITS_SWITCH)


def _forget() -> None:
    for overlay in OVERLAYS.values():
        overlay.stop()
    ARMATURES.forget()
