"""Default settings of an object that has none yet, since accessing its own would create them."""

from typing import Any

import bpy


class Unset:
    """A property group with default values: numbers, texts, other groups, and empty lists."""

    def __init__(self, group: Any) -> None:
        """group: the `Struct` of the group's class."""
        self._group = group

    def __getattr__(self, name: str) -> Any:
        """The default of a property; "" for a `Moment`."""
        found = self._group.properties.get(name)
        if found is None:
            return ""
        if found.type == "COLLECTION":
            return ()
        if found.type != "POINTER":
            return tuple(found.default_array) if getattr(found, "is_array", False) else found.default
        is_group = found.fixed_type.base is not None and found.fixed_type.base.identifier == "PropertyGroup"
        return Unset(found.fixed_type) if is_group else None


def seen(rig: Any) -> Any:
    """The settings of an object, or their defaults, for reading only."""
    if rig.is_property_set("fabrik"):
        return rig.fabrik
    group: Any = bpy.types.Object.bl_rna.properties["fabrik"]
    return Unset(group.fixed_type)
