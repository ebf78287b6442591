"""A rig's body: masses, stiffness, support for balance, floor, and the capsules that must not overlap."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
from bpy.types import Object
from mathutils import Matrix, Quaternion, Vector

from ...core.arrays import FloatArray, IntArray
from ...core.kernel.bounds import Capsule, Floor, Place, SelfCollision, Support
from ...core.kernel.posture import Masses
from ...core.model.skeleton import Skeleton
from ...human.capsules import self_collision, skin_points
from ...human.masses import body_masses
from ...human.naming_schemes import match
from ...human.preset import bend_axes, why_not_human
from ...human.rest_body import Point, RestBody, convex_hull, floor_points, soles_of
from ..control.switches import limbs_of
from ..rig.armature import RestKey, armature_point, as_array, rest_key, rest_of
from ..settings.control import FabrikCarrier, control_rig, solved_parents
from ..settings.limit_properties import read_extra
from ..settings.limit_values import OWN_MASS
from ..settings.rig import rig_settings
from ..settings.why_not import ARMATURES, enabled_effectors

# The number of rigs whose masses, shapes and soles are cached, because the overlay needs them at each redraw.
_RIGS: Final = 8
# Masses by the names and lengths of bones.
_masses_by_name: Final = lru_cache(maxsize=_RIGS)(lambda lengths: body_masses(dict(lengths)))
# If the cosine between trunk and limbs is at least this, the trunk is upright.
_ACROSS: Final = 0.5
# The cost of bending the trunk of an animal that is moved as a whole. If the hips of a wolf or horse are lowered by 10
# cm, its hind legs become 14 and 17 % shorter. Its front legs keep their length with a cost of 1, and become as short
# with 1000.
_STIFF: Final = 1000.0


def masses_of(armature: Object, skeleton: Skeleton, stiff: Collection[str] = ()) -> Masses:
    """The masses of the J bones of a tree, by body part or size, changed by `fabrik_mass` and `fabrik_stiffness`.

    stiff: bones that move as one piece. Raises LimitPropertyError naming a bone with invalid properties.
    """
    shares, centers, keeps, bends, hangs, eased = _body(armature, skeleton.names)
    bends = bends * np.where([name in stiff for name in skeleton.names], _STIFF, 1.0)
    stiff_bones = read_extra(armature, skeleton.names, "stiffness")
    stiffness = np.array([stiff_bones.get(name, 0.0) for name in skeleton.names])
    # Each bone's factor in the posture term: 1 at stiffness 0, 4 at 0.5, infinite at 1.
    left = 1.0 - np.clip(stiffness, 0.0, 1.0)
    factors = np.where(left > 0.0, 1.0 / np.maximum(left, 1e-12) ** 2, np.inf)
    known = _rest_parts(*rest_key(armature)).hinges
    hinges = np.array([known.get(name, np.zeros(3)) for name in skeleton.names])
    return Masses(shares, centers, keeps * factors, bends, hangs * (1.0 - stiffness), eased, hinges)


def trunk_of_animal(armature: Object) -> list[str]:
    """The bones to which the limbs of a four-legged control rig are attached; none for other rigs.

    Its trunk lies across its limbs, while a person's is above the legs.
    """
    setup = control_rig(armature)
    if setup is None:
        return []
    limbs, rows = list(limbs_of(setup).values()), setup.carriers
    hind = [limb for limb in limbs if limb[0].parent == rows[0].name]
    front = [limb for limb in limbs if limb[0].parent != rows[0].name]
    if min(len(front), len(hind)) < 2:
        return []

    def middle(bones: Sequence[FabrikCarrier]) -> FloatArray:
        return np.array([armature.data.bones[row.name].head_local for row in bones]).mean(axis=0)

    along = middle([limb[0] for limb in front]) - middle([limb[0] for limb in hind])
    down = middle([limb[-1] for limb in limbs]) - middle([limb[0] for limb in limbs])
    if abs(along @ down) > _ACROSS * np.linalg.norm(along) * np.linalg.norm(down):
        return []
    found: list[str] = []
    for limb in front:
        name = limb[0].parent
        while name and name not in found:
            found.append(name)
            name = rows[name].parent
    return found


def part_of(armature: Object, bone: str) -> str:
    """The part of a human body that a bone represents, by its name; "" for none."""
    role = match(solved_parents(armature)).get(bone)
    return "" if role is None else role.part


def hips_on_root(armature: Object) -> str:
    """A person's hips if they can move relative to a parent that carries the whole rig; "" if there are none.

    Game characters travel through a scene with such a parent, so poses don't move it. On control rigs, this parent is a
    control and not a bone of the body.
    """
    roles = {} if control_rig(armature) else match(solved_parents(armature))
    hips = next((armature.pose.bones[name] for name, role in roles.items() if role.part == "hips"), None)
    if hips is None or hips.parent is None or any(hips.lock_location):
        return ""
    rest = hips.bone
    return hips.name if rest.use_local_location and rest.use_inherit_rotation and not rest.use_connect else ""


def center_of_mass(armature: Object) -> FloatArray:
    """(3,) the center of mass of all bones in their current pose, in armature space.

    Raises LimitPropertyError naming a bone with an invalid mass.
    """
    bones = [armature.pose.bones[name] for name in solved_parents(armature)]
    shares, centers, *_ = _body(armature, [bone.name for bone in bones])
    heads, tails = (np.array([getattr(bone, end)[:] for bone in bones]) for end in ("head", "tail"))
    return np.asarray(shares @ (heads + centers[:, None] * (tails - heads)))


def _body(armature: Object, bones: Sequence[str]) -> tuple[FloatArray, ...]:
    """The values of each field of `BoneMass` for B bones, (B,) each."""
    found = _masses_by_name(tuple((name, armature.data.bones[name].length) for name in solved_parents(armature)))
    known, own = np.array([found[name] for name in bones]), read_extra(armature, bones, "mass")
    wanted = np.array([own.get(name, OWN_MASS) for name in bones])
    shares = np.where(wanted < 0.0, known[:, 0], wanted)
    return shares / max(float(shares.sum()), np.finfo(float).tiny), *known.T[1:]


# The capsules of a rig, and its points, each with a radius, that stay above a floor.
_Shape: TypeAlias = tuple[SelfCollision | None, tuple[tuple[str, Place, float], ...]]
# For each rig, the number of searches for armatures when it was cached, and the names of its meshes.
_MESHES: Final[dict[str, tuple[int, tuple[str, ...]]]] = {}
# In larger meshes, only every second (or third, …) vertex is read.
_MOST_VERTICES: Final = 20_000
# If a second bone moves a vertex with at least this weight, the vertex stays above the floor with that bone too. The
# skin of a bent knee is between the points that are fixed to thigh and shin.
_SHARED: Final = 0.15
# A pinned bone bears weight if its end is at most this many foot lengths above the soles, like a paw or a hand on the
# floor. A higher one is assumed to hold on to something.
_LOW: Final = 1.0


def collision_of(armature: Object, skeleton: Skeleton, *, always: bool = False) -> SelfCollision | None:
    """The capsules of a rig for a skeleton of some of its bones; None if they are off or the rig is not a human's.

    Bones outside the skeleton keep their current pose. always: also return the capsules if they are off.
    """
    found = fitted(armature) if always or rig_settings(armature).bake.self_collision != "OFF" else None
    if found is None:
        return None
    capsules = []
    for capsule in found.capsules:
        each = capsule
        if each.bone not in skeleton.names:
            matrix = as_array(armature.pose.bones[each.bone].matrix)
            start, end = (np.array([each.start, each.end]) @ matrix[:3, :3].T + matrix[:3, 3]).tolist()
            each = Capsule("", tuple(start), tuple(end), each.radius)
        capsules.append(each)
    return replace(found, capsules=tuple(capsules))


def fitted(armature: Object, *, redraw: bool = False) -> SelfCollision | None:
    """The capsules of a rig at rest; None if the rig is not a human's.

    redraw: use the meshes of the last call until objects are added.
    """
    return _shape(armature, redraw=redraw)[0]


def _shape(armature: Object, *, redraw: bool = False) -> _Shape:
    """The capsules (see `fitted`), and the points that stay above a floor."""
    searches, names = _MESHES.get(armature.name, (-1, ()))
    meshes = [bpy.data.objects.get(name) for name in names]
    if not redraw or searches != ARMATURES.searches or None in meshes:
        # A linked rig's mesh follows the original armature instead of the override.
        followed = {armature, armature.override_library.reference if armature.override_library else armature}
        meshes = [thing for thing in bpy.data.objects if thing.type == "MESH" and thing.find_armature() in followed]
        _MESHES[armature.name] = ARMATURES.searches, tuple(mesh.name for mesh in meshes)
    # Read a mesh again only if its number of vertices changes.
    return _fitted(armature.name, tuple((mesh.name, len(mesh.data.vertices)) for mesh in meshes), rest_key(armature))


@lru_cache(maxsize=_RIGS)
def _fitted(rig: str, meshes: tuple[tuple[str, int], ...], key: RestKey) -> _Shape:
    rest = rest_of(*key)
    if why_not_human(rest):
        return None, ()
    armature = bpy.data.objects[rig]
    above = solved_parents(armature)
    heaviest: dict[str, list[FloatArray]] = {}
    shared: dict[str, list[FloatArray]] = {}
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
                heaviest.setdefault(bone.name, []).append(places[groups[:, 0] == group.index])
                shared.setdefault(bone.name, []).append(places[(groups == group.index).any(axis=1)])
    own, all_own = ({name: np.concatenate(each) for name, each in by.items()} for by in (heaviest, shared))
    found = self_collision(rest, own)
    return found, skin_points(rest, all_own, found)


def _vertices(mesh: Object) -> tuple[FloatArray, IntArray]:
    """(N, 3) vertex positions at rest, and (N, 2) the indices of each vertex's two heaviest groups.

    An index is -1 if there is no such group, or if the second group has little weight.
    """
    vertices = mesh.data.vertices
    step = 1 + len(vertices) // _MOST_VERTICES
    places = np.empty(3 * len(vertices), dtype=np.float32)
    vertices.foreach_get("co", places)
    read = range(0, len(vertices), step)
    groups = np.full((len(read), 2), -1)
    for row, index in enumerate(read):
        heaviest = sorted(((each.weight, each.group) for each in vertices[index].groups), reverse=True)[:2]
        for column, (weight, group) in enumerate(heaviest):
            if column == 0 or weight >= _SHARED:
                groups[row, column] = group
    return places.reshape(-1, 3)[::step].astype(np.float64), groups


def support_of(armature: Object, pinned: Collection[str]) -> Support | None:
    """The support area for the center of mass: the soles of pinned feet, in their pins' poses.

    Other pinned bones bear weight too, at their tails. None if balance is off, or if there are too few pins to stand
    on. Also None if a hand is pinned higher than the feet, because a body that holds a wall or a rail can't fall. This
    does not apply if balance is always on.

    pinned: names of bones.
    """
    balance = rig_settings(armature).balance
    if balance == "OFF" or not pinned:
        return None
    feet = _rest_parts(*rest_key(armature)).soles
    held = {
        name: points for name, points in feet.items() if not {name, *(bone for bone, _ in points)}.isdisjoint(pinned)
    }
    points = [point for corners in held.values() for point in corners]
    back: dict[str, Matrix] = {}
    for own in held.values():
        bones = {bone for bone, _ in own}
        back |= dict.fromkeys(bones, _to_pin(armature, bones.intersection(pinned)))
    up, _ = up_of(armature)
    standing, rest = {bone for bone, _ in points}, armature.data.bones
    others = [(name, (0.0, rest[name].length, 0.0)) for name in pinned if name not in standing]
    corners, tails = _posed(armature, points, back), _posed(armature, others, back)
    if balance != "ON":
        low = (corners @ up).min() + _LOW * max(rest[foot].length for foot in held) if held else -np.inf
        if (tails @ up > low).any():
            return None
    corners = _outline(np.concatenate([corners, tails]), up)
    return Support(corners, (up[0], up[1], up[2])) if len(corners) > 2 else None


def floor_of(armature: Object, *, without: Collection[str] = ()) -> Floor | None:
    """The floor for feet, hands, knees and the skin of a person; None without a floor.

    without: bones that the floor ignores, with their descendants.
    """
    settings = rig_settings(armature)
    if not settings.use_floor:
        return None
    up, scale = up_of(armature)
    height = (settings.floor_height - armature.matrix_world.translation.z) / scale
    points = _rest_parts(*rest_key(armature)).above_floor
    above, balls, left_out = solved_parents(armature), _shape(armature)[1], set(without)
    for bone, parent in above.items():
        if parent in left_out:
            left_out.add(bone)
    points = tuple(each for each in points if each[0] not in left_out)
    balls = tuple(each for each in balls if each[0] not in left_out)
    return Floor(points, (up[0], up[1], up[2]), height, balls)


def side_bends(armature: Object) -> Mapping[str, FloatArray]:
    """By bone of a person's spine, (3,) the axis about which it bends sideways, in its rest frame."""
    return _rest_parts(*rest_key(armature)).side_bends


def up_of(armature: Object) -> tuple[FloatArray, float]:
    """(3,) the world's Z as a unit vector in armature space, and world units per armature unit along it."""
    row = np.array(armature.matrix_world[2][:3])
    scale = float(np.linalg.norm(row))
    return row / scale, scale


def _posed(armature: Object, points: Collection[Point], back: Mapping[str, Matrix]) -> FloatArray:
    """(N, 3) current positions of points on bones in armature space; the transforms `back` move some of the bones."""
    bones = armature.pose.bones
    moved = (back.get(name, Matrix()) @ bones[name].matrix @ Vector(place) for name, place in points)
    return np.array([place[:] for place in moved]).reshape(-1, 3)


def _to_pin(armature: Object, foot: Collection[str]) -> Matrix:
    """The transform in armature space by which solving will move the pinned bones of a foot to their pins."""
    for pin in enabled_effectors(armature):
        if pin.kind == "PIN" and pin.bone in foot:
            bone = armature.pose.bones[pin.bone]
            turn = pin.pin_rotation @ bone.matrix.to_quaternion().conjugated() if pin.hold_rotation else Quaternion()
            point = armature_point(bone, pin.point, pin.offset)
            return Matrix.Translation(pin.pin_location) @ turn.to_matrix().to_4x4() @ Matrix.Translation(-point)
    return Matrix()


def _outline(points: FloatArray, up: FloatArray) -> FloatArray:
    """(M, 3) the convex hull of points (N, 3) as seen from above, at the height of the lowest point."""
    if not len(points):
        return points
    across = np.linalg.svd(up[None])[2][1:]
    across[1] = np.cross(up, across[0])
    return convex_hull(points @ across.T) @ across + (points @ up).min() * up


class _RestParts(NamedTuple):
    """Parts of a rig at rest.

    soles: points of each foot. above_floor: all points that stay above a floor. side_bends: see `side_bends`. hinges:
    by knee and elbow, (3,) the axis about which it bends, in the bone's rest frame.
    """

    soles: Mapping[str, tuple[Point, ...]]
    above_floor: tuple[Point, ...]
    side_bends: Mapping[str, FloatArray]
    hinges: Mapping[str, FloatArray]


@lru_cache(maxsize=_RIGS)
def _rest_parts(*key: Any) -> _RestParts:
    body, bends, hinges = RestBody(rest_of(*key)), dict[str, FloatArray](), dict[str, FloatArray]()
    if body.axes is not None and not why_not_human(body.bones):
        spine = [*body.named("spine"), *body.named("chest")]
        bends = {name: body.axes.forward @ body.bones[name].axes for name in spine}
        hinges = bend_axes(body)
    return _RestParts(soles_of(body), floor_points(body), bends, hinges)
