"""Samples the motion of an armature over frames, including constraints, drivers and NLA."""

from collections.abc import Generator
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.rotations import quaternion_from_matrix
from ...retarget.motion import Motion, RetargetError
from ..capture.clip import scene_rate
from ..goals.places import is_still
from ..rig.armature import nearest_rotations
from ..rig.spaces import object_scale
from .curves import PlainPoses

# Frames between two checks of the Esc key: if evaluated one by one, or read from curves at once.
_EVALUATED: Final = 20
_READ: Final = 500


def sample_source(
    context: bpy.types.Context, source: bpy.types.Object, rig: bpy.types.Object, frames: IntArray
) -> Generator[float, None, tuple[Motion, FloatArray]]:
    """Sample the motion of an armature object on F frames in world space, and the rig's (F, 4, 4) matrices.

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
    """(F, N, 4, 4) evaluated bones of the source in its space; writes the (F, 4, 4) matrices of it and the rig."""
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
