"""One slider for the stiffness of the active and the selected bones, even if they don't have the property yet.

Blender draws sliders only for existing properties. This slider stores nothing: it reads and writes the bones'
properties.
"""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import bpy
from bpy.props import FloatProperty
from bpy.types import Object

from ..first_use import OnUse
from .translations import CONTEXT

if TYPE_CHECKING:
    from ..settings import limit_properties, selection
else:
    limit_properties, selection = map(OnUse, (".settings.limit_properties", ".settings.selection"))

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


def _stiffness(rig: Object) -> float:
    """The active bone's stiffness; 0 if it has none or an invalid one."""
    bone = selection.active_bone(rig) if rig.pose else None
    return min(max(limit_properties.read_settings(bone).stiffness, 0.0), 1.0) if bone else 0.0


def _stiffen(rig: Object, stiffness: float) -> None:
    """Set the stiffness of the active bone and the selected ones, except bones that can't store it."""
    if not rig.pose:
        return
    bones = *selection.selected_bones(bpy.context, rig), selection.active_bone(rig)
    for bone in {bone.name: bone for bone in bones if bone}.values():
        # The panel shows why the active bone can't store it.
        with suppress(limit_properties.LimitPropertyError):
            limit_properties.write_settings(bone, replace(limit_properties.read_settings(bone), stiffness=stiffness))
