"""The take that is chosen in the Motion tab, as a place among all collections: Blender's lists want a number.

It keeps nothing: it reads and writes what the rig at hand has chosen. It is no setting of the rig, as Blender would
call it while it compares library overrides, when other data can't be asked for.
"""

from typing import Any, Final

import bpy
from bpy.props import IntProperty

from ..settings.rig import rig_settings
from ..settings.why_not import rig_at_hand, why_no_rig

TAKE_INDEX: Final = "fabrik_take_index"


def start() -> None:
    """Put it on scenes."""
    index = IntProperty(
        name="Take", description="The take that is matched next", get=_place, set=_choose, options=set()
    )
    setattr(bpy.types.Scene, TAKE_INDEX, index)


def stop() -> None:
    """Take it off again."""
    delattr(bpy.types.Scene, TAKE_INDEX)


def _place(_scene: bpy.types.Scene) -> int:
    """That of the take chosen, else of the one that the rig follows; -1 where there is none."""
    rig = rig_at_hand(bpy.context)
    if rig is None or why_no_rig(rig):
        return -1
    capture = rig_settings(rig).capture
    chosen = capture.chosen_take or capture.take
    return -1 if chosen is None else bpy.data.collections.find(chosen.name)


def _choose(_scene: bpy.types.Scene, place: int) -> None:
    rig: Any = rig_at_hand(bpy.context)
    if not why_no_rig(rig):
        rig_settings(rig).capture.chosen_take = bpy.data.collections[place]
