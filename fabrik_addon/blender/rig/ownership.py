"""Which bones of a rig an animator could key, and who has the others.

Generated control rigs are full of bones that constraints and drivers move. Those are left alone: a bone with a
constraint that moves it is the end of what can be solved from below, as nobody knows how it follows what is above it;
one that is driven, locked or out of sight rides along as it stands.
"""

from collections.abc import Iterator
from typing import Any, Final

import bpy

from ..settings.control import moves
from .armature import flagged
from .keyframes import ROTATION_CHANNELS, bone_path
from .locks import is_locked

_CHAINS: Final = ("IK", "SPLINE_IK")
# What to do about a bone that is not an animator's to move.
OTHERWISE: Final = "drag another, or press Set Up Control Rig"


def constrained_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that constraints move, with what to call the reason."""
    owned: dict[str, str] = {}
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            if moves(constraint):
                reason = f"constraint {constraint.name!r} moves it"
                owned.update((each.name, reason) for each in moved_by(bone, constraint))
    return owned


def unkeyable_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that an animator could not turn, constraints apart, with what to call the reason."""
    animation = rig.animation_data
    bones, driven = (
        rig.pose.bones,
        (set() if animation is None else {curve.data_path for curve in animation.drivers if not curve.mute}),
    )
    locked = [name for name in flagged(bones, "lock_rotation", 3) if is_locked(bones[name])]
    turned = [
        name
        for name in (bones.keys() if driven else ())
        if any(bone_path(name, channel) in driven for channel in ROTATION_CHANNELS)
    ]
    # The bones that can't be seen in Pose mode: hidden themselves, or in hidden collections only.
    # Blender 5.0 has pose bones hidden, older ones the armature's.
    has_own = "hide" in bpy.types.PoseBone.bl_rna.properties
    own = flagged(rig.pose.bones if has_own else rig.data.bones, "hide")
    shown: set[str] = set()
    hidden: set[str] = set()
    for each in rig.data.collections_all:
        (shown if each.is_visible_effectively else hidden).update(each.bones.keys())
    return {
        **dict.fromkeys(flagged(rig.data.bones, "hide_select"), "it can't be selected"),
        **dict.fromkeys(({*own, *(hidden - shown)}), "it is hidden"),
        **dict.fromkeys(locked, "its rotation is locked"),
        **dict.fromkeys(turned, "a driver rotates it"),
    }


def moved_by(bone: bpy.types.PoseBone, constraint: Any) -> Iterator[bpy.types.PoseBone]:
    """The bones that a constraint of a bone moves: that one, and the chain where there is one."""
    if constraint.type not in _CHAINS:
        yield bone
        return
    # Without its tail an IK chain begins at the parent; a length of zero goes up to the root.
    own = getattr(constraint, "use_tail", True)
    chain = [bone, *bone.parent_recursive] if own else list(bone.parent_recursive)
    yield from chain[: constraint.chain_count or len(chain)]
