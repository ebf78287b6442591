"""The stiffness of the active bone and of the selected ones as one slider, whether or not they have the property yet.

Blender draws sliders only on what is there. This one keeps nothing: it reads and writes the bones' own property.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

import bpy
from bpy.props import FloatProperty

from .translations import CONTEXT

STIFFNESS_SLIDER: Final = "fabrik_stiffness_of_selected"


def start() -> None:
    """Put it on objects, where what is changed can be undone."""
    slider = FloatProperty(
        name="Stiffness",
        description="How strongly the active and selected bones keep their rotation while others rotate; 0 "
        "depends only on their mass, 1 never rotates",
        subtype="FACTOR",
        min=0.0,
        max=1.0,
        get=_stiffness,
        set=_stiffen,
        options=set(),
        translation_context=CONTEXT,
    )
    setattr(bpy.types.Object, STIFFNESS_SLIDER, slider)


def stop() -> None:
    """Take it off again."""
    delattr(bpy.types.Object, STIFFNESS_SLIDER)


def _stiffness(rig: bpy.types.Object) -> float:
    """The active bone's; 0 where there is none or where it makes no sense."""
    from ..settings.limit_properties import read_settings
    from ..settings.selection import active_bone

    bone = active_bone(rig) if rig.pose else None
    return min(max(read_settings(bone).stiffness, 0.0), 1.0) if bone else 0.0


def _stiffen(rig: bpy.types.Object, stiffness: float) -> None:
    """Give it to the active bone and the selected ones, but those that can't keep it."""
    from ..settings.limit_properties import LimitPropertyError, read_settings, write_settings
    from ..settings.selection import active_bone, selected_bones

    if not rig.pose:
        return
    bones = {bone.name: bone for bone in (*selected_bones(bpy.context, rig), active_bone(rig)) if bone}
    for bone in bones.values():
        # The panel says of the active one why it can't.
        with suppress(LimitPropertyError):
            write_settings(bone, replace(read_settings(bone), stiffness=stiffness))
