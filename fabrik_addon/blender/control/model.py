"""How a body's pose is made of its controls: what each control's channels are to hold, for one pose or many."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import matrix_from_quaternion as matrices
from ...core.rotations import quaternion_from_matrix, slerp
from ..rig.armature import nearest_rotations
from ..rig.rotation_modes import local_rotation
from ..settings.control import FabrikControlRig


@dataclass(frozen=True, eq=False)
class _Stand:
    """How a bone stands: (3, 3) its rotation and (3,) its head in armature space; at_rest: (3, 3) that at rest."""

    rotation: FloatArray
    head: FloatArray
    at_rest: FloatArray


@dataclass(frozen=True, eq=False)
class ControlPose:
    """What C controls' channels are to hold: ([F,] C, 4) local rotations; place: ([F,] 3) the place control's location.

    controls: their names. place is None where the body is not to be moved.
    """

    controls: tuple[str, ...]
    rotations: FloatArray
    place: FloatArray | None


class ControlModel:
    """The controls of one tree of a body, as they stand now with its limbs on FK.

    Attributes:
        controls: names, those that carry others first. place: the control that is moved, "" for none.
    """

    def __init__(self, rig: bpy.types.Object, kept: FabrikControlRig, skeleton: Skeleton, *, moves: bool) -> None:
        """Look how everything stands, as it was last evaluated."""
        self._rig, self._rows = rig, {row.name: row for row in kept.controls}
        rows = {name: place for place, name in enumerate(skeleton.names)}
        self._body = {
            row.control: rows[row.name] for row in kept.carriers if row.name in rows and row.control in rig.pose.bones
        }
        self.place = kept.place if moves and kept.place in rig.pose.bones else ""
        if self.place:
            self._body.setdefault(self.place, 0)
        self.controls = self._in_order()
        self._bones = [_stand(rig, name) for name in skeleton.names]
        self._stands = {name: _stand(rig, name) for name in {*self.controls, *self._leaders()}}
        self._frames = {name: self._frame_now(name) for name in self.controls}
        self._location = np.array(rig.pose.bones[self.place].location, dtype=np.float64) if self.place else np.zeros(3)

    def pose(self, armature_matrices: FloatArray) -> ControlPose:
        """The channels for ([F,] J, 4, 4) matrices of the tree's bones in armature space."""
        wanted, heads = armature_matrices[..., :3, :3], armature_matrices[..., :3, 3]
        new: dict[str, FloatArray] = {}
        local = []
        for name in self.controls:
            bone = self._body[name]
            turn = wanted[..., bone, :, :] @ self._bones[bone].rotation.T
            new[name] = turn @ self._stands[name].rotation
            local.append(np.swapaxes(self._carried(name, new) @ self._frames[name], -1, -2) @ new[name])
        rotations = quaternion_from_matrix(np.stack(local, axis=-3))
        place = self._placed(wanted, heads, new) if self.place else None
        return ControlPose(tuple(self.controls), rotations, place)

    def _in_order(self) -> list[str]:
        """The controls, each after those that it goes with."""
        graph = {
            name: [each for each in (row.turns_with, row.shares_turn, row.moves_with) if each in self._body]
            for name in self._body
            for row in [self._rows[name]]
        }
        return list(TopologicalSorter(graph).static_order())

    def _leaders(self) -> set[str]:
        """What controls go with, whether it is written or not."""
        rows = [self._rows[name] for name in self.controls]
        return {each for row in rows for each in (row.turns_with, row.shares_turn) if each in self._rig.pose.bones}

    def _frame_now(self, name: str) -> FloatArray:
        """(3, 3) what is left of a control's present rotation without what carries it and without its own channels."""
        own = matrices(local_rotation(self._rig.pose.bones[name]))
        return np.asarray(np.swapaxes(self._carried(name, {}), -1, -2) @ self._stands[name].rotation @ own.T)

    def _carried(self, name: str, new: Mapping[str, FloatArray]) -> FloatArray:
        """([F,] 3, 3) how what carries a control is turned from rest, where some controls have ([F,] 3, 3) new ones."""
        row = self._rows[name]
        first = self._turned(row.turns_with, new)
        if not row.shares_turn:
            return first
        second = self._turned(row.shares_turn, new)
        first, second = np.broadcast_arrays(first, second)
        ends = [quaternion_from_matrix(each).reshape(-1, 4) for each in (first, second)]
        mixed = slerp(ends[0], ends[1], np.full(len(ends[0]), row.share))
        return matrices(mixed).reshape(first.shape)

    def _turned(self, name: str, new: Mapping[str, FloatArray]) -> FloatArray:
        """([F,] 3, 3) how a control is turned from rest."""
        stand = self._stands.get(name)
        return np.eye(3) if stand is None else np.asarray(new.get(name, stand.rotation) @ stand.at_rest.T)

    def _placed(self, wanted: FloatArray, heads: FloatArray, new: Mapping[str, FloatArray]) -> FloatArray:
        """([F,] 3) the location that brings the place control to where the bones want what is fixed to it to be."""
        fixed = [name for name in self.controls if name != self.place and self._rows[name].moves_with == self.place]
        name = fixed[0] if fixed else self.place
        bone = self._body[name]
        stand, own = self._bones[bone], self._stands[self.place]
        point = self._stands[name].head
        there = heads[..., bone, :] + (wanted[..., bone, :, :] @ (stand.rotation.T @ (point - stand.head)))
        head = there - (new[self.place] @ (own.rotation.T @ (point - own.head)))
        axes = self._carried(self.place, {}) @ self._frames[self.place]
        place = self._rig.pose.bones[self.place]
        if not place.bone.use_local_location:
            axes = axes @ own.at_rest.T
        return np.asarray(self._location + (head - own.head) @ axes)


def _stand(rig: bpy.types.Object, name: str) -> _Stand:
    bone = rig.pose.bones[name]
    posed, rest = (np.array(each, dtype=np.float64) for each in (bone.matrix, bone.bone.matrix_local))
    rotations = nearest_rotations(np.stack([posed, rest])[:, :3, :3])
    return _Stand(rotations[0], posed[:3, 3], rotations[1])
