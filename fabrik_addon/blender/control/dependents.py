"""Which bones may follow which, by parents, constraints and drivers: what can't affect one another is tried at once."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import bpy

from ..rig.ownership import moved_by

_BONE: Final = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]')


def dependents(rig: bpy.types.Object) -> dict[str, int]:
    """For each bone the set of those that may follow it, itself included, as bits by place among the pose bones."""
    places = {bone.name: place for place, bone in enumerate(rig.pose.bones)}
    after: dict[str, set[str]] = {name: set() for name in places}
    for leader, follower in (*_by_parents(rig), *_by_constraints(rig), *_by_drivers(rig)):
        if leader in after and follower in after:
            after[leader].add(follower)
    return {name: _reached(name, after, places) for name in places}


def batches(controls: Sequence[str], after: dict[str, int]) -> list[list[str]]:
    """The controls in groups of which no bone may follow two."""
    made: list[list[str]] = []
    taken: list[int] = []
    for control in sorted(controls, key=lambda name: (-after[name].bit_count(), name)):
        place = next((place for place, bits in enumerate(taken) if not bits & after[control]), len(made))
        if place == len(made):
            made.append([])
            taken.append(0)
        made[place].append(control)
        taken[place] |= after[control]
    return made


def bone_in_path(path: str) -> str:
    """The bone that a data path is about; "" where it is none's."""
    found = _BONE.match(path)
    return bpy.utils.unescape_identifier(found[1]) if found else ""


def targets_of(constraint: Any, rig: bpy.types.Object) -> list[str]:
    """The rig's own bones that a constraint goes by."""
    found = [each.subtarget for each in getattr(constraint, "targets", ()) if each.target == rig]
    if getattr(constraint, "target", None) == rig:
        found.append(constraint.subtarget)
    if getattr(constraint, "pole_target", None) == rig:
        found.append(constraint.pole_subtarget)
    return [name for name in found if name]


def _reached(start: str, after: dict[str, set[str]], places: dict[str, int]) -> int:
    seen, waiting = {start}, [start]
    while waiting:
        new = after[waiting.pop()] - seen
        seen |= new
        waiting += new
    bits = 0
    for name in seen:
        bits |= 1 << places[name]
    return bits


def _by_parents(rig: bpy.types.Object) -> Iterator[tuple[str, str]]:
    return ((bone.parent.name, bone.name) for bone in rig.data.bones if bone.parent)


def _by_constraints(rig: bpy.types.Object) -> Iterator[tuple[str, str]]:
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            moved = list(moved_by(bone, constraint))
            for target in targets_of(constraint, rig):
                yield from ((target, each.name) for each in moved)
            # A chain turns together.
            yield from ((one.name, other.name) for one in moved for other in moved)


def _by_drivers(rig: bpy.types.Object) -> Iterator[tuple[str, str]]:
    for curve in rig.animation_data.drivers if rig.animation_data else ():
        driven = bone_in_path(curve.data_path)
        for variable in curve.driver.variables:
            for target in variable.targets:
                if target.id in (rig, rig.data):
                    yield bone_in_path(target.data_path) or target.bone_target, driven
