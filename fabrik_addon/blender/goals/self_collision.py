"""The capsules of a rig that do not go into each other, fitted to its meshes, as its settings say."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.kernel.capsules import Capsule, SelfCollision
from ...core.model.skeleton import Skeleton
from ...human.capsules import self_collision
from ...human.preset import why_not_human
from ..limits.preset import RestKey, rest_key, rest_of
from ..rig.spaces import as_array
from ..settings.control import solved_parents
from ..settings.rig import rig_settings

# So many rigs are kept in mind.
_RIGS_KEPT: Final = 8
# Of larger meshes every second vertex is looked at, or every third and so on: reading groups takes 1 µs a vertex.
_MOST_VERTICES: Final = 20_000


def collision_of(armature: bpy.types.Object, skeleton: Skeleton) -> SelfCollision | None:
    """The capsules of a rig for a skeleton of some of its bones; None for rigs other than humans, or where it is off.

    Bones that the skeleton does not have stay as they are now.
    """
    found = fitted(armature) if rig_settings(armature).use_self_collision else None
    if found is None:
        return None
    capsules = [each if each.bone in skeleton.names else _as_posed(armature, each) for each in found.capsules]
    return replace(found, capsules=tuple(capsules))


def fitted(armature: bpy.types.Object) -> SelfCollision | None:
    """The capsules of a rig at rest; None for rigs other than humans."""
    meshes = [thing for thing in bpy.data.objects if thing.type == "MESH" and thing.find_armature() == armature]
    # A mesh is looked at again only when it has another number of vertices.
    return _fitted(armature.name, tuple((mesh.name, len(mesh.data.vertices)) for mesh in meshes), rest_key(armature))


def _as_posed(armature: bpy.types.Object, capsule: Capsule) -> Capsule:
    """A capsule in armature space, as its bone is posed now."""
    matrix = as_array(armature.pose.bones[capsule.bone].matrix)
    start, end = (np.array([capsule.start, capsule.end]) @ matrix[:3, :3].T + matrix[:3, 3]).tolist()
    return Capsule("", tuple(start), tuple(end), capsule.radius)


@lru_cache(maxsize=_RIGS_KEPT)
def _fitted(rig: str, meshes: tuple[tuple[str, int], ...], key: RestKey) -> SelfCollision | None:
    rest = rest_of(*key)
    if why_not_human(rest):
        return None
    armature = bpy.data.objects[rig]
    above = solved_parents(armature)
    carried: dict[str, list[FloatArray]] = {}
    for name, _ in meshes:
        mesh = bpy.data.objects[name]
        places, groups = _vertices(mesh)
        to_armature = as_array(armature.matrix_world.inverted() @ mesh.matrix_world)
        places = places @ to_armature[:3, :3].T + to_armature[:3, 3]
        for group in mesh.vertex_groups:
            bone = armature.data.bones.get(group.name)
            while bone is not None and bone.name not in above:
                bone = bone.parent
            if bone is not None:
                carried.setdefault(bone.name, []).append(places[groups == group.index])
    return self_collision(rest, {name: np.concatenate(found) for name, found in carried.items()})


def _vertices(mesh: bpy.types.Object) -> tuple[FloatArray, IntArray]:
    """(N, 3) places of vertices at rest, and (N,) the group of each that weighs most, -1 for none."""
    vertices = mesh.data.vertices
    step = 1 + len(vertices) // _MOST_VERTICES
    places = np.empty(3 * len(vertices), dtype=np.float32)
    vertices.foreach_get("co", places)
    looked_at = (vertices[index] for index in range(0, len(vertices), step))
    groups = [max(each.groups, key=lambda group: group.weight).group if each.groups else -1 for each in looked_at]
    return places.reshape(-1, 3)[::step].astype(np.float64), np.array(groups)
