"""The masses of a rig's bones and the stiffness of their joints, for the posture term."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.kernel.posture import Masses
from ...core.model.skeleton import Skeleton
from ...human.masses import KEEPS_ORIENTATION, LEADS_WITH, body_masses
from ...human.naming_schemes import match
from ..settings.control import control_rig, solved_parents
from ..settings.limit_properties import read_beside

# Masses by the names and lengths of bones. Cached for 8 rigs, because the overlay needs them at each redraw.
_masses_by_name: Final = lru_cache(maxsize=8)(lambda lengths: body_masses(dict(lengths)))
# An animal has this many limbs at each end of its trunk. From this cosine between trunk and limbs on, the trunk counts
# as upright.
_PAIR: Final = 2
_ACROSS: Final = 0.5
# The cost of bending the trunk of an animal that is moved as a whole. If a wolf's paws are pinned and its hips lowered
# by 10 cm, its hind legs become 14 % shorter. Its front legs become 0 % shorter with a cost of 1, 7 % with 100, 13 %
# with 1000. A horse's hind legs become 17 % shorter, its front legs 0, 7 and 17 %.
_STIFF: Final = 1000.0


def masses_of(armature: bpy.types.Object, skeleton: Skeleton, stiff: Collection[str] = ()) -> Masses:
    """The masses of the J bones of a tree, by body part or size, changed by `fabrik_mass` and `fabrik_stiffness`.

    stiff: bones that move as one piece. Raises LimitPropertyError naming a bone with invalid properties.
    """
    bones = [armature.pose.bones[name] for name in skeleton.names]
    shares, centres, keeps, bends, hangs, eased = _body(armature, bones)
    bends = bends * np.where([name in stiff for name in skeleton.names], _STIFF, 1.0)
    stiffness = np.array([read_beside(bone, "stiffness") for bone in bones])
    # Each bone's factor in the posture term: 1 at stiffness 0, 4 at 0.5, infinite at 1.
    left = 1.0 - np.clip(stiffness, 0.0, 1.0)
    factors = np.where(left > 0.0, 1.0 / np.maximum(left, 1e-12) ** 2, np.inf)
    return Masses(shares, centres, keeps * factors, bends, hangs * (1.0 - stiffness), eased)


def keeps_orientation(armature: bpy.types.Object, bone: str) -> float:
    """The weight, 0 to 1, with which a dragged bone keeps its orientation; 0 except for ends of limbs."""
    return KEEPS_ORIENTATION.get(_part(armature, bone), 0.0)


def leads_with(armature: bpy.types.Object, bone: str) -> float:
    """The force with which a dragged bone leads the body, relative to other bones."""
    return LEADS_WITH.get(_part(armature, bone), 1.0)


def trunk_of_animal(armature: bpy.types.Object) -> list[str]:
    """The bones to which the limbs of a four-legged control rig are attached; none for other rigs.

    Its trunk lies across its limbs, while a person's is above the legs.
    """
    kept = control_rig(armature)
    rows = {} if kept is None else {row.name: row for row in kept.carriers}
    limbs = [
        [name for name, row in rows.items() if row.switch == path] for path in {row.switch for row in rows.values()}
    ]
    limbs = [limb for limb in limbs if rows[limb[0]].switch]
    heads = {name: np.array(armature.data.bones[name].head_local) for name in rows}
    root = next(iter(rows), "")
    hind = [limb for limb in limbs if rows[limb[0]].parent == root]
    front = [limb for limb in limbs if limb not in hind]
    if len(front) < _PAIR or len(hind) < _PAIR:
        return []
    along = np.mean([heads[limb[0]] for limb in front], axis=0) - np.mean([heads[limb[0]] for limb in hind], axis=0)
    down = np.mean([heads[limb[-1]] - heads[limb[0]] for limb in limbs], axis=0)
    if abs(along @ down) > _ACROSS * np.linalg.norm(along) * np.linalg.norm(down):
        return []
    found: list[str] = []
    for limb in front:
        name = rows[limb[0]].parent
        while name and name not in found:
            found.append(name)
            name = rows[name].parent
    return found


def is_hips(armature: bpy.types.Object, bone: str) -> bool:
    """Whether a bone is a person's hips."""
    return _part(armature, bone) == "hips"


def _part(armature: bpy.types.Object, bone: str) -> str:
    """The part of a human body that a bone represents, by its name; "" for none."""
    role = match(solved_parents(armature)).get(bone)
    return "" if role is None else role.part


def centre_of_mass(armature: bpy.types.Object) -> FloatArray:
    """(3,) the center of mass of all bones in their current pose, in armature space.

    Raises LimitPropertyError naming a bone with an invalid mass.
    """
    bones = [armature.pose.bones[name] for name in solved_parents(armature)]
    shares, centres, *_ = _body(armature, bones)
    heads, tails = (np.array([getattr(bone, end)[:] for bone in bones]) for end in ("head", "tail"))
    return np.asarray(shares @ (heads + centres[:, None] * (tails - heads)))


def _body(armature: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]) -> tuple[FloatArray, ...]:
    """The fields of `BoneMass` for the bones, (B,) each."""
    found = _masses_by_name(tuple((name, armature.data.bones[name].length) for name in solved_parents(armature)))
    known = np.array([found[bone.name] for bone in bones])
    own = np.array([read_beside(bone, "mass") for bone in bones])
    shares = np.where(own < 0.0, known[:, 0], own)
    return shares / max(float(shares.sum()), np.finfo(float).tiny), *known.T[1:]
