"""Rotates each control slightly and records which bones follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import bpy
import numpy as np

from ...core.arrays import BoolArray, FloatArray
from ...core.rotations import rotation_vector_from_matrix
from ..rig.armature import nearest_rotations
from ..rig.locks import constrained_bones
from ..rig.pose_writer import HeldChannels
from .model import add_to_channels, free_channels, is_additive
from .switches import batches

# Radians. Matrices are in single precision, so rotations can be compared to a thousandth of this.
_TURN: Final = 0.02
# Two rotations are equal if they differ by less than this share. A bone is in place if it moves by less than this share
# of the movement that the control's rotation causes at a distance of a tenth of the rig's size.
_SAME: Final = 0.01
# Rotations below this share of the control's rotation are ignored.
_TELLING: Final = 0.1
# An axis that is not a bone's own, so that all three of a bone's channels are tested.
TRIED_AXIS: Final = (0.48, 0.6, 0.64)


@dataclass(frozen=True, eq=False)
class Trials:
    """The movements of N bones when C controls were rotated, one at a time.

    Attributes:
        bones, controls: their names.
        rest: (N, 4, 4) matrices of the bones before the trials, in armature space, without scale.
        turns: (C, 3) rotation vectors of the controls. turned: (C, N, 3) rotation vectors of the bones. In armature
        space.
        moved: (C, N, 3) movements of the bones' heads.
    """

    bones: list[str]
    controls: list[str]
    rest: FloatArray
    turns: FloatArray
    turned: FloatArray
    moved: FloatArray

    @cached_property
    def full(self) -> BoolArray:
        """(C, N) whether a bone had the same rotation as the control."""
        sizes = np.linalg.norm(self.turns, axis=-1)[:, None]
        alike = np.linalg.norm(self.turned - self.turns[:, None], axis=-1) < _SAME * sizes
        return np.asarray(alike & (sizes > _TELLING * _TURN))

    @cached_property
    def same_swing(self) -> BoolArray:
        """(C, N) whether a bone had the same rotation as the control, apart from twist about the bone's Y."""
        along = self.rest[:, :3, 1]
        missing, whole = (
            np.asarray(turns - np.sum(turns * along, axis=-1, keepdims=True) * along)
            for turns in (self.turned - self.turns[:, None], self.turns[:, None])
        )
        sizes = np.linalg.norm(whole, axis=-1)
        return np.asarray((np.linalg.norm(missing, axis=-1) < _SAME * sizes) & (sizes > _TELLING * _TURN))

    @cached_property
    def follows(self) -> BoolArray:
        """(C, N) whether a bone had the same rotation as the control, with or without twist."""
        return self.full | self.same_swing

    @cached_property
    def shares(self) -> FloatArray:
        """(C, N) the rotation of each bone as a share of the control's; NaN if it was about another axis."""
        squares = np.maximum(np.einsum("ci,ci->c", self.turns, self.turns), np.finfo(np.float64).tiny)[:, None]
        share = np.einsum("cni,ci->cn", self.turned, self.turns) / squares
        rest = self.turned - share[:, :, None] * self.turns[:, None]
        return np.where(np.linalg.norm(rest, axis=-1) < _SAME * np.sqrt(squares), share, np.nan)

    @cached_property
    def carried(self) -> BoolArray:
        """(C, N) whether a bone's head moved as if rigidly rotated about the control's head."""
        rows = [self.bones.index(name) for name in self.controls]
        arms = self.rest[None, :, :3, 3] - self.rest[rows, None, :3, 3]
        wanted = np.cross(self.turns[:, None], arms)
        # The rotation is not infinitesimal, so the arc may deviate from its tangent by this much.
        loose = (
            _TURN * np.linalg.norm(wanted, axis=-1) + _SAME * _TURN * 0.1 * np.ptp(self.rest[:, :3, 3], axis=0).max()
        )
        return np.asarray(np.linalg.norm(self.moved - wanted, axis=-1) < loose)


def try_controls(
    context: bpy.types.Context, rig: bpy.types.Object, controls: Sequence[str], after: dict[str, int]
) -> Trials:
    """Rotate each control slightly from the current pose, and put it back.

    Controls that constraints move have no effect. after: for each bone, the bones that may follow it, as bits.
    """
    bones = list(rig.pose.bones.keys())
    rest = _matrices(context, rig)
    shape = (len(controls), len(bones), 3)
    turns, turned, moved = np.zeros((len(controls), 3)), np.zeros(shape), np.zeros(shape)
    owned = constrained_bones(rig)
    free = [name for name in controls if name not in owned or is_additive(rig.pose.bones[name])]
    for batch in batches(free, after):
        before = HeldChannels(rig, batch)
        for name in batch:
            bone = rig.pose.bones[name]
            turn = np.where(free_channels(bone), (0.0, 0.0, 0.0, *TRIED_AXIS), 0.0)
            add_to_channels(bone, _TURN * turn / np.linalg.norm(turn))
        posed = _matrices(context, rig)
        before.put_back()
        vectors = rotation_vector_from_matrix(posed[:, :3, :3] @ np.swapaxes(rest[:, :3, :3], 1, 2))
        for name in batch:
            row, column = controls.index(name), bones.index(name)
            follows = np.array([after[name] >> place & 1 for place in range(len(bones))], dtype=bool)
            turns[row] = vectors[column]
            turned[row, follows], moved[row, follows] = vectors[follows], (posed - rest)[follows, :3, 3]
    context.view_layer.update()
    return Trials(bones, list(controls), rest, turns, turned, moved)


def can_swing(bone: bpy.types.PoseBone) -> bool:
    """Whether locks allow a bone to rotate about other axes than its own Y."""
    return not (bone.lock_rotation[0] and bone.lock_rotation[2])


def _matrices(context: bpy.types.Context, rig: bpy.types.Object) -> FloatArray:
    """(N, 4, 4) current matrices of the bones in armature space, without scale."""
    context.view_layer.update()
    values = np.empty(16 * len(rig.pose.bones), dtype=np.float32)
    rig.pose.bones.foreach_get("matrix", values)
    matrices: FloatArray = values.reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)
    matrices[:, :3, :3] = nearest_rotations(matrices[:, :3, :3])
    return matrices
