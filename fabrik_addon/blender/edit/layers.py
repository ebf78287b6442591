"""Writes a change over time to its own additive layer; the action does not change, an influence blends the layer."""

from collections.abc import Iterator
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import conjugate, product
from ..rig.actions import add_strip, new_strip_action
from ..rig.armature import RigError
from ..rig.keyframes import bone_path, write_curves
from ..rig.locks import unlocked_location, unlocked_rotation
from ..rig.rotation_modes import property_name, to_channels
from .new_channels import NewChannels
from .take import Motion

# With this blend mode, Blender multiplies the quaternions below by those of the layer, and adds angles and locations.
_BLEND: Final = "COMBINE"


def write_layer(armature: bpy.types.Object, old: Motion, new: NewChannels) -> int:
    """Write the changes of a motion to a new NLA track above all others; returns the number of changed bones.

    The current action becomes a strip below it.

    Raises RigError, with nothing changed, if a bone's rotation can't be layered.
    """
    layers = list(_layers(old, new))
    action = new_strip_action(armature, f"{armature.name} edit")
    for path, bone, values, free in layers:
        write_curves(action, armature, path, old.frames, values, bone, components=free)
    strip = add_strip(armature, action)
    strip.blend_type, strip.extrapolation = _BLEND, "NOTHING"
    # A strip has its own influence only if this is animated. The curve has one key, which people change.
    strip.influence = 1.0
    strip.use_animated_influence = True
    return len({bone for _, bone, _, _ in layers})


def _layers(old: Motion, new: NewChannels) -> Iterator[tuple[str, str, FloatArray, tuple[int, ...]]]:
    """Data path, bone, (F, n) values to combine, and which of them are unlocked."""
    if new.place is not None:
        free = unlocked_location(new.place)
        yield bone_path(new.place.name, "location"), new.place.name, new.moved - old.location, free
    for bone, before, after, channel in ((each.bone, each.before, each.after, each.channel) for each in new.turned):
        mode = bone.rotation_mode
        if mode == "AXIS_ANGLE":
            raise RigError(
                f"Bone {bone.name!r} uses the axis angle rotation mode, which layers can't blend: set it "
                "to quaternion or Euler"
            )
        if mode == "QUATERNION":
            values = product(conjugate(before), after)
            values = np.where(values[:, :1] < 0.0, -values, values)
        else:
            values = to_channels(mode, after[None], previous=channel)[1][0] - channel
        yield bone_path(bone.name, property_name(mode)), bone.name, values, unlocked_rotation(bone)
