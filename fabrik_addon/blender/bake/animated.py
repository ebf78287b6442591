"""Checks and reads existing keys of an armature that affect a bake."""

from collections.abc import Iterator, Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray
from ..rig.armature import RigError, Tree, root_location_channel, root_place
from ..rig.keyframes import bone_path, bone_property_path, channel_values, curves, curves_by_path, values_at
from ..settings.limit_properties import NUMBERS, read_extra_field
from ..settings.limit_values import NO_SLIDE

# A channel that changes by less than this (armature units for locations, a factor for scales) counts as still.
_STILL = 1e-4


def animated_limits(armature: bpy.types.Object, bones: Sequence[str], frames: IntArray) -> Iterator[str]:
    """A warning for each bone whose limit is driven, or animated on frames (F,)."""
    paths = {bone_property_path(bone, name): (bone, name) for bone in bones for name in NUMBERS}
    keyed = [curve for curve in curves(armature) if curve.data_path in paths and not curve.mute]
    changing = [curve.data_path for curve in keyed if np.ptp(values_at(curve, frames)) > _STILL]
    if armature.animation_data is not None:
        changing += [curve.data_path for curve in armature.animation_data.drivers if curve.data_path in paths]
    for path in dict.fromkeys(changing):
        bone, name = paths[path]
        yield f"Bone {bone!r} has an animated limit ({name}): its values on frame {frames[0]} were used"


def check_still(armature: bpy.types.Object, bones: Sequence[str], frames: IntArray | FloatArray) -> None:
    """Raise RigError, naming the bone, if the location or scale of a bone to rotate changes on frames (F,).

    The solver needs constant bone lengths. The location of a root may change, because it belongs to the pose.
    """
    by_path = curves_by_path(curves(armature))
    for bone in bones:
        pose_bone = armature.pose.bones[bone]
        slides = pose_bone.parent is not None and not pose_bone.bone.use_connect
        for channel in ("location", "scale") if slides else ("scale",):
            for curve in by_path.get(bone_path(bone, channel), ()):
                along = channel == "scale" and curve.array_index == 1
                stretches = along and read_extra_field(pose_bone, "slide") != NO_SLIDE
                if not stretches and np.ptp(values_at(curve, frames)) > _STILL:
                    raise RigError(
                        f"Bone {bone!r} has an animated {channel} in frames {frames[0]:g}-{frames[-1]:g}, "
                        "but only rotations can be baked: remove those keys first"
                    )


def root_heads(armature: bpy.types.Object, tree: Tree, frames: IntArray) -> FloatArray:
    """(F, 3) the root's head in armature space on frames (F,), from the keys of its location."""
    root = armature.pose.bones[tree.skeleton.names[0]]
    present = root_location_channel(root, tree.root_location)
    own = curves_by_path(curves(armature)).get(bone_path(root.name, "location"), ())
    return root_place(root, channel_values(present, own, frames))
