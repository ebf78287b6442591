"""Reads the motion of a rig from its action's curves, and writes changes to its keys inside a span, or to an NLA layer.

The keys that a hold replaces are stored in an unused action with two slots: the keys before the hold, and the keys that
the hold has written. A key that still has the written value is restored. A key that was inserted or changed since is
kept. Therefore drags over time also change both slots. Holds over the same keys are a stack: those above a hold are
removed first, and added again afterwards. Keys that were moved in time are found again by their values.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
from bpy.types import Action, Context, FCurve, Object, PoseBone

from ...core import forward_kinematics
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.channels import from_channels, to_channels
from ...core.errors import FabrikError
from ...core.kernel.bodies import tails
from ...core.rotations import angle_between, conjugate, product
from ..control.posed_rig import posed_rig
from ..control.writer import RigMotion
from ..rig import keyframes
from ..rig.armature import RigError, Tree, matrices, property_name, root_place
from ..rig.keyframes import RigCurves, cycle_of, every_curve, key_times
from ..rig.pose_writer import PoseKeeper, unlocked
from ..settings.rig import FabrikHold, rig_settings
from ..settings.why_not import is_layered, is_played


class EditedTake:
    """The motion of an armature, read from its action's curves.

    Attributes:
        posed: the rig. tree: the bones to read, with their skeleton. place: the bone whose location channel moves the
        root. read: the curves.
        is_layered: whether the motion comes from NLA strips instead of an action.
    """

    def __init__(self, armature: Object, tree: Tree) -> None:
        """Find the curves. Raises RigError or KeyframeError if they don't determine the pose."""
        self._armature, self.posed, self.tree, self.skeleton = armature, posed_rig(armature), tree, tree.skeleton
        self.is_layered = is_layered(armature)
        self.place = self.posed.place(tree.skeleton.names[0])
        self.read = RigCurves(armature, every_curve(armature))
        names = self.skeleton.names
        self._holders = {name: self.posed.holders(name) for name in names}
        on_ik = [holder for name in names if name in self.posed.on_ik for holder in self._holders[name]]
        # The curves of the rotations and locations of the bones or controls that pose these bones.
        turning = [*chain.from_iterable(self._holders.values()), self.place]
        self._turning = {name: found for name in turning if (found := self.read.channel(name))}
        self._moving = {name: found for name in on_ik if (found := self.read.channel(name, "location"))}
        animation = armature.animation_data
        if animation is None:
            return
        if animation.action_influence != 1.0 or animation.action_blend_type != "REPLACE":
            raise RigError(f"The action of {armature.name!r} is blended with others: set its influence to 1 to edit it")
        keyframes.check_not_tweaked(armature)

    @classmethod
    def of_bone(cls, armature: Object, bone: str) -> "EditedTake":
        """The motion of the tree that contains a bone."""
        return cls(armature, tree_of(armature, bone))

    def _posing(self, bone: str) -> list[FCurve]:
        """The curves of the rotation of a bone or of its control, or those of the controls of its limb on IK."""
        tables = self._turning, self._moving
        return [curve for holder in self._holders[bone] for table in tables for curve in table.get(holder, ())]

    @cached_property
    def keyed(self) -> set[str]:
        """The bones whose pose has keys."""
        return {bone for bone in self.skeleton.names if self._posing(bone)}

    def key_frames(
        self, bones: Sequence[str], *, root: bool = True, within: tuple[float, float] | None = None
    ) -> FloatArray:
        """(K,) frames with keys of the pose of some bones and, with `root`, of the location of the root.

        within: the first and the last frame between which the keys of cyclic curves are repeated.
        """
        found = [curve for bone in bones for curve in self._posing(bone)]
        found += self.read.channel(self.place, "location") if root else []
        times = [key_times(curve, within) for curve in found]
        return np.unique(np.concatenate(times)) if times else np.zeros(0)

    def round_length(self, bones: Sequence[str]) -> float:
        """The number of frames after which the rotation of some of the bones repeats; infinite if it does not."""
        cycles = [cycle_of(curve) for bone in bones for curve in self._posing(bone)]
        return min((last - first for first, last in filter(None, cycles)), default=np.inf)

    def motion(self, frames: FloatArray) -> RigMotion:
        """The poses on (F,) frames. Blender evaluates strips and control rigs frame by frame."""
        rig, scene, names, played = self._armature, bpy.context.scene, self.skeleton.names, self.posed.sampled_bones
        bones, trees, evaluated = rig.pose.bones, list[Tree](), dict[str, FloatArray]()
        if self.posed.by_channels and not self.is_layered:
            channels = {name: self.read.values(name, frames) for name in self._turning}
            locations = {self.place: self.read.values(self.place, frames, "location")}
        else:
            turned: dict[str, list[Any]] = {holder: [] for holder in self._turning}
            moved: dict[str, list[Any]] = {holder: [] for holder in (self.place, *self._moving) if holder in bones}
            rows = {bone.name: row for row, bone in enumerate(bones) if bone.name in played}
            by_frame = np.empty((len(frames), len(rows), 4, 4))
            with PoseKeeper(scene, rig):
                for row, frame in enumerate(frames.tolist()):
                    scene.frame_set(int(np.floor(frame)), subframe=frame - np.floor(frame))
                    for holder, rotations in turned.items():
                        rotations.append(getattr(bones[holder], property_name(bones[holder].rotation_mode))[:])
                    for holder, places in moved.items():
                        places.append(bones[holder].location[:])
                    if not self.posed.by_channels:
                        trees.append(tree_of(rig, names[0]))
                        by_frame[row] = matrices(bones, "matrix")[list(rows.values())]
            channels, locations = ({name: np.array(each) for name, each in held.items()} for held in (turned, moved))
            evaluated = dict(zip(rows, by_frame.swapaxes(0, 1), strict=True))
        own = {name: from_channels(bones[name].rotation_mode, values) for name, values in channels.items()}
        if trees:
            local = np.array([tree.rotations for tree in trees])
            roots = np.array([tree.root_location for tree in trees])
        else:
            local = np.tile(self.tree.rotations, (len(frames), 1, 1))
            for name, values in own.items():
                local[:, names.index(name)] = values
            roots = root_place(bones[self.place], locations[self.place])
        return RigMotion(self.skeleton, frames, local, roots, channels, own, locations, evaluated)


def tree_of(armature: Object, bone: str) -> Tree:
    """The tree that contains a bone; on a control rig, a tree of deform bones."""
    return next(tree for tree in posed_rig(armature).trees() if bone in tree.skeleton.names)


def is_animated(armature: Object) -> bool:
    """Whether an armature's bones have keys."""
    return any(curve.data_path.startswith("pose.bones[") for curve in every_curve(armature))


# Paths have at most _MOST frames before and after the current one. If fewer than _NEAR_THE_END are left, they are
# updated.
_MOST: Final = 500
_NEAR_THE_END: Final = 250


class Path(NamedTuple):
    """The path of a bone's tail: the bone's length, (F, 3) in armature space, and (F,) whether it has a key."""

    length: float
    tails: FloatArray
    keyed: BoolArray


class Paths(NamedTuple):
    """The paths of a rig's bones by name, on whole frames (F,)."""

    frames: FloatArray
    bones: dict[str, Path]


class PathKeeper:
    """Caches the paths of one rig, and notices changes of its keys."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._paths: Paths | None = None

    def sample(self, rig: Object, frame: float, about: float) -> Paths | None:
        """The paths of a rig that `is_played`: plays the frames around a frame in Blender; None without keys."""
        self._paths = _sampled(rig, frame, about)
        self._state = self._key_state(rig)
        return self._paths

    def paths(self, rig: Object, frame: float) -> Paths | None:
        """The paths around a frame, the same until something changes; None without readable keys.

        A rig that `is_played` has no paths until it is sampled, and again after its keys have changed: see
        `is_current`.
        """
        if is_played(rig):
            return self._paths if self.is_current(rig) else None
        near = self._paths is not None and (
            len(self._paths.frames) < 2 * _MOST
            or min(frame - self._paths.frames[0], self._paths.frames[-1] - frame) > _NEAR_THE_END
        )
        if not (near and self.is_current(rig)):
            self._state, self._paths = self._key_state(rig), None
            with suppress(FabrikError):
                self._paths = _sampled(rig, frame, _MOST)
        return self._paths

    def is_current(self, rig: Object) -> bool:
        """Whether the cached paths match a rig's current keys, or the rig is known to have no keys."""
        return self._key_state(rig) == self._state

    def _key_state(self, rig: Object) -> tuple[object, ...]:
        """A value that changes with the keys of the rig's bones; keys are not checked during playback and scrubbing.

        Rigs in different files have different session IDs, even if their names are equal.
        """
        own, screen = rig.session_uid, bpy.context.screen
        # In Blender, `is_animation_playing` is also true during scrubbing.
        if screen is not None and screen.is_animation_playing and self._state[:1] == (own,):
            return self._state
        # The times and influences of the strips of a rig without its own action.
        tracks = rig.animation_data.nla_tracks if is_layered(rig) else ()
        strips = [
            (each.frame_start, each.frame_end, each.influence, float(track.mute or each.mute))
            for track in tracks
            for each in track.strips
        ]
        return (own, *strips, *(hash(keyframes.keys(curve).tobytes()) for curve in every_curve(rig)))


def _sampled(rig: Object, frame: float, about: float) -> Paths | None:
    """The paths of a rig around a frame, evaluated by Blender; None if its bones have no keys."""
    takes = [EditedTake(rig, tree) for tree in posed_rig(rig).trees()]
    every = np.concatenate([take.key_frames(take.skeleton.names) for take in takes])
    if not len(every):
        return None
    first, last = max(np.floor(every.min()), frame - about), min(np.ceil(every.max()), frame + about)
    frames = np.arange(first, last + 1.0)
    bones: dict[str, Path] = {}
    for take in takes:
        skeleton, motion = take.skeleton, take.motion(frames)
        ends = tails(skeleton, forward_kinematics(skeleton, motion.rotations, motion.roots))
        for index, name in enumerate(skeleton.names):
            keyed = np.isin(frames, np.round(take.key_frames([name], root=index == 0)))
            bones[name] = Path(float(skeleton.lengths[index]), ends[:, index], keyed)
    return Paths(frames, bones)


Curves: TypeAlias = Mapping[tuple[str, int], FCurve]
_BEFORE, _WRITTEN = "Before", "Written"
# A copy of a curve in a record, and the number of frames by which the curve was moved since then.
_Copy: TypeAlias = tuple[FCurve, float]
Copies: TypeAlias = Mapping[tuple[str, int], Sequence[_Copy]]
# Values are equal if they differ by at most this fraction of their size, or by at most this number if they are below 1.
# Blender stores keys in single precision.
_SAME_VALUE: Final = 1e-5
# The written keys are found if at least this fraction of them have their written values, all moved by the same time.
_FOUND: Final = 0.25


class Shift(NamedTuple):
    """The (F,) values by which a curve, or its keys, shift on (F,) frames."""

    curve: FCurve
    frames: FloatArray
    by: FloatArray


@contextmanager
def recorded(armature: Object, name: str, curves: Sequence[FCurve], ends: tuple[float, float]) -> Iterator[Action]:
    """Store the keys of some curves between two frames in a new record, before and after the block changes them.

    A dot in front of the record's name hides it in Blender's lists. Its frame range stores the ends.
    """
    record = bpy.data.actions.new(f".{name}")
    record.frame_start, record.frame_end = ends
    strip: Any = record.layers.new("Layer").strips.new(type="KEYFRAME")
    bags = [
        strip.channelbag(record.slots.new(id_type=armature.id_type, name=slot), ensure=True)
        for slot in (_BEFORE, _WRITTEN)
    ]
    _copy(curves, bags[0], ends)
    yield record
    _copy(curves, bags[1], ends)


def copies_in_holds(armature: Object) -> Copies:
    """The copies of the current curves in the records of the armature's holds, for `write_changes`."""
    found: dict[tuple[str, int], list[_Copy]] = {}
    for hold, moved in _holds_in(armature, keyframes.curves_by_key(keyframes.curves(armature))):
        if hold.replaced.users > 1:
            # A copied rig shares the record, so copy the record.
            hold.replaced = hold.replaced.copy()
        for slot in (_BEFORE, _WRITTEN):
            for key, curve in _of(hold.replaced, slot).items():
                found.setdefault(key, []).append((curve, moved))
    return found


def restore_keys(armature: Object, hold: FabrikHold) -> tuple[int, bool]:
    """Restore the keys that a hold replaced, if they still have the written values.

    Searches the armature's current curves, those of its NLA strips, and all actions, in this order. Returns the number
    of frames with keys that were changed since and are kept, and whether the written keys were found.
    """
    for curves in _candidates(armature):
        stack, ends = list[tuple[FabrikHold, float]](), list[FloatArray]()
        for each, moved in reversed([*_holds_in(armature, curves, last=hold)]):
            # The hold, those that overlap it, those that overlap these, and so on.
            own = np.array(each.replaced.curve_frame_range) + moved
            if each == hold or any(own[0] <= last and first <= own[1] for first, last in ends):
                stack.append((each, moved))
                ends.append(own)
        if stack:
            kept = [_put_back(each.replaced, curves, moved) for each, moved in reversed(stack)]
            for (each, moved), stay in zip(stack[1:], kept[-2::-1], strict=True):
                _write_again(armature, each, curves, moved, stay)
            return len({frame for _, frame in kept[-1]}), True
    return 0, False


def _holds_in(armature: Object, curves: Curves, last: FabrikHold | None = None) -> Iterator[tuple[FabrikHold, float]]:
    """The holds whose written keys are in some curves, or were replaced by later holds there; the latest one first.

    Also yields the number of frames by which the keys were moved in time. Earlier holds than `last` are left out.
    """
    layers = [(curves, 0.0)]
    for hold in reversed(rig_settings(armature).holds):
        moved = None if hold.replaced is None else moved_in_time(hold.replaced, layers)
        if moved is not None:
            layers.append((_of(hold.replaced, _BEFORE), moved))
            yield hold, moved
        if hold == last:
            break


def moved_in_time(record: Action, layers: Sequence[tuple[Curves, float]]) -> float | None:
    """The number of frames by which the written keys were moved in time; None if the curves don't contain them.

    layers: the curves, and the keys that later holds replaced in them, each with the frames by which they were moved.
    """
    before = _of(record, _BEFORE)
    written = {key: keyframes.keys(curve) for key, curve in _of(record, _WRITTEN).items() if key in layers[0][0]}
    by = {key: each[:, 1] - keyframes.values_at(before[key], each[:, 0]) for key, each in written.items()}
    if not by:
        return None
    # Use the curve that the hold changed most, and only the keys that it changed, unless it only inserted some.
    key = max(by, key=lambda each: float(np.ptp(by[each])))
    changed = ~_same(by[key], 0.0)
    times, values = written[key][changed if changed.any() else slice(None)].T
    own = [keyframes.keys(curves[key]) + np.array((moved, 0.0)) for curves, moved in layers if key in curves]
    own_times, own_values = np.concatenate(own).T
    same = _same(own_values[:, None], values)
    moves = np.round((own_times[:, None] - times)[same] / keyframes.SAME_FRAME) * keyframes.SAME_FRAME
    found, counts = np.unique(moves, return_counts=True)
    if not len(found) or counts.max() < _FOUND * len(times):
        return None
    best = found[counts == counts.max()]
    return float(best[np.abs(best).argmin()])


def shift_keys(curve: FCurve, frames: FloatArray, by: FloatArray) -> None:
    """Move the keys on frames (F,), with their handles, by values `by` (F,)."""
    near = np.abs(keyframes.keys(curve)[:, :1] - frames) < keyframes.SAME_FRAME
    if near.any():
        keyframes.scale_values(curve, 1.0, np.where(near.any(axis=1), by[near.argmax(axis=1)], 0.0))


def _put_back(record: Action, curves: Curves, moved: float) -> set[tuple[str, float]]:
    """Restore the keys of a record, and remove keys that the hold added.

    Returns the data paths and frames of the keys that are kept.
    """
    before, written = _of(record, _BEFORE), _of(record, _WRITTEN)
    kept = set()
    for path in dict.fromkeys(path for path, _ in written):
        rows, changed = dict[tuple[str, int], IntArray](), np.zeros(0)
        for key in [key for key in written if key[0] == path and key in curves]:
            own, ends = keyframes.keys(curves[key]), keyframes.keys(written[key])[[0, -1], 0] + moved
            around = ends + keyframes.SAME_FRAME * np.array((-1.0, 1.0))
            rows[key] = np.arange(*np.searchsorted(own[:, 0], around))
            times, values = own[rows[key]].T
            is_same = _same(values, keyframes.values_at(written[key], times - moved))
            changed = np.union1d(changed, times[~is_same])
        kept |= {(path, frame) for frame in changed.tolist()}
        for key, places in rows.items():
            points, times = curves[key].keyframe_points, keyframes.keys(curves[key])[:, 0]
            were, added = (keyframes.keys(slot[key])[:, 0] + moved for slot in (before, written))
            was_there, is_added, stays = (_among(times, each) for each in (were, added, changed))
            for place in places[~stays[places]][::-1].tolist():
                point = points[place]
                if was_there[place]:
                    source = before[key].keyframe_points[int(np.abs(were - times[place]).argmin())]
                    for name in keyframes.KEY_KINDS:
                        if getattr(point, name) != getattr(source, name):
                            setattr(point, name, getattr(source, name))
                    for name in ("co", "handle_left", "handle_right"):
                        x, y = getattr(source, name)
                        setattr(point, name, (x + moved, y))
                elif is_added[place]:
                    points.remove(point, fast=True)
                else:
                    point.co_ui[1] = before[key].evaluate(times[place] - moved)
            curves[key].update()
    return kept


def _write_again(
    armature: Object, hold: FabrikHold, curves: Curves, moved: float, kept: Collection[tuple[str, float]]
) -> None:
    """Change curves by the difference that a hold made to its keys, and make a new record.

    moved: the number of frames by which the keys were moved. kept: data paths and frames of keys that do not change.
    """
    record = hold.replaced
    before, written = _of(record, _BEFORE), _of(record, _WRITTEN)
    hold.first, hold.last = hold.first + moved, hold.last + moved
    ends = record.frame_start + moved, record.frame_end + moved
    own_curves = {key: curves[key] for key in written if key in curves}
    with recorded(armature, hold.name, [*own_curves.values()], ends) as hold.replaced:
        for key, curve in own_curves.items():
            times = keyframes.keys(written[key])[:, 0] + moved
            own, stays = keyframes.keys(curve)[:, 0], np.array([frame for path, frame in kept if path == key[0]])
            at = np.union1d(times, own[(own > times[0]) & (own < times[-1])])
            at = at[~_among(at, stays)]
            were, become = (keyframes.values_at(slot[key], at - moved) for slot in (before, written))
            if cycle := keyframes.cycle_of(curve):
                at = ends[0] + np.mod(at - ends[0], cycle[1] - cycle[0])
            write_changes([Shift(curve, at, become - were)], at[(at >= hold.first) & (at <= hold.last)], ends)
    if record.users == 0:
        bpy.data.actions.remove(record)


def _copy(curves: Iterable[FCurve], bag: Any, ends: tuple[float, float]) -> None:
    """Copy curves into the bag of a slot: all keys if cyclic, else the keys in the span and one on each side."""
    for curve in curves:
        copy = bag.fcurves.new(curve.data_path, index=curve.array_index)
        copy.extrapolation = curve.extrapolation
        times = keyframes.keys(curve)[:, 0]
        first, last = np.searchsorted(times, (ends[0] - keyframes.SAME_FRAME, ends[1] + keyframes.SAME_FRAME))
        # The keys next to the span belong to it, because their handles change too.
        whole = slice(None) if keyframes.cycle_of(curve) else slice(max(int(first) - 1, 0), int(last) + 1)
        keyframes.copy_keys(curve, copy, whole)


def _candidates(armature: Object) -> Iterator[Curves]:
    yield keyframes.curves_by_key(keyframes.curves(armature))
    tracks = armature.animation_data.nla_tracks if armature.animation_data is not None else ()
    played = [(strip.action, strip.action_slot) for track in tracks for strip in track.strips]
    own = [action for action in bpy.data.actions if not action.name.startswith(".") and action.library is None]
    for pair in (*played, *((action, slot) for action in own for slot in action.slots)):
        yield keyframes.curves_by_key(keyframes.curves_of(*pair))


def _of(record: Action, slot: str) -> dict[tuple[str, int], FCurve]:
    own = next(each for each in record.slots if each.name_display == slot)
    return keyframes.curves_by_key(keyframes.curves_of(record, own))


def _among(times: FloatArray, frames: FloatArray) -> BoolArray:
    """(K,) whether times (K,) are equal to one of some frames (F,)."""
    return np.asarray((np.abs(times[:, None] - frames) < keyframes.SAME_FRAME).any(axis=1))


def _same(first: Any, second: Any) -> BoolArray:
    return np.asarray(np.abs(first - second) <= _SAME_VALUE * np.maximum(1.0, np.abs(second)))


# Radians, or units of location. Smaller changes are not written.
LEAST_TURN = 1e-6
LEAST_MOVE = 1e-6
# This blend mode multiplies the layer's quaternion with the result below, and adds angles and locations.
_BLEND: Final = "COMBINE"
# The end of the name of a layer's action.
_LAYER: Final = " edit"


@dataclass(frozen=True)
class Changed:
    """A channel of a bone that changes: (F, n) values before and after."""

    bone: PoseBone
    channel: str
    before: FloatArray
    after: FloatArray


def changed_channels(
    context: Context, armature: Object, old: RigMotion, rotations: FloatArray, roots: FloatArray
) -> tuple[list[Changed], tuple[str, ...]]:
    """The channels of a motion that change for new local rotations (F, J, 4) and roots (F, 3).

    Also returns the names of controls that are not changed because they have no keys.
    """
    bones, found = armature.pose.bones, list[Changed]()
    after, moved, unkeyed = posed_rig(armature).channels_for_edit(context, old, (rotations, roots))
    for name, becomes in moved.items():
        if np.abs(becomes - old.locations[name]).max() > LEAST_MOVE:
            found.append(Changed(bones[name], "location", old.locations[name], becomes))
    for name, turned in after.items():
        before, is_turned = old.channels[name], angle_between(old.own[name], turned)[:, None] > LEAST_TURN
        if is_turned.any():
            # Convert all frames at once, because each new value depends only on the old value of its own frame.
            mode = bones[name].rotation_mode
            values = to_channels(mode, turned[None], previous=before)[0]
            found.append(Changed(bones[name], property_name(mode), before, np.where(is_turned, values, before)))
    return found, unkeyed


def changes_of(take: EditedTake, frames: FloatArray, changed: Sequence[Changed]) -> list[Shift]:
    """The changes of a motion's curves on (F,) frames for its changed channels."""
    found = []
    for each in changed:
        free, by = unlocked(each.bone, each.channel), each.after - each.before
        found += [
            Shift(curve, frames, by[:, curve.array_index])
            for curve in take.read.channel(each.bone.name, each.channel)
            if curve.array_index in free and not keyframes.is_locked(curve)
        ]
    return found


def write_changes(
    changes: Sequence[Shift],
    frames: Collection[float],
    ends: tuple[float, float],
    copies: Copies = MappingProxyType({}),
) -> None:
    """Move the keys of curves between the ends, and insert keys on some frames and at the ends.

    An end outside a curve's keys and the frames gets no key, so that the motion doesn't get longer.

    copies: copies of the curves, which change by the same values.
    """
    for curve, times, by in changes:
        cycle, own, edges = keyframes.cycle_of(curve), np.array([*frames], dtype=np.float64), np.array(ends)
        inside = (times > ends[0] + keyframes.SAME_FRAME) & (times < ends[1] - keyframes.SAME_FRAME)
        at, shifts = times[inside], by[inside]
        if cycle is not None:
            # Frames after the end of a cycle are mapped to its keys.
            own, edges, at = (keyframes.in_cycle(cycle, each) for each in (own, edges, at))
            seam = np.abs(at - cycle[0]) < keyframes.SAME_FRAME
            at, shifts = np.concatenate([at, np.full(seam.sum(), cycle[1])]), np.concatenate([shifts, shifts[seam]])
        keyed = np.append(keyframes.keys(curve)[:, 0], own)
        edges = edges[(edges > keyed.min()) & (edges < keyed.max())]
        _insert_all(curve, own, edges)
        shift_keys(curve, at, shifts)
        for copy, moved in copies.get((curve.data_path, curve.array_index), ()):
            # Otherwise the new keys would look like a replacement of the hold's keys.
            known = keyframes.keys(copy)[:, 0] + moved
            _insert_all(copy, *(each[(each > known[0]) & (each < known[-1])] - moved for each in (own, edges)))
            shift_keys(copy, at - moved, shifts)


def _insert_all(curve: FCurve, frames: FloatArray, ends: FloatArray) -> None:
    """Insert keys on some frames (F,), and keys at the ends (N,) that keep the curve unchanged outside them."""
    points: Any = curve.keyframe_points

    def keep_shape(place: int) -> None:
        # Blender fits automatic handles to the neighboring values. With free ones, the curve keeps its shape.
        for each in points[max(place - 1, 0) : place + 2]:
            if each.interpolation == "BEZIER":
                each.handle_left_type = each.handle_right_type = "FREE"

    for index, frame in enumerate((*ends.tolist(), *frames.tolist())):
        # The first key on or after the frame; this reads only a few keys.
        place = bisect_left(points, frame - keyframes.SAME_FRAME, key=lambda point: point.co[0])
        if index < len(ends):
            keep_shape(place)
        if place == len(points) or points[place].co[0] > frame + keyframes.SAME_FRAME:
            points.insert(frame, curve.evaluate(frame))
        if index < len(ends):
            keep_shape(place)


def write_layer(armature: Object, frames: FloatArray, changed: Sequence[Changed]) -> None:
    """Add the changes of a motion on (F,) frames to the layer of earlier edits.

    This layer is the topmost NLA track, if `write_layer` made it and nothing has changed it since. Otherwise a new
    track is added above all others, and the current action becomes a strip below it.

    Raises RigError, with nothing changed, for a bone whose rotation cannot be layered.
    """
    layers: dict[str, tuple[str, FloatArray, tuple[int, ...]]] = {}
    for each in changed:
        if each.channel == "rotation_axis_angle":
            raise RigError(
                f"Bone {each.bone.name!r} uses the axis angle rotation mode, which layers can't blend: set it "
                "to quaternion or Euler"
            )
        values = each.after - each.before
        if each.channel == "rotation_quaternion":
            before, after = (from_channels("QUATERNION", channels) for channels in (each.before, each.after))
            values = product(conjugate(before), after)
            values = np.where(values[:, :1] < 0.0, -values, values)
        free = unlocked(each.bone, each.channel)
        layers[keyframes.bone_path(each.bone.name, each.channel)] = each.bone.name, values, free
    strip = _own_layer(armature)
    action = keyframes.new_strip_action(armature, f"{armature.name}{_LAYER}") if strip is None else strip.action
    curves: dict[str, dict[int, FCurve]] = {}
    for curve in keyframes.channels_of(action, armature).fcurves:
        curves.setdefault(curve.data_path, {})[curve.array_index] = curve
    own = np.array([key.co[0] for each in curves.values() for curve in each.values() for key in curve.keyframe_points])
    first, last = (frames[0], frames[-1]) if strip is None else (strip.frame_start, strip.frame_end)
    ends = min(first, frames[0]), max(last, frames[-1])
    both = np.concatenate([own, frames, [] if strip is None else [first - 1.0, last + 1.0]])
    times = np.unique(both[(both >= ends[0]) & (both <= ends[1])])
    # The old and the new edit have an effect only on their own frames.
    old, new = ((times >= start) & (times <= end) for start, end in ((first, last), (frames[0], frames[-1])))
    for path in dict.fromkeys([*curves, *layers]):
        current, turned = curves.get(path, {}), path.endswith("rotation_quaternion")
        values = np.tile([1.0, 0.0, 0.0, 0.0] if turned else [0.0, 0.0, 0.0], (len(times), 1))
        added = values.copy()
        for index, curve in current.items():
            values[old, index] = [curve.evaluate(time) for time in times[old].tolist()]
        bone, more, free = layers.get(path, (keyframes.bone_in_path(path), None, ()))
        if more is not None:
            added[new] = np.stack([np.interp(times[new], frames, column) for column in more.T], axis=1)
        values = product(values, added) if turned else values + added
        components = tuple(sorted({*current, *free}))
        keyframes.write_curves(action, armature, path, times, values, bone, components=components)
    if strip is None:
        strip = keyframes.add_strip(armature, action)
        strip.blend_type, strip.extrapolation = _BLEND, "NOTHING"
        # A strip uses its own influence only if the influence is animated. A single key is enough.
        strip.influence = 1.0
        strip.use_animated_influence = True
    strip.action_frame_start, strip.action_frame_end = ends
    strip.frame_start_raw, strip.frame_end_raw = ends


def _own_layer(armature: Object) -> bpy.types.NlaStrip | None:
    """The strip of earlier edits, if it is topmost, and not renamed, muted, moved, locked or given an influence."""
    animation = armature.animation_data
    if animation is None or animation.action is not None or not animation.nla_tracks:
        return None
    track: Any = animation.nla_tracks[-1]
    if len(track.strips) != 1 or track.mute or track.lock:
        return None
    strip = track.strips[0]
    action = strip.action
    if action is None or action.users > 1 or strip.mute:
        return None
    # The panel shows the name of the track. Blender's editors also show those of the strip and of the action.
    if not all(each.name.startswith(f"{armature.name}{_LAYER}") for each in (track, strip, action)):
        return None
    plays = strip.blend_type == _BLEND and strip.scale == 1.0 and strip.repeat == 1.0 and not strip.use_reverse
    stays = (strip.frame_start, strip.frame_end) == (strip.action_frame_start, strip.action_frame_end)
    full = all(key.co[1] == 1.0 for curve in strip.fcurves for key in curve.keyframe_points)
    locked = any(curve.lock for curve in keyframes.channels_of(action, armature).fcurves)
    return strip if plays and stays and full and not locked else None
