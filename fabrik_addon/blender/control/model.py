"""Converts poses of a body to channels of its controls, for one pose or many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bpy.types import Object, PoseBone

from ...core.arrays import BoolArray, FloatArray, times
from ...core.model.skeleton import Skeleton
from ...core.rotations import (
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
    slerp,
)
from ..rig.armature import as_array, nearest_rotations, object_scale
from ..rig.locks import locked_channels, with_locks
from ..rig.rotation_modes import from_channels, local_rotation, property_name, to_channels
from ..settings.control import FabrikControlRig


def free_channels(bone: PoseBone) -> BoolArray:
    """(6,) whether a control can move along, and rotate about, each axis of its channels."""
    return ~np.array([*bone.lock_location, *bone.lock_rotation])


def is_additive(bone: PoseBone) -> bool:
    """Whether constraints add to a bone's own channels instead of replacing them.

    They do for a following tail or a curling finger, and for a control with a custom shape whose parent can be
    switched. If IK on a bone below moves the bone, they do for controls that rotate the limb, but not for the bones of
    the mesh.
    """
    if not bone.constraints and bone.bone.use_deform:
        return False
    carries = ("CHILD_OF", "ARMATURE") if bone.custom_shape else ()
    constraints: Iterable[Any] = bone.constraints
    return all(
        each.type in carries or (each.type == "COPY_ROTATION" and each.mix_mode != "REPLACE") for each in constraints
    )


def add_to_channels(bone: PoseBone, steps: FloatArray) -> None:
    """Move and rotate a control by `steps` (6,): lengths along, then radians about, the axes of its channels."""
    if steps[:3].any():
        bone.location = (np.array(bone.location) + steps[:3]).tolist()
    if not steps[3:].any():
        return
    mode, channel = bone.rotation_mode, property_name(bone.rotation_mode)
    before = np.array(getattr(bone, channel), dtype=np.float64)
    start = from_channels(mode, before)
    turned, lock = product(start, quaternion_from_rotation_vector(steps[3:])), with_locks(bone, start)
    turned = turned if lock is None else lock(turned)
    values = to_channels(mode, turned[None], previous=before)[1][0]
    setattr(bone, channel, np.where(locked_channels(bone), before, values).tolist())


@dataclass(frozen=True, eq=False)
class RigMotion:
    """The poses of a tree of bones on F frames.

    Attributes:
        frames: (F,) in rising order. rotations: (F, J, 4) local. roots: (F, 3) the root's head in armature space.
        channels: (F, 3 or 4) values of the rotation channels by keyed bone; on a control rig, by control.
        own: (F, 4) the same rotations as quaternions.
        location: (F, 3) values of the location channel of the bone that moves the root.
        matrices: for a control rig, (F, 4, 4) matrices of the bones and controls in armature space, by name.
    """

    skeleton: Skeleton
    frames: FloatArray
    rotations: FloatArray
    roots: FloatArray
    channels: Mapping[str, FloatArray]
    own: Mapping[str, FloatArray]
    location: FloatArray
    matrices: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)


class ControlModel:
    """The controls of one tree of a body, in their current pose or over frames, with limbs on FK.

    Attributes:
        controls: the names of C controls. place: the root control, which moves the body; "" for none.
    """

    def __init__(
        self, rig: Object, setup: FabrikControlRig, skeleton: Skeleton, *, moves: bool, over: RigMotion | None = None
    ) -> None:
        """Read the rig's last evaluated pose.

        moves: whether the body is moved too. over: the rig's motion over F frames; then poses are those of the same
        frames.
        """
        bones = rig.pose.bones
        rows = {name: place for place, name in enumerate(skeleton.names)}
        body = {row.control: rows[row.name] for row in setup.carriers if row.name in rows and row.control in bones}
        self.place = setup.place if moves and setup.place in bones else ""
        if self.place:
            body.setdefault(self.place, 0)
        self.controls = list(body)
        goes = {row.name: row for row in setup.controls}
        frames = [goes.get(name) for name in self.controls]
        ways = [
            ("", "", 0.0, "") if row is None else (row.turns_with, row.shares_turn, row.share, row.moves_with)
            for row in frames
        ]
        leaders = list(dict.fromkeys(name for way in ways for name in way[:2] if name in bones and name not in body))
        # The leaders of controls: other controls, or bones that are not written. The last index means none.
        numbers = {name: number for number, name in enumerate((*self.controls, *leaders))}
        self._first = [numbers.get(first, -1) for first, *_ in ways]
        self._second = [numbers.get(second, -1) for _, second, *_ in ways]
        self._share = np.array([share for _, _, share, _ in ways])
        self._sharing = [number for number, second in enumerate(self._second) if second >= 0]
        self._bodies = list(body.values())
        can_swing = {row.control for row in setup.carriers if row.found == "SWINGS"}
        self._swinging = [number for number, name in enumerate(self.controls) if name in can_swing]
        self._look(rig, skeleton, leaders, over)
        if self.place:
            bone = bones[self.place]
            moves_with = [way[3] for way in ways]
            self._own = self.controls.index(self.place)
            fixed = [number for number, name in enumerate(moves_with) if name == self.place and number != self._own]
            self._fixed = fixed[0] if fixed else self._own
            self._location = np.array(bone.location, dtype=np.float64) if over is None else over.location
            axes = self._carried(self._turned)[..., self._own, :, :] @ self._frames[..., self._own, :, :]
            self._axes = axes if bone.bone.use_local_location else axes @ self._at_rest[self._own].T
            posed = as_array(bone.matrix) if over is None else over.matrices[self.place]
            # A scaled parent also scales the location.
            self._size = object_scale(posed) / np.cbrt(np.prod(np.array(bone.scale)))

    def _look(self, rig: Object, skeleton: Skeleton, leaders: Sequence[str], over: RigMotion | None) -> None:
        """Read the matrices of controls, of their leaders, and of the bones that follow them."""
        turned, self._heads, at_rest = _read_matrices(rig, (*self.controls, *leaders), over)
        rotations_now, self._bone_heads, _ = _read_matrices(rig, skeleton.names, over)
        count = len(self.controls)
        led = turned[..., count:, :, :] @ _inverse(at_rest[count:])
        self._leaders = np.concatenate([led, np.broadcast_to(np.eye(3), (*led.shape[:-3], 1, 3, 3))], axis=-3)
        self._turned, self._at_rest = turned[..., :count, :, :], at_rest[:count]
        self._offsets = _inverse(rotations_now[..., self._bodies, :, :]) @ self._turned
        self._inverse = _inverse(rotations_now)
        # ([F,] C, 3, 3) rotations by the controls' channels.
        present = np.array([local_rotation(rig.pose.bones[name]) for name in self.controls])
        if over is not None:
            present = np.tile(present, (len(over.location), 1, 1))
            for row, name in enumerate(self.controls):
                present[:, row] = over.own.get(name, present[:, row])
        self._own_turns = matrix_from_quaternion(present)
        self._frames = _inverse(self._carried(self._turned)) @ self._turned @ _inverse(self._own_turns)

    def pose(self, armature_matrices: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """The channels for `armature_matrices` (..., J, 4, 4) of the tree's bones, in armature space.

        Returns ([F,] C, 4) local rotations of the controls, and ([F,] 3) the root control's location; None if the body
        is not moved.
        """
        wanted, heads = armature_matrices[..., :3, :3], armature_matrices[..., :3, 3]
        new = wanted[..., self._bodies, :, :] @ self._offsets
        for number in self._swinging:
            # Keep the control's twist, which does not rotate the bone. Otherwise the twist would grow with every pose.
            kept = self._carried(new)[..., number, :, :] @ (self._frames @ self._own_turns)[..., number, :, :]
            axis = (kept @ _inverse(self._offsets[..., number, :, :]))[..., 1]
            swing = rotation_between(axis.reshape(-1, 3), wanted[..., self._bodies[number], :, 1].reshape(-1, 3))
            new[..., number, :, :] = matrix_from_quaternion(swing).reshape(kept.shape) @ kept
        rotations = quaternion_from_matrix(_inverse(self._carried(new) @ self._frames) @ new)
        return rotations, self._placed(wanted, heads, new) if self.place else None

    def _carried(self, new: FloatArray) -> FloatArray:
        """([F,] C, 3, 3) rotations from rest of the controls' leaders, for controls at `new` ([F,] C, 3, 3)."""
        turned = new @ _inverse(self._at_rest)
        still = np.broadcast_to(self._leaders, (*new.shape[:-3], *self._leaders.shape[-3:]))
        every = np.concatenate([turned, still], axis=-3)
        carried = every[..., self._first, :, :]
        if self._sharing:
            ends = carried[..., self._sharing, :, :], every[..., [self._second[each] for each in self._sharing], :, :]
            first, second = (quaternion_from_matrix(each) for each in ends)
            shares = np.broadcast_to(self._share[self._sharing], first.shape[:-1])
            mixed = slerp(first.reshape(-1, 4), second.reshape(-1, 4), shares.ravel())
            carried[..., self._sharing, :, :] = matrix_from_quaternion(mixed).reshape(ends[0].shape)
        return carried

    def _placed(self, wanted: FloatArray, heads: FloatArray, new: FloatArray) -> FloatArray:
        """([F,] 3) location of the root control that brings `heads`, which are fixed to it, to `wanted`."""
        bone, point, own = self._bodies[self._fixed], self._heads[..., self._fixed, :], self._heads[..., self._own, :]
        from_bone = times(self._inverse[..., bone, :, :], point - self._bone_heads[..., bone, :])
        there = heads[..., bone, :] + times(wanted[..., bone, :, :], from_bone)
        arm = times(_inverse(self._turned[..., self._own, :, :]), point - own)
        head = there - times(new[..., self._own, :, :], arm)
        return np.asarray(self._location + times(_inverse(self._axes), head - own) / self._size[..., None])


def _read_matrices(
    rig: Object, names: Sequence[str], over: RigMotion | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """([F,] N, 3, 3) rotations, ([F,] N, 3) heads and (N, 3, 3) rest rotations of bones, armature space."""
    bones = [rig.pose.bones[name] for name in names]
    if over is None:
        posed = np.array([as_array(bone.matrix) for bone in bones]).reshape(-1, 4, 4)
    else:
        posed = np.stack([over.matrices[name] for name in names], axis=1)
    rest = np.array([as_array(bone.bone.matrix_local) for bone in bones]).reshape(-1, 4, 4)
    return nearest_rotations(posed[..., :3, :3]), posed[..., :3, 3], nearest_rotations(rest[:, :3, :3])


def _inverse(rotations: FloatArray) -> FloatArray:
    """(..., 3, 3) inverse rotations."""
    return np.swapaxes(rotations, -1, -2)
