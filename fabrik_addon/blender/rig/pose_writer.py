"""Writing one tree's pose over and over, as dragging does: only the bones that are turned, and what has changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np

from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.rotations import angle_between
from .armature import Tree, root_location_channel
from .locks import locked_channels
from .rotation_modes import property_name, to_channels

# Radians: a bone that turns by less keeps its channels to the bit.
_NO_TURN: Final = 1e-7
# A channel that has changed by less has only been rounded.
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, eq=False)
class _Group:
    """Bones of one rotation mode: their places in the tree, (K, n) what their channels held, and which are locked."""

    mode: str
    channel: str
    bones: IntArray
    names: tuple[str, ...]
    before: FloatArray
    locked: BoolArray


class PoseWriter:
    """Writes poses of a tree to an armature, each as if it followed the pose at the start."""

    def __init__(self, armature: bpy.types.Object, tree: Tree, bones: Sequence[int], *, moves_root: bool) -> None:
        """Take note of what the channels of the bones hold, and of the root's location where that is written too."""
        self._armature, self._tree, self._moves_root = armature, tree, moves_root
        names = tree.skeleton.names
        modes = {bone: armature.pose.bones[names[bone]].rotation_mode for bone in bones}
        self._groups = [
            _group(armature, mode, [bone for bone in bones if modes[bone] == mode], names)
            for mode in sorted(set(modes.values()))
        ]
        self._location = np.array(armature.pose.bones[names[0]].location)

    def write(self, rotations: FloatArray, head: FloatArray) -> None:
        """Pose the bones by (J, 4) local rotations, and put the root's head at (3,) where it may move."""
        for group in self._groups:
            wanted = rotations[group.bones]
            still = angle_between(self._tree.rotations[group.bones], wanted) < _NO_TURN
            _, channels = to_channels(group.mode, wanted[None], previous=group.before)
            values = np.where(still[:, None] | group.locked, group.before, channels[0]).tolist()
            for name, each in zip(group.names, values, strict=True):
                setattr(self._armature.pose.bones[name], group.channel, each)
        if self._moves_root:
            root = self._root
            root.location = root_location_channel(root, head).tolist()

    def changed(self) -> Iterator[tuple[str, str]]:
        """(bone, channel) of what no longer holds what it held at the start."""
        for group in self._groups:
            for name, before in zip(group.names, group.before, strict=True):
                if np.abs(np.array(getattr(self._armature.pose.bones[name], group.channel)) - before).max() > _ROUNDING:
                    yield name, group.channel
        if self._moves_root and np.abs(np.array(self._root.location) - self._location).max() > _ROUNDING:
            yield self._root.name, "location"

    @property
    def _root(self) -> bpy.types.PoseBone:
        return self._armature.pose.bones[self._tree.skeleton.names[0]]


def _group(armature: bpy.types.Object, mode: str, bones: Sequence[int], names: Sequence[str]) -> _Group:
    """The bones of a rotation mode."""
    channel = property_name(mode)
    own = tuple(names[bone] for bone in bones)
    before = np.array([tuple(getattr(armature.pose.bones[name], channel)) for name in own], dtype=np.float64)
    locked = np.array([locked_channels(armature.pose.bones[name]) for name in own])
    return _Group(mode, channel, np.array(bones, dtype=np.int64), own, before, locked)
