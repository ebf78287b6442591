"""Writes the keys of a bake. Reduces them so that lines between the remaining keys stay within a tolerance."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray, times
from ...core.rotations import angle_between
from ...markers.steps import within
from ..control.posed_rig import PosedRig, posed_rig
from ..control.switches import bone_in_path
from ..control.writer import TakeChannels
from ..goals.places import has_other_drivers
from ..goals.problem import RigProblem
from ..rig.armature import object_scale, stretch_scales
from ..rig.keyframes import (
    add_strip,
    bone_path,
    channels_of,
    current_or_new_action,
    make_steps,
    new_action_like,
    new_strip_action,
    write_curves,
)
from ..rig.locks import unlocked_location, unlocked_rotation
from ..rig.rotation_modes import from_channels, to_channels
from .jobs import BakedTree, BakeError, BakeSettings


def rotation_keys(rotation_mode: str, values: FloatArray, angle: float) -> IntArray:
    """(K,) indices of the keys of a rotation to keep, out of F keys.

    rotation_mode: how to read the channels. values: (F, n) on successive frames, without jumps. angle: the maximum
    error of the rotation in radians on any frame, after Blender's linear interpolation and normalization.
    """
    exact = from_channels(rotation_mode, values)

    def off(interpolated: FloatArray, frames: IntArray) -> FloatArray:
        return angle_between(from_channels(rotation_mode, interpolated), exact[frames])

    return _kept(values, off, angle)


def location_keys(values: FloatArray, distance: float) -> IntArray:
    """(K,) indices of the keys of a location to keep, for `values` (F, 3) and a maximum error `distance`."""
    return _kept(values, lambda interpolated, frames: np.linalg.norm(interpolated - values[frames], axis=1), distance)


def _kept(values: FloatArray, off: Callable[[FloatArray, IntArray], FloatArray], most: float) -> IntArray:
    """(K,) indices of the keys to keep: the first, the last, and the worst of each interval with too large an error.

    Processes all intervals at once until no error is too large (Douglas and Peucker 1973). Intervals whose error is
    small enough are not checked again. off: returns the (K,) errors of (K, n) interpolated values on (K,) frames.
    """
    kept = np.unique([0, len(values) - 1])
    open_frames = np.arange(len(values))
    while len(open_frames):
        interpolated = np.stack([np.interp(open_frames, kept, column[kept]) for column in values.T], axis=1)
        errors = off(interpolated, open_frames)
        stretch = np.searchsorted(kept, open_frames, side="right")
        first_of_each = np.flatnonzero(np.diff(stretch, prepend=-1))
        largest = np.maximum.reduceat(errors, first_of_each)
        bad = np.repeat(largest > most, np.diff(first_of_each, append=len(stretch)))
        worst = bad & (errors == np.repeat(largest, np.diff(first_of_each, append=len(stretch))))
        kept = np.union1d(kept, open_frames[worst])
        open_frames = np.setdiff1d(open_frames[bad], kept, assume_unique=True)
    return kept


_OBJECT_LOCATION: Final = "location"


@dataclass(frozen=True)
class _Track:
    """The keys of one property: (K,) frames, (K, n) values, and the keyed array indices (None: all)."""

    path: str
    group: str
    frames: IntArray
    values: FloatArray
    components: tuple[int, ...] | None = None


@dataclass(frozen=True)
class BakedPoses:
    """The poses to write: F frames, the solved trees, and (F, 4, 4) world matrices of the armature.

    take: the name of the motion, or "".
    """

    context: bpy.types.Context
    armature: bpy.types.Object
    settings: BakeSettings
    trees: Sequence[BakedTree]
    matrices: FloatArray
    take: str = ""

    @property
    def posed(self) -> PosedRig:
        """The rig, as a `PlainRig` or a `ControlRig`."""
        return posed_rig(self.armature)

    def moves(self, tree: BakedTree) -> bool:
        """Whether the location of a tree's root bone gets keys."""
        return tree.travels and tree.problem.free_root


def check_root_motion(armature: bpy.types.Object, root_motion: str, trees: Sequence[RigProblem]) -> None:
    """Raise BakeError if an armature's object can't get the motion of its root."""
    if root_motion == "BONE" or not any(problem.free_root for problem in trees):
        return
    if len(trees) > 1:
        raise BakeError(
            f"{armature.name!r} has several roots, so its motion can't be moved to the object: set Root Motion "
            "to Root Bone"
        )
    if root_motion == "OBJECT" and has_other_drivers(armature):
        raise BakeError(
            f"{armature.name!r} is moved by a parent, constraint, driver or NLA strip: set Root Motion to Root Bone"
        )


def write_keys(writing: BakedPoses) -> Generator[float, None, list[str]]:
    """Key the solved bones; returns sentences about locked curves, and about limbs that could not stay on IK.

    The steps place the IK controls of limbs. Nothing is written before the last step.
    """
    armature, settings = writing.armature, writing.settings
    tracks, left, switches = list[_Track](), list[str](), set[str]()
    count = len(writing.trees)
    for place, tree in enumerate(writing.trees):
        moves, skeleton = writing.moves(tree), tree.problem.tree.skeleton
        heads, of_object = _object_motion(writing, tree) if moves else (tree.solution.root_location, [])
        poses = tree.solution.rotations, heads
        steps = writing.posed.channels(writing.context, skeleton, poses, tree.bones, moves_root=moves)
        take = yield from within(place / count, (place + 1) / count, steps)
        tracks += [*of_object, *_tracks(writing, tree, take)]
        left += take.left
        switches |= take.switches.keys()
    name = settings.action_name or writing.take or f"{armature.name} FABRIK"
    if settings.action == "NLA":
        action = new_strip_action(armature, name)
    elif settings.action == "NEW":
        # Curves that the bake replaces are not copied from the current action.
        paths = {path for tree in writing.trees for path in _written(writing, tree)[1]}
        paths |= {
            bone_path(bone, "scale") for each in writing.trees for bone in each.bones if bone in each.problem.slides
        }
        if settings.root_motion == "OBJECT" and any(writing.moves(tree) for tree in writing.trees):
            paths.add(_OBJECT_LOCATION)
        action = new_action_like(armature, name, without=paths)
    else:
        action = current_or_new_action(armature, name)
    locked = [
        track.group
        for track in tracks
        if write_curves(
            action, armature, track.path, track.frames, track.values, track.group, components=track.components
        )
    ]
    for curve in channels_of(action, armature).fcurves if switches else ():
        if curve.data_path in switches:
            # Switches must not be interpolated between two keys.
            make_steps(curve)
    if settings.action == "NLA":
        add_strip(armature, action)
    names = ", ".join(dict.fromkeys(locked))
    kept = [f"Locked curves of action {action.name!r} were not changed: {names}"] if locked else []
    return kept + left


def _tracks(writing: BakedPoses, tree: BakedTree, take: TakeChannels) -> Iterator[_Track]:
    """The keys of a tree: of bones or controls, the root or the object, and IK/FK switches."""
    for holder, turned in take.rotations.items():
        bone = take.bodies.get(holder, "")
        if bone in tree.bones or writing.settings.bones == "SOLVED":
            keyed = tree.keyed
            row = tree.problem.tree.skeleton.index(bone) if bone else 0
            rows = np.arange(len(turned)) if keyed is None else np.flatnonzero(keyed[:, row])
            yield from _rotation_keys(writing, holder, turned, rows)
        if holder in tree.problem.slides:
            row = tree.problem.tree.skeleton.index(holder)
            factors = stretch_scales(tree.solution.lengths[:, row] / tree.problem.tree.skeleton.lengths[row])
            yield _reduced(writing, bone_path(holder, "scale"), holder, factors, writing.settings.key_angle, (1,))
    for holder, locations in take.locations.items():
        unlocked = unlocked_location(writing.armature.pose.bones[holder])
        distance = writing.settings.key_angle * float(writing.armature.data.bones[holder].length)
        if unlocked:
            yield _reduced(writing, bone_path(holder, "location"), holder, locations, distance, unlocked)
    for path, value in take.switches.items():
        # Keys on both ends replace all keys between them.
        ends = writing.settings.frames[[0, -1]] if len(writing.settings.frames) > 1 else writing.settings.frames
        yield _Track(path, bone_in_path(path), ends, np.full((len(ends), 1), value))


def _rotation_keys(writing: BakedPoses, bone: str, rotations: FloatArray, rows: IntArray) -> Iterator[_Track]:
    """The keys of local rotations (F, 4) of a bone, on the frames with indices `rows` (K,)."""
    pose_bone = writing.armature.pose.bones[bone]
    mode = pose_bone.rotation_mode
    channel, values = to_channels(mode, rotations)
    if writing.settings.key_angle > 0.0 and len(rows):
        rows = rows[rotation_keys(mode, values[rows], writing.settings.key_angle)]
    unlocked = unlocked_rotation(pose_bone)
    if len(rows) and unlocked:
        yield _Track(bone_path(bone, channel), bone, writing.settings.frames[rows], values[rows], unlocked)


def _object_motion(writing: BakedPoses, tree: BakedTree) -> tuple[FloatArray, list[_Track]]:
    """(F, 3) root heads, and the keys of the object if it gets the motion of the root."""
    heads, settings = tree.solution.root_location, writing.settings
    if settings.root_motion == "BONE":
        return heads, []
    rest = writing.armature.data.bones[tree.problem.tree.skeleton.names[0]].head_local
    # Subtract the motion in world space from the heads.
    axes = writing.matrices[:, :3, :3]
    shift = times(axes, heads - np.array(rest))
    if settings.root_motion == "IN_PLACE":
        shift[:, 2] = 0.0
    heads = heads - times(np.linalg.inv(axes), shift)
    if settings.root_motion != "OBJECT":
        return heads, []
    moved = writing.matrices[:, :3, 3] - np.array(writing.armature.delta_location) + shift
    distance = settings.key_angle * float(tree.problem.tree.skeleton.lengths[0] * object_scale(writing.matrices[0]))
    return heads, [_reduced(writing, _OBJECT_LOCATION, "Object Transforms", moved, distance, None)]


def _reduced(
    writing: BakedPoses, path: str, group: str, values: FloatArray, distance: float, components: tuple[int, ...] | None
) -> _Track:
    """The keys of a location or scale. If keys are reduced, the error is at most `distance`."""
    rows = location_keys(values, distance) if writing.settings.key_angle > 0.0 else np.arange(len(values))
    return _Track(path, group, writing.settings.frames[rows], values[rows], components)


def written_bones(writing: BakedPoses) -> set[str]:
    """The bones that get keys: the solved bones, or their controls."""
    return {bone for tree in writing.trees for bone in _written(writing, tree)[0]}


def _written(writing: BakedPoses, tree: BakedTree) -> tuple[set[str], set[str]]:
    moves, skeleton = writing.moves(tree), tree.problem.tree.skeleton
    return writing.posed.written(skeleton, tree.bones, moves_root=moves)


def deviation_warnings(writing: BakedPoses) -> list[str]:
    """Warnings on bones of a control rig that differ from the solved pose; changes the scene's frame.

    Bones differ if keys are reduced, or if only some bones get keys.
    """
    settings = writing.settings
    if settings.key_angle > 0.0 or settings.bones != "SOLVED" or settings.root_motion != "BONE":
        return []
    return [
        sentence
        for tree in writing.trees
        for sentence in writing.posed.off(writing.context, tree.solution, settings.frames)
    ]
