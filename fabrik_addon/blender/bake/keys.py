"""Writing what a bake has worked out: which keys, in which action."""

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray, times
from ...markers.steps import within
from ..control.dependents import bone_in_path
from ..control.over_frames import ControlTake, check_take, control_take
from ..goals.goals import Goals
from ..goals.root import moves_root
from ..goals.sampling import is_led
from ..rig.actions import add_strip, channels_of, current_or_new_action, new_action_like, new_strip_action
from ..rig.armature import root_location_channel
from ..rig.keyframes import ROTATION_CHANNELS, bone_path, make_steps, write_curves
from ..rig.locks import unlocked_location, unlocked_rotation
from ..rig.rotation_modes import to_channels
from ..rig.spaces import object_scale
from ..rig.stretch import stretch_scales
from ..settings.control import FabrikControlRig, control_rig
from .jobs import BakedTree
from .key_reduction import location_keys, rotation_keys
from .settings import BakeError, BakeSettings

ERROR_PROPERTY: Final = "fabrik_error"
_OBJECT_LOCATION: Final = "location"


@dataclass(frozen=True)
class _Track:
    """The keys of one property: (K,) frames, (K, n) values, the numbers of it that are keyed (None: all)."""

    path: str
    group: str
    frames: IntArray
    values: FloatArray
    components: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Writing:
    """What is to be written: F frames, the solved trees, (F, 4, 4) world matrices of the armature, (F,) meters.

    take: what the motion is called, "" if it has no name.
    """

    context: bpy.types.Context
    armature: bpy.types.Object
    settings: BakeSettings
    trees: Sequence[BakedTree]
    matrices: FloatArray
    error: FloatArray | None = None
    take: str = ""

    def moves(self, tree: BakedTree) -> bool:
        """Whether the root bone of a tree gets keys for its place."""
        return tree.travels and moves_root(self.armature, tree.goals)


def check_root_motion(armature: bpy.types.Object, root_motion: str, trees: Sequence[Goals]) -> None:
    """Raise BakeError where an armature's object can't take over the motion of its root."""
    if root_motion == "BONE" or not any(moves_root(armature, goals) for goals in trees):
        return
    if len(trees) > 1:
        raise BakeError(
            f"{armature.name!r} has several roots, so the object can't carry its motion: set Root Motion to Root Bone"
        )
    if root_motion == "OBJECT" and is_led(armature):
        raise BakeError(
            f"{armature.name!r} is moved by a parent, constraint, driver or NLA strip: set Root Motion to Root Bone"
        )


def write_keys(writing: Writing) -> Generator[float, None, list[str]]:
    """Key the solved bones; sentences on locked curves, and on limbs of a control rig that could not stay on IK.

    The steps place such limbs: nothing is written before the last of them.
    """
    armature, settings = writing.armature, writing.settings
    takes: list[ControlTake | None] = []
    count = len(writing.trees)
    for place, tree in enumerate(writing.trees):
        takes.append((yield from within(place / count, (place + 1) / count, _control_take(writing, tree))))
    tracks = list(_tracks(writing, takes))
    name = settings.action_name or writing.take or f"{armature.name} FABRIK"
    if settings.action == "NLA":
        action = new_strip_action(armature, name)
    elif settings.action == "NEW":
        action = new_action_like(armature, name, without=_replaced_paths(writing))
    else:
        action = current_or_new_action(armature, name)
    locked = [
        track.group
        for track in tracks
        if write_curves(
            action, armature, track.path, track.frames, track.values, track.group, components=track.components
        )
    ]
    _make_steps(action, armature, {path for take in takes if take is not None for path in take.switches})
    if settings.action == "NLA":
        add_strip(armature, action)
    names = ", ".join(dict.fromkeys(locked))
    kept = [f"Locked curves of action {action.name!r} were not changed: {names}"] if locked else []
    return kept + [sentence for take in takes if take is not None for sentence in take.left]


def _make_steps(action: bpy.types.Action, armature: bpy.types.Object, paths: Collection[str]) -> None:
    """Have the curves of some numbers hold each key's value up to the next."""
    for curve in channels_of(action, armature).fcurves if paths else ():
        if curve.data_path in paths:
            make_steps(curve)


def _control_take(writing: Writing, tree: BakedTree) -> Generator[float, None, ControlTake | None]:
    """What a tree's poses make of a control rig's channels; None on other rigs."""
    kept = control_rig(writing.armature)
    if kept is None:
        return None
    heads = _travelling(writing, tree)[0] if writing.moves(tree) else tree.solution.root_location
    skeleton, rotations = tree.goals.tree.skeleton, tree.solution.rotations
    return (yield from control_take(writing.context, writing.armature, kept, skeleton, rotations, heads))


def _tracks(writing: Writing, takes: Sequence[ControlTake | None]) -> Iterator[_Track]:
    """The keys of every property."""
    for tree, take in zip(writing.trees, takes, strict=True):
        if take is not None:
            yield from _through_controls(writing, tree, take)
            continue
        for bone in tree.bones:
            yield from _rotation(writing, tree, bone)
            if bone in tree.goals.slides:
                yield from _stretch(writing, tree, bone)
        if writing.moves(tree):
            yield from _root(writing, tree)
    if writing.error is not None:
        seen = np.isfinite(writing.error)
        make_error_property(writing.armature)
        frames, values = writing.settings.frames[seen], writing.error[seen, None]
        yield _Track(f'["{ERROR_PROPERTY}"]', "FABRIK", frames, values)


def make_error_property(armature: bpy.types.Object) -> None:
    """The custom property whose curve shows how far the markers were off."""
    armature[ERROR_PROPERTY] = 0.0
    shown: Any = armature.id_properties_ui(ERROR_PROPERTY)
    shown.update(min=0.0, subtype="DISTANCE", description="How far the markers are from the rig, RMS of this frame")


def _rotation(writing: Writing, tree: BakedTree, bone: str) -> Iterator[_Track]:
    """The keys of one bone's rotation."""
    place = tree.goals.tree.skeleton.index(bone)
    yield from _turned(writing, bone, tree.solution.rotations[:, place], _keyed_rows(tree, bone))


def _keyed_rows(tree: BakedTree, bone: str) -> IntArray:
    """The frames, by number, on which a bone gets a key."""
    if tree.keyed is None:
        return np.arange(len(tree.solution.rotations))
    return np.flatnonzero(tree.keyed[:, tree.goals.tree.skeleton.index(bone)])


def _turned(writing: Writing, bone: str, rotations: FloatArray, rows: IntArray) -> Iterator[_Track]:
    """The keys of (F, 4) local rotations of a bone, on the frames of some rows."""
    pose_bone = writing.armature.pose.bones[bone]
    mode = pose_bone.rotation_mode
    channel, values = to_channels(mode, rotations)
    if writing.settings.key_angle > 0.0 and len(rows):
        rows = rows[rotation_keys(mode, values[rows], writing.settings.key_angle)]
    unlocked = unlocked_rotation(pose_bone)
    if len(rows) and unlocked:
        yield _Track(bone_path(bone, channel), bone, writing.settings.frames[rows], values[rows], unlocked)


def _stretch(writing: Writing, tree: BakedTree, bone: str) -> Iterator[_Track]:
    """The keys of what shows one bone's length."""
    skeleton = tree.goals.tree.skeleton
    place = skeleton.index(bone)
    factors = tree.solution.lengths[:, place] / skeleton.lengths[place]
    distance = writing.settings.key_distance / float(object_scale(writing.matrices[0])) / float(skeleton.lengths[place])
    yield _reduced(writing, bone_path(bone, "scale"), bone, stretch_scales(factors), distance, (1,))


def _root(writing: Writing, tree: BakedTree) -> Iterator[_Track]:
    """The keys of where a root bone is, or its object."""
    name = tree.goals.tree.skeleton.names[0]
    heads, tracks = _travelling(writing, tree)
    yield from tracks
    yield from _moved(writing, name, root_location_channel(writing.armature.pose.bones[name], heads))


def _moved(writing: Writing, bone: str, locations: FloatArray) -> Iterator[_Track]:
    """The keys of (F, 3) values of a bone's location."""
    unlocked = unlocked_location(writing.armature.pose.bones[bone])
    distance = writing.settings.key_distance / float(object_scale(writing.matrices[0]))
    if unlocked:
        yield _reduced(writing, bone_path(bone, "location"), bone, locations, distance, unlocked)


def _travelling(writing: Writing, tree: BakedTree) -> tuple[FloatArray, list[_Track]]:
    """(F, 3) where a root's head is to be, and the keys of the object where that takes over the root's motion."""
    heads, settings = tree.solution.root_location, writing.settings
    if settings.root_motion == "BONE":
        return heads, []
    rest = writing.armature.data.bones[tree.goals.tree.skeleton.names[0]].head_local
    heads, shift = _divided(writing, heads, np.array(rest))
    if settings.root_motion != "OBJECT":
        return heads, []
    moved = writing.matrices[:, :3, 3] - np.array(writing.armature.delta_location) + shift
    return heads, [_reduced(writing, _OBJECT_LOCATION, "Object Transforms", moved, settings.key_distance, None)]


def _through_controls(writing: Writing, tree: BakedTree, take: ControlTake) -> Iterator[_Track]:
    """The keys of the controls that carry a tree, of the one that moves it, and of what hands limbs to them."""
    if writing.moves(tree):
        yield from _travelling(writing, tree)[1]
    for control, turned in take.rotations.items():
        bone = take.bodies.get(control, "")
        if bone in tree.bones or writing.settings.bones == "SOLVED":
            yield from _turned(writing, control, turned, _keyed_rows(tree, bone or tree.goals.tree.skeleton.names[0]))
    for control, locations in take.locations.items():
        yield from _moved(writing, control, locations)
    for path, value in take.switches.items():
        # On both ends, so that no key is left between them.
        ends = writing.settings.frames[[0, -1]] if len(writing.settings.frames) > 1 else writing.settings.frames
        yield _Track(path, bone_in_path(path), ends, np.full((len(ends), 1), value))


def _divided(writing: Writing, heads: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(F, 3) root heads without what travels, armature space, and (F, 3) the travel, world space."""
    axes = writing.matrices[:, :3, :3]
    travel = times(axes, heads - rest)
    if writing.settings.root_motion == "IN_PLACE":
        travel[:, 2] = 0.0
    return heads - times(np.linalg.inv(axes), travel), travel


def _reduced(
    writing: Writing, path: str, group: str, values: FloatArray, distance: float, components: tuple[int, ...] | None
) -> _Track:
    """The keys of a location or a scale, fewer of them where that was asked for."""
    rows = location_keys(values, distance) if writing.settings.key_angle > 0.0 else np.arange(len(values))
    return _Track(path, group, writing.settings.frames[rows], values[rows], components)


def written_bones(armature: bpy.types.Object, trees: Sequence[BakedTree]) -> set[str]:
    """The bones that keys are written to: those that are solved, or the controls that carry them."""
    kept = control_rig(armature)
    if kept is None:
        return {bone for tree in trees for bone in tree.bones}
    switched = {bone_in_path(switch.name) for switch in kept.switches}
    return {*_moved_controls(kept), *switched, *(row.control for row in kept.carriers)}


def _moved_controls(kept: FabrikControlRig) -> set[str]:
    """The controls whose locations get keys: the one that moves the root, and IK controls."""
    return {kept.place, *(row.name for row in kept.controls if row.limb)}


def off_their_keys(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings, trees: Sequence[BakedTree]
) -> list[str]:
    """Sentences on bones of a control rig that do not stand as they were solved; the scene goes to other frames.

    Where fewer keys are wanted, or only those of some bones, they may.
    """
    kept = control_rig(armature)
    if kept is None or settings.key_angle > 0.0 or settings.bones != "SOLVED" or settings.root_motion != "BONE":
        return []
    return [
        sentence
        for tree in trees
        for sentence in check_take(
            context,
            armature,
            kept,
            tree.goals.tree.skeleton,
            tree.solution.matrices,
            settings.frames,
        )
    ]


def _replaced_paths(writing: Writing) -> set[str]:
    """The data paths that a new action does not take over from the present one: those that the bake stands for."""
    trees = writing.trees
    kept = control_rig(writing.armature)
    if kept is not None:
        bones = {row.control for tree in trees for row in kept.carriers if row.name in tree.goals.tree.skeleton.names}
        moved = _moved_controls(kept)
        paths = {bone_path(bone, channel) for bone in bones | moved for channel in ROTATION_CHANNELS}
        paths |= {
            *(bone_path(bone, "location") for bone in moved),
            *(switch.name for switch in (*kept.switches, *kept.along)),
        }
        return paths | ({_OBJECT_LOCATION} if writing.settings.root_motion == "OBJECT" else set())
    paths = {bone_path(bone, channel) for tree in trees for bone in tree.bones for channel in ROTATION_CHANNELS}
    paths |= {bone_path(bone, "scale") for tree in trees for bone in tree.bones if bone in tree.goals.slides}
    moving = [tree.goals.tree.skeleton.names[0] for tree in trees if writing.moves(tree)]
    if moving and writing.settings.root_motion == "OBJECT":
        paths.add(_OBJECT_LOCATION)
    return paths | {bone_path(name, "location") for name in moving}
