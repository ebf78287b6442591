"""Declares settings and stored data like `bpy.props`, but with their names and tooltips first."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from bpy import props

# The context of all labels. Blender's own translations have priority over those of add-ons: without a separate context,
# the German for "Manual" would be a handbook.
CONTEXT: Final = "FABRIK"


def _with_texts(declare: Any) -> Callable[..., Any]:
    """A function that declares a property by its name, its tooltip and more keywords; without a name it is hidden.

    All properties can be changed on library overrides, and items can be added to lists there.
    """
    override = {"LIBRARY_OVERRIDABLE"} | ({"USE_INSERTION"} if declare is props.CollectionProperty else set())
    usual = {"override": override, "translation_context": CONTEXT}

    def declared(name: str = "", description: str = "", **more: Any) -> Any:
        hidden = {} if name else {"options": {"HIDDEN", "ANIMATABLE"}}
        return declare(name=name, description=description, **(usual | hidden | more))

    return declared


Bool = _with_texts(props.BoolProperty)
Int = _with_texts(props.IntProperty)
IntVector = _with_texts(props.IntVectorProperty)
Float = _with_texts(props.FloatProperty)
FloatVector = _with_texts(props.FloatVectorProperty)
Enum = _with_texts(props.EnumProperty)
String = _with_texts(props.StringProperty)
List, Pointer = _with_texts(props.CollectionProperty), _with_texts(props.PointerProperty)
# A number from 0 to 1, a length, a position, and a rotation (w, x, y, z).
Factor = partial(Float, subtype="FACTOR", min=0.0, max=1.0)
Length = partial(Float, unit="LENGTH", precision=4)
Place = partial(FloatVector, subtype="XYZ", unit="LENGTH", precision=4)
Quaternion = partial(FloatVector, size=4, subtype="QUATERNION", default=(1.0, 0.0, 0.0, 0.0))
