"""Effectors, their targets and pins: checks, adds, removes and converts them for the solver.

An effector closes a loop if its target is on a solved bone of the same rig. Then both sides move. A target on a bone
that does not rotate is like any other target.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Object, PoseBone, Scene

from ...core import Effector
from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...human.naming_schemes import match
from ..rig import keyframes
from ..rig.armature import BONE_HEAD, RigError, armature_point, check_bones, check_editable, meters_per_unit
from ..settings.control import solved_bone, solved_parents
from ..settings.motion import FabrikMarker
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors, is_in_scene, mapped_markers, shared_targets, why_no_rig, why_no_solve


class Partner(NamedTuple):
    """The other side of a loop: a bone of the same rig, and a point in its frame."""

    bone: str
    offset: tuple[float, float, float]


def target_bone_of(rig: Object, holder: Object, bone: str) -> str:
    """The bone of the rig that is a target, or to which a target is parented; "" if there is none."""
    if holder == rig:
        return bone
    return holder.parent_bone if holder.parent == rig and holder.parent_type == "BONE" else ""


def close_loops(
    skeleton: Skeleton, effectors: Sequence[Effector], partners: Sequence[Partner | None], held: Collection[str]
) -> list[Effector]:
    """Convert each effector to a closed loop if the bones that move its partner rotate too; returns all effectors.

    Closing one loop may make bones rotate that move another effector's target.
    """
    closed = list(effectors)
    for _ in closed:
        turned = {bone for effector in closed for bone in rotating_bones(skeleton, effector)}
        turned = {bone for bone in turned if skeleton.names[bone] not in held}
        chased = [
            (index, partner)
            for index, partner in enumerate(partners)
            if partner is not None
            and closed[index].target_bone is None
            and partner.bone in skeleton.names
            and turned.intersection(skeleton.path(skeleton.index(partner.bone)))
        ]
        for index, partner in chased:
            closed[index] = replace(closed[index], target_bone=partner.bone, target_offset=partner.offset)
        if not chased:
            break
    return closed


def rotating_bones(skeleton: Skeleton, effector: Effector) -> set[int]:
    """The bones, as indices in the skeleton, whose rotation moves an effector.

    For a loop, the bones that move one side relative to the other.
    """
    own = _path(skeleton, effector.bone, effector.offset, takes_rotation=effector.rotation_weight > 0.0)
    if effector.target_bone is None:
        return own
    return own ^ _path(skeleton, effector.target_bone, effector.target_offset, takes_rotation=False)


def _path(skeleton: Skeleton, name: str, offset: Sequence[float] | None, *, takes_rotation: bool) -> set[int]:
    """The bones that move a point of a bone, or rotate the bone if `takes_rotation` is set."""
    bone = skeleton.index(name)
    point = (0.0, float(skeleton.lengths[bone]), 0.0) if offset is None else offset
    path = [int(each) for each in skeleton.path(bone)]
    return set(path if takes_rotation or any(point) else path[:-1])


# An object, and the name of one of its bones, or "" for the object itself.
Target: TypeAlias = tuple[Object, str]
COLLECTION_NAME = "FABRIK Targets"
# The size of a target empty as a fraction of its bone's length.
_TARGET_SIZE = 0.2
# What a rig follows: its effectors, or in a bake its markers.
Followed: TypeAlias = FabrikEffector | FabrikMarker
_GROUPS: Final = (
    ("feet", ("thigh", "shin", "foot", "toe")),
    ("hands", ("shoulder", "upper_arm", "forearm", "hand", "palm", "finger")),
    ("trunk", ("hips", "spine", "chest")),
    ("head", ("neck", "head")),
)
_GROUP_OF: Final = {part: group for group, parts in _GROUPS for part in parts}


class Pin(NamedTuple):
    """The location in armature space at which a point is held, and the rotation (w x y z) of its bone there."""

    location: Sequence[float]
    rotation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)


# The goal of an effector that closes a loop is the other side of the loop.
Goal: TypeAlias = Target | Pin | Partner


def targets_in(goals: Iterable[Goal | None]) -> list[Target]:
    """The goals that are objects in the scene or bones of such objects."""
    return [goal for goal in goals if goal is not None and not isinstance(goal, (Pin, Partner))]


def check_followed(scene: Scene, rig: Object, source: str = "EFFECTORS") -> None:
    """Raise RigError, with the reason, unless there are markers or effectors and their objects exist."""
    by_markers = follows_markers(rig, source)
    if trouble := why_no_rig(rig) or (not by_markers and why_no_solve(rig)):
        raise RigError(trouble)
    if by_markers and not mapped_markers(rig):
        raise RigError(f"{rig.name!r} has no matched markers: match its markers to bones first")
    for each in followed(rig, source):
        gone, reason = each.kind == "TARGET" and each.target is None, _why_not_followed(scene, rig, each)
        if by_markers and gone:
            raise RigError(f"Marker {each.name!r} has no object (was it deleted?): choose one, or disable the marker")
        if by_markers and reason:
            raise RigError(f"Marker {each.name!r}: {reason}")
        if not each.bone:
            raise RigError(f"Target {each.name!r} has no bone: choose one")
        if gone:
            raise RigError(f"Target {each.name!r} has no object (was it deleted?): choose one")
        if reason:
            raise RigError(f"Target {each.name!r}: {reason}")


def _why_not_followed(scene: Scene, rig: Object, each: Followed) -> str:
    """Why a bone of a rig can't follow its targets; "" if it can."""
    if each.bone not in rig.pose.bones:
        return f"{rig.name!r} has no bone {each.bone!r} (was it renamed?): choose it again"
    for target, bone in ((each.target, each.target_bone), (each.bend_target, each.bend_bone)):
        if target is not None and not is_in_scene(scene, target):
            return f"its object {target.name!r} is not in scene {scene.name!r}: choose another"
        if reason := "" if target is None else why_no_target(rig, target, bone):
            return reason
    return ""


def why_no_target(rig: Object, target: Object, bone: str) -> str:
    """Why an object, or one of its bones, cannot be a target of a rig; "" if it can."""
    if target == rig and not bone:
        return f"{rig.name!r} can't be its own target: choose another object"
    if bone and target.type != "ARMATURE":
        return f"{target.name!r} is not an armature and has no bone {bone!r}: choose an armature or no bone"
    if bone and bone not in target.pose.bones:
        return f"{target.name!r} has no bone {bone!r}: choose one that it has"
    return ""


def loop_partner(rig: Object, effector: Followed) -> Partner | None:
    """The point of one of the rig's own bones that an effector's target is fixed to; None for other targets."""
    holder, bone = effector.target, effector.target_bone
    carrier = "" if holder is None else target_bone_of(rig, holder, bone)
    if not carrier or carrier not in rig.pose.bones:
        return None
    if holder == rig:
        return Partner(carrier, BONE_HEAD)
    animation = holder.animation_data
    is_animated = animation is not None and bool(
        animation.nla_tracks or len(animation.drivers) or keyframes.curves(holder)
    )
    if bone or holder.constraints or rig.data.bones[carrier].use_relative_parent or is_animated:
        return None
    place = (holder.matrix_parent_inverse @ holder.matrix_basis).translation
    return Partner(carrier, (place.x, place.y + rig.data.bones[carrier].length, place.z))


def pin_of(pin: Followed) -> Pin:
    """The goal of a stored pin."""
    return Pin(tuple(pin.pin_location), tuple(pin.pin_rotation))


def core_effector(effector: Followed) -> Effector:
    """Convert a stored effector to the solver's; offsets are in armature units."""
    offset = {"TAIL": None, "HEAD": BONE_HEAD, "OFFSET": tuple(effector.offset)}[effector.point]
    return Effector(
        effector.bone,
        offset=offset,
        weight=effector.weight,
        rotation_weight=float(effector.hold_rotation),
        priority=effector.priority,
    )


def current_point(rig: Object, effector: Effector) -> FloatArray:
    """(3,) the current position of an effector's point, in armature space."""
    bone, point = rig.pose.bones[effector.bone], "TAIL" if effector.offset is None else "OFFSET"
    return np.array(armature_point(bone, point, effector.offset or BONE_HEAD), dtype=np.float64)


def posable_bone(rig: Object, bone: str) -> str:
    """The bone that is solved for a bone or control. Raises RigError for an unknown bone, and for mechanism bones."""
    check_bones(rig, bone)
    solved = solved_bone(rig, bone)
    if solved not in solved_parents(rig):
        raise RigError(f"Bone {bone!r} is part of the rig's mechanism and can't be posed: choose a control")
    return solved


def add_effector(
    context: Context,
    rig: Object,
    bone: str,
    *,
    point: str = "TAIL",
    target: Object | None = None,
    target_bone: str = "",
) -> FabrikEffector:
    """Add an effector for a bone, and an empty at the bone's point as its target if none is given.

    Raises RigError, before anything is changed, for an invalid bone or target.
    """
    chosen, bone = bone, posable_bone(rig, bone)
    if reason := why_no_target(rig, target, target_bone) if target else "":
        raise RigError(reason)
    if target is None:
        target = _new_target(context, rig, rig.pose.bones[bone], point, chosen)
    effector = _added(rig, target_bone or target.name, bone, chosen, point)
    effector.target, effector.target_bone = target, target_bone
    rig.update_tag(refresh={"OBJECT"})
    return effector


def _added(rig: Object, name: str, bone: str, chosen: str, point: str) -> FabrikEffector:
    """A new, active effector on a point of a bone, for which users chose a bone or control."""
    settings = rig_settings(rig)
    effector = settings.effectors.add()
    effector.name, effector.bone, effector.point = name, bone, point
    effector.control = chosen if chosen != bone else ""
    settings.active_effector = len(settings.effectors) - 1
    return effector


def own_targets(rig: Object) -> list[str]:
    """Give a rig copies of the target empties that it shares with other rigs; returns the names of the copies."""
    copies = {}
    for target in shared_targets(rig):
        copies[target] = copy = target.copy()
        for collection in target.users_collection:
            collection.objects.link(copy)
    for effector in rig_settings(rig).effectors:
        effector.target = copies.get(effector.target, effector.target)
        effector.bend_target = copies.get(effector.bend_target, effector.bend_target)
    return [copy.name for copy in copies.values()]


def remove_effector(rig: Object, index: int) -> str:
    """Remove an effector, keeping its target object; returns its name. Raises RigError for an invalid index."""
    settings = rig_settings(rig)
    if not 0 <= index < len(settings.effectors):
        raise RigError(f"{rig.name!r} has no target or pin with number {index}: choose one in the list")
    name: str = settings.effectors[index].name
    settings.effectors.remove(index)
    settings.active_effector = min(settings.active_effector, max(len(settings.effectors) - 1, 0))
    rig.update_tag(refresh={"OBJECT"})
    return name


def _new_target(context: Context, rig: Object, bone: PoseBone, point: str, name: str) -> Object:
    """Make an empty at a bone's head or tail, with the bone's rotation, in the scene's collection of targets."""
    context.view_layer.update()
    empty = bpy.data.objects.new(f"{name} target", None)
    empty.empty_display_type = "SPHERE"
    empty.empty_display_size = _TARGET_SIZE * bone.length * meters_per_unit(rig)
    # Otherwise a click on the target would select a rig that is drawn in front.
    empty.show_in_front = True
    empty.location = rig.matrix_world @ armature_point(bone, point)
    empty.rotation_euler = (rig.matrix_world @ bone.matrix).to_euler()
    scene = context.scene.collection
    local = (each for each in scene.children_recursive if each.library is None)
    collection = next((each for each in local if each.name.split(".")[0] == COLLECTION_NAME), None)
    if collection is None:
        collection = bpy.data.collections.new(COLLECTION_NAME)
        scene.children.link(collection)
    collection.objects.link(empty)
    return empty


def follows_markers(rig: Object, source: str) -> bool:
    """Whether a bake from "AUTO", "MARKERS" or "EFFECTORS" follows the markers."""
    return source == "MARKERS" or (source == "AUTO" and bool(mapped_markers(rig)))


def followed(rig: Object, source: str) -> Sequence[Followed]:
    """The markers or the effectors that a bake follows."""
    return mapped_markers(rig) if follows_markers(rig, source) else enabled_effectors(rig)


def order_effectors(rig: Object) -> tuple[str, list[str]]:
    """Set the priorities of a human rig's effectors and pins by the body parts of their bones.

    Returns a line to show, and a note on effectors whose priority does not change because their bone's name is unknown.
    Raises RigError, with nothing changed, if all are unknown.
    """
    effectors = list(rig_settings(rig).effectors)
    roles = match(bone.name for bone in rig.pose.bones)
    groups = {
        place: _GROUP_OF[roles[effector.bone].part]
        for place, effector in enumerate(effectors)
        if effector.bone in roles and roles[effector.bone].part in _GROUP_OF
    }
    if not groups:
        raise RigError(f"No target or pin of {rig.name!r} is on a bone with a known name: set priorities by hand")
    order = [group for group, _ in _GROUPS if group in groups.values()]
    for place, group in groups.items():
        effectors[place].priority = order.index(group)
    left = [effector.name for place, effector in enumerate(effectors) if place not in groups]
    alone = [f"Not changed, because their bone names are unknown: {', '.join(map(repr, left))}"] if left else []
    return f"Priorities set on targets and pins ({len(groups)}), in this order: {', '.join(order)}", alone


def pins(armature: Object) -> list[FabrikEffector]:
    """The enabled pins with a weight above 0. Raises RigError if the bone of a pin does not exist."""
    held = [each for each in enabled_effectors(armature) if each.kind == "PIN"]
    for pin in held:
        if pin.bone not in armature.pose.bones:
            raise RigError(f"Pin {pin.name!r}: {armature.name!r} has no bone {pin.bone!r} (was it renamed?): remove it")
    return held


def pin_bones(armature: Object, bones: Sequence[str], *, point: str = "TAIL", hold_rotation: bool = True) -> None:
    """Pin bones in their current pose; existing pins are replaced.

    Args:
        armature: the rig, in its current pose.
        bones: their names.
        point: "TAIL" or "HEAD", the end of each bone that is held if rotations are free.
        hold_rotation: whether rotations are held too.

    Raises:
        RigError: before anything is changed, for a bone that does not exist or a rig that can't be changed.
    """
    check_editable(armature)
    solved = {name: posable_bone(armature, name) for name in bones}
    chosen = {bone: name for name, bone in reversed(solved.items())}
    bones = list(chosen)[::-1]
    unpin_bones(armature, bones)
    for name in bones:
        pin = _added(armature, f"{chosen[name]} pin", name, chosen[name], point)
        pin.hold_rotation = hold_rotation
        set_pin(pin, armature.pose.bones[name])


def unpin_bones(armature: Object, bones: Sequence[str]) -> int:
    """Remove the pins of bones; returns the number of removed pins."""
    places = [place for bone in bones for place in pins_of(armature, bone)]
    for place in sorted(places, reverse=True):
        remove_effector(armature, place)
    return len(places)


# Fraction of a bone's length, and of a unit. Smaller differences of a bone's pose are errors of precision and of IK.
_APART: Final = 1e-3


def set_pin(pin: FabrikEffector, bone: PoseBone) -> None:
    """Move a pin to its bone's current pose."""
    pin.pin_location = armature_point(bone, pin.point, pin.offset)
    pin.pin_rotation = bone.matrix.to_quaternion()
    pin.seen = _pose_of(pin, bone)


def move_pins_with(armature: Object, bones: Collection[str]) -> None:
    """Move the pins of posed bones to their current poses, and note the poses of the other pinned bones."""
    for pin in rig_settings(armature).effectors:
        if pin.kind == "PIN" and pin.bone in bones:
            set_pin(pin, armature.pose.bones[pin.bone])
        elif pin.kind == "PIN" and pin.bone in armature.pose.bones:
            pin.seen = _pose_of(pin, armature.pose.bones[pin.bone])


def pins_left_behind(armature: Object) -> list[FabrikEffector]:
    """The pins whose bones have been posed since by something else, such as a bake or a change of frame."""
    found = []
    for pin in pins(armature):
        bone, seen = armature.pose.bones[pin.bone], np.array(pin.seen)
        apart = np.abs(np.array(_pose_of(pin, bone)) - seen) if pin.is_property_set("seen") else np.zeros(12)
        if apart[:3].max() > _APART * bone.length or (pin.hold_rotation and apart[3:].max() > _APART):
            found.append(pin)
    return found


def _pose_of(pin: FabrikEffector, bone: PoseBone) -> tuple[float, ...]:
    """The position of a pinned point, and the rotation matrix of its bone, row by row; armature space."""
    rotation: Any = bone.matrix.to_quaternion().to_matrix()
    return *armature_point(bone, pin.point, pin.offset)[:], *(number for row in rotation for number in row)


def pins_of(armature: Object, bone: str) -> list[int]:
    """The indices of a bone's pins in the list, enabled or not."""
    effectors = rig_settings(armature).effectors
    solved = solved_bone(armature, bone)
    return [index for index, each in enumerate(effectors) if each.kind == "PIN" and each.bone in {bone, solved}]
