"""Writes poses to bones, within their locks; restores frame, mode and pose, including poses without keys.

It also finds the bones that an animator can key. Generated control rigs have hundreds of bones that constraints and
drivers move. These are not solved. A chain of solved bones ends below a bone that a constraint moves, because this bone
may not follow its parents. A bone that is driven, locked or hidden follows its parent rigidly.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import pi
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, PoseBone, Scene
from mathutils import Vector

from ...core import Hinge
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.channels import channel_count, from_channels, to_channels
from ...core.model.skeleton import Skeleton
from ...core.rotations import angle_between
from ..settings.control import moves
from ..settings.limit_values import AXES
from ..settings.rig import rig_settings
from .armature import RigError, flags, floats, local_rotation, property_name, root_location_channel
from .keyframes import ROTATION_CHANNELS, bone_path

_FOUR_CHANNELS: Final = ("QUATERNION", "AXIS_ANGLE")
# The order of the Euler angles that Blender locks if a bone's rotation mode has no order.
_LOCK_ORDER: Final = "XYZ"
# Radians. A smaller locked angle counts as zero.
_NO_ANGLE: Final = 1e-4
WithLocks: TypeAlias = Callable[[FloatArray], FloatArray]
_CHAINS: Final = ("IK", "SPLINE_IK")
# Advice in messages about a bone that users cannot move.
OTHERWISE: Final = "drag another, or press Set Up Control Rig"


def is_locked(bone: PoseBone) -> bool:
    """Whether all of a bone's rotation is locked."""
    # Axis and angle can be locked separately. A quaternion is fixed by three locked components.
    if bone.rotation_mode == "AXIS_ANGLE" and bone.lock_rotations_4d and not bone.lock_rotation_w:
        return False
    return all(bone.lock_rotation)


def bones_with_locks(armature: Object) -> set[str]:
    """The bones with any lock on their rotation.

    Most bones have none, so checking only these takes a tenth of the time.
    """
    bones = armature.pose.bones
    return {*_flagged(bones, "lock_rotation", 3), *_flagged(bones, "lock_rotation_w")}


def locked_channels(bone: PoseBone) -> BoolArray:
    """(n,) whether the components of a bone's rotation channel are locked.

    All are False if the channel has four components, but the locks are for Euler angles.
    """
    if bone.rotation_mode not in _FOUR_CHANNELS:
        return np.array(bone.lock_rotation)
    if bone.lock_rotations_4d:
        return np.array([bone.lock_rotation_w, *bone.lock_rotation])
    return np.zeros(4, dtype=bool)


def unlocked(bone: PoseBone, channel: str) -> tuple[int, ...]:
    """The components of a bone's channel (location, scale, or the one of its rotation mode) that may be keyed.

    A quaternion or axis-angle counts as locked if its three axes are; otherwise each component has its own lock. Locks
    that are for Euler angles (`lock_rotations_4d` is off) are ignored. A bone that stretches is scaled only along Y.
    """
    if channel == "scale":
        return (1,)
    if channel == "location":
        return tuple(axis for axis in range(3) if not bone.lock_location[axis])
    return () if all(bone.lock_rotation) else tuple(np.flatnonzero(~locked_channels(bone)).tolist())


def hinge_of_locks(bone: PoseBone) -> Hinge | None:
    """The hinge of a bone with two angles locked at zero, such as an elbow or a knee; None for other bones."""
    free: list[Any] = [axis for axis, locked in zip(AXES, bone.lock_rotation, strict=True) if not locked]
    by_parts = bone.rotation_mode in _FOUR_CHANNELS and bone.lock_rotations_4d
    if len(free) != 1 or (by_parts and (bone.lock_rotation_w or bone.rotation_mode == "AXIS_ANGLE")):
        return None
    # The lockable values for X, Y and Z: Euler angles, or components of a quaternion.
    values = np.array(getattr(bone, property_name(bone.rotation_mode)), dtype=np.float64)[-3:]
    if bone.rotation_mode in _FOUR_CHANNELS and not by_parts:
        values = to_channels(_LOCK_ORDER, local_rotation(bone)[None])[0]
    values[AXES.index(free[0])] = 0.0
    return Hinge(free[0], -pi, pi) if np.abs(values).max() < _NO_ANGLE else None


def with_locks(bone: PoseBone, start: FloatArray) -> WithLocks | None:
    """A function that resets locked channels of a rotation (4,) to their values in `start` (4,); None without locks.

    Blender locks either the components of the channels or, if `lock_rotations_4d` is off, Euler angles.
    """
    if bone.rotation_mode in _FOUR_CHANNELS and bone.lock_rotations_4d:
        parts = locked_channels(bone)
        if bone.rotation_mode == "AXIS_ANGLE":
            parts[:] = parts.any()
        return partial(_with_components, start, parts) if parts.any() else None
    angles, order = np.array(bone.lock_rotation), bone.rotation_mode
    order = _LOCK_ORDER if order in _FOUR_CHANNELS else order
    return partial(_with_angles, start, angles, order) if angles.any() else None


def _with_angles(start: FloatArray, locked: BoolArray, order: str, rotation: FloatArray) -> FloatArray:
    """Copy the locked Euler angles of `start` (4,) to `rotation` (4,); returns (4,)."""
    held = to_channels(order, start[None])[0]
    angles = to_channels(order, rotation[None], previous=held)[0]
    return from_channels(order, np.where(locked, held, angles))


def _with_components(start: FloatArray, locked: BoolArray, rotation: FloatArray) -> FloatArray:
    """Copy the locked components of `start` (4,) to `rotation` (4,), and scale the others; returns a unit (4,)."""
    free = np.where(locked, 0.0, rotation if start @ rotation >= 0.0 else -rotation)
    size = np.linalg.norm(free)
    room = np.sqrt(max(0.0, 1.0 - float(np.square(start[locked]).sum())))
    return np.where(locked, start, free * (room / size)) if size > 0.0 else start


def constrained_bones(rig: Object) -> dict[str, str]:
    """The bones that constraints move, with the reason."""
    owned: dict[str, str] = {}
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            if moves(constraint):
                reason = f"constraint {constraint.name!r} moves it"
                owned.update((each.name, reason) for each in moved_by(bone, constraint))
    return owned


def unkeyable_bones(rig: Object) -> dict[str, str]:
    """The bones that an animator cannot rotate, for reasons other than constraints, with the reason."""
    bones, drivers = rig.pose.bones, rig.animation_data.drivers if rig.animation_data else ()
    driven = {curve.data_path for curve in drivers if not curve.mute}
    locked = [name for name in _flagged(bones, "lock_rotation", 3) if is_locked(bones[name])]
    turned = [
        name
        for name in (bones.keys() if driven else ())
        if any(bone_path(name, channel) in driven for channel in ROTATION_CHANNELS)
    ]
    # A bone is hidden in Pose mode if it is hidden itself, or if all its collections are hidden. Blender 5.0 hides pose
    # bones, older versions the armature's bones.
    has_own = "hide" in PoseBone.bl_rna.properties
    own = _flagged(rig.pose.bones if has_own else rig.data.bones, "hide")
    shown: set[str] = set()
    hidden: set[str] = set()
    for each in rig.data.collections_all:
        (shown if each.is_visible_effectively else hidden).update(each.bones.keys())
    return {
        **dict.fromkeys(_flagged(rig.data.bones, "hide_select"), "it can't be selected"),
        **dict.fromkeys(({*own, *(hidden - shown)}), "it is hidden"),
        **dict.fromkeys(locked, "its rotation is locked"),
        **dict.fromkeys(turned, "a driver rotates it"),
    }


def moved_by(bone: PoseBone, constraint: Any) -> Iterator[PoseBone]:
    """The bones that a constraint of a bone moves: that bone, and the chain if there is one."""
    if constraint.type not in _CHAINS:
        yield bone
        return
    # If IK does not use the bone's tail, its chain begins at the parent. A chain of length zero ends at the root.
    own = getattr(constraint, "use_tail", True)
    chain = [bone, *bone.parent_recursive] if own else list(bone.parent_recursive)
    yield from chain[: constraint.chain_count or len(chain)]


def _flagged(bones: Any, name: str, width: int = 1) -> list[str]:
    return [bone for bone, is_set in zip(bones.keys(), flags(bones, name, width), strict=True) if is_set]


_CHANNELS = {"location": 3, "rotation_quaternion": 4, "rotation_axis_angle": 4, "rotation_euler": 3, "scale": 3}


def set_channel(rig: Object, name: str, indices: npt.ArrayLike, values: npt.ArrayLike) -> None:
    """Set a channel of the bones with `indices` (K,) to values (K, n), all at once.

    One by one, Blender would also redraw the animation editors: 2 ms for each move of the mouse.
    """
    current = floats(rig.pose.bones, name, _CHANNELS[name])
    wanted = current.copy()
    wanted[indices] = values
    if not np.array_equal(wanted, current):
        rig.pose.bones.foreach_set(name, wanted.ravel().astype(np.float32))
        rig.update_tag(refresh={"DATA"})


class PoseKeeper:
    """Stores the frame of a scene and the pose of an armature; as a context, restores them at its end.

    A change of frame loses unkeyed poses of animated channels; this restores them.

    Attributes:
        keyed: the bones that get their animated pose instead at the end of the context.
    """

    def __init__(self, scene: Scene, rig: Object) -> None:
        self._scene, self._rig = scene, rig
        self.keyed: Collection[str] = ()
        self._frame, self._subframe = scene.frame_current, scene.frame_subframe
        self._switches = switches_of(rig)
        self._pose = {name: floats(rig.pose.bones, name, width) for name, width in _CHANNELS.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.restore(self.keyed)

    def restore(self, keyed: Collection[str] = ()) -> None:
        """Restore frame and pose; the `keyed` bones get their animated pose on that frame.

        If the armature, its bones or the scene no longer exist, nothing is restored.
        """
        with suppress(ReferenceError):
            bones = self._rig.pose.bones
            if len(bones) != len(self._pose["location"]):
                return
            if keyed or (self._scene.frame_current, self._scene.frame_subframe) != (self._frame, self._subframe):
                # New curves take effect only after the frame is set.
                self._scene.frame_set(self._frame, subframe=self._subframe)
            if not keyed:
                write_switches(self._rig, self._switches)
            rows = [row for row, bone in enumerate(bones) if bone.name not in keyed]
            for name, before in self._pose.items():
                set_channel(self._rig, name, rows, before[rows])


@contextmanager
def in_object_mode(context: Context) -> Iterator[None]:
    """Switch to Object mode for the block; afterwards restore the selection, the active object and its mode."""
    objects = context.view_layer.objects
    active, selected = objects.active, set(context.selected_objects)
    mode = "OBJECT" if active is None else active.mode
    set_mode(context, "OBJECT")
    try:
        yield
    finally:
        set_mode(context, "OBJECT")
        for thing in objects:
            thing.select_set(thing in selected)
        objects.active = active
        set_mode(context, mode)


def set_rest(context: Context, rig: Object, ends: Mapping[str, tuple[Vector, Vector]]) -> None:
    """Set the head and the tail of bones at rest, in armature space."""
    with in_object_mode(context):
        set_mode(context, "EDIT", rig)
        for name, (head, tail) in ends.items():
            bone = rig.data.edit_bones[name]
            bone.head, bone.tail = head, tail


def set_mode(context: Context, mode: Any, rig: Object | None = None) -> None:
    """Set the mode of the active object, or make a rig active and set its mode. Raises RigError if it is hidden."""
    objects = context.view_layer.objects
    before = objects.active
    thing = rig or before
    if thing is None:
        return
    try:
        objects.active = thing
        if thing.mode != mode:
            bpy.ops.object.mode_set(mode=mode)
    except RuntimeError:
        objects.active = before
        raise RigError(f"{thing.name!r} is hidden: make it visible first") from None


def pose_key(rig: Object) -> bytes:
    """The current values of all channels that rotate and move bones, to compare poses."""
    channels = (floats(rig.pose.bones, name, width) for name, width in _CHANNELS.items() if name != "scale")
    return b"".join(values.tobytes() for values in channels)


def has_property(rig: Object, path: str) -> bool:
    """Whether a property still exists at its path; its bone may have been renamed."""
    try:
        read_switch(rig, path)
    except (ValueError, KeyError, AttributeError):
        return False
    return True


def switches_of(rig: Object) -> dict[str, float]:
    """The values of a control rig's switches, and of the properties that are set with them, by path."""
    setup = rig_settings(rig).control
    paths = [*(each.path for each in setup.switches), *(each.name for each in setup.along)]
    return {path: read_switch(rig, path) for path in paths if has_property(rig, path)}


def read_switch(rig: Object, path: str) -> float:
    """The value of a rig's custom property or other number, by its path."""
    holder, name = _held(rig, path)
    # Access by path would return a custom property in single precision.
    return holder[name] if path.endswith("]") else getattr(holder, name)


def write_switches(rig: Object, values: Mapping[str, float]) -> None:
    """Set numbers of a rig, by their paths, keeping their types; values that don't change are not written."""
    for path, value in values.items():
        if read_switch(rig, path) != value:
            holder, name = _held(rig, path)
            if path.endswith("]"):
                holder[name] = type(holder[name])(value)
            else:
                setattr(holder, name, value)
            rig.update_tag()


def _held(rig: Object, path: str) -> tuple[Any, str]:
    """The data-block or bone that has the number at a path, and the name of the number's property."""
    is_custom = path.endswith("]")
    holder, _, name = path.rpartition("[" if is_custom else ".")
    return rig.path_resolve(holder) if holder else rig, bpy.utils.unescape_identifier(name[1:-2]) if is_custom else name


# Radians. A bone that rotates by less keeps its channels exactly, because matrices have single precision.
_LEAST_TURN: Final = 1e-6
# Smaller changes of a channel are rounding errors.
ROUNDING: Final = 1e-6


@dataclass(frozen=True, eq=False)
class ChannelGroup:
    """K bones with the same rotation mode.

    Attributes:
        rows, indices: of the bones among all written bones, and (K,) among all bones. names: theirs.
        before: (K, n) former values of their channels. rotations: (K, 4) the same rotations as quaternions.
        locked: (K, n) whether a channel is locked.
        locks: the effect of bones' locks on their rotations, by index among the K bones.
    """

    mode: str
    rows: list[int]
    indices: IntArray
    names: list[str]
    before: FloatArray
    rotations: FloatArray
    locked: BoolArray
    locks: Mapping[int, WithLocks]

    def write(self, armature: Object, rotations: FloatArray, but: Collection[str] = ()) -> None:
        """Rotate the bones, except those in `but`, to rotations (K, 4).

        Locked channels, and channels of bones that hardly rotate, keep their former values.
        """
        if self.locks:
            rotations = rotations.copy()
            for row, lock in self.locks.items():
                rotations[row] = lock(rotations[row])
        still = angle_between(self.rotations, rotations) < _LEAST_TURN
        values = to_channels(self.mode, rotations[None], previous=self.before)[0]
        found = np.where(still[:, None] | self.locked, self.before, values)
        chosen = [row for row, name in enumerate(self.names) if name not in but]
        set_channel(armature, property_name(self.mode), self.indices[chosen], found[chosen])


def channel_groups(armature: Object, names: Sequence[str]) -> list[ChannelGroup]:
    """Bones grouped by rotation mode, with their current channels."""
    bones, having_locks = armature.pose.bones, bones_with_locks(armature)
    modes = [bones[name].rotation_mode for name in names]
    groups = []
    for mode in sorted(set(modes)):
        rows = [row for row, each in enumerate(modes) if each == mode]
        own = [names[row] for row in rows]
        every = np.array([bones.find(name) for name in own])
        before = floats(bones, property_name(mode), channel_count(mode))[every]
        rotations = from_channels(mode, before)
        locked, locks = np.zeros(before.shape, dtype=bool), dict[int, WithLocks]()
        for row, name in enumerate(own):
            if name in having_locks and (lock := with_locks(bones[name], rotations[row])):
                locked[row], locks[row] = locked_channels(bones[name]), lock
        groups.append(ChannelGroup(mode, rows, every, own, before, rotations, locked, locks))
    return groups


class HeldChannels:
    """The locations and rotations of some bones, to restore them and to find changes."""

    def __init__(self, armature: Object, names: Iterable[str]) -> None:
        self._armature = armature
        self._held = {
            (bone.name, channel): tuple(getattr(bone, channel))
            for bone in [armature.pose.bones[name] for name in names]
            for channel in ("location", property_name(bone.rotation_mode))
        }

    def restore(self, names: Collection[str] | None = None) -> None:
        """Restore the channels of all bones, or of some."""
        for (name, channel), values in self._held.items():
            if names is None or name in names:
                setattr(self._armature.pose.bones[name], channel, values)

    def changed(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """Former values of changed channels, by (bone, channel); bones that no longer exist are left out."""
        bones, changed = self._armature.pose.bones, dict[tuple[str, str], tuple[float, ...]]()
        for (name, channel), before in self._held.items():
            now = tuple(getattr(bones[name], channel)) if name in bones else before
            if now != before and np.abs(np.subtract(now, before)).max() > ROUNDING:
                changed[name, channel] = before
        return changed


class PoseWriter:
    """Writes poses of a tree to an armature. Each result depends only on the pose and on the channels at the start.

    Attributes:
        limbs, leaving_ik: empty; see `ControlWriter`.
        held: the former channels of the bones.
    """

    limbs: Mapping[str, Any] = MappingProxyType({})
    leaving_ik: Sequence[str] = ()

    def __init__(self, armature: Object, skeleton: Skeleton, bones: Sequence[int], *, moves_root: bool) -> None:
        """Record the channels of the bones, including the root's location if it is written."""
        self._armature, self._root, self._moves_root = armature, skeleton.names[0], moves_root
        names = [skeleton.names[bone] for bone in bones]
        self._bones = np.array(bones, dtype=np.int64)
        self._groups = channel_groups(armature, names)
        self.held = HeldChannels(armature, [*names, self._root])

    def write(self, rotations: FloatArray, head: FloatArray | None) -> None:
        """Set local rotations (J, 4), and move the root's head to (3,) in armature space if the root is written."""
        for group in self._groups:
            group.write(self._armature, rotations[self._bones[group.rows]])
        if self._moves_root:
            bones = self._armature.pose.bones
            set_channel(
                self._armature, "location", bones.find(self._root), root_location_channel(bones[self._root], head)
            )

    def switched(self) -> dict[str, float]:
        """Return nothing, because plain rigs have no switches."""
        return {}

    def settle(self) -> list[str]:
        """Return no sentences, because plain rigs need no correction at the end."""
        return []

    def key_switches(self, context: Context) -> None:
        """Do nothing, because plain rigs have no switches."""
