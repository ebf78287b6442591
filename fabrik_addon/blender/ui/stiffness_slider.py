"""One slider for the stiffness of the active and the selected bones, even if they don't have the property yet.

Blender draws sliders only for existing properties. This slider stores nothing: it reads and writes the bones'
properties.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

import bpy
from bpy.props import FloatProperty

from .translations import CONTEXT

STIFFNESS_SLIDER: Final = "fabrik_stiffness_of_selected"


def start() -> None:
    """Add the property to objects, so that changes can be undone."""
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
    """Remove the property."""
    delattr(bpy.types.Object, STIFFNESS_SLIDER)


def _stiffness(rig: bpy.types.Object) -> float:
    """The active bone's stiffness; 0 if it has none or an invalid one."""
    from ..settings.limit_properties import read_settings
    from ..settings.selection import active_bone

    bone = active_bone(rig) if rig.pose else None
    return min(max(read_settings(bone).stiffness, 0.0), 1.0) if bone else 0.0


def _stiffen(rig: bpy.types.Object, stiffness: float) -> None:
    """Set the stiffness of the active bone and the selected ones, except bones that can't store it."""
    from ..settings.limit_properties import LimitPropertyError, read_settings, write_settings
    from ..settings.selection import active_bone, selected_bones

    if not rig.pose:
        return
    bones = {bone.name: bone for bone in (*selected_bones(bpy.context, rig), active_bone(rig)) if bone}
    for bone in bones.values():
        # The panel shows why the active bone can't store it.
        with suppress(LimitPropertyError):
            write_settings(bone, replace(read_settings(bone), stiffness=stiffness))
