"""Retargets the motion of an armature: the list of bone pairs, reading the source, and the poses."""

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

import bpy
import numpy as np

from ...core import Effector
from ...core.arrays import FloatArray, IntArray
from ...core.rotations import matrix_from_quaternion, quaternion_from_matrix
from ...human.naming_schemes import match
from ...markers.steps import finish, within
from ...retarget.bodies import find_pairs, two_bodies_error
from ...retarget.goals import RetargetSettings
from ...retarget.motion import Motion, RetargetError
from ...retarget.pairs import Pair, check_bone_map, read_bone_map, write_bone_map
from ...retarget.take import Retargeted, retarget_steps
from ..bake.bake import BakedTree, BakeSettings, FindSteps, Steps, check_root_motion, keyed_steps, timed
from ..capture.matching import scene_rate
from ..control.posed_rig import posed_rig
from ..goals.places import is_simple, is_still
from ..goals.problem import RigProblem, rig_problem, root_mode
from ..limits.action import legal_pose
from ..rig.armature import Tree, check_unscaled, nearest_rotations, object_scale
from ..rig.keyframes import bone_path, channel_values, curves, curves_by_path
from ..rig.rotation_modes import from_channels, property_name
from ..settings.rig import rig_settings

# Scales that differ from 1 by less than this count as 1, because importers round them.
_UNSCALED: Final = 1e-5
_Curves: TypeAlias = Mapping[str, Sequence[bpy.types.FCurve]]


@dataclass(frozen=True, eq=False)
class PlainPoses:
    """The bones of an armature on F frames, from its curves.

    source: the armature. moved: (F, 4) rotations and (F, 3) locations of each bone, in its own frame.
    """

    source: bpy.types.Object
    moved: Sequence[tuple[FloatArray, FloatArray]] = field(repr=False)

    @classmethod
    def of(cls, source: bpy.types.Object, frames: IntArray) -> "PlainPoses | None":
        """The poses of an armature on frames (F,); None if constraints, drivers, strips or scales affect them."""
        animation, bones = source.animation_data, source.pose.bones
        if not is_still((source, "")) or source.data.pose_position != "POSE" or source.data.animation_data is not None:
            return None
        if animation is not None and len(animation.drivers):
            return None
        if any(len(bone.constraints) for bone in bones) or not all(
            bone.use_inherit_rotation and bone.use_local_location and bone.inherit_scale == "FULL"
            for bone in source.data.bones
        ):
            return None
        every = curves(source)
        if not all(is_simple(curve) and not curve.data_path.endswith(".rotation_mode") for curve in every):
            return None
        by_path = curves_by_path(every)
        if any(np.abs(_values(bone, "scale", by_path, frames) - 1.0).max() > _UNSCALED for bone in bones):
            return None
        return cls(source, [_moved(bones[bone.name], by_path, frames) for bone in source.data.bones])

    def matrices(self, part: slice) -> FloatArray:
        """(F, N, 4, 4) matrices of the bones in armature space on some of the frames."""
        places: dict[str, int] = {}
        posed = np.empty((len(self.moved[0][0][part]), len(self.moved), 4, 4))
        for place, (bone, (turned, shifted)) in enumerate(zip(self.source.data.bones, self.moved, strict=True)):
            places[bone.name] = place
            own = np.tile(np.eye(4), (len(posed), 1, 1))
            own[:, :3, :3], own[:, :3, 3] = matrix_from_quaternion(turned[part]), shifted[part]
            rest = np.array(bone.matrix_local, dtype=np.float64)
            if bone.parent:
                rest = np.linalg.inv(np.array(bone.parent.matrix_local, dtype=np.float64)) @ rest
                posed[:, place] = posed[:, places[bone.parent.name]] @ (rest @ own)
            else:
                posed[:, place] = rest @ own
        return posed


def _moved(bone: bpy.types.PoseBone, by_path: _Curves, frames: IntArray) -> tuple[FloatArray, FloatArray]:
    """(F, 4) rotations and (F, 3) locations of a bone, relative to its rest pose."""
    turned = _values(bone, property_name(bone.rotation_mode), by_path, frames)
    shifted = np.zeros((len(frames), 3)) if bone.bone.use_connect else _values(bone, "location", by_path, frames)
    return from_channels(bone.rotation_mode, turned), shifted


def _values(bone: bpy.types.PoseBone, channel: str, by_path: _Curves, frames: IntArray) -> FloatArray:
    """(F, n) values of a channel; without keys, its current value."""
    return channel_values(getattr(bone, channel), by_path.get(bone_path(bone.name, channel), ()), frames)


# Frames between two checks of the Esc key, if they are evaluated one by one or read from curves at once.
_EVALUATED: Final = 20
_READ: Final = 500


def sample_source(
    context: bpy.types.Context, source: bpy.types.Object, rig: bpy.types.Object, frames: IntArray
) -> Generator[float, None, tuple[Motion, FloatArray]]:
    """Sample the motion of an armature object in world space on frames (F,), and the rig's (F, 4, 4) matrices.

    Reads the curves if nothing else moves the source; otherwise evaluates the scene on each frame. Yields the share
    done.
    """
    bones = source.data.bones
    heads, rotations = np.empty((len(frames), len(bones), 3)), np.empty((len(frames), len(bones), 4))
    worlds, own = np.empty((2, len(frames), 4, 4))
    plain = PlainPoses.of(source, frames) if is_still((rig, "")) else None
    at_once = _EVALUATED if plain is None else _READ
    for first in range(0, len(frames), at_once):
        part = slice(first, first + at_once)
        if plain is None:
            poses = _evaluated(context, source, rig, frames[part], worlds[part], own[part])
        else:
            poses = plain.matrices(part)
            worlds[part], own[part] = source.matrix_world, rig.matrix_world
        matrices = worlds[part, None] @ poses
        axes = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
        heads[part], rotations[part] = matrices[..., :3, 3], quaternion_from_matrix(axes)
        yield min(1.0, part.stop / len(frames))
    lost = np.flatnonzero(~np.isfinite(heads).all(axis=(1, 2)) | ~np.isfinite(rotations).all(axis=(1, 2)))
    if len(lost):
        raise RetargetError(f"{source.name!r} has an invalid position on frame {frames[lost[0]]}: fix its keys")
    rest = worlds[0] @ np.array([bone.matrix_local for bone in bones])
    rest[:, :3, :3] = nearest_rotations(rest[:, :3, :3])
    places = {bone.name: place for place, bone in enumerate(bones)}
    motion = Motion(
        source.name,
        tuple(places),
        np.array([places[bone.parent.name] if bone.parent else -1 for bone in bones]),
        float(object_scale(worlds[0])) * np.array([bone.length for bone in bones]),
        rest,
        rotations,
        heads,
        worlds[0, :3, 3],
        scene_rate(context.scene),
    )
    return motion, own


def _evaluated(
    context: bpy.types.Context,
    source: bpy.types.Object,
    rig: bpy.types.Object,
    frames: IntArray,
    worlds: FloatArray,
    own: FloatArray,
) -> FloatArray:
    """(F, N, 4, 4) evaluated bones in the source's space; fills `worlds` (source) and `own` (rig), (F, 4, 4)."""
    posed = np.empty((len(frames), len(source.data.bones), 16), dtype=np.float32)
    for place, frame in enumerate(frames.tolist()):
        context.scene.frame_set(frame)
        evaluated = source.evaluated_get(context.evaluated_depsgraph_get())
        evaluated.pose.bones.foreach_get("matrix", posed[place].reshape(-1))
        worlds[place], own[place] = evaluated.matrix_world, rig.matrix_world
    rows = {bone.name: row for row, bone in enumerate(source.pose.bones)}
    order = np.array([rows[bone.name] for bone in source.data.bones])
    # Blender passes matrices column by column.
    return posed[:, order].reshape(len(frames), -1, 4, 4).swapaxes(2, 3).astype(np.float64)


def check_source(source: bpy.types.Object | str | None, rig: bpy.types.Object) -> bpy.types.Object:
    """Return the source; raises RetargetError if the rig cannot follow it."""
    if source is None or source == "":
        raise RetargetError("There is no source: choose the armature to retarget from")
    if isinstance(source, str):
        raise RetargetError(f"No armature or file is named {source!r}: choose the source again")
    if source.type != "ARMATURE":
        raise RetargetError(f"The source {source.name!r} is not an armature: choose one")
    if source == rig:
        raise RetargetError(f"{rig.name!r} is the rig itself: choose another armature as the source")
    return source


_SAMPLING_ENDS: Final = 0.3


def retarget_object_steps(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    source: bpy.types.Object,
    settings: BakeSettings,
    how: RetargetSettings,
    pairs: Sequence[Pair] | None = None,
) -> Steps:
    """Key the rig's bones from the motion of another armature, in small steps like a bake.

    pairs: the pairs of bones; None to find them.
    """
    check_source(source, rig)
    find = partial(_found_steps, source=source, how=how, pairs=pairs)
    result = yield from keyed_steps(context, rig, settings, find, take=source.name)
    rig_settings(rig).retarget.brought = source.name
    return result


def _found_steps(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    settings: BakeSettings,
    seconds: dict[str, float],
    *,
    source: bpy.types.Object,
    how: RetargetSettings,
    pairs: Sequence[Pair] | None,
) -> FindSteps:
    """Find the rig's poses and its world matrices in small steps."""
    tree = body_of(rig, pairs)
    names, posed = tree.skeleton.names, posed_rig(rig)
    owned = {**posed.frozen, **posed.owned}
    held = {name: owned[name] for name in names if name in owned}
    check_unscaled(rig, names)
    # The source gives the root's position, like a pin, so the root moves.
    free = posed.may_move(names[0]) and root_mode(rig, pinned=True) != "FIXED"
    bones = [bone for bone, name in enumerate(names) if name not in held]
    problem = rig_problem(rig, tree, [Effector(names[0])], bones, free_root=free, baked=True, held=held)
    check_root_motion(rig, settings.root_motion, [problem])
    with timed(seconds, "sample"):
        motion, matrices = yield from within(0.0, _SAMPLING_ENDS, sample_source(context, source, rig, settings.frames))
    with timed(seconds, "solve"):
        steps = retarget_steps(motion, tree.skeleton, how, limits=problem.all_limits, pairs=pairs)
        found = yield from within(_SAMPLING_ENDS, 1.0, steps)
    return (_baked(problem, found, object_scale(matrices), settings.frames.tolist()),), matrices


def body_of(rig: bpy.types.Object, pairs: Sequence[Pair] | None = None) -> Tree:
    """The tree of bones with the hips, or with the first bone of the pairs. All heads are at rest.

    Raises RetargetError if several trees have hips and there are no pairs.
    """
    trees = sorted(posed_rig(rig).trees(at_rest=True), key=lambda tree: -len(tree.skeleton))
    if pairs:
        return next((tree for tree in trees if pairs[0].bone in tree.skeleton.names), trees[0])
    known = [(name, tree) for tree in trees if (name := _named_hips(tree))]
    if len(known) > 1:
        raise two_bodies_error(known[0][0], known[1][0])
    return known[0][1] if known else trees[0]


def _named_hips(tree: Tree) -> str:
    """The bone that is named hips in a tree with legs; "" if there is none."""
    roles = match(tree.skeleton.names)
    legs = any(role.part == "thigh" for role in roles.values())
    return next((name for name, role in roles.items() if legs and role.part == "hips"), "")


def _baked(problem: RigProblem, found: Retargeted, scale: FloatArray, frames: Sequence[int]) -> BakedTree:
    """The poses to write for the bones with a source bone, clamped to their limits.

    frames: scene frames, to name the reference.
    """
    bones = tuple(pair.bone for pair in found.pairs if pair.bone not in problem.held)
    legal = legal_pose(problem.tree.skeleton, problem.limits, found.solution.rotations)
    problem = replace(problem, names=tuple(effector.bone for effector in found.effectors), effectors=found.effectors)
    off = {pair.bone: found.turned_off[:, place] for place, pair in enumerate(found.pairs)}
    solution = replace(found.solution, rotations=legal)
    reference = found.reference
    at = "the source's rest pose" if reference.frame is None else f"the source on frame {frames[reference.frame]}"
    note = f"Reference: {at}, {reference.pose}"
    return BakedTree(
        problem,
        bones,
        solution,
        scale,
        stances=found.stances,
        turned_off=off,
        notes=(note,),
        doubts=found.doubts,
    )


def match_bones(context: bpy.types.Context, rig: bpy.types.Object) -> tuple[Pair, ...]:
    """Fill the rig's list with pairs matched by name; raises RetargetError for an invalid source or without a match."""
    source = check_source(rig_settings(rig).retarget.source, rig)
    frame = np.array([context.scene.frame_current])
    motion, _ = finish(sample_source(context, source, rig, frame))
    pairs = find_pairs(motion, body_of(rig).skeleton)
    set_pairs(rig, pairs)
    return pairs


def set_pairs(rig: bpy.types.Object, pairs: Iterable[Pair]) -> None:
    """Replace the rig's list of pairs."""
    settings = rig_settings(rig).retarget
    settings.pairs.clear()
    for pair in pairs:
        entry = settings.pairs.add()
        entry.name, entry.source, entry.before, entry.share = pair.bone, pair.source, pair.before, pair.share
    settings.active_pair = 0


def pairs_of(rig: bpy.types.Object) -> list[Pair]:
    """The enabled pairs of the rig's list."""
    listed = rig_settings(rig).retarget.pairs
    return [Pair(one.name, one.source, one.before, one.share) for one in listed if one.enabled and one.source]


def checked_pairs(pairs: Sequence[Pair], rig: bpy.types.Object, source: bpy.types.Object) -> Sequence[Pair] | None:
    """The pairs, or None if there are none; raises MapError if a pair has an unknown bone."""
    check_bone_map(pairs, rig.data.bones.keys(), source.data.bones.keys())
    return pairs or None


def save_pairs(rig: bpy.types.Object, path: str | os.PathLike[str]) -> int:
    """Write the list to a file; returns the number of its bones."""
    pairs = pairs_of(rig)
    if not pairs:
        raise RetargetError(f"{rig.name!r} has no mapped bones: press Map Bones first")
    write_bone_map(path, pairs)
    return len(pairs)


def load_pairs(rig: bpy.types.Object, path: str | os.PathLike[str]) -> int:
    """Read the list from a file; returns the number of its bones. Raises MapError if it names an unknown bone."""
    pairs = read_bone_map(path)
    source = rig_settings(rig).retarget.source
    named = [name for pair in pairs for name in (pair.source, pair.before)]
    check_bone_map(pairs, rig.data.bones.keys(), named if source is None else source.data.bones.keys())
    set_pairs(rig, pairs)
    return len(pairs)
