"""What Blender calls when settings are changed that live posing depends on."""

from collections.abc import Callable
from typing import Any, Final

import bpy
from bpy.types import PropertyGroup

# Called with each armature whose live posing is switched on or off; who poses it puts itself in here.
LIVE_LISTENERS: Final[list[Callable[[bpy.types.Object], None]]] = []


def live_switched(kept: PropertyGroup, _context: bpy.types.Context) -> None:
    """Blender calls this where live is switched on or off."""
    rig: Any = kept.id_data
    for listener in LIVE_LISTENERS:
        listener(rig)


def solved_anew(group: PropertyGroup, _context: bpy.types.Context) -> None:
    """Blender calls this where something that a live rig's pose depends on has been changed."""
    rig: Any = group.id_data
    if rig.fabrik.live:
        rig.update_tag(refresh={"OBJECT"})
