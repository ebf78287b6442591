"""Which rig or thing is meant, and why an object can't be worked on: asked by polls, panels and handlers all the time.

Nothing here needs the solver, so that asking does not load it.
"""

from collections.abc import Iterable
from typing import TypeVar

import bpy

from .effector import FabrikEffector
from .markers import FabrikMarker
from .rig import rig_settings

_Thing = TypeVar("_Thing", bound=bpy.types.ID)


def rig_at_hand(context: bpy.types.Context) -> bpy.types.Object | None:
    """The active armature; where an empty is active that a rig reaches for or follows, that rig; else what is active.

    Only empties are looked for on all rigs: this is asked at every redraw, whatever is active.
    """
    thing: bpy.types.Object | None = context.object
    if thing is None or thing.type != "EMPTY":
        return thing
    rigs = (each for each in context.scene.objects if each.type == "ARMATURE")
    return next((rig for rig in rigs if _is_for(thing, rig)), thing)


def _is_for(thing: bpy.types.Object, rig: bpy.types.Object) -> bool:
    """Whether an object is a target, a bend target or a marker of a rig."""
    kept = rig_settings(rig)
    if any(thing in {effector.target, effector.bend_target} for effector in kept.effectors):
        return True
    return any(marker.target == thing for marker in kept.capture.markers)


def why_no_rig(rig: bpy.types.Object | None) -> str:
    """What keeps the add-on from working on an object, and what to do; "" where nothing does."""
    if rig is None or rig.type != "ARMATURE":
        return "Select an armature"
    if rig.library is not None:
        return f"{rig.name!r} is linked from another file: make a library override of it first"
    if rig.mode == "EDIT":
        return "Leave Edit mode first"
    return ""


def why_no_solve(rig: bpy.types.Object | None) -> str:
    """What keeps an object from being solved or baked, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    if not len(rig_settings(rig).effectors):
        return f"{rig.name!r} has no effector: pick a bone in Pose mode and add one"
    if not enabled_effectors(rig):
        return f"All effectors of {rig.name!r} are switched off: enable one"
    return ""


def why_no_mapped(rig: bpy.types.Object | None) -> str:
    """What keeps an object from having markers on its bones, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    return "" if mapped_markers(rig) else "No marker is on a bone: match the markers first"


def why_no_bake(rig: bpy.types.Object | None) -> str:
    """What keeps an object from being baked, and what to do; "" where nothing does."""
    trouble = why_no_rig(rig)
    if trouble or rig is None:
        return trouble
    return "" if mapped_markers(rig) else why_no_solve(rig)


def enabled_effectors(rig: bpy.types.Object) -> list[FabrikEffector]:
    """The effectors that count: switched on, with a weight."""
    return [effector for effector in rig_settings(rig).effectors if effector.enabled and effector.weight > 0.0]


def mapped_markers(rig: bpy.types.Object) -> list[FabrikMarker]:
    """The markers that count: on a bone, switched on, with a weight."""
    markers = rig_settings(rig).capture.markers
    return [marker for marker in markers if marker.bone and marker.enabled and marker.weight > 0.0]


def named(things: Iterable[_Thing], name: str, kind: str) -> _Thing | None:
    """The thing of a name, this file's own before linked ones; None for the name "".

    Raises FabrikError where there is none of that name; kind: what it is called then.
    """
    from ...core.errors import FabrikError  # noqa: PLC0415  operators import this at Blender's start

    of_name = sorted((thing for thing in things if thing.name == name), key=lambda thing: thing.library is not None)
    if name and not of_name:
        raise FabrikError(f"There is no {kind} {name!r}: choose another")
    return of_name[0] if name else None


def is_in_scene(scene: bpy.types.Scene, thing: bpy.types.Object) -> bool:
    """Whether an object is in a scene; a list keeps a deleted one in the file, outside of every scene."""
    found: bpy.types.Object | None = scene.objects.get(thing.name)
    return found == thing or (found is not None and scene in thing.users_scene)
