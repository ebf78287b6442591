"""Makes settings changeable on library overrides, and preserves them when the file is saved."""

from contextlib import suppress
from typing import Any, Final, TypeVar

import bpy
from bpy.app.handlers import persistent
from bpy.props import CollectionProperty

from .in_use import listen

# Owners that have settings only while a file is saved, and the names of the properties.
_LENT: Final[list[tuple[Any, str]]] = []
_SAVED: Final = ("save_post", "save_post_fail")
_Group = TypeVar("_Group", bound=type)


def overridable(group: _Group) -> _Group:
    """The class, a property group, with all properties open to library overrides; lists may grow there."""
    for declared in group.__annotations__.values():
        more = {"USE_INSERTION"} if declared.function is CollectionProperty else set()
        declared.keywords["override"] = {"LIBRARY_OVERRIDABLE"} | more
    return group


@persistent  # type: ignore[untyped-decorator]
def keep_overrides(*_arguments: object) -> None:
    """Create empty settings on the linked originals of overridden rigs that have settings, while a file is saved.

    Blender 5.0 only compares an override with its original property by property if the original has their group.
    Otherwise it records that the group as a whole is replaced, and fails to do that when the file is opened.
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

    is_new: whether its owner was created here too; then it is removed with its owner.
    """
    if not (is_new or holder.is_property_set(name)):
        is_new = True
        _LENT.append((holder, name))
    group = getattr(holder, name)
    for inner in group.bl_rna.properties:
        is_group = inner.type == "POINTER" and inner.identifier != "rna_type"
        if is_group and isinstance(getattr(group, inner.identifier), bpy.types.PropertyGroup):
            _lend(group, inner.identifier, is_new=is_new)
