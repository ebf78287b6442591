"""Converts poses of a body to channels of its controls, for one pose or many, and writes them. Limbs stay on IK or FK.

The controls of limbs on IK are placed in closed form. The IK control moves rigidly with the limb's end, heels and toes
with their bones. The pole, or the control that rotates the limb, rotates about the line from its root to its end.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Matrix, Vector

from ...core import forward_kinematics
from ...core.arrays import TINY, BoolArray, FloatArray, times
from ...core.channels import channel_count, from_channels, to_channels
from ...core.kernel.bodies import cross
from ...core.model.skeleton import Skeleton
from ...core.rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
    rotation_vector_from_matrix,
    rotation_vector_from_quaternion,
    slerp,
)
from ..rig import armature as plain
from ..rig import pose_writer
from ..rig.keying import key_in_steps
from ..settings.control import FabrikControlRig, control_rig, copied, moves
from ..settings.why_not import enabled_effectors
from .mechanism import Mechanism, by_channels
from .switches import keyed_switches, limbs_of, with_linked_values


def free_channels(bone: PoseBone) -> BoolArray:
    """(6,) whether a control can move along, and rotate about, each axis of its channels."""
    return ~np.array([*bone.lock_location, *bone.lock_rotation])


def is_additive(bone: PoseBone) -> bool:
    """Whether constraints add to a bone's own channels instead of replacing them.

    This is the case for a following tail, a curling finger, or a control with a custom shape whose parent can be
    switched. If IK on a bone below moves the bone, it is the case for controls that rotate the limb, but not for bones
    of the mesh.
    """
    if not bone.constraints and bone.bone.use_deform:
        return False
    carries = ("CHILD_OF", "ARMATURE") if bone.custom_shape else ()
    constraints: Iterable[Any] = bone.constraints
    return all(
        each.type in carries or (each.type == "COPY_ROTATION" and each.mix_mode != "REPLACE") for each in constraints
    )


def curling_constraint(bone: PoseBone) -> Any | None:
    """The constraint that adds another control's local rotation to a control's own, so that a tail curls; or None."""
    every: Iterable[Any] = bone.constraints if bone.custom_shape else ()
    for each in every:
        copies = each.type == "COPY_ROTATION" and each.mix_mode == "BEFORE" and each.target == bone.id_data
        if copies and each.owner_space == each.target_space == "LOCAL" and moves(each) and each.influence == 1.0:
            source: PoseBone | None = each.target.pose.bones.get(each.subtarget)
            return each if source is not None and source.custom_shape else None
    return None


def channels_of(bone: PoseBone) -> FloatArray:
    """(7,) a control's location and local rotation."""
    return np.concatenate([np.array(bone.location), plain.local_rotation(bone)])


def add_to_channels(bone: PoseBone, steps: FloatArray) -> None:
    """Move and rotate a control by `steps` (6,): lengths along, then radians about, the axes of its channels."""
    if steps[:3].any():
        bone.location = (np.array(bone.location) + steps[:3]).tolist()
    if not steps[3:].any():
        return
    mode, channel = bone.rotation_mode, plain.property_name(bone.rotation_mode)
    before = np.array(getattr(bone, channel), dtype=np.float64)
    start = from_channels(mode, before)
    turned = product(start, quaternion_from_rotation_vector(steps[3:]))
    # Locked Euler angles keep their values below.
    lock = pose_writer.with_locks(bone, start) if channel_count(mode) != 3 else None
    turned = turned if lock is None else lock(turned)
    values = to_channels(mode, turned[None], previous=before)[0]
    setattr(bone, channel, np.where(pose_writer.locked_channels(bone), before, values).tolist())


@dataclass(frozen=True, eq=False)
class RigMotion:
    """The poses of a tree of bones on F frames.

    Attributes:
        frames: (F,) in rising order. rotations: (F, J, 4) local. roots: (F, 3) the root's head in armature space.
        channels: (F, 3 or 4) values of the rotation channels by keyed bone; on a control rig, by control.
        own: (F, 4) the same rotations as quaternions.
        locations: (F, 3) values of the location channels, by name: the bone that moves the root, and IK controls.
        matrices: for a control rig, (F, 4, 4) matrices of the bones and controls in armature space, by name.
    """

    skeleton: Skeleton
    frames: FloatArray
    rotations: FloatArray
    roots: FloatArray
    channels: Mapping[str, FloatArray]
    own: Mapping[str, FloatArray]
    locations: Mapping[str, FloatArray]
    matrices: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)


class _Curling(NamedTuple):
    """N controls with a `curling_constraint` in one order of Euler angles.

    rows: indices of the controls. sources: of the controls whose angles are added, times factors (N, 3): 0 or ±1.
    """

    rows: list[int]
    sources: list[int]
    factors: list[FloatArray]


class ControlModel:
    """The controls of one tree of a body, in their current pose or in poses over frames, with limbs on FK.

    Attributes:
        controls: the names of C controls. place: the root control, which moves the body; "" for none.
    """

    def __init__(
        self, rig: Object, setup: FabrikControlRig, skeleton: Skeleton, *, over: RigMotion | None = None
    ) -> None:
        """Read the rig's last evaluated pose. over: its motion over F frames; poses are then on these frames."""
        bones = rig.pose.bones
        rows = {name: index for index, name in enumerate(skeleton.names)}
        body = {row.control: rows[row.name] for row in setup.carriers if row.name in rows and row.control in bones}
        self.place = setup.place if setup.place in bones else ""
        if self.place:
            body.setdefault(self.place, 0)
        self.controls = list(body)
        stored = {row.name: row for row in setup.controls}
        frames = [
            ("", "", 0.0, "") if row is None else (row.turns_with, row.shares_turn, row.share, row.moves_with)
            for row in map(stored.get, self.controls)
        ]
        leaders = list(dict.fromkeys(name for row in frames for name in row[:2] if name in bones and name not in body))
        # The leaders of controls: other controls, or bones that are not written. The last index means none.
        numbers = {name: number for number, name in enumerate((*self.controls, *leaders))}
        self._first = [numbers.get(first, -1) for first, *_ in frames]
        self._second = [numbers.get(second, -1) for _, second, *_ in frames]
        self._share = np.array([share for _, _, share, _ in frames])
        self._sharing = [number for number, second in enumerate(self._second) if second >= 0]
        self._bodies = list(body.values())
        can_swing = {row.control for row in setup.carriers if row.found == "SWINGS"}
        self._swinging = [number for number, name in enumerate(self.controls) if name in can_swing]
        turned, self._heads, at_rest = _read_matrices(rig, (*self.controls, *leaders), over)
        rotations_now, self._bone_heads, _ = _read_matrices(rig, skeleton.names, over)
        count = len(self.controls)
        led = turned[..., count:, :, :] @ _inverse(at_rest[count:])
        self._leaders = np.concatenate([led, np.broadcast_to(np.eye(3), (*led.shape[:-3], 1, 3, 3))], axis=-3)
        self._turned, self._at_rest = turned[..., :count, :, :], at_rest[:count]
        self._offsets = _inverse(rotations_now[..., self._bodies, :, :]) @ self._turned
        self._inverse = _inverse(rotations_now)
        current = np.array([plain.local_rotation(rig.pose.bones[name]) for name in self.controls])
        if over is not None:
            current = np.tile(current, (len(over.frames), 1, 1))
            for row, name in enumerate(self.controls):
                current[:, row] = over.own.get(name, current[:, row])
        self._curling = dict[str, _Curling]()
        for row, name in enumerate(self.controls):
            each = curling_constraint(bones[name])
            if each is not None and each.subtarget in self.controls:
                order = bones[name].rotation_mode if each.euler_order == "AUTO" else each.euler_order
                curling = self._curling.setdefault(order if channel_count(order) == 3 else "XYZ", _Curling([], [], []))
                signs = [1.0 - 2.0 * flipped for flipped in (each.invert_x, each.invert_y, each.invert_z)]
                curling.rows.append(row)
                curling.sources.append(self.controls.index(each.subtarget))
                curling.factors.append(np.array(signs) * (each.use_x, each.use_y, each.use_z))
        # ([F,] C, 3, 3) rotations by channels, with the added rotations; each round completes a tail's next controls.
        self._local = own = matrix_from_quaternion(current)
        for _ in range(sum(len(each.rows) for each in self._curling.values())):
            self._local = self._added(self._local) @ own
        self._frames = _inverse(self._carried(self._turned)) @ self._turned @ _inverse(self._local)
        if self.place:
            bone = bones[self.place]
            moves_with = [row[3] for row in frames]
            self._own = self.controls.index(self.place)
            fixed = [number for number, name in enumerate(moves_with) if name == self.place and number != self._own]
            self._fixed = fixed[0] if fixed else self._own
            self._location = np.array(bone.location, dtype=np.float64) if over is None else over.locations[self.place]
            axes = self._carried(self._turned)[..., self._own, :, :] @ self._frames[..., self._own, :, :]
            self._axes = axes if bone.bone.use_local_location else axes @ self._at_rest[self._own].T
            posed = plain.as_array(bone.matrix) if over is None else over.matrices[self.place]
            # A scaled parent also scales the location.
            self._size = plain.object_scale(posed) / np.cbrt(np.prod(np.array(bone.scale)))

    def pose(self, armature_matrices: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """The channels for `armature_matrices` (..., J, 4, 4) of the tree's bones, in armature space.

        Returns ([F,] C, 4) local rotations of the controls, and ([F,] 3) the root control's location; None if there is
        no root control.
        """
        wanted, heads = armature_matrices[..., :3, :3], armature_matrices[..., :3, 3]
        new = wanted[..., self._bodies, :, :] @ self._offsets
        for number in self._swinging:
            # Keep the control's twist, which does not rotate the bone. Otherwise the twist would grow with every pose.
            kept = self._carried(new)[..., number, :, :] @ (self._frames @ self._local)[..., number, :, :]
            axis = (kept @ _inverse(self._offsets[..., number, :, :]))[..., 1]
            swing = rotation_between(axis.reshape(-1, 3), wanted[..., self._bodies[number], :, 1].reshape(-1, 3))
            new[..., number, :, :] = matrix_from_quaternion(swing).reshape(kept.shape) @ kept
        local = _inverse(self._carried(new) @ self._frames) @ new
        rotations = quaternion_from_matrix(_inverse(self._added(local)) @ local)
        return rotations, self._placed(wanted, heads, new) if self.place else None

    def _added(self, local: FloatArray) -> FloatArray:
        """([F,] C, 3, 3) rotations that constraints add to the controls' own, for `local` rotations ([F,] C, 3, 3)."""
        added = np.broadcast_to(np.eye(3), local.shape).copy()
        for order, (rows, sources, factors) in self._curling.items():
            angles = to_channels(order, quaternion_from_matrix(local[..., sources, :, :])[None])[0]
            added[..., rows, :, :] = matrix_from_quaternion(from_channels(order, factors * angles))
        return added

    def _carried(self, new: FloatArray) -> FloatArray:
        """([F,] C, 3, 3) rotations of leaders relative to rest, for rotations `new` ([F,] C, 3, 3) of controls."""
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
        """([F,] 3) the root control's location that moves `heads`, which are fixed to it, to `wanted`."""
        bone, point, own = self._bodies[self._fixed], self._heads[..., self._fixed, :], self._heads[..., self._own, :]
        from_bone = times(self._inverse[..., bone, :, :], point - self._bone_heads[..., bone, :])
        there = heads[..., bone, :] + times(wanted[..., bone, :, :], from_bone)
        arm = times(_inverse(self._turned[..., self._own, :, :]), point - own)
        head = there - times(new[..., self._own, :, :], arm)
        return np.asarray(self._location + times(_inverse(self._axes), head - own) / self._size[..., None])


def _read_matrices(
    rig: Object, names: Sequence[str], over: RigMotion | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """([F,] N, 3, 3) rotations, ([F,] N, 3) heads and (N, 3, 3) rest rotations of N bones, armature space."""
    if over is None:
        posed = plain.bone_matrices(rig, names)
    else:
        posed = plain.unscaled(np.stack([over.matrices[name] for name in names], axis=1))
    return posed[..., :3, :3], posed[..., :3, 3], plain.rest_matrices(rig, names)[:, :3, :3]


def _inverse(rotations: FloatArray) -> FloatArray:
    """(..., 3, 3) inverse rotations."""
    return np.swapaxes(rotations, -1, -2)


# A limb's end is in place if its errors (distances, and angles times bone lengths) are below this fraction of the
# limb's length.
PLACED: Final = 4e-5
# A limb has no bend plane if its joints are closer than this fraction of its length to the line from root to end. Its
# end and its control are apart if their distance is larger than that; IK's errors are a quarter of it.
_STRAIGHT: Final = 1e-3
# Fraction of a limb's length by which a trial moves the body.
_BODY_MOVES: Final = 0.1
# Rounds of correcting the angle of a control that rotates a limb.
_ANGLE_ROUNDS: Final = 3
# Radians. Half of this is the error of single precision at the smallest bend.
_IN_PLANE: Final = 3e-4
# A control is the pole if rotating it by at least _TRIED, in radians, rotates the limb by more than the fraction
# _FOLLOWS. A wolf's limb first rotates by 27 %, until its heel has followed.
_TRIED: Final = 0.03
_FOLLOWS: Final = 0.1
# The errors, as from `LimbOnIk.errors`, that are corrected over many frames, and those in a single pose.
BAKED: Final = [0, 1]
_POSED: Final = [0, 2, 3]
# Rounds of moving the controls in a pose. One is not enough, because heels follow their limb.
_MOST_TURNS: Final = 12
Update: TypeAlias = Callable[[], object]


class LimbOnIk:
    """A limb on IK: its bones and its controls.

    Attributes:
        bones, controls: their names.
        goes_by: the IK control that holds a bone, by name of this bone.
        turned_by: the control that rotates another bone, such as a paw's heel or a toe, by name of this bone.
        with_parent: the controls that follow the parent of the limb.
        here: (B, 4, 4) matrices of the bones in armature space, without scale, when they were last read.
        lengths: (B,) bone lengths. size: length of the limb.
        pole: the control that rotates the limb about the line from its root to its end, "" while unknown.
    """

    def __init__(self, rig: Object, bones: Sequence[str], controls: Sequence[str]) -> None:
        self.rig, self.bones, self.controls = rig, list(bones), list(controls)
        iks = ((bone, each) for bone in rig.pose.bones for each in bone.constraints if each.type == "IK")
        chained = {each.name for bone, ik in iks if moves(ik) for each in pose_writer.moved_by(bone, ik)}
        # The controls that are rotated by IK, so that their matrices are results of the IK.
        self._in_chains = chained.intersection(controls)
        self.with_parent, self.here = set(self._in_chains), plain.bone_matrices(rig, bones)
        self.lengths = np.array([rig.data.bones[name].length for name in bones])
        self.size = float(self.lengths.sum())
        self.goes_by: dict[str, str] = {}
        self.turned_by: dict[str, str] = {}
        self.pole = ""
        self._end, self._short = Vector(), 0.0

    def differences(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """(6 B,) differences between matrices (B, 4, 4) as lengths: distances, and angles times bone lengths."""
        turns = quaternion_from_matrix(there[:, :3, :3] @ np.swapaxes(here[:, :3, :3], 1, 2))
        vectors = rotation_vector_from_quaternion(turns) * self.lengths[:, None]
        return np.concatenate([there[:, :3, 3] - here[:, :3, 3], vectors], axis=1).ravel()

    def hold(self, goes_by: Mapping[str, str], others: Mapping[str, str] = MappingProxyType({})) -> None:
        """Move the controls that hold bones: the IK control for the limb's last bone, heels for bones above the end.

        others: the controls of bones below the end, such as toes. The end is held where it is now, see `place`.
        """
        heels = dict(goes_by)
        self.goes_by = dict([heels.popitem()] if heels else [])
        self.turned_by = heels | {bone: control for bone, control in others.items() if bone not in goes_by}
        for bone, leader in self.goes_by.items():
            self._end = self.rig.pose.bones[leader].matrix.inverted() @ self.rig.pose.bones[bone].head
        self._short = float(np.linalg.norm(self.beyond))

    @property
    def beyond(self) -> FloatArray:
        """(3,) vector from the end of a straight limb to its position at the IK control; zeros within IK's errors.

        If the control is farther away than the limb is long, it can move without moving the limb.
        """
        heads = self.here[: self.end + 1, :3, 3]
        length, arm = np.linalg.norm(np.diff(heads, axis=0), axis=1).sum(), heads[-1] - heads[0]
        for bone in self.goes_by:
            apart = self._at_control() - self.here[self.bones.index(bone), :3, 3]
            least = _STRAIGHT * self.size
            if np.linalg.norm(arm) > length - least and apart @ arm > least * np.linalg.norm(arm):
                return apart
        return np.zeros(3)

    def _at_control(self) -> FloatArray:
        """(3,) the position of the end at the IK control, as in the rest pose."""
        ((bone, leader),), rests = self.goes_by.items(), self.rig.data.bones
        place = self.rig.pose.bones[leader].matrix @ rests[leader].matrix_local.inverted() @ rests[bone].head_local
        return np.array(place)

    @property
    def missing(self) -> float:
        """The distance by which the end has left its IK control since `hold`."""
        (bone,) = self.goes_by
        # The end of a limb that was too short already moves without its control.
        place = self._at_control() if self._short else self.place
        return float(np.linalg.norm(place - np.array(self.rig.pose.bones[bone].head))) - self._short

    @property
    def place(self) -> FloatArray:
        """(3,) the position in armature space at which the IK control holds the limb's end since `hold`."""
        (leader,) = self.goes_by.values()
        return np.array(self.rig.pose.bones[leader].matrix @ self._end)

    def errors(self, wanted: FloatArray) -> FloatArray:
        """(4,) the errors of the worst held bone, joint positions, the end and the bend plane, for matrices (B, 4, 4).

        They are relative to the limits: if `BAKED` or `_POSED` errors are larger than 1, they are corrected.
        """
        off = np.abs(self.differences(wanted, self.here).reshape(len(self.bones), 6))
        end = max((off[self.bones.index(bone)].max() for bone in self.goes_by), default=0.0)
        # Half the distance, so that an end is never moved away from its matrix to reach its control.
        end = max(end, 0.5 * float(np.linalg.norm(self.beyond)))
        # Ignore the positions of heels' and toes' bones, because they depend on lengths that IK changes.
        turned = (off[self.bones.index(bone), 3:].max() for bone in self.turned_by)
        least = PLACED * self.size
        apart = np.linalg.norm(wanted[: self.end, :3, 3] - self.here[: self.end, :3, 3], axis=1).max()
        held, angle = max(end, *turned, 0.0), abs(self.plane_angle(wanted))
        return np.array([held / least, apart / (_STRAIGHT * self.size), end / least, angle / _IN_PLANE])

    def moves_end(self, wanted: FloatArray) -> bool:
        """Whether the bone that the IK control holds has to move to reach its matrix in `wanted`, (B, 4, 4)."""
        rows = [self.bones.index(bone) for bone in self.goes_by]
        off = self.differences(wanted, self.here).reshape(len(self.bones), 6)[rows]
        return bool(np.abs(off).max(initial=0.0) > PLACED * self.size)

    def lead(self, wanted: FloatArray, motion: FloatArray | None = None, *, attached: bool = True) -> None:
        """Move the controls so that the bones reach matrices (B, 4, 4), except controls that hardly move.

        motion: (4, 4) of the limb's parent, which will move too; None if the parent is in its final pose. attached:
        move the end of a limb that is too short back to its control.
        """
        bent, least = motion is not None or self.plane_angle(wanted), PLACED * self.size
        apart = self.beyond * attached
        above = np.eye(4) if motion is None else motion
        for name, channels in self.channels_over(wanted[None], above[None], apart=apart).items():
            bone = self.rig.pose.bones[name]
            start = channels_of(bone)
            turn = rotation_vector_from_quaternion(product(conjugate(start[3:]), channels[0, 3:]))
            steps = np.concatenate([channels[0, :3] - start[:3], turn])
            if (bent or name != self.pole) and np.abs(steps * np.repeat((1.0, self.size), 3)).max() > least:
                add_to_channels(bone, np.where(free_channels(bone), steps, 0.0))

    def channels_over(
        self,
        wanted: FloatArray,
        motion: FloatArray,
        turned: Mapping[str, FloatArray] = MappingProxyType({}),
        apart: FloatArray | None = None,
    ) -> dict[str, FloatArray]:
        """(F, 7) locations and rotations of controls by name, for matrices (F, B, 4, 4), from the pose last read.

        The controls keep their positions at the bones that they hold; the pole, its position beside the limb. motion:
        (F, 4, 4) of the limb's parent since the pose was read. turned: (F, 4) local rotations of FK controls, which may
        rotate a bone relative to its IK control, as in paws. apart: (3,) from the limb's end to the position at which
        its control holds it; by default the error of IK.
        """
        here = self.here.copy()
        for row in map(self.bones.index, self.goes_by):
            error = self._at_control() - here[row, :3, 3]
            is_near = np.linalg.norm(error) < _STRAIGHT * self.size
            here[row, :3, 3] += error * is_near if apart is None else apart
        moved, still = wanted @ np.linalg.inv(here), np.broadcast_to(np.eye(4), motion.shape)
        bones, found = self.rig.pose.bones, dict[str, FloatArray]()
        matrices = {name: wanted[:, row] for row, name in enumerate(self.bones)}
        matrices |= {name: motion @ plain.as_array(bones[name].matrix) for name in self.with_parent}
        made = still
        for bone, name in self.goes_by.items():
            row, leader = self.bones.index(bone), copied(bones[bone])
            made = moved[:, row]
            if leader in turned:
                own = np.tile(np.eye(4), (len(wanted), 1, 1))
                own[:, :3, :3] = matrix_from_quaternion(
                    product(conjugate(turned[leader]), plain.local_rotation(bones[leader]))
                )
                made = wanted[:, row] @ own @ np.linalg.inv(here[row])
            found[name] = self._channels(name, made, motion if name in self.with_parent else still)
            matrices[name] = made @ plain.as_array(bones[name].matrix)
        pole = bones[self.pole] if self.pole else None
        if pole is not None and np.linalg.norm(np.array(pole.head) - self.here[0, :3, 3]) < _STRAIGHT * self.size:
            found[self.pole], turns = self._twisted(pole, wanted, motion)
            matrices[self.pole] = motion @ plain.as_array(pole.matrix) @ turns
        elif pole is not None:
            beside = self._beside(wanted) @ np.linalg.inv(self._beside(self.here[None]))
            found[self.pole] = self._channels(self.pole, beside, motion if self.pole in self.with_parent else still)
            matrices[self.pole] = beside @ plain.as_array(pole.matrix)
        mechanism = Mechanism(self.rig, matrices)
        for bone, name in self.turned_by.items():
            row, parent, followed = self.bones.index(bone), bones[name].parent, still
            if apart is not None:
                # Toes follow the end. To compute what heels follow would take longer than another round.
                followed = made if row > self.end else still
            elif parent is not None:
                followed = mechanism.motion(parent)
            found[name] = self._channels(name, moved[:, row], followed)
            found[name][:, :3] = bones[name].location
        return found

    def _twisted(self, pole: PoseBone, wanted: FloatArray, motion: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 7) location and rotation of a control at the limb's root, rotated about its Y axis by (F, 4, 4).

        IK swings the limb on the shortest way from the control's direction to the wanted one. So does a parent that
        tracks the end.
        """
        frames, start = self._beside(wanted), plain.unscaled(np.array(by_channels(pole)))
        turns = motion[:, :3, :3]
        every = ((bone, each) for bone in pole.parent_recursive for each in bone.constraints)
        tracking = next((bone for bone, each in every if each.type == "DAMPED_TRACK" and moves(each)), None)
        if tracking is not None:
            free = turns @ plain.as_array(by_channels(tracking))[:3, :3]
            swings = matrix_from_quaternion(rotation_between(free[..., 1], frames[:, :3, 1]))
            turns = swings @ free @ plain.as_array(tracking.matrix)[:3, :3].T
        rests = np.array([self.rig.data.bones[name].matrix_local for name in self.bones])
        plane = np.array(self._bend(rests)) @ np.array(pole.bone.matrix_local)[:3, :3]

        def apart(posed: FloatArray, beside: FloatArray) -> FloatArray:
            return _plane_angles([posed @ each for each in plane], (beside[:, :3, 1], beside[:, :3, 2]))

        first = apart(start[None, :3, :3], self._beside(self.here[None]))
        angles, axis = np.zeros(len(wanted)), np.array((0.0, 1.0, 0.0))
        for _ in range(_ANGLE_ROUNDS):
            turned = quaternion_from_rotation_vector(angles[:, None] * axis)
            more = apart(turns @ start[:3, :3] @ matrix_from_quaternion(turned), frames) - first
            angles += more
            if np.abs(more).max() < _IN_PLANE:
                break
        channels, turns = np.tile(channels_of(pole), (len(wanted), 1)), np.tile(np.eye(4), (len(wanted), 1, 1))
        turned = quaternion_from_rotation_vector(angles[:, None] * axis)
        channels[:, 3:], turns[:, :3, :3] = product(channels[:, 3:], turned), matrix_from_quaternion(turned)
        return channels, turns

    def _beside(self, matrices: FloatArray) -> FloatArray:
        """(F, 4, 4) frames at the root of a limb with matrices (F, B, 4, 4).

        Y points to its end, Z is perpendicular to its plane. A straight limb's plane rotates with its first bone.
        """
        y, normals = self._bend(matrices)
        own = matrices[:, 0, :3, :3] @ self.here[0, :3, :3].T @ self._bend(self.here)[1]
        is_bent = np.linalg.norm(normals, axis=1, keepdims=True) > _STRAIGHT * self.size
        z = np.where(is_bent, normals, own - y * np.sum(y * own, axis=1, keepdims=True))
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), TINY)
        frames = np.tile(np.eye(4), (len(matrices), 1, 1))
        frames[:, :3, :3], frames[:, :3, 3] = np.stack([cross(y, z), y, z], axis=2), matrices[:, 0, :3, 3]
        return frames

    def doubtful(self, wanted: FloatArray, motion: FloatArray) -> list[int]:
        """Frames on which `channels_over` is least sure: the limb is straightest, bent backward, or swung farthest."""
        bones = wanted[:, 0] @ np.linalg.inv(self.here[0])
        frames, here = self._beside(wanted), self._beside(self.here[None])
        reach = np.linalg.norm(wanted[:, self.end, :3, 3] - wanted[:, 0, :3, 3], axis=1)
        forward = np.sum(frames[:, :3, 2] * (bones @ here)[:, :3, 2], axis=1)
        along = np.sum(frames[:, :3, 1] * (motion @ here)[:, :3, 1], axis=1)
        return [int(reach.argmax()), int(forward.argmin()), int(along.argmin())]

    def _channels(self, name: str, motion: FloatArray, followed: FloatArray) -> FloatArray:
        """(F, 7) location and rotation of a control that makes a motion (F, 4, 4) while its parent makes another."""
        control = self.rig.pose.bones[name]
        start = channels_of(control)
        there = np.linalg.inv(followed) @ motion @ plain.as_array(control.matrix)
        if name not in self._in_chains:
            there = plain.as_array(by_channels(control) @ control.matrix.inverted()) @ there
        # Channels are a linear function of the control's matrix.
        origin, *axes = (
            by_channels(control, Matrix.Translation(each)) for each in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
        )
        zero = np.array(origin.translation)
        moved = zero + there[:, :3, 3] @ (np.array([each.translation for each in axes]) - zero)
        turned = product(np.array(origin.to_quaternion()), quaternion_from_matrix(plain.unscaled(there)[:, :3, :3]))
        free = np.repeat([not any(control.lock_rotation)], 4)
        return np.where([*free_channels(control)[:3], *free], np.concatenate([moved, turned], axis=1), start)

    def plane_angle(self, wanted: FloatArray) -> float:
        """Radians about the line from root to end, from the limb's bend plane to the plane of matrices (B, 4, 4).

        If the limb's line differs from that of the matrices, the limb is first swung from one to the other. Zero if the
        limb is straight, or if the angle is negligible.
        """
        planes = [self._bend(each[None]) for each in (self.here, wanted)]
        if min(np.linalg.norm(normal) for _, normal in planes) < _STRAIGHT * self.size:
            return 0.0
        angle = float(_plane_angles(*planes)[0])
        return angle if abs(angle) > _IN_PLANE else 0.0

    def rotate(self, name: str, angle: float, wanted: FloatArray) -> None:
        """Rotate a control about the line from root to end of matrices (B, 4, 4); IK follows its pole or its root."""
        control, root = self.rig.pose.bones[name], Matrix.Translation(wanted[0, :3, 3].tolist())
        turn = root @ Matrix.Rotation(angle, 4, Vector(self._bend(wanted)[0].tolist())) @ root.inverted()
        self.move_to(control, turn @ (by_channels(control) if name in self._in_chains else control.matrix))

    @property
    def end(self) -> int:
        """The index of the limb's end, which is the first bone that a heel or an IK control holds."""
        held = (self.bones.index(bone) for bone in (*self.turned_by, *self.goes_by))
        return min(held, default=len(self.bones) - 1)

    def _bend(self, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., 3) the direction from root to end of matrices (..., B, 4, 4), and (..., 3) the normal of their plane.

        The normal is as long as the sum of the joints' offsets from the line.
        """
        arms = matrices[..., 1 : self.end + 1, :3, 3] - matrices[..., :1, :3, 3]
        lines = arms[..., -1, :] / np.maximum(np.linalg.norm(arms[..., -1, :], axis=-1, keepdims=True), TINY)
        return lines, cross(arms[..., :-1, :].sum(axis=-2), lines)

    def move_to(self, control: PoseBone, there: Matrix, *, locked: bool = True) -> None:
        """Set a control's channels, without the locked ones if `locked`, to bring it to a matrix in armature space.

        For a control that is rotated by IK, ignores that rotation.
        """
        if control.name not in self._in_chains:
            # Keep the effect of the control's constraints, such as another parent.
            there = by_channels(control) @ control.matrix.inverted() @ there
        basis = by_channels(control, there)
        turn = np.array((control.matrix_basis.inverted() @ basis).to_quaternion())
        movement = np.array(basis.translation) - np.array(control.location)
        steps = np.concatenate([movement, rotation_vector_from_quaternion(turn)])
        add_to_channels(control, np.where(free_channels(control) | (not locked), steps, 0.0))


def _plane_angles(plane: Sequence[FloatArray], wanted: Sequence[FloatArray]) -> FloatArray:
    """(F,) radians from planes, swung to the wanted lines, to the wanted planes; both as from `_bend`."""
    (lines, normals), (wanted_lines, wanted_normals) = plane, wanted
    swung = times(matrix_from_quaternion(rotation_between(lines, wanted_lines)), normals)
    across = np.sum(cross(swung, wanted_normals) * wanted_lines, axis=1)
    return np.asarray(np.arctan2(across, np.sum(swung * wanted_normals, axis=1)))


def limbs_on_ik(
    rig: Object, setup: FabrikControlRig, paths: Iterable[str], known: Mapping[str, LimbOnIk]
) -> dict[str, LimbOnIk]:
    """The limbs that controls can place on IK, by switch; known: limbs that were placed before."""
    found, limbs = {}, limbs_of(setup)
    for path in paths:
        controls, limb, rows = ik_controls(rig, setup, path), known.get(path), limbs[path]
        if controls and (limb is None or limb.controls != controls):
            limb = LimbOnIk(rig, [row.name for row in rows], controls)
            standing = {row.stands_for: row.name for row in setup.controls if row.name in controls}
            ends = {row.name: row.goes_by for row in rows if row.goes_by in controls}
            below = {each.name for each in rig.data.bones[[*ends][-1]].children_recursive} if ends else set[str]()
            limb.hold(ends, {bone: control for bone, control in standing.items() if bone in below})
            limb.with_parent.update(name for name in controls if setup.controls[name].turns_with)
        if controls and limb is not None:
            found[path] = limb
    return found


def ik_controls(rig: Object, setup: FabrikControlRig, path: str) -> list[str]:
    """The controls that place the limb of a switch on IK."""
    return [row.name for row in setup.controls if row.limb == path and row.name in rig.pose.bones]


def kept_on_ik(rig: Object, setup: FabrikControlRig, paths: Iterable[str], *, baked: bool) -> list[str]:
    """The switches of limbs that are on IK and stay there; baked: in a bake, which only keeps pinned limbs on IK."""
    pins = [each.bone for each in enabled_effectors(rig) if each.kind == "PIN"]
    pinned = {setup.switches[row.switch].path for row in setup.carriers if row.name in pins and row.switch}

    def stays(path: str) -> bool:
        switch = setup.switches[path]
        by_itself = setup.limbs == "AUTO" and (not baked or (switch.path in pinned and not switch.stretches))
        wanted = setup.limbs == "IK" or switch.only_ik or by_itself
        return wanted and pose_writer.read_switch(rig, switch.path) == switch.ik and bool(ik_controls(rig, setup, path))

    return [path for path in paths if stays(path)]


def evaluate(update: Update, limbs: Sequence[LimbOnIk]) -> None:
    """Evaluate the rig, and read the matrices of the limbs' bones."""
    update()
    read(limbs)


def read(limbs: Sequence[LimbOnIk]) -> None:
    """Read the matrices of the limbs' bones."""
    # One call for all limbs costs little more than one for each.
    every = plain.bone_matrices(limbs[0].rig, [bone for limb in limbs for bone in limb.bones]) if limbs else np.empty(0)
    for limb in limbs:
        limb.here, every = every[: len(limb.bones)], every[len(limb.bones) :]


def held_by_ik(rig: Object, update: Update, known: set[str] | None = None, *, every: bool = False) -> list[LimbOnIk]:
    """The limbs on IK that neither stretch nor have IK controls that move with the body. Their ends stay in place.

    In a trial, their IK controls are moved out of reach, and the body is moved by its root control. Plain rigs have
    none. update: evaluates the rig. known: the IK controls of such limbs, if they have been tried before; then there is
    no trial. every: also limbs that are on FK now; in the trial they are on IK.
    """
    bones, setup, limbs, wanted = rig.pose.bones, control_rig(rig), list[LimbOnIk](), list[FloatArray]()
    if setup is None:
        return []
    by_switch = limbs_of(setup)
    before = {row.path: pose_writer.read_switch(rig, row.path) for row in setup.switches}
    if every:
        pose_writer.write_switches(rig, {row.path: row.ik for row in setup.switches})
        update()
    for path, rows in by_switch.items():
        ends = {row.name: row.goes_by for row in rows if row.goes_by in bones}
        is_known = known is None or not known.isdisjoint(ends.values())
        if ends and is_known and pose_writer.read_switch(rig, setup.switches[path].path) == setup.switches[path].ik:
            limbs.append(LimbOnIk(rig, [row.name for row in rows], [*ends.values()]))
            limbs[-1].hold(ends)
    if known is not None or not limbs:
        return limbs
    controls = {setup.place, *(name for limb in limbs for name in limb.controls)}
    held = pose_writer.HeldChannels(rig, controls.intersection(bones.keys()))
    if setup.place in bones:
        bones[setup.place].location.x += _BODY_MOVES * limbs[0].size
    for limb in limbs:
        (leader,), arm = limb.goes_by.values(), limb.here[limb.end, :3, 3] - limb.here[0, :3, 3]
        wanted.append(limb.place + arm)
        limb.move_to(bones[leader], Matrix.Translation(arm.tolist()) @ bones[leader].matrix, locked=False)
    evaluate(update, limbs)
    found = [
        limb
        for limb, there in zip(limbs, wanted, strict=True)
        if limb.beyond.any() and np.linalg.norm(limb.place - there) < _STRAIGHT * limb.size
    ]
    held.restore()
    pose_writer.write_switches(rig, before)
    update()
    return found


def place_limbs(update: Update, limbs: Sequence[LimbOnIk], wanted: Sequence[FloatArray]) -> None:
    """Place the controls of limbs in closed form, so that the limbs' bones get matrices (B, 4, 4).

    The limb's end gets there if IK can reach it, and the limb bends in the plane of the wanted pose. The rig determines
    the lengths of the bones. Channels that need no change are not written.
    """
    evaluate(update, limbs)
    rigid, done = set[int](), set[int]()
    for _ in range(_MOST_TURNS):
        before = {}
        for row, (limb, each) in enumerate(zip(limbs, wanted, strict=True)):
            if row not in done and (errors := limb.errors(each)[_POSED]).max() > 1.0:
                before[row] = errors, pose_writer.HeldChannels(limb.rig, limb.controls)
                if not limb.pole and errors[-1]:
                    find_pole(update, limb, each)
                limb.lead(each, attached=row not in rigid)
        if not before:
            break
        evaluate(update, limbs)
        worse = [row for row, (errors, _) in before.items() if (limbs[row].errors(wanted[row])[_POSED] >= errors).all()]
        for row in worse:
            before[row][1].restore()
            # The end of a limb that is too short can't be moved back to its control.
            (done if row in rigid else rigid).add(row)
        if worse:
            evaluate(update, limbs)


def find_pole(update: Update, limb: LimbOnIk, wanted: FloatArray) -> None:
    """Find a limb's pole, or the control that acts as one, by trying to rotate the limb to matrices (B, 4, 4)."""
    angle, held_by = limb.plane_angle(wanted), {*limb.goes_by.values(), *limb.turned_by.values()}
    for name in [name for name in limb.controls if name not in held_by]:
        held = pose_writer.HeldChannels(limb.rig, [name])
        tried = float(np.copysign(max(abs(angle), _TRIED), angle))
        limb.rotate(name, tried, wanted)
        evaluate(update, [limb])
        if (angle - limb.plane_angle(wanted)) / tried > _FOLLOWS:
            limb.pole = name
            break
        held.restore()
        evaluate(update, [limb])


# Rounds of correction. Each one reads the controls' parents again and corrects the remaining error.
_MENDS: Final = 3
# Larger errors of a bone are reported: in units of the armature, and in radians (0.05 degrees).
_MOST_OFF: Final = (1e-4, 8.7e-4)
# The same distance as a fraction of the body's size, because large rigs have lower precision.
_MOST_OFF_OF_SIZE: Final = 6e-5


def most_off(size: float) -> float:
    """The largest distance that is not reported, for a body of this size; both in units of the armature."""
    return max(_MOST_OFF[0], _MOST_OFF_OF_SIZE * size)


class Deviation(NamedTuple):
    """A bone that misses its pose, and its errors in meters and radians."""

    bone: str
    distance: float
    angle: float


class ControlWriter:
    """Writes poses of a body's tree to the controls; the result does not depend on the poses written before.

    Each limb is written to the controls that it is on: its FK controls, or its IK control and pole. Bones that are not
    posed, such as those of other limbs, are not written; the rig moves them.

    Attributes:
        limbs: by switch, the posed limbs that are on IK and stay on it.
        on_fk: by switch, its value on FK, for limbs that are on FK or are switched to it.
        matching: by switch, limbs that a bake writes on FK, and whose IK controls are placed as well.
        held: the former channels of the controls.
    """

    def __init__(
        self,
        update: Update,
        armature: Object,
        setup: FabrikControlRig,
        skeleton: Skeleton,
        bones: Iterable[int] | None = None,
        *,
        within: plain.Tree | None = None,
        known: Mapping[str, LimbOnIk] = MappingProxyType({}),
        baked: bool = False,
    ) -> None:
        """Prepare; nothing is written yet.

        bones: the posed bones, as indices in the skeleton; None for all. within: the whole tree of which the skeleton
        is a part; its other bones stay in their pose. known: limbs that were placed on IK before. baked: for a bake,
        which keys each written pose. All limbs are first read on FK.
        """
        self._update, self._rig, self._setup, self._posed = update, armature, setup, skeleton
        self._skeleton = skeleton if within is None else within.skeleton
        self._matrices = np.empty((len(self._skeleton), 4, 4))
        if within is not None:
            self._matrices = forward_kinematics(within.skeleton, within.rotations, within.root_location)
        self._inside = [self._skeleton.index(name) for name in skeleton.names]
        rows = [setup.carriers[name] for name in self._skeleton.names]
        posed = rows if bones is None else [rows[self._inside[bone]] for bone in bones]
        led = dict.fromkeys(row.switch for row in posed if row.switch)
        self.limbs = limbs_on_ik(armature, setup, kept_on_ik(armature, setup, led, baked=baked), known)
        leaving = {setup.switches[path].path for path in led if path not in self.limbs}
        posed += [row for row in rows if row.switch not in {"", *led} and setup.switches[row.switch].path in leaving]
        led |= dict.fromkeys(row.switch for row in posed if row.switch)
        self.on_fk = {path: setup.switches[path].fk for path in led if baked or path not in self.limbs}
        matching = [path for path in led if path not in self.limbs] if baked and setup.limbs == "AUTO" else []
        self.matching = limbs_on_ik(armature, setup, matching, known)
        # Bones that are neither posed nor above a posed bone are not written; the rig poses them.
        needed = {row.name for row in posed}
        for row in reversed(rows):
            needed |= {row.parent} if row.name in needed else set()
        self._left = {*self._skeleton.names} - needed
        self._before_switches = {
            path: pose_writer.read_switch(armature, path) for path in with_linked_values(setup, self.on_fk)
        }
        self._baked = baked
        self._model: ControlModel | None = None
        self._groups: list[pose_writer.ChannelGroup] = []
        self.held = pose_writer.HeldChannels(armature, ())
        self._place = np.zeros(3)
        self._wanted: FloatArray | None = None

    @property
    def leaving_ik(self) -> list[str]:
        """The first FK control of each limb that is on IK now, and is switched to FK when the body is posed."""
        limbs = limbs_of(self._setup)
        return [limbs[limb][0].control for limb in self._switching()]

    def _switching(self) -> dict[str, float]:
        paths = {limb: self._setup.switches[limb].path for limb in self.on_fk}
        return {limb: fk for limb, fk in self.on_fk.items() if self._before_switches[paths[limb]] != fk}

    def write(self, rotations: FloatArray, head: FloatArray | None) -> None:
        """Pose the body by local rotations (J, 4) and its root's head (3,) in armature space, or at rest if None."""
        wanted = self._matrices.copy()
        wanted[self._inside] = forward_kinematics(self._posed, rotations, head)
        self.apply(wanted, *self.ready_model().pose(wanted))

    def settle(self) -> list[str]:
        """Check the body's pose and correct it; returns a warning for each bone that cannot be corrected."""
        if self._wanted is None or not (self.held.changed() or self.switched()):
            # The drag has returned to its start, and everything has been restored.
            return []
        for _ in range(_MENDS):
            self._update()
            if not self.deviations():
                break
            self.apply(self._wanted, *ControlModel(self._rig, self._setup, self._skeleton).pose(self._wanted))
        self._update()
        missed, rows = self.deviations(), self._setup.carriers
        # If a bone is off, the bones below it are off too. Name the first of them, and the bone that is farthest off.
        names, farthest = {each.bone for each in missed}, max((each.distance for each in missed), default=0.0)
        named = [each for each in missed if rows[each.bone].parent not in names or each.distance == farthest]
        return [deviation_warning(self._setup, each, self.limbs) for each in named]

    def leave_ik(self) -> list[str]:
        """Switch limbs that miss their pose on any frame of a bake to FK, if allowed; returns a warning for each."""
        off = {
            self._setup.carriers[each.bone].switch: each
            for each in sorted(self.deviations() if self.limbs else (), key=lambda one: one.distance)
        }
        left = []
        for path in [path for path in self.limbs if path in off]:
            if self._setup.limbs == "AUTO" and not self._setup.switches[path].only_ik:
                self.held.restore(self.limbs.pop(path).controls)
                self.switch([path], to_ik=False)
                control, by = self._setup.carriers[off[path].bone].control, _apart(off[path])
                left.append(f"The limb of {control!r} was switched to FK: with IK it would be off by {by}")
        return left

    def switch(self, paths: Iterable[str], *, to_ik: bool) -> None:
        """Switch limbs to IK without stretch, or to FK."""
        switches = {path: self._setup.switches[path] for path in paths}
        values = {path: each.ik if to_ik else each.fk for path, each in switches.items()}
        pose_writer.write_switches(self._rig, with_linked_values(self._setup, values))

    def deviations(self) -> list[Deviation]:
        """The bones that miss their written pose.

        For a limb that stays on IK, only the end is checked, except in a bake, because IK may change the lengths of the
        other bones. Bones that the rig poses are not checked.
        """
        if self._wanted is None:
            return []
        free = {bone for limb in self.limbs.values() if not self._baked for bone in limb.bones}
        free -= {bone for limb in self.limbs.values() for bone in limb.goes_by}
        free |= self._left
        rows = [row for row, name in enumerate(self._skeleton.names) if name not in free]
        return deviations(self._rig, self._setup, [self._skeleton.names[row] for row in rows], self._wanted[rows])

    def switched(self) -> dict[str, float]:
        """Former values of the switches that have changed since the start, by path."""
        before = self._before_switches.items()
        return {path: value for path, value in before if value != pose_writer.read_switch(self._rig, path)}

    def key_switches(self, context: Context) -> None:
        """Insert keys for the changed switches on the current frame."""
        switched = self.switched()
        for path in keyed_switches(self._setup, {path: pose_writer.read_switch(self._rig, path) for path in switched}):
            key_in_steps(context, self._rig, path, switched[path])

    def ready_model(self) -> ControlModel:
        """The model of the controls, once the limbs that will be written are on FK."""
        if self._model is None:
            # Values set along with a switch stay as they are for limbs that are on FK already.
            pose_writer.write_switches(self._rig, with_linked_values(self._setup, self._switching()))
            if self.switched():
                self._update()
            self._model = ControlModel(self._rig, self._setup, self._skeleton)
            self._groups = pose_writer.channel_groups(self._rig, self._model.controls)
            on_ik = [name for limb in self.limbs.values() for name in limb.controls]
            self.held = pose_writer.HeldChannels(self._rig, [*self._model.controls, *on_ik])
            if self._model.place:
                self._place = np.array(self._rig.pose.bones[self._model.place].location, dtype=np.float64)
        return self._model

    def apply(self, wanted: FloatArray, rotations: FloatArray, location: FloatArray | None) -> None:
        """Bring the tree's bones to matrices (J, 4, 4), as `pose_body`, and place IK controls."""
        limbs = [*self.limbs.values(), *self.matching.values()]
        bones = [self.bones_of(limb, wanted) for limb in limbs]
        read(limbs)
        pairs = list(zip(limbs, bones, strict=True))
        # If no end moves, the limbs nearly follow the body by themselves.
        for limb, each in pairs if any(limb.moves_end(each) for limb, each in pairs) else ():
            limb.lead(each, self.motion_above(limb, wanted[None])[0])
        self.pose_body(wanted, rotations, location)
        if limbs:
            place_limbs(self._update, limbs, bones)

    def pose_body(self, wanted: FloatArray, rotations: FloatArray, location: FloatArray | None) -> None:
        """Bring the tree's bones to matrices (J, 4, 4), except limbs on IK and bones that the rig poses.

        rotations, location: the channels of the controls for these matrices, as from `ControlModel.pose`.
        """
        self._wanted = wanted
        idle = {row.control for row in self._setup.carriers if row.switch in self.limbs or row.name in self._left}
        for group in self._groups:
            group.write(self._rig, rotations[group.rows], but=idle)
        if location is not None:
            bone = self._rig.pose.bones[self.ready_model().place]
            stays = (np.abs(location - self._place) < pose_writer.ROUNDING) | np.array(bone.lock_location)
            bone.location = np.where(stays, self._place, location).tolist()

    def bones_of(self, limb: LimbOnIk, wanted: FloatArray) -> FloatArray:
        """(..., B, 4, 4) matrices of a limb's bones from those (..., J, 4, 4) of the tree's bones.

        Bones outside the tree keep their current matrices.
        """
        posed = np.broadcast_to(
            plain.bone_matrices(self._rig, limb.bones), (*wanted.shape[:-3], len(limb.bones), 4, 4)
        ).copy()
        rows = {name: row for row, name in enumerate(self._skeleton.names)}
        inside = [place for place, name in enumerate(limb.bones) if name in rows]
        posed[..., inside, :, :] = wanted[..., [rows[limb.bones[place]] for place in inside], :, :]
        return posed

    def motion_above(self, limb: LimbOnIk, wanted: FloatArray, row: int | None = None) -> FloatArray:
        """(F, 4, 4) motion of a limb's parent for matrices (F, J, 4, 4) of the tree's bones.

        It starts from frame `row`, or without one from the evaluated pose.
        """
        above = self._setup.carriers[limb.bones[0]].parent
        if above not in self._skeleton.names:
            return np.tile(np.eye(4), (len(wanted), 1, 1))
        matrices = wanted[:, self._skeleton.index(above)]
        start = plain.bone_matrices(self._rig, [above])[0] if row is None else matrices[row]
        return np.asarray(matrices @ np.linalg.inv(start))


def deviations(rig: Object, setup: FabrikControlRig, names: Sequence[str], wanted: FloatArray) -> list[Deviation]:
    """The bones of a body that miss their wanted matrices (J, 4, 4) in armature space."""
    posed = plain.bone_matrices(rig, names)
    distances = np.linalg.norm(posed[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turns = np.swapaxes(posed[:, :3, :3], 1, 2) @ wanted[:, :3, :3]
    angles = np.linalg.norm(rotation_vector_from_matrix(turns), axis=1)
    swings = np.arctan2(np.hypot(turns[:, 0, 1], turns[:, 2, 1]), turns[:, 1, 1])
    meters = plain.meters_per_unit(rig)
    most = most_off(float(np.ptp(wanted[:, :3, 3], axis=0).max()))
    found = []
    for row in np.flatnonzero((distances > most) | (angles > _MOST_OFF[1])).tolist():
        carrier = setup.carriers[names[row]]
        # If the rig determines the twist, compare only the swing.
        angle = float((swings if carrier.found == "SWINGS" else angles)[row])
        if carrier.control in rig.pose.bones and (distances[row] > most or angle > _MOST_OFF[1]):
            found.append(Deviation(names[row], meters * float(distances[row]), angle))
    return found


def deviation_warning(setup: FabrikControlRig, deviation: Deviation, on_ik: Collection[str] = ()) -> str:
    """A warning about a bone that its control cannot bring to its pose.

    on_ik: the switches of limbs on IK.
    """
    row = setup.carriers[deviation.bone]
    control = row.goes_by if row.switch in on_ik and row.goes_by else row.control
    return f"Bone {deviation.bone!r} is off by {_apart(deviation)}: control {control!r} can't move it there"


def _apart(deviation: Deviation) -> str:
    # On rigs that are scaled down, 0.0 mm would be shown.
    millimeters = 1000.0 * deviation.distance
    return f"{millimeters:{'.1f' if millimeters >= 0.1 else '.1g'}} mm and {np.degrees(deviation.angle):.2f}°"


@dataclass(frozen=True, eq=False)
class TakeChannels:
    """Channels over F frames, of bones or of a control rig's controls.

    rotations: (F, 4) local rotations, by bone or control. bodies: their solved bones. locations: (F, 3) locations,
    by bone or control. switches: values of IK/FK switches, by path. left: warnings about limbs that can't stay on IK.
    """

    rotations: Mapping[str, FloatArray]
    bodies: Mapping[str, str]
    locations: Mapping[str, FloatArray]
    switches: Mapping[str, float]
    left: tuple[str, ...] = ()
