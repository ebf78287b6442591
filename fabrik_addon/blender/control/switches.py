"""Custom properties that hand limbs from IK to FK: drivers say which there may be, trying says which there are."""

from dataclasses import dataclass
from typing import Final

import bpy

from ..rig.pose_keeper import read_switch, write_switch
from .dependents import bone_in_path, targets_of

# A constraint of this influence takes its bone over, whatever those before it make of it.
_ON: Final = 0.9
_TAKES_OVER: Final = ("COPY_TRANSFORMS", "COPY_ROTATION", "ARMATURE", "CHILD_OF", "IK")


@dataclass(frozen=True)
class Switch:
    """A custom property from 0 to 1, by its path from the armature object.

    bones: those with constraints that it drives. takes_over: the bones that those constraints go by when it is at its
    other end.
    """

    path: str
    bones: frozenset[str]
    takes_over: frozenset[str] = frozenset()


def possible_switches(context: bpy.types.Context, rig: bpy.types.Object) -> list[Switch]:
    """The properties that let bones go by others where they go to their other end."""
    driving = _driving(rig)
    values = {path: read_switch(rig, path) for path in driving}
    for path, value in values.items():
        write_switch(rig, path, round(value))
    before = _leaders(context, rig)
    for path, value in values.items():
        write_switch(rig, path, 1 - round(value))
    after = _leaders(context, rig)
    for path, value in values.items():
        write_switch(rig, path, value)
    context.view_layer.update()
    found = []
    for path, bones in sorted(driving.items()):
        gained = {target for bone in bones for target in after[bone] if after[bone] != before[bone]}
        if gained:
            found.append(Switch(path, frozenset(bones), frozenset(gained)))
    return found


def custom_numbers(rig: bpy.types.Object) -> list[str]:
    """The paths of the custom properties that may be switches."""
    return sorted(_driving(rig))


def _driving(rig: bpy.types.Object) -> dict[str, set[str]]:
    """By path of a custom property from 0 to 1 the bones whose constraints it drives."""
    found: dict[str, set[str]] = {}
    for curve in rig.animation_data.drivers if rig.animation_data else ():
        bone = bone_in_path(curve.data_path)
        if not bone or ".constraints[" not in curve.data_path:
            continue
        for variable in curve.driver.variables:
            for target in variable.targets:
                if target.id == rig and target.data_path.endswith('"]') and _is_switch(rig, target.data_path):
                    found.setdefault(target.data_path, set()).add(bone)
    return found


def _is_switch(rig: bpy.types.Object, path: str) -> bool:
    """Whether a path leads to a number between 0 and 1."""
    try:
        value = read_switch(rig, path)
    except (KeyError, ValueError):
        return False
    return isinstance(value, (bool, int, float)) and 0.0 <= value <= 1.0


def _leaders(context: bpy.types.Context, rig: bpy.types.Object) -> dict[str, tuple[str, ...]]:
    """For each bone those that the last of its constraints that takes it over goes by."""
    rig.update_tag()
    context.view_layer.update()
    evaluated = rig.evaluated_get(context.evaluated_depsgraph_get())
    found: dict[str, tuple[str, ...]] = {}
    for bone, own in zip(evaluated.pose.bones, rig.pose.bones, strict=True):
        found[bone.name] = ()
        for constraint, mine in zip(bone.constraints, own.constraints, strict=True):
            if constraint.type in _TAKES_OVER and not constraint.mute and constraint.influence > _ON:
                found[bone.name] = tuple(targets_of(mine, rig))
    return found
