"""Makes settings changeable on library overrides, and preserves them when the file is saved."""

from contextlib import suppress
from typing import Any, Final, TypeVar

import bpy
from bpy.app.handlers import persistent
from bpy.props import CollectionProperty

from .in_use import listen

# Owners that have settings only while a file is saved, each with the name of the property.
_LENT: Final[list[tuple[Any, str]]] = []
_SAVED: Final = ("save_post", "save_post_fail")
_Group = TypeVar("_Group", bound=type)


def overridable(group: _Group) -> _Group:
    """Make all properties of a property group overridable, and let overrides add items to lists; returns the class."""
    for declared in group.__annotations__.values():
        more = {"USE_INSERTION"} if declared.function is CollectionProperty else set()
        declared.keywords["override"] = {"LIBRARY_OVERRIDABLE"} | more
    return group


@persistent  # type: ignore[untyped-decorator]
def keep_overrides(*_arguments: object) -> None:
    """Create empty settings on the linked originals of overridden rigs that have settings, while a file is saved.

    Blender 5.0 compares an override with its original property by property only if the original has the property group.
    Otherwise it records that the whole group is replaced, and fails to replace it when the file is opened.
    """
    _forget_lent()
    for rig in bpy.data.objects:
        if rig.type != "ARMATURE" or rig.override_library is None or not rig.is_property_set("fabrik"):
            continue
        original: Any = rig.override_library.reference
        if original is not None:
            _lend(original, "fabrik")
    if _LENT:
        listen(_forget_lent, *_SAVED, on=True)


def _forget_lent(*_arguments: object) -> None:
    """Restore linked originals after the file was saved."""
    listen(_forget_lent, *_SAVED, on=False)
    while _LENT:
        with suppress(ReferenceError):
            holder, name = _LENT.pop()
            holder.property_unset(name)


def _lend(holder: Any, name: str, *, is_new: bool = False) -> None:
    """Create a property group and the groups in it; Blender creates each when it is first accessed.

    is_new: whether the owner was created here too, so that the group is removed with it.
    """
    if not (is_new or holder.is_property_set(name)):
        is_new = True
        _LENT.append((holder, name))
    group = getattr(holder, name)
    for inner in group.bl_rna.properties:
        is_group = inner.type == "POINTER" and inner.identifier != "rna_type"
        if is_group and isinstance(getattr(group, inner.identifier), bpy.types.PropertyGroup):
            _lend(group, inner.identifier, is_new=is_new)
