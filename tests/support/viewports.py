"""The drag operator with a simulated mouse, without a window."""

from contextlib import contextmanager
from types import SimpleNamespace

import bpy

from fabrik_addon.blender.ui.operators.pose import FABRIK_OT_drag

ESC = SimpleNamespace(type="ESC", value="PRESS")


def mouse(kind, x, y, value="PRESS"):
    """The part of an event that dragging uses, at pixels of the window."""
    return SimpleNamespace(
        type=kind,
        value=value,
        mouse_x=x,
        mouse_y=y,
        mouse_prev_press_x=x,
        mouse_prev_press_y=y,
        ctrl=False,
        shift=False,
    )


@contextmanager
def viewport():
    """Override the context with the 3D viewport; gives its region."""
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        yield region


@contextmanager
def pressing(**methods):
    """A function that starts a drag by the mouse in the viewport, and returns the operators that then run."""
    running = []
    taken = {name: value for name, value in vars(FABRIK_OT_drag).items() if name not in {"bl_rna", "__dict__"}}
    with viewport() as region:
        event = mouse("LEFTMOUSE", region.x + region.width // 2, region.y + region.height // 2)
        taken |= {
            "bl_idname": "fabrik.drag_without_window",
            "execute": lambda self, context: running.append(self) or self.invoke(context, event),
            **methods,
        }
        operator = type("FABRIK_OT_drag_without_window", FABRIK_OT_drag.__bases__, taken)
        bpy.utils.register_class(operator)
        try:
            yield lambda **options: bpy.ops.fabrik.drag_without_window(**options) and running
        finally:
            bpy.utils.unregister_class(operator)
