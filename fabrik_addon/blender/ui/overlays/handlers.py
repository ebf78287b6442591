"""The overlays in the 3D viewport: their switches, and their draw handlers.

The handlers are added when the file first uses the add-on, and are called at every redraw. Each first checks whether
there is anything to draw, and only then imports the drawing code.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.app.handlers import persistent
from bpy.types import Context, Object, Panel

from ... import OnUse
from ...settings import in_use
from ...settings.declare import Bool
from ...settings.in_use import call_later, seen, stop_timers
from ...settings.why_not import ARMATURES, shown_motion

if TYPE_CHECKING:
    from . import drawing, goals, limits
else:
    drawing, goals, limits = map(OnUse, (".ui.overlays.drawing", ".ui.overlays.goals", ".ui.overlays.limits"))

# The names of the scene's properties for the switches.
LIMITS_SWITCH: Final = "fabrik_show_limits"
GOALS_SWITCH: Final = "fabrik_show_goals"
SWITCHES: Final = {
    LIMITS_SWITCH: Bool(
        "Joint Limits",
        "Show the limits of the active and selected bones in Pose mode",
        default=False,
        update=in_use.note_use,
    ),
    GOALS_SWITCH: Bool(
        "Targets and Pins",
        "Show targets, pins and pole targets of rigs, and the distances of bones from them",
        default=True,
    ),
}


class DrawingHandlers:
    """Functions that Blender calls to draw into a viewport, each with its stage ("POST_VIEW" or "POST_PIXEL")."""

    def __init__(self, *draws: tuple[Callable[[], None], str]) -> None:
        self._draws = draws
        self._handles: list[object] = []

    def start(self) -> None:
        """Add the handlers, if there are windows."""
        for draw, kind in () if bpy.app.background else self._draws:
            self._handles.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", kind))

    def stop(self) -> None:
        """Remove the handlers."""
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")


def draw_limits_switch(self: Panel, context: Context) -> None:
    """Draw the switch in the popover of the viewport's bone overlays."""
    if context.mode == "POSE":
        self.layout.prop(context.scene, LIMITS_SWITCH)


def draw_goals_switch(self: Panel, context: Context) -> None:
    """Draw the switch in the popovers of the viewport's overlays."""
    self.layout.prop(context.scene, GOALS_SWITCH)


def shown_rigs(context: Context) -> list[Object]:
    """The visible armatures with goals or capsules to draw, in Object and Pose mode; empty if the overlay is off."""
    if not getattr(context.scene, GOALS_SWITCH) or context.mode not in {"OBJECT", "POSE"}:
        return []
    rigs = ((rig, seen(rig)) for rig in ARMATURES.in_file() if rig.visible_get())
    return [rig for rig, settings in rigs if len(settings.effectors) or settings.show_capsules]


def shows_limits(context: Context) -> bool:
    """Whether limits are drawn: in Pose mode, if their overlay is on."""
    return context.mode == "POSE" and getattr(context.scene, LIMITS_SWITCH)


def draw_scene() -> None:
    """Draw all overlays into the current viewport, except labels."""
    context: Any = bpy.context
    rig, overlay = context.active_object, context.space_data.overlay
    if not overlay.show_overlays:
        return
    # The last one is drawn first. If one raises an error, the others are still drawn.
    with ExitStack() as overlays:
        if rigs := shown_rigs(context):
            overlays.callback(drawing.draw_over, goals.lines_of(*rigs))
        if moving := shown_motion(context):
            overlays.callback(drawing.draw_over, drawing.trail_lines(context, moving))
        if rig is not None and rig.type == "ARMATURE" and seen(rig).capture.show_errors:
            overlays.callback(drawing.draw_over, goals.error_lines(rig))
        if overlay.show_bones and shows_limits(context):
            overlays.callback(limits.draw_limits, context)


def draw_labels() -> None:
    """Draw the labels of goals into the current viewport."""
    context: Any = bpy.context
    if rigs := shown_rigs(context) if context.space_data.overlay.show_overlays else None:
        goals.draw_labels(rigs, context)


# A type annotation would keep a reference to the class in `typing`, and Blender's module would hang at exit.
OVERLAYS: Final = DrawingHandlers((draw_scene, "POST_VIEW"), (draw_labels, "POST_PIXEL"))


def start() -> None:
    """Add the handlers if the file uses the add-on, now or later."""
    forget()
    in_use.listen(_after_load, "load_post", on=True)
    in_use.when_ready(_note_file)


def stop() -> None:
    """Remove all handlers."""
    stop_timers()
    in_use.listen(_after_load, "load_post", on=False)
    forget()
    in_use.LISTENERS.clear()


def add_missing_handlers(rig: Object) -> None:
    """Add the handlers for an appended rig, because Blender does not report this. Call it while Blender draws."""
    if len(seen(rig).effectors) and in_use.LISTENERS:
        call_later(_note_file, 0.0)


def _note_file() -> None:
    every = (seen(rig) for rig in bpy.data.objects if rig.type == "ARMATURE")
    if any(getattr(scene, LIMITS_SWITCH) for scene in bpy.data.scenes) or any(
        len(each.effectors) or each.show_capsules or each.show_trails or len(each.capture.markers) for each in every
    ):
        in_use.note_use()


@persistent  # type: ignore[untyped-decorator]
def _after_load(*_arguments: object) -> None:
    forget()
    _note_file()


def forget() -> None:
    """Remove the draw handlers, until the file uses the add-on again."""
    OVERLAYS.stop()
    ARMATURES.forget()
    in_use.LISTENERS[:] = [OVERLAYS.start]
