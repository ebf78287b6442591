"""The pose that live solving starts from and blends with: the keyed one, or the one stored when live was switched on.

It never depends on what live solving has made of the pose, so that the same targets always give the same result.
"""

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import NO_TURN
from ..rig import keyframes
from ..rig.armature import floats, root_place
from ..rig.keyframes import bone_path
from ..rig.rotation_modes import from_channels, property_name, to_channels
from ..settings.rig import rig_settings


class BasePose:
    """The base pose of a rig on a frame: what its present action says, what is stored where that says nothing."""

    def __init__(self, rig: bpy.types.Object, frame: float) -> None:
        """Look up curves and stored pose."""
        self._rig, self._frame, stored = rig, frame, rig_settings(rig).stored_pose
        self._rows = {name: row for row, name in enumerate(stored.keys())}
        self._rotations, self._locations = floats(stored, "rotation", 4), floats(stored, "location", 3)
        self._curves: dict[str, list[bpy.types.FCurve]] = {}
        for curve in keyframes.curves(rig):
            if not (curve.mute or (curve.group is not None and curve.group.mute)):
                self._curves.setdefault(curve.data_path, []).append(curve)

    def rotations(self, bones: Sequence[str]) -> FloatArray:
        """(B, 4) local rotations of bones, w x y z; rest where nothing is known."""
        known = np.concatenate([self._rotations, [NO_TURN]])
        found: FloatArray = known[[self._rows.get(bone, -1) for bone in bones]]
        if self._curves:
            for rotation, bone in zip(found, bones, strict=True):
                mode = self._rig.pose.bones[bone].rotation_mode
                path = bone_path(bone, property_name(mode))
                if path in self._curves:
                    rotation[:] = from_channels(mode, self._keyed(path, to_channels(mode, rotation[None])[1][0]))
        return found

    def root_place(self, bone: str) -> FloatArray:
        """(3,) where the head of a root bone is, in armature space."""
        pose_bone, row = self._rig.pose.bones[bone], self._rows.get(bone)
        location = np.array(pose_bone.location, dtype=np.float64) if row is None else self._locations[row].copy()
        return root_place(pose_bone, self._keyed(bone_path(bone, "location"), location))

    def _keyed(self, path: str, values: FloatArray) -> FloatArray:
        """The values of a channel with those of its curves on the frame in their places."""
        for curve in self._curves.get(path, ()):
            values[curve.array_index] = curve.evaluate(self._frame)
        return values
