"""Tracks which features rigs of the file use that need handlers or draw callbacks of Blender.

Handlers and callbacks exist only from the first use on. They stay until another file is opened, since undo can restore
a feature that was switched off.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

import bpy
from bpy.types import PropertyGroup

from .unset import seen

Use = Literal["effectors", "markers", "errors", "motion", "limits"]
# Called with the feature in use, repeatedly; modules that need to know add themselves.
LISTENERS: Final[list[Callable[[Use], None]]] = []


def listen(handler: Callable[..., None], *names: str, on: bool) -> None:
    """Add a handler to Blender's lists of handlers, or remove it. names: of lists in `bpy.app.handlers`."""
    for handlers in (getattr(bpy.app.handlers, name) for name in names):
        if on != (handler in handlers):
            (handlers.append if on else handlers.remove)(handler)


def note(use: Use) -> None:
    """Report that a feature is used."""
    for listener in LISTENERS:
        listener(use)


def noting(use: Use) -> Callable[[PropertyGroup, bpy.types.Context], None]:
    """An update function for properties whose change means that a feature is used."""
    return lambda _group, _context: note(use)


def note_all(limits_switch: str) -> None:
    """Report all features that the file uses. limits_switch: the name of the scenes' property that shows limits."""
    for rig in (thing for thing in bpy.data.objects if thing.type == "ARMATURE"):
        note_rig(rig)
    if any(getattr(scene, limits_switch) for scene in bpy.data.scenes):
        note("limits")


def note_rig(rig: bpy.types.Object) -> None:
    """Report all features that a rig uses."""
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
