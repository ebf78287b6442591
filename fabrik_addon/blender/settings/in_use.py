"""What rigs of the file use of the things that Blender has to call the add-on for: told when it is first used.

Handlers and draw callbacks exist only from then on. What is switched off again keeps them until another file is opened,
as undo can switch it on.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

import bpy
from bpy.types import PropertyGroup

from .unset import seen

Use = Literal["effectors", "markers", "errors", "motion", "limits"]
# Called with what is used, again and again; who needs to know puts itself in here.
LISTENERS: Final[list[Callable[[Use], None]]] = []


def listen(handler: Callable[..., None], *names: str, on: bool) -> None:
    """Have Blender call a handler, or no longer. names: those of lists in `bpy.app.handlers`."""
    for handlers in (getattr(bpy.app.handlers, name) for name in names):
        if on != (handler in handlers):
            (handlers.append if on else handlers.remove)(handler)


def note(use: Use) -> None:
    """Tell that something is used."""
    for listener in LISTENERS:
        listener(use)


def noting(use: Use) -> Callable[[PropertyGroup, bpy.types.Context], None]:
    """What Blender is to call when a property is changed that says that something is used."""
    return lambda _group, _context: note(use)


def note_all(limits_switch: str) -> None:
    """Tell of all that the file uses. limits_switch: the name of the scenes' property that shows limits."""
    for rig in (thing for thing in bpy.data.objects if thing.type == "ARMATURE"):
        note_rig(rig)
    if any(getattr(scene, limits_switch) for scene in bpy.data.scenes):
        note("limits")


def note_rig(rig: bpy.types.Object) -> None:
    """Tell of all that a rig uses."""
    kept: Any = seen(rig)
    uses: dict[Use, bool] = {
        "effectors": len(kept.effectors) > 0,
        "markers": len(kept.capture.markers) > 0,
        "errors": kept.capture.show_errors,
        "motion": kept.show_trails,
    }
    for use, is_used in uses.items():
        if is_used:
            note(use)
