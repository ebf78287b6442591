"""Declares properties like `bpy.props`, with their names and tooltips first. Other keywords are those of Blender.

Properties that are never shown have no texts, so these need no translations.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from bpy import props


def _with_texts(declare: Any) -> Callable[..., Any]:
    """A function that declares a property by its name, its tooltip and more keywords; without a name it is hidden."""

    def declared(name: str = "", description: str = "", **more: Any) -> Any:
        hidden = {} if name else {"options": {"HIDDEN", "ANIMATABLE"}}
        return declare(name=name, description=description, **(hidden | more))

    return declared


Bool, Int, IntVector, Float, FloatVector, Enum, String, List, Pointer = map(
    _with_texts,
    (
        props.BoolProperty,
        props.IntProperty,
        props.IntVectorProperty,
        props.FloatProperty,
        props.FloatVectorProperty,
        props.EnumProperty,
        props.StringProperty,
        props.CollectionProperty,
        props.PointerProperty,
    ),
)
# A number from 0 to 1, a length, a position, and a rotation (w, x, y, z).
Factor = partial(Float, subtype="FACTOR", min=0.0, max=1.0)
Length = partial(Float, unit="LENGTH", precision=4)
Place = partial(FloatVector, subtype="XYZ", unit="LENGTH", precision=4)
Quaternion = partial(FloatVector, size=4, subtype="QUATERNION", default=(1.0, 0.0, 0.0, 0.0))
