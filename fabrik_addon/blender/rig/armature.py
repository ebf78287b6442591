"""Reads an armature object into the solver's trees of bones and their pose; points on bones, their spaces and lengths.

A bone that may stretch (the paper's prismatic joint) has its length factor as its Y scale. Children of such a bone move
with its tail but must not grow, so they do not inherit its scale.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Object, PoseBone, Scene
from mathutils import Matrix, Vector

from ...core import forward_kinematics
from ...core.arrays import BoolArray, FloatArray
from ...core.channels import channel_count, from_channels
from ...core.errors import FabrikError
from ...core.model.skeleton import Skeleton, scaled_skeleton
from ...core.rotations import IDENTITY, matrix_from_quaternion
from ...human.rest_body import RestBone
from ..settings.control import solved_parents
from ..settings.limit_properties import read_extra
from ..settings.why_not import why_not_editable

Offset: TypeAlias = tuple[float, float, float]
BONE_HEAD: Final[Offset] = (0.0, 0.0, 0.0)
# World meters. Smaller distances are not reported.
SHOWN: Final = 5e-4


def as_array(matrix: Matrix) -> FloatArray:
    """(4, 4) a Blender matrix as an array, copied row by row because that is five times as fast as np.array."""
    return np.array([row[:] for row in matrix.row])


def property_name(rotation_mode: str) -> str:
    """The pose bone's rotation property in a rotation mode."""
    kind = rotation_mode.lower()
    return f"rotation_{kind if kind in ('quaternion', 'axis_angle') else 'euler'}"


def local_rotation(bone: PoseBone) -> FloatArray:
    """(4,) the local rotation in a bone's channels."""
    return from_channels(bone.rotation_mode, getattr(bone, property_name(bone.rotation_mode)))


def bone_matrices(rig: Object, names: Iterable[str]) -> FloatArray:
    """(B, 4, 4) current matrices of bones in armature space, without scale."""
    return unscaled(np.array([as_array(rig.pose.bones[name].matrix) for name in names]).reshape(-1, 4, 4))


def rest_matrices(rig: Object, names: Iterable[str]) -> FloatArray:
    """(B, 4, 4) matrices of bones at rest in armature space."""
    return unscaled(np.array([as_array(rig.data.bones[name].matrix_local) for name in names]).reshape(-1, 4, 4))


def bone_offset(bone: PoseBone, point: str, offset: Sequence[float] = BONE_HEAD) -> Offset:
    """(3,) the "TAIL", the "HEAD" or the given "OFFSET" in the bone's frame, relative to its head."""
    if point == "OFFSET":
        x, y, z = offset
        return x, y, z
    return (0.0, bone.bone.length, 0.0) if point == "TAIL" else BONE_HEAD


def armature_point(bone: PoseBone, point: str, offset: Sequence[float] = BONE_HEAD) -> Vector:
    """The position of a bone's point (see `bone_offset`) in armature space, in the last evaluated pose."""
    return bone.matrix @ Vector(bone_offset(bone, point, offset))


def meters_per_unit(armature: Object) -> float:
    """World meters in one unit of an armature's space."""
    return float(object_scale(as_array(armature.matrix_world)))


def length_text(length: float, scene: Scene | None = None) -> str:
    """A world length as text, to 0.1 mm, such as "1.23 cm". scene: sets the units; the current one by default."""
    units = (scene or bpy.context.scene).unit_settings
    meters = length * units.scale_length
    # From 1 cm, Blender's three digits are 0.1 mm or coarser. Rounding twice would show 30.049 cm as 30.1 cm.
    meters = meters if meters >= 0.01 else round(meters, 4)
    return str(bpy.utils.units.to_string(units.system, "LENGTH", meters, precision=3, split_unit=False)).strip()


def object_scale(world_matrices: FloatArray) -> FloatArray:
    """(...) uniform scale of object matrices (..., 4, 4): world meters in one armature unit."""
    return np.cbrt(np.abs(np.linalg.det(world_matrices[..., :3, :3])))


def world_to_armature(points: FloatArray, world_matrices: FloatArray) -> FloatArray:
    """Convert world `points` (..., E, 3) to the space of an armature with `world_matrices` (..., 4, 4)."""
    into = np.linalg.inv(world_matrices)
    moved = points @ np.swapaxes(into[..., :3, :3], -1, -2)
    moved += into[..., None, :3, 3]
    return moved


# Bones or pose bones.
_Items: TypeAlias = "bpy.types.bpy_prop_collection[Any]"

# The tolerance of scales that must be 1, and of the scales of an object's axes, which must be equal.
_SCALE_TOLERANCE: Final = 1e-4
_UNSCALED: Final = (1.0, 1.0, 1.0)


class RigError(FabrikError):
    """An armature that cannot be read or written; the message names the object or the bone."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A root bone with all bones below it.

    skeleton: rest rotations, and heads moved by the bones' current location channels. rotations: (J, 4) current local
    rotations, w x y z. root_location: (3,) current head of the root in armature space.
    """

    skeleton: Skeleton
    rotations: FloatArray
    root_location: FloatArray


class Channels(NamedTuple):
    """The values of the channels of N bones, by name: (N, 4) local rotations, w x y z, and (N, 3) locations."""

    names: list[str]
    rotations: FloatArray
    locations: FloatArray


def read_trees(armature: Object, *, at_rest: bool = False) -> list[Tree]:
    """The bones and the current pose of an armature object, one tree per root bone.

    The pose is from the location and rotation channels, including keyframes and drivers, without constraints. Bones
    that may stretch have their rest length. at_rest: ignore the current locations, so that every head is at rest.
    Raises RigError like `check_rig`.
    """
    check_rig(armature)
    bones, channels = armature.data.bones, read_channels(armature)
    names = bones.keys()
    if not at_rest:
        check_near(armature)
    indices = {name: index for index, name in enumerate(names)}
    parents = np.array([indices[bone.parent.name] if bone.parent else -1 for bone in bones])
    rest = matrices(bones, "matrix_local")
    lengths, inherits_rotation = floats(bones, "length", 1)[:, 0], flags(bones, "use_inherit_rotation")
    # The location channels of a bone and its ancestors move its head. A location is in the bone's rest axes, or in its
    # parent's (the armature's for a root) if Local Location is off. Connected bones have no location. Rest rotations
    # don't change, so each head gets its current position in its parent's frame.
    own = rest[:, :3, :3]
    parent_axes = np.where((parents < 0)[:, None, None], np.eye(3), own[parents])
    axes = np.where(flags(bones, "use_local_location")[:, None, None], own, parent_axes)
    locations = np.zeros_like(channels.locations) if at_rest else channels.locations
    moves = np.where(flags(bones, "use_connect")[:, None], 0.0, (axes @ locations[:, :, None])[:, :, 0])
    roots = np.arange(len(parents))
    for bone, parent in enumerate(parents):
        if parent >= 0:
            moves[bone] += moves[parent]
            roots[bone] = roots[parent]
    rest[:, :3, 3] += moves
    rest = unscaled(rest)
    trees = []
    for root in np.unique(roots):
        members = np.flatnonzero(roots == root)
        rows = {bone: row for row, bone in enumerate(members.tolist())}
        skeleton = Skeleton(
            [names[bone] for bone in members],
            [rows.get(int(parents[bone]), -1) for bone in members],
            rest[members],
            lengths[members],
            inherits_rotation[members],
        )
        trees.append(Tree(skeleton, channels.rotations[members], rest[root, :3, 3].copy()))
    return trees


def check_rig(armature: Object) -> None:
    """Raise RigError, with the reason, unless the object's bones can be read in its current state."""
    if armature.type != "ARMATURE":
        raise RigError(f"Object {armature.name!r} is not an armature: select one")
    if not armature.data.bones:
        raise RigError(f"Armature {armature.name!r} has no bones: add some in Edit mode first")
    if armature.mode == "EDIT":
        raise RigError(f"Armature {armature.name!r} is in Edit mode: leave it first")
    if armature.pose is None:
        raise RigError(f"Armature {armature.name!r} has no pose yet: add it to a scene and update the scene")
    # One common factor must convert distances in the armature's space to world distances.
    axes = as_array(armature.matrix_world)[:3, :3]
    products = axes.T @ axes
    square = np.trace(products) / 3.0
    if square == 0.0 or np.abs(products / square - np.eye(3)).max() > 2.0 * _SCALE_TOLERANCE:
        scale = ", ".join(f"{length:.4g}" for length in np.linalg.norm(axes, axis=0))
        raise RigError(f"Object {armature.name!r} is scaled non-uniformly ({scale}): apply its scale first")


# The largest distance, as a multiple of the total length of a rig's bones.
_FAR: Final = 1e6


def check_near(armature: Object) -> None:
    """Raise RigError, naming the bone, if a value of its channels is not finite, or too large for the solver."""
    bones, most = armature.pose.bones, _FAR * floats(armature.data.bones, "length", 1).sum()
    channels = (("location", 3), ("rotation_quaternion", 4), ("rotation_euler", 3))
    # NaN makes this comparison false, too.
    is_near = np.all([(np.abs(floats(bones, *channel)) < most).all(axis=1) for channel in channels], axis=0)
    if not is_near.all():
        name = bones[int(np.argmin(is_near))].name
        raise RigError(
            f"Bone {name!r} is too far away, or its pose is not a number: select it and press Alt G and Alt R"
        )


def check_unscaled(armature: Object, bones: Iterable[str]) -> None:
    """Raise RigError, naming the bone, if a bone's scale is not 1. The Y scale of bones that may stretch is ignored."""
    for name in bones:
        pose_bone = armature.pose.bones[name]
        if pose_bone.scale[:] == _UNSCALED:
            continue
        scale = np.array(pose_bone.scale, dtype=np.float64)
        stretches = scale[1] > 0.0 and read_extra(armature, [name], "slide")
        if np.abs(scale - 1.0)[[0, 2] if stretches else [0, 1, 2]].max() > _SCALE_TOLERANCE:
            shown = ", ".join(f"{value:.4g}" for value in scale)
            raise RigError(f"Bone {name!r} is scaled ({shown}): set its scale to 1")


def check_bones(armature: Object, *names: str) -> None:
    """Raise RigError for the first name that is not a bone of the armature."""
    for name in names:
        if name not in armature.data.bones:
            raise RigError(f"{armature.name!r} has no bone {name!r}: choose one that it has")


def opposite_bone(rig: Object, bone: PoseBone) -> PoseBone | None:
    """The bone with the mirrored name by Blender's rules, even with a prefix such as `mixamorig:`; None if missing."""
    prefix, colon, name = bone.name.rpartition(":")
    for flipped in (bpy.utils.flip_name(bone.name), prefix + colon + bpy.utils.flip_name(name)):
        if flipped != bone.name and flipped in rig.pose.bones:
            return rig.pose.bones[flipped]
    return None


def check_editable(armature: Object) -> None:
    """Raise RigError unless the object may be posed: it is local, or an editable library override."""
    if reason := why_not_editable(armature):
        raise RigError(reason)


def _root_at_rest(pose_bone: PoseBone) -> FloatArray:
    """(4, 4) a root bone at rest, in armature space. If it has a parent, the parent is in its current pose."""
    rest, above = as_array(pose_bone.bone.matrix_local), pose_bone.parent
    if above is None:
        return rest
    return np.asarray(as_array(above.matrix) @ np.linalg.inv(as_array(above.bone.matrix_local)) @ rest)


def root_location_channel(pose_bone: PoseBone, root_locations: npt.ArrayLike) -> FloatArray:
    """(..., 3) values of a root bone's `location` for heads `root_locations` (..., 3) in armature space."""
    rest = _root_at_rest(pose_bone)
    moves: FloatArray = np.asarray(root_locations, dtype=np.float64) - rest[:3, 3]
    if not pose_bone.bone.use_local_location:
        return moves
    # Rest matrices are not exactly rotations, so the transpose would be wrong for a root that is far away.
    return moves @ np.linalg.inv(rest[:3, :3]).T


def root_place(pose_bone: PoseBone, location: npt.ArrayLike) -> FloatArray:
    """(..., 3) a root bone's head in armature space, for `location` channels (..., 3)."""
    rest = _root_at_rest(pose_bone)
    axes = rest[:3, :3] if pose_bone.bone.use_local_location else np.eye(3)
    return rest[:3, 3] + np.asarray(location, dtype=np.float64) @ axes.T


def read_channels(armature: Object) -> Channels:
    """The current channel values of all bones."""
    pose_bones = armature.pose.bones
    modes = np.array([bone.rotation_mode for bone in pose_bones])
    rotations = np.empty((len(modes), 4))
    for mode in np.unique(modes):
        values = floats(pose_bones, property_name(str(mode)), channel_count(str(mode)))
        rotations[modes == mode] = from_channels(str(mode), values[modes == mode])
    rows = {name: row for row, name in enumerate(pose_bones.keys())}
    names = armature.data.bones.keys()
    order = [rows[name] for name in names]
    return Channels(names, rotations[order], floats(pose_bones, "location", 3)[order])


# Names, names of parents, matrices and lengths of bones at rest.
RestKey: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], bytes, bytes]


def read_rest(rig: Object) -> dict[str, RestBone]:
    """The bones of an armature at rest, by name; on a control rig, its deform bones."""
    return rest_of(*rest_key(rig))


def rest_key(rig: Object) -> RestKey:
    """A cache key for bones at rest: names, parents' names, (J, 4, 4) matrices column by column and (J,) lengths."""
    bones, above = rig.data.bones, solved_parents(rig)
    rows = [bone.name in above for bone in bones]
    names = tuple(filter(above.__contains__, bones.keys()))
    frames, lengths = floats(bones, "matrix_local", 16), floats(bones, "length", 1)
    return names, tuple(above[name] for name in names), frames[rows].tobytes(), lengths[rows].tobytes()


def rest_of(names: tuple[str, ...], parents: tuple[str, ...], matrices: bytes, lengths: bytes) -> dict[str, RestBone]:
    """The bones at rest that a `rest_key` describes."""
    frames = np.frombuffer(matrices).reshape(-1, 4, 4).transpose(0, 2, 1)
    rows = zip(names, parents, frames, np.frombuffer(lengths).tolist(), strict=True)
    return {name: RestBone(parent, frame[:3, 3], frame[:3, :3], length) for name, parent, frame, length in rows}


def unscaled(transforms: FloatArray) -> FloatArray:
    """(..., 4, 4) the transforms without scale, with the nearest rotations; see `nearest_rotations`."""
    found = transforms.copy()
    found[..., :3, :3] = nearest_rotations(transforms[..., :3, :3])
    return found


def nearest_rotations(axes: FloatArray) -> FloatArray:
    """(..., 3, 3) proper rotations nearest to `axes` (..., 3, 3).

    Blender's rest matrices are not exactly rotations: their error is up to 1e-4 for bones that point back along their
    parent.
    """
    left, _, right = np.linalg.svd(axes)
    return left @ right


def floats(collection: _Items, name: str, width: int) -> FloatArray:
    """(N, width) the values of a float property of N items."""
    # Blender copies single precision in one block. Other types are ten times slower.
    values = np.empty(len(collection) * width, dtype=np.float32)
    collection.foreach_get(name, values)
    return values.reshape(-1, width).astype(np.float64)


def matrices(collection: _Items, name: str) -> FloatArray:
    """(N, 4, 4) the values of a matrix property of N items."""
    # Blender returns matrices column by column.
    return floats(collection, name, 16).reshape(-1, 4, 4).transpose(0, 2, 1).copy()


def flags(collection: _Items, name: str, width: int = 1) -> BoolArray:
    """(N,) whether a boolean property of each item, or any component of it, is true."""
    values = np.empty(len(collection) * width, dtype=np.bool_)
    collection.foreach_get(name, values)
    return values.reshape(-1, width).any(axis=1)


def cut_tree(tree: Tree, owned: Collection[str], ends: Collection[str]) -> list[tuple[Tree, str]]:
    """Split a tree at owned bones, which something else moves; returns the parts that contain ends, parents first.

    Also returns the owned bone of each part, or "". It is the root of the part, at rest, because the whole part moves
    with it. A tree with owned bones is reduced to the bones between root and ends, because control rigs have
    hundreds of bones.
    """
    names = tree.skeleton.names
    tips = [bone for bone, name in enumerate(names) if name in ends]
    if not tips or not any(name in owned for name in names):
        return [(tree, "")] if tips else []
    members_by_root: dict[int, set[int]] = {}
    for tip in tips:
        path = tree.skeleton.path(tip)
        first = max((index for index, bone in enumerate(path) if names[bone] in owned), default=0)
        members_by_root.setdefault(path[first], set()).update(path[first:])
    parts = []
    for root in sorted(members_by_root):
        members, carrier = sorted(members_by_root[root]), names[root] if names[root] in owned else ""
        rotations = tree.rotations[members]
        if carrier:
            rotations[0] = IDENTITY
        parts.append((Tree(tree.skeleton.part(members), rotations, tree.skeleton.rest[root, :3, 3].copy()), carrier))
    return parts


def freeze(tree: Tree, held: Collection[str]) -> Tree:
    """The tree in the same pose, with held bones fixed: their current rotation becomes their rest rotation."""
    skeleton = tree.skeleton
    rows = [row for row, name in enumerate(skeleton.names) if name in held]
    if not rows:
        return tree
    held_rotations = np.tile(IDENTITY, (len(skeleton), 1))
    held_rotations[rows] = tree.rotations[rows]
    rest = forward_kinematics(skeleton, held_rotations, skeleton.rest[0, :3, 3])
    rotations = tree.rotations.copy()
    rotations[rows] = IDENTITY
    return Tree(skeleton.part(range(len(skeleton)), rest), rotations, tree.root_location)


def tree_below(
    tree: Tree, current_matrices: FloatArray, top: str, owned: Collection[str], frozen: Collection[str]
) -> Tree:
    """Cut out a bone and the bones below it; the new rest pose reproduces their `current_matrices` (J, 4, 4).

    The parent of the top bone does not move, so the rest pose has its current frame. The current pose of frozen bones
    becomes their rest pose. Bones that constraints move, and bones below them, are left out.
    """
    skeleton = tree.skeleton
    members = [skeleton.index(top)]
    for bone in range(members[0] + 1, len(skeleton)):
        if int(skeleton.parents[bone]) in members and skeleton.names[bone] not in owned:
            members.append(bone)
    rotations = tree.rotations[members]
    rotations[[skeleton.names[bone] in frozen for bone in members]] = IDENTITY
    posed = current_matrices[members]
    unturned = posed.copy()
    unturned[:, :3, :3] = posed[:, :3, :3] @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2)
    below, rest = skeleton.part(members), unturned.copy()
    for bone, parent in enumerate(below.parents):
        if parent >= 0:
            rest[bone] = rest[parent] @ np.linalg.inv(posed[parent]) @ unturned[bone]
            if not below.inherits_rotation[bone]:
                rest[bone, :3, :3] = unturned[bone, :3, :3]
    return Tree(skeleton.part(members, unscaled(rest)), rotations, rest[0, :3, 3].copy())


_KEEP_SIZE: Final = ("NONE", "NONE_LEGACY")


def solved_slides(rig: Object, bones: Collection[str]) -> dict[str, tuple[float, float]]:
    """The ranges of length factors of bones that may stretch, by name; a locked Y scale does not change.

    Raises RigError naming a child that would grow with its parent; LimitPropertyError for invalid factors.
    """
    slides = {
        name: slide for name, slide in read_extra(rig, bones, "slide").items() if not rig.pose.bones[name].lock_scale[1]
    }
    for child in growing_children([rig.pose.bones[name] for name in slides]):
        raise RigError(
            f"Bone {child.name!r} would be scaled by its stretching parent {child.parent.name!r}: set "
            "its Inherit Scale to None"
        )
    return slides


def stretched(rig: Object, tree: Tree, except_for: Collection[str] = ()) -> Tree:
    """A tree with its bones at their current lengths; those in `except_for` keep their rest lengths."""
    factors = current_factors(rig, [name for name in tree.skeleton.names if name not in except_for])
    return Tree(scaled_skeleton(tree.skeleton, factors), tree.rotations, tree.root_location)


def current_factors(rig: Object, bones: Collection[str]) -> dict[str, float]:
    """The current length factors of bones that may stretch, by name."""
    return {name: float(rig.pose.bones[name].scale[1]) for name in read_extra(rig, bones, "slide")}


def write_stretches(rig: Object, factors: Mapping[str, float]) -> None:
    """Set the length factors of bones, by name, in the current pose."""
    for name, factor in factors.items():
        rig.pose.bones[name].scale = (1.0, factor, 1.0)


def growing_children(bones: Sequence[PoseBone]) -> list[PoseBone]:
    """The bones' children that inherit scale from them."""
    return [child for bone in bones for child in bone.children if child.bone.inherit_scale not in _KEEP_SIZE]
