"""A change over time as an additive layer of its own: the recording stays, and the layer's influence blends it."""

from collections.abc import Iterator
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between, conjugate, product
from ..rig.actions import add_strip, new_strip_action
from ..rig.armature import RigError, root_location_channel
from ..rig.keyframes import bone_path, write_curves
from ..rig.locks import unlocked_rotation
from ..rig.rotation_modes import property_name, to_channels
from .keys import NO_MOVE, NO_TURN
from .take import Motion

# Under this blend mode Blender turns by a layer's quaternion after what is below, and adds angles and places.
_BLEND: Final = "COMBINE"


def write_layer(
    armature: bpy.types.Object, old: Motion, rotations: FloatArray, roots: FloatArray
) -> tuple[bpy.types.NlaStrip, int]:
    """Put what (F, J, 4) new local rotations and (F, 3) roots change of a motion on a new NLA track above all others.

    The present action becomes a strip below it. Returns the strip, and how many bones have changed.

    Raises RigError, with nothing changed, for a bone whose rotation can't be layered.
    """
    layers = list(_layers(armature, old, rotations, roots))
    action = new_strip_action(armature, f"{armature.name} edit")
    for path, bone, values, free in layers:
        write_curves(action, armature, path, old.frames, values, bone, components=free)
    strip = add_strip(armature, action)
    strip.blend_type, strip.extrapolation = _BLEND, "NOTHING"
    # A strip's influence is its own only where it is animated; the curve's one key is what is changed.
    strip.influence = 1.0
    strip.use_animated_influence = True
    return strip, len({bone for _, bone, _, _ in layers})


def _layers(
    armature: bpy.types.Object, old: Motion, rotations: FloatArray, roots: FloatArray
) -> Iterator[tuple[str, str, FloatArray, tuple[int, ...]]]:
    """Data path, bone, (F, n) values to be combined, and which of them are free."""
    names = old.skeleton.names
    if np.abs(roots - old.roots).max() > NO_MOVE:
        root = armature.pose.bones[names[0]]
        moved = root_location_channel(root, roots) - root_location_channel(root, old.roots)
        free = tuple(axis for axis in range(3) if not root.lock_location[axis])
        yield bone_path(root.name, "location"), root.name, moved, free
    for place, name in enumerate(names):
        turned = rotations[:, place]
        if name not in old.channels or angle_between(old.rotations[:, place], turned).max() <= NO_TURN:
            continue
        bone = armature.pose.bones[name]
        if bone.rotation_mode == "AXIS_ANGLE":
            raise RigError(
                f"Bone {name!r} turns by axis and angle, which no layer can: "
                "set its rotation mode to quaternions or Euler angles"
            )
        if bone.rotation_mode == "QUATERNION":
            values = product(conjugate(old.rotations[:, place]), turned)
            values = np.where(values[:, :1] < 0.0, -values, values)
        else:
            before = old.channels[name]
            values = to_channels(bone.rotation_mode, turned[None], previous=before)[1][0] - before
        yield bone_path(name, property_name(bone.rotation_mode)), name, values, unlocked_rotation(bone)
