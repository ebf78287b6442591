"""Points on bones and their spaces: a bone's own, the armature's, the world."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...core.arrays import FloatArray

Offset: TypeAlias = tuple[float, float, float]
BONE_HEAD: Final[Offset] = (0.0, 0.0, 0.0)


def as_array(matrix: Matrix) -> FloatArray:
    """(4, 4) a Blender matrix as an array, copied row by row because that is five times as fast as np.array."""
    return np.array([row[:] for row in matrix.row])


def bone_offset(bone: bpy.types.PoseBone, point: str, offset: Sequence[float] = BONE_HEAD) -> Offset:
    """(3,) the "TAIL", the "HEAD" or the given "OFFSET" in the bone's frame, relative to its head."""
    if point == "OFFSET":
        x, y, z = offset
        return x, y, z
    return (0.0, bone.bone.length, 0.0) if point == "TAIL" else BONE_HEAD


def armature_point(bone: bpy.types.PoseBone, point: str, offset: Sequence[float] = BONE_HEAD) -> Vector:
    """The position of a bone's point (see `bone_offset`) in armature space, in the last evaluated pose."""
    return bone.matrix @ Vector(bone_offset(bone, point, offset))


def meters_per_unit(armature: bpy.types.Object) -> float:
    """World meters in one unit of an armature's space."""
    return float(object_scale(as_array(armature.matrix_world)))


def length_text(length: float, scene: bpy.types.Scene | None = None) -> str:
    """A world length as text to 0.1 mm, such as "1.23 cm", in the units of a scene, by default the current one."""
    units = (scene or bpy.context.scene).unit_settings
    meters = round(length * units.scale_length, 4)
    return str(bpy.utils.units.to_string(units.system, "LENGTH", meters, precision=3, split_unit=False)).strip()


def object_scale(world_matrices: FloatArray) -> FloatArray:
    """(...) uniform scale of object matrices (..., 4, 4): world meters in one armature unit."""
    return np.cbrt(np.abs(np.linalg.det(world_matrices[..., :3, :3])))


def world_to_armature(points: FloatArray, world_matrices: FloatArray) -> FloatArray:
    """Convert world `points` (..., E, 3) to the space of an armature with `world_matrices` (..., 4, 4)."""
    into = np.linalg.inv(world_matrices)
    return points @ np.swapaxes(into[..., :3, :3], -1, -2) + into[..., None, :3, 3]
