"""The take that a rig follows, as its index among all collections: Blender's lists want a number.

It keeps nothing: it reads and writes what the rig follows. It is a property of objects, so that it knows its rig.
"""

from typing import Any, Final

import bpy
from bpy.props import IntProperty

from ..capture.takes import follow_take
from ..settings.unset import seen

TAKE_INDEX: Final = "fabrik_take_index"


def start() -> None:
    """Put it on objects."""
    index = IntProperty(
        name="Take",
        description="The take used by the panels below",
        get=_index,
        set=_follow,
        options={"SKIP_SAVE"},
    )
    setattr(bpy.types.Object, TAKE_INDEX, index)


def stop() -> None:
    """Take it off again."""
    delattr(bpy.types.Object, TAKE_INDEX)


def _index(rig: bpy.types.Object) -> int:
    """That of the take that a rig follows; -1 where there is none, and while Blender compares library overrides."""
    collections: Any = getattr(bpy.data, "collections", None)
    if rig.type != "ARMATURE" or not rig.is_property_set("fabrik") or collections is None:
        return -1
    take = seen(rig).capture.take
    return -1 if take is None else collections.find(take.name)


def _follow(rig: bpy.types.Object, index: int) -> None:
    follow_take(rig, bpy.data.collections[index])
