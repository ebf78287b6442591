"""Things by their names: one that is linked from another file may have the name of one of this file."""

from collections.abc import Iterable
from typing import TypeVar

import bpy

_Thing = TypeVar("_Thing", bound=bpy.types.ID)


def named(things: Iterable[_Thing], name: str, kind: str) -> _Thing | None:
    """The thing of a name, this file's own before linked ones; None for the name "".

    Raises FabrikError where there is none of that name; kind: what it is called then.
    """
    from ...core.errors import FabrikError  # noqa: PLC0415  operators import this at Blender's start

    of_name = sorted((thing for thing in things if thing.name == name), key=lambda thing: thing.library is not None)
    if name and not of_name:
        raise FabrikError(f"There is no {kind} {name!r}.")
    return of_name[0] if name else None


def is_in_scene(scene: bpy.types.Scene, thing: bpy.types.Object) -> bool:
    """Whether an object is in a scene; a list keeps a deleted one in the file, outside of every scene."""
    found: bpy.types.Object | None = scene.objects.get(thing.name)
    return found == thing or (found is not None and scene in thing.users_scene)
