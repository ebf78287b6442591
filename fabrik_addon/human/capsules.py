"""Capsules on a human's bones that keep hands out of the trunk and limbs apart.

They are fitted to the vertices that bones deform, or to the person's height if there are none. A trunk is wider than
deep, so each of its bones has two capsules side by side.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from ..core.arrays import FloatArray, lengths
from ..core.kernel.bounds import Capsule, Place, SelfCollision, closest
from .naming_schemes import MIDDLE, TRUNK
from .rest_body import BodyAxes, RestBody, RestBone, square, unit

# Half the trunk's width and depth as fractions of the height, from the sample person.
_WIDTH: Final = {"hips": 0.077, "spine": 0.082, "chest": 0.088}
_DEPTH: Final = {"hips": 0.058, "spine": 0.059, "chest": 0.063}


class _Limb(NamedTuple):
    """The ends of a limb's capsule as fractions of its bone, and its radius as a fraction of the height.

    A capsule that begins beyond the joint leaves space for the flesh that hip and shoulder press together. is_tip:
    whether the rounded end, not the segment, ends at the bone's end. percentile: the radius is this percentile of the
    vertices' distances from the axis; it is low for flat parts, such as a hand.
    """

    radius: float
    start: float = 0.0
    is_tip: bool = False
    percentile: float = 50.0


_LIMBS: Final = {
    "neck": _Limb(0.035),
    "head": _Limb(0.046, 0.3, is_tip=True),
    "upper_arm": _Limb(0.026, 0.35),
    "forearm": _Limb(0.024),
    "hand": _Limb(0.013, is_tip=True, percentile=25.0),
    "finger": _Limb(0.006, is_tip=True),
    "thigh": _Limb(0.040, 0.3),
    "shin": _Limb(0.031),
    "foot": _Limb(0.021, is_tip=True, percentile=25.0),
}
# The fraction of a thigh's capsule, from its start, that does not collide with the trunk: belly and thighs are soft.
# With the whole capsule, the knees of a person who sits down end 36 cm apart.
_LAP: Final = 0.3
# A radius from a mesh, divided by that from the height, must be within these bounds: skirts and capes are not the body.
_THINNEST, _THICKEST = 0.6, 1.6
# A radius is measured from at least this many vertices.
_ENOUGH: Final = 8
# Percentiles of the vertices' distances to the side, forward and back. They are the half axes of an oval that contains
# most vertices.
_ASIDE, _FRONT, _BACK = 80.0, 10.0, 90.0
# A trunk bone shorter than this fraction of the height has no capsules.
_SHORT: Final = 0.02
# The number of a finger's second bone.
_SECOND: Final = 2
# Flat parts: on some sides their skin is outside their capsule, by up to 3 cm at the toes. Vertices farther away than a
# bone's length belong to objects in the hand.
_FLAT: Final = frozenset({"hand", "foot", "toe"})
# The outermost vertices in _DIRECTIONS represent a part's skin. The directions are evenly spread by the golden angle
# (Gonzalez, *Mathematical Geosciences*, 2010). _MARGIN, a fraction of the height (0.7 mm), allows for the skin between
# these vertices. Without it, toes are up to 2 mm below the floor.
_DIRECTIONS, _MARGIN = 400, 0.0004


class _Placed(NamedTuple):
    """A capsule at rest; ends: (2, 3) in armature space."""

    bone: str
    ends: FloatArray
    radius: float


def self_collision(bones: Mapping[str, RestBone], vertices: Mapping[str, FloatArray]) -> SelfCollision | None:
    """The capsules of a person and the pairs that must not overlap; None if the bones are not a human's.

    Pairs that touch at rest, connected bones, and pairs within the trunk are left out.

    Args:
        bones: at rest.
        vertices: by bone, the (N, 3) vertices that it deforms, armature space at rest.
    """
    body = RestBody(bones)
    if body.axes is None or not all(body.named(part) for part in ("hips", "upper_arm", "forearm", "thigh", "shin")):
        return None
    height = _height(body)
    placed = _trunk(body, body.axes, vertices, height) + _symmetric(
        body, body.axes, _limbs(body, vertices, height), vertices
    )
    parts, count = [body.roles[each.bone].part for each in placed], len(placed)
    for each in [each for each, part in zip(placed, parts, strict=True) if part == "thigh"]:
        placed.append(each._replace(ends=each.ends + np.outer((_LAP, 0.0), each.ends[1] - each.ends[0])))
        parts.append("thigh")

    def is_met(one: int, two: int) -> bool:
        """Whether capsule `one` can collide with `two`: a thigh's shortened capsule only collides with the trunk."""
        return parts[one] != "thigh" or (one >= count) == (parts[two] in TRUNK)

    pairs = [
        (one, two)
        for one, two in combinations(range(len(placed)), 2)
        if is_met(one, two) and is_met(two, one) and _may_meet(body, placed[one].bone, placed[two].bone)
    ]
    ones, twos = np.array(pairs).T
    ends, radii = np.stack([each.ends for each in placed], axis=1), np.array([each.radius for each in placed])
    apart = closest(ends[:, ones], ends[:, twos])[0] > radii[ones] + radii[twos]
    capsules = tuple(_in_bone(bones[each.bone], each) for each in placed)
    return SelfCollision(capsules, tuple(pair for pair, is_apart in zip(pairs, apart, strict=True) if is_apart))


def skin_points(
    bones: Mapping[str, RestBone], vertices: Mapping[str, FloatArray], collision: SelfCollision | None
) -> tuple[tuple[str, Place, float], ...]:
    """The points of a person that stay above a floor: their bones, positions in the bones' frames, and radii.

    These are the outermost vertices of a part, without clothes or objects in the hand. Parts without vertices use the
    ends of their capsules, and fingers the ends of their bones.

    Args:
        bones: at rest.
        vertices: by bone, the (N, 3) vertices that it deforms, armature space at rest.
        collision: the capsules of the person; None if there are none.
    """
    if collision is None:
        return ()
    body = RestBody(bones)
    height = _height(body)
    turned = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(_DIRECTIONS)
    rise = 1.0 - 2.0 * (np.arange(_DIRECTIONS) + 0.5) / _DIRECTIONS
    across = np.sqrt(1.0 - rise**2)
    around = np.stack([across * np.cos(turned), across * np.sin(turned), rise])
    found: list[tuple[str, Place, float]] = []
    # Points in front of the ball of a foot bend with its toes. If they were on the foot, no heel could rise.
    feet = [name for side in ("L", "R") if body.named("toe", side) for name in body.named("foot", side)]
    farthest = {name: bones[name].length for name in feet}
    done = set()
    for name, role in body.roles.items():
        usual = _WIDTH.get(role.part) or (_LIMBS[role.part].radius if role.part in _LIMBS else 0.0)
        bone = bones[name]
        if role.part == "finger":
            done.add(name)
            found.append((name, (0.0, bone.length, 0.0), usual * height))
        elif name in vertices and (usual or role.part in _FLAT):
            own = (vertices[name] - bone.head) @ bone.axes
            off = own - np.clip(own[:, 1:2], 0.0, bone.length) * (0.0, 1.0, 0.0)
            kept = lengths(off) <= (bone.length if role.part in _FLAT else _THICKEST * usual * height)
            own = own[kept & (own[:, 1] <= farthest.get(name, np.inf))]
            if len(own) >= _ENOUGH:
                done.add(name)
                outermost = own[np.unique((own @ around).argmax(axis=0))]
                found += [(name, (x, y, z), _MARGIN * height) for x, y, z in outermost.tolist()]
    balls = [(each, place) for each in collision.capsules if each.bone not in done for place in (each.start, each.end)]
    balls = [(each, place) for each, place in balls if place[1] <= farthest.get(each.bone, np.inf)]
    return (*found, *((each.bone, place, each.radius) for each, place in balls))


def _height(body: RestBody) -> float:
    assert body.axes is not None
    ends = [point for name, role in body.roles.items() if role.part in {"head", "foot", "hips"}
            for point in (body.bones[name].head, body.end(name))]  # fmt: skip
    return float(np.ptp(np.array(ends) @ body.axes.up))


def _trunk(body: RestBody, axes: BodyAxes, vertices: Mapping[str, FloatArray], height: float) -> list[_Placed]:
    found = sorted(
        body.named("hips") + body.named("spine") + body.named("chest"), key=lambda name: body.bones[name].head @ axes.up
    )
    joints: list[FloatArray] = []
    names: list[str] = []
    for name in found:
        head = body.bones[name].head
        if not joints or (head - joints[-1]) @ axes.up > _SHORT * height:
            joints.append(head)
            names.append(name)
    top = body.head_of("neck")
    joints.append(body.end(names[-1]) if top is None else top)
    hips = body.head_of("thigh")
    if hips is not None and (hips - joints[0]) @ axes.up < 0.0:
        joints[0] = joints[0] + ((hips - joints[0]) @ axes.up) * axes.up
    cloud = np.concatenate([*(vertices.get(name, np.zeros((0, 3))) for name in found), np.zeros((0, 3))])
    placed = []
    for name, start, end in zip(names, joints, joints[1:], strict=False):
        if not (end - start) @ axes.up > 0.0:
            continue
        part = body.roles[name].part
        half, deep, center = _WIDTH[part] * height, _DEPTH[part] * height, 0.0
        share = ((cloud - start) @ axes.up) / ((end - start) @ axes.up)
        slab = (share >= 0.0) & (share <= 1.0)
        if slab.sum() >= _ENOUGH:
            off = cloud[slab] - start - share[slab, None] * (end - start)
            front, back = np.percentile(off @ axes.forward, (_FRONT, _BACK))
            half = _plausible(float(np.percentile(np.abs(off @ axes.left), _ASIDE)), half)
            deep, center = _plausible(0.5 * float(back - front), deep), 0.5 * float(back + front)
        aside = max(half - deep, 0.0) * axes.left
        middle = np.array([start, end]) + center * axes.forward
        placed += [_Placed(name, middle + side * aside, deep) for side in (1.0, -1.0)]
    return placed


def _limbs(body: RestBody, vertices: Mapping[str, FloatArray], height: float) -> list[_Placed]:
    placed = []
    for name, role in body.roles.items():
        limb = _LIMBS.get(role.part)
        # Only the middle finger has capsules: one on its first bone, and one from its second bone to its tip.
        if limb is None or (role.part == "finger" and (role.finger != "middle" or role.number > _SECOND)):
            continue
        beyond = body.named("toe", role.side, number=1) if role.part == "foot" else []
        if role.part == "finger" and role.number == _SECOND:
            beyond = body.named("finger", role.side, "middle", _SECOND + 1)
        head, tip = body.bones[name].head, body.end([name, *beyond][-1])
        if not np.linalg.norm(tip - head) > 0.0:
            continue
        along, radius = unit(tip - head), limb.radius * height
        ends = np.array([head + limb.start * (tip - head), tip])
        cloud = np.concatenate([vertices.get(each, np.zeros((0, 3))) for each in (name, *beyond)])
        share = ((cloud - head) @ along) / np.linalg.norm(tip - head)
        inside = (share >= limb.start) & (share <= 1.0)
        if inside.sum() >= _ENOUGH:
            off = square(cloud[inside] - head, along)
            ends += off.mean(axis=0)
            radius = _plausible(float(np.percentile(lengths(off - off.mean(axis=0)), limb.percentile)), radius)
        if limb.is_tip:
            ends[1] -= min(radius, float(np.linalg.norm(ends[1] - ends[0]))) * along
        placed.append(_Placed(name, ends, radius))
    return placed


def _symmetric(
    body: RestBody, axes: BodyAxes, placed: list[_Placed], vertices: Mapping[str, FloatArray]
) -> list[_Placed]:
    """The capsules, made symmetric if they nearly are, so that a drag and its mirror image give mirrored poses."""
    left, middle = axes.left, body.bones[body.named("hips")[0]].head

    def mirrored(ends: FloatArray) -> FloatArray:
        return np.asarray(ends - 2.0 * ((ends - middle) @ left)[:, None] * left)

    by_role = {body.roles[each.bone]: each for each in placed}
    result = []
    for each in placed:
        role = body.roles[each.bone]
        other = by_role.get(replace(role, side={"L": "R", "R": "L"}.get(role.side, role.side)))
        alike = other is not None and (each.bone in vertices) == (other.bone in vertices)
        if other is not None and alike and lengths(mirrored(other.ends) - each.ends).max() < each.radius:
            ends = 0.5 * (each.ends + mirrored(other.ends))
            result.append(_Placed(each.bone, ends, 0.5 * (each.radius + other.radius)))
        else:
            result.append(each)
    return result


def _plausible(measured: float, usual: float) -> float:
    return float(np.clip(measured, _THINNEST * usual, _THICKEST * usual))


def _may_meet(body: RestBody, one: str, two: str) -> bool:
    """Whether two bones can collide: not if both are in one hand, or if they are connected.

    Joint limits keep trunk, neck and head apart.
    """
    roles = body.roles[one], body.roles[two]
    parts = {role.part for role in roles}
    if parts <= {"hand", "finger"} and roles[0].side == roles[1].side:
        return False
    return not parts <= set(MIDDLE) and one != two and _above(body, one) != two and _above(body, two) != one


def _above(body: RestBody, name: str) -> str:
    """The nearest bone above this one that has a capsule; "" if there is none."""
    above = body.bones[name].parent
    while above in body.bones and (above not in body.roles or body.roles[above].part not in (*TRUNK, *_LIMBS)):
        above = body.bones[above].parent
    return above


def _in_bone(bone: RestBone, placed: _Placed) -> Capsule:
    start, end = ((place - bone.head) @ bone.axes for place in placed.ends)
    return Capsule(placed.bone, tuple(start.tolist()), tuple(end.tolist()), placed.radius)
