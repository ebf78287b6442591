"""Declares properties like `bpy.props`, with their names and tooltips first. Other keywords are those of Blender."""

from collections.abc import Callable
from typing import Any

from bpy import props


def _with_texts(declare: Any) -> Callable[..., Any]:
    """A function that declares a property by its name, its tooltip and more keywords."""

    def declared(name: str, description: str, **more: Any) -> Any:
        return declare(name=name, description=description, **more)

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


def Factor(name: str, description: str, **more: Any) -> Any:  # noqa: N802  named like the others
    """Declare a number from 0 to 1."""
    return Float(name, description, subtype="FACTOR", min=0.0, max=1.0, **more)
