"""The bones that are solved: those of the armature, or of a control rig's body as its controls make it stand."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import bpy
import numpy as np

from ...core import Hinge
from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import conjugate, matrix_from_quaternion, product, quaternion_from_matrix
from ..rig import armature as plain
from ..rig import ownership
from ..rig.armature import Tree, nearest_rotations
from ..rig.locks import WithLocks, bones_with_locks, hinge_of_locks, with_locks
from ..rig.pose_keeper import has_switch, read_switch
from ..rig.spaces import as_array, object_scale
from ..settings.control import FabrikCarrier, control_rig
from .limbs import stays_on_ik

_NO_CONTROL = "no control carries it"
# The cosine of a control's axis to one of its bone's: what is less along is none of them.
_ALONG: Final = 0.9994


def read_trees(rig: bpy.types.Object, *, at_rest: bool = False) -> list[Tree]:
    """The bones that are solved and their present pose, as `rig.armature.read_trees`; of a control rig the body's.

    The body stands as it was last evaluated. Raises RigError as that does.
    """
    kept = control_rig(rig)
    if kept is None:
        return plain.read_trees(rig, at_rest=at_rest)
    plain.check_rig(rig)
    gone = next((row.name for row in kept.carriers if row.name not in rig.pose.bones), None)
    gone = gone or next((row.name for row in (*kept.switches, *kept.along) if not has_switch(rig, row.name)), None)
    if gone is not None:
        raise plain.RigError(
            f"{rig.name!r} no longer has {gone!r} (was a bone renamed?): press Set Up Control Rig again"
        )
    return [_tree(rig, rows, at_rest=at_rest) for rows in _by_root(list(kept.carriers))]


def owned_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that constraints move, with what to call the reason; of a body they belong to its controls."""
    return ownership.constrained_bones(rig) if control_rig(rig) is None else {}


def unkeyable_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that ride along, with what to call the reason."""
    kept = control_rig(rig)
    if kept is None:
        return ownership.unkeyable_bones(rig)
    return {row.name: _NO_CONTROL for row in kept.carriers if row.control not in rig.pose.bones}


def bones_on_ik(rig: bpy.types.Object) -> set[str]:
    """The bones of a control rig's body that are on IK now, so that no control of their own turns them."""
    kept = control_rig(rig)
    if kept is None:
        return set()
    off = {row.name for row in kept.switches if read_switch(rig, row.name) != row.fk}
    return {row.name for row in kept.carriers if row.switch in off}


def placing_controls(rig: bpy.types.Object, bones: Collection[str]) -> list[str]:
    """The controls that place those limbs, of some bones of a control rig's body, that are on IK now."""
    kept, on_ik = control_rig(rig), bones_on_ik(rig)
    if kept is None:
        return []
    limbs = {kept.carriers[name].switch for name in bones if name in on_ik}
    return [row.name for row in kept.controls if row.limb in limbs and row.name in rig.pose.bones]


def bones_of_limbs(rig: bpy.types.Object) -> set[str]:
    """The bones of a control rig's body that are on IK or on FK: unless they are posed, they follow as the rig says."""
    kept = control_rig(rig)
    return set() if kept is None else {row.name for row in kept.carriers if row.switch}


def locks_on(rig: bpy.types.Object, bone: str, rotation: FloatArray) -> WithLocks | None:
    """What locks let a bone's rotation (4,) be: its own, or on a control rig those of the control that carries it."""
    if control_rig(rig) is None:
        return with_locks(rig.pose.bones[bone], rotation)
    found = _locked_control(rig, bone)
    if found is None:
        return None
    control, axes = found
    back = conjugate(axes)
    locked = with_locks(control, product(back, product(rotation, axes)))
    if locked is None:
        return None
    return lambda turned: product(axes, product(locked(product(back, product(turned, axes))), back))


def hinge_by_locks(rig: bpy.types.Object, bone: str, *, baked: bool = False) -> Hinge | None:
    """The hinge that locks make of a joint, such as an elbow's or a knee's: the bone's, or its control's."""
    if control_rig(rig) is None:
        return hinge_of_locks(rig.pose.bones[bone])
    found = _locked_control(rig, bone, baked=baked)
    hinge = None if found is None else hinge_of_locks(found[0])
    if found is None or hinge is None:
        return None
    axis = np.abs(matrix_from_quaternion(found[1])[:, "XYZ".index(hinge.axis)])
    along: Any = "XYZ"[int(np.argmax(axis))]
    return Hinge(along, hinge.low, hinge.high) if axis.max() > _ALONG else None


def _locked_control(
    rig: bpy.types.Object, bone: str, *, baked: bool = False
) -> tuple[bpy.types.PoseBone, FloatArray] | None:
    """The same for a control that has locks; None where the limb stays on IK, on which they mean nothing."""
    found = control_of(rig, bone)
    if found is None or not (any(found[0].lock_rotation) or found[0].lock_rotation_w):
        return None
    kept = control_rig(rig)
    return None if kept is None or stays_on_ik(rig, kept.carriers[bone].switch, baked=baked) else found


def control_of(rig: bpy.types.Object, bone: str) -> tuple[bpy.types.PoseBone, FloatArray] | None:
    """The control that rotates against what is above it as a bone of the body does, and (4,) its axes in the bone's.

    None where there is none, or where the two follow others, so that nobody knows what the channels mean.
    """
    kept = control_rig(rig)
    row = None if kept is None else kept.carriers.get(bone)
    control: bpy.types.PoseBone | None = None if row is None else rig.pose.bones.get(row.control)
    if kept is None or row is None or control is None or row.found == "SWINGS":
        return None
    way = kept.controls.get(row.control)
    above = kept.carriers[row.parent].control if row.parent else ""
    if way is None or way.turns_with != above or way.shares_turn:
        return None
    rest = np.array([rig.data.bones[name].matrix_local.to_3x3() for name in (bone, row.control)], dtype=np.float64)
    one, other = nearest_rotations(rest)
    return control, quaternion_from_matrix(one.T @ other)


def locks_of(
    rig: bpy.types.Object, skeleton: Skeleton, bones: Iterable[int], rotations: FloatArray
) -> dict[int, WithLocks]:
    """By place in the skeleton what locked channels let bones be turned to, from (J, 4) rotations on."""
    locked, kept = bones_with_locks(rig), control_rig(rig)
    if kept is not None:
        locked = {row.name for row in kept.carriers if row.control in locked}
    names = {bone: skeleton.names[bone] for bone in bones if skeleton.names[bone] in locked}
    locks = {bone: locks_on(rig, name, rotations[bone]) for bone, name in names.items()}
    return {bone: lock for bone, lock in locks.items() if lock is not None}


def may_move(rig: bpy.types.Object, root: str) -> bool:
    """Whether the root of a tree may be moved, along some axis at least."""
    kept = control_rig(rig)
    if kept is None:
        return not all(rig.pose.bones[root].lock_location)
    return kept.place in rig.pose.bones and not all(rig.pose.bones[kept.place].lock_location)


def may_move_freely(rig: bpy.types.Object, top: str) -> bool:
    """Whether the uppermost bone that follows is a root that may be moved along all axes."""
    kept = control_rig(rig)
    if kept is None:
        return rig.pose.bones[top].parent is None and not any(rig.pose.bones[top].lock_location)
    is_root = top in kept.carriers and not kept.carriers[top].parent
    return is_root and kept.place in rig.pose.bones and not any(rig.pose.bones[kept.place].lock_location)


def _by_root(rows: list[FabrikCarrier]) -> Iterator[list[FabrikCarrier]]:
    """The body's bones, one list for each root, parents first."""
    members: dict[str, list[FabrikCarrier]] = {}
    for row in rows:
        tree = members.get(row.parent, [])
        members[row.name] = tree
        tree.append(row)
    yield from {id(tree): tree for tree in members.values()}.values()


def _tree(rig: bpy.types.Object, rows: list[FabrikCarrier], *, at_rest: bool) -> Tree:
    """One tree of the body as it stands."""
    names = [row.name for row in rows]
    bones = [rig.pose.bones[name] for name in names]
    places = {name: place for place, name in enumerate(names)}
    parents = [places.get(row.parent, -1) for row in rows]
    rest = np.array([as_array(bone.bone.matrix_local) for bone in bones])
    # Controls above may be scaled. By the root, as IK scales the bones that it stretches.
    size = float(object_scale(as_array(bones[0].matrix)))
    posed = rest * size if at_rest else np.array([as_array(bone.matrix) for bone in bones])
    rest[:, :3, :3], posed[:, :3, :3] = nearest_rotations(rest[:, :3, :3]), nearest_rotations(posed[:, :3, :3])
    turned = posed[:, :3, :3] @ np.swapaxes(rest[:, :3, :3], 1, 2)
    local = np.empty((len(names), 3, 3))
    on_ik = bones_on_ik(rig)
    for place, parent in enumerate(parents):
        carried = turned[parent] if parent >= 0 else np.eye(3)
        local[place] = (carried @ rest[place, :3, :3]).T @ posed[place, :3, :3]
        if parent < 0:
            rest[place, :3, 3] = posed[place, :3, 3]
        elif names[place] in on_ik:
            # IK may stretch the limb; FK, where it is written, does not.
            arm = bones[place].bone.head_local - bones[parent].bone.head_local
            rest[place, :3, 3] = rest[parent, :3, 3] + size * np.array(arm)
        else:
            rest[place, :3, 3] = rest[parent, :3, 3] + carried.T @ (posed[place, :3, 3] - posed[parent, :3, 3])
    lengths = size * np.array([bone.bone.length for bone in bones])
    skeleton = Skeleton(names, parents, rest, lengths)
    return Tree(skeleton, quaternion_from_matrix(local), rest[0, :3, 3].copy())
