"""Settings that a library override may change."""

from typing import TypeVar

from bpy.props import CollectionProperty

_Group = TypeVar("_Group", bound=type)


def overridable(group: _Group) -> _Group:
    """The class, a group of properties, with all of them open to library overrides; lists may grow there."""
    for declared in group.__annotations__.values():
        more = {"USE_INSERTION"} if declared.function is CollectionProperty else set()
        declared.keywords["override"] = {"LIBRARY_OVERRIDABLE"} | more
    return group
