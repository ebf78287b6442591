"""Settings that a library override may change, and keeping them when the file is saved."""

from typing import Any, TypeVar

import bpy
from bpy.app.handlers import persistent
from bpy.props import CollectionProperty

_Group = TypeVar("_Group", bound=type)


def overridable(group: _Group) -> _Group:
    """The class, a group of properties, with all of them open to library overrides; lists may grow there."""
    for declared in group.__annotations__.values():
        more = {"USE_INSERTION"} if declared.function is CollectionProperty else set()
        declared.keywords["override"] = {"LIBRARY_OVERRIDABLE"} | more
    return group


@persistent  # type: ignore[untyped-decorator]
def keep_overrides(*_arguments: object) -> None:
    """Give the linked original of every overridden armature its settings, empty ones, before a file is saved.

    Blender 5.0 compares an override with its original property by property only if the original has the group that
    they are in. Otherwise it notes that the group as a whole is replaced, and can't do that when the file is opened.
    """
    rigs = [thing for thing in bpy.data.objects if thing.type == "ARMATURE" and thing.override_library is not None]
    for rig in rigs:
        original: Any = rig.override_library.reference
        if original is not None:
            _make_groups(original.fabrik)


def _make_groups(group: bpy.types.PropertyGroup) -> None:
    """Make the groups in a group, and those in them: Blender makes one when it is first looked at."""
    for name in {*group.bl_rna.properties.keys()} - {"rna_type"}:
        inner = getattr(group, name)
        if isinstance(inner, bpy.types.PropertyGroup):
            _make_groups(inner)
