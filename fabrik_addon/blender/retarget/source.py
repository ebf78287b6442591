"""What an armature does over frames, as Blender shows it: constraints, drivers and NLA included."""

from collections.abc import Generator

import bpy
import numpy as np
import numpy.typing as npt

from ...core.arrays import FloatArray, IntArray
from ...core.rotations import quaternion_from_matrix
from ...retarget.motion import Motion, RetargetError
from ..capture.clip import scene_rate
from ..rig.armature import nearest_rotations
from ..rig.spaces import object_scale

# Frames between two looks at the Esc key.
_AT_ONCE = 20


def sample_source(
    context: bpy.types.Context, source: bpy.types.Object, rig: bpy.types.Object, frames: IntArray
) -> Generator[float, None, tuple[Motion, FloatArray]]:
    """The motion of an armature object on F frames, world space, and (F, 4, 4) the rig's; yields the share done."""
    posed = np.empty((len(frames), len(source.data.bones), 16), dtype=np.float32)
    world, own = np.empty((len(frames), 4, 4)), np.empty((len(frames), 4, 4))
    for place, frame in enumerate(frames.tolist()):
        context.scene.frame_set(frame)
        evaluated = source.evaluated_get(context.evaluated_depsgraph_get())
        evaluated.pose.bones.foreach_get("matrix", posed[place].reshape(-1))
        world[place], own[place] = evaluated.matrix_world, rig.matrix_world
        if place % _AT_ONCE == 0:
            yield place / len(frames)
    return _motion(source, posed, world, scene_rate(context.scene)), own


def _motion(source: bpy.types.Object, posed: npt.NDArray[np.float32], world: FloatArray, rate: float) -> Motion:
    """What was sampled: posed: (F, N, 16) matrices of the pose bones, column by column; world: (F, 4, 4)."""
    bones = source.data.bones
    places = {bone.name: place for place, bone in enumerate(bones)}
    order = np.argsort([places[bone.name] for bone in source.pose.bones])
    heads, rotations = np.empty((*posed.shape[:2], 3)), np.empty((*posed.shape[:2], 4))
    for first in range(0, len(posed), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        # Blender hands matrices over column by column.
        matrices = world[part, None] @ posed[part][:, order].reshape(-1, len(bones), 4, 4).swapaxes(2, 3)
        heads[part] = matrices[..., :3, 3]
        rotations[part] = _rotations(matrices)
    rest = world[0] @ np.array([bone.matrix_local for bone in bones])
    rest[:, :3, :3] = nearest_rotations(rest[:, :3, :3])
    return Motion(
        source.name,
        tuple(places),
        np.array([places[bone.parent.name] if bone.parent else -1 for bone in bones]),
        float(object_scale(world[0])) * np.array([bone.length for bone in bones]),
        rest,
        rotations,
        heads,
        world[0, :3, 3],
        rate,
    )


def _rotations(matrices: FloatArray) -> FloatArray:
    """(..., 4) of (..., 4, 4) matrices, scale left out."""
    axes = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
    return quaternion_from_matrix(axes)


def check_source(source: bpy.types.Object | str | None, rig: bpy.types.Object) -> bpy.types.Object:
    """The source; raises RetargetError where it can't be one for a rig."""
    if source is None or source == "":
        raise RetargetError("There is no source: choose the armature whose motion is wanted")
    if isinstance(source, str):
        raise RetargetError(f"There is neither an armature nor a file {source!r}: choose the source again")
    if source.type != "ARMATURE":
        raise RetargetError(f"The source {source.name!r} is no armature: choose one")
    if source == rig:
        raise RetargetError(f"{rig.name!r} is the rig itself: choose another armature as the source")
    return source
