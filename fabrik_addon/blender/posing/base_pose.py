"""The pose that live solving starts from and blends with: the keyed one, or the one stored when live was switched on.

It never depends on what live solving has made of the pose, so that the same targets always give the same result.
"""

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import NO_TURN
from ..rig import keyframes
from ..rig.armature import root_place
from ..rig.keyframes import bone_path
from ..rig.rotation_modes import from_channels, property_name, to_channels
from ..settings.posture import FabrikStoredBone
from ..settings.rig import rig_settings


class BasePose:
    """The base pose of a rig on a frame: what its present action says, what is stored where that says nothing."""

    def __init__(self, rig: bpy.types.Object, frame: float) -> None:
        """Look up curves and stored pose."""
        self._rig, self._frame = rig, frame
        self._stored: dict[str, FabrikStoredBone] = {bone.name: bone for bone in rig_settings(rig).stored_pose}
        self._curves: dict[str, list[bpy.types.FCurve]] = {}
        for curve in keyframes.curves(rig):
            if not (curve.mute or (curve.group is not None and curve.group.mute)):
                self._curves.setdefault(curve.data_path, []).append(curve)

    def rotations(self, bones: Sequence[str]) -> FloatArray:
        """(B, 4) local rotations of bones, w x y z; rest where nothing is known."""
        return np.array([self._rotation(bone) for bone in bones])

    def root_place(self, bone: str) -> FloatArray:
        """(3,) where the head of a root bone is, in armature space."""
        stored = self._stored.get(bone)
        pose_bone = self._rig.pose.bones[bone]
        location = np.array(pose_bone.location if stored is None else stored.location, dtype=np.float64)
        return root_place(pose_bone, self._keyed(bone, "location", location))

    def _rotation(self, bone: str) -> FloatArray:
        """(4,) one local rotation."""
        stored, mode = self._stored.get(bone), self._rig.pose.bones[bone].rotation_mode
        rotation = np.array(NO_TURN if stored is None else stored.rotation, dtype=np.float64)
        channel = property_name(mode)
        if bone_path(bone, channel) not in self._curves:
            return rotation
        values = to_channels(mode, rotation[None])[1][0]
        return from_channels(mode, self._keyed(bone, channel, values))

    def _keyed(self, bone: str, channel: str, values: FloatArray) -> FloatArray:
        """The values of a channel with those of its curves on the frame in their places."""
        for curve in self._curves.get(bone_path(bone, channel), ()):
            values[curve.array_index] = curve.evaluate(self._frame)
        return values
