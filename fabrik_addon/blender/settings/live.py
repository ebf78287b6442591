"""Update functions of settings that live posing depends on."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import bpy
from bpy.props import CollectionProperty
from bpy.types import PropertyGroup

from .in_use import note

_Group = TypeVar("_Group", bound=type)

# Called with each armature whose Live setting changes; the module that poses it adds itself.
LIVE_LISTENERS: Final[list[Callable[[bpy.types.Object], None]]] = []


def live_switched(kept: PropertyGroup, _context: bpy.types.Context) -> None:
    """Handle a change of the Live setting."""
    rig: Any = kept.id_data
    for listener in LIVE_LISTENERS:
        listener(rig)


def solved_anew(group: PropertyGroup, _context: bpy.types.Context) -> None:
    """Handle a change of something that a live rig's pose depends on."""
    rig: Any = group.id_data
    if type(group).__name__ == "FabrikEffector":
        note("effectors")
    if rig.fabrik.live:
        rig.update_tag(refresh={"OBJECT"})


def poses_live_rigs(group: _Group) -> _Group:
    """The class, a property group, extended so that every change updates a live rig; lists do not report changes."""
    for declared in group.__annotations__.values():
        if declared.function is not CollectionProperty:
            declared.keywords.setdefault("update", solved_anew)
    return group
