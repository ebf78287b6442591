"""A human rig at rest: roles of bones, up and forward directions, palms, and the points that touch the floor.

Everything follows from the positions of joints in armature space, not from bone roll. Soles, palms and knees touch the
floor at points on their bones.
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from ..core.arrays import ROUNDING, SINGLE, FloatArray, IntArray, lengths
from .naming_schemes import FINGERS, Role, match

# The fields of a role other than its part.
_TOLD: Final = ("side", "finger", "number")
# The smallest cosine (45 degrees) between directions that count as equal: of a bone's Y axis and its limb, or of trunk
# and legs.
ALONG: Final = 0.7
# The smallest cosine between a hand, or a finger's last bone, and its parent. If it is smaller, the tail was invented
# by an importer: in Blender, bones point along Y if a file does not contain their ends.
_ON: Final = 0.5
# A direction of the body within this angle of an armature axis is replaced by that axis, since people slouch and feet
# point out.
_SNAP: Final = np.cos(np.radians(10.0))
# If a foot's horizontal part is less than this fraction of its length, the foot does not show the forward direction.
FLAT_FOOT: Final = 0.3
# For each part of a limb, the next part. The head of the next bone is the end of the bone before it.
_NEXT: Final = {"upper_arm": "forearm", "forearm": "hand", "thigh": "shin", "shin": "foot", "foot": "toe"}


@dataclass(frozen=True, eq=False)
class RestBone:
    """A bone at rest in armature space; posed on F frames, its arrays have F in front.

    Attributes:
        parent: its parent's name, "" for a root.
        head: (..., 3) the position of its head.
        axes: (..., 3, 3) its local X, Y and Z axes as columns; Y points to its tail.
        length: from head to tail.
    """

    parent: str
    head: FloatArray
    axes: FloatArray
    length: float

    @property
    def tail(self) -> FloatArray:
        """(..., 3) the position of its tail."""
        return np.asarray(self.head + self.length * self.axes[..., 1])


def bones_of(names: Sequence[str], parents: IntArray, matrices: FloatArray, sizes: FloatArray) -> dict[str, RestBone]:
    """N bones by name.

    parents: (N,) indices, -1 for roots. matrices: (N, ..., 4, 4) matrices, armature space. sizes: (N,) lengths.
    """
    rows = zip(names, parents, matrices, sizes, strict=True)
    return {
        name: RestBone(names[parent] if parent >= 0 else "", matrix[..., :3, 3], matrix[..., :3, :3], float(length))
        for name, parent, matrix, length in rows
    }


class BodyAxes(NamedTuple):
    """The body's own directions (unit vectors, armature space) and a point in its middle."""

    up: FloatArray
    forward: FloatArray
    left: FloatArray
    middle: FloatArray

    @property
    def columns(self) -> FloatArray:
        """(..., 3, 3) forward, left and up as columns."""
        return np.stack([self.forward, self.left, self.up], axis=-1)


class Palm(NamedTuple):
    """A hand's own directions (unit vectors): along it, out of its palm, and to the thumb's side.

    seen: True if they follow from the positions of its fingers, False if they are assumed from a natural posture.
    """

    along: FloatArray
    normal: FloatArray
    thumb: FloatArray
    seen: bool


class RestBody:
    """The bones of a rig by name, and their roles."""

    def __init__(self, bones: Mapping[str, RestBone], roles: Mapping[str, Role] | None = None) -> None:
        """roles: the role of each bone by name; None: recognize roles from bone names."""
        self.bones = bones
        self.roles = match(bones) if roles is None else roles
        self._by_part: dict[str, list[str]] = {}
        for name, role in self.roles.items():
            self._by_part.setdefault(role.part, []).append(name)
        self._named: dict[tuple[str, str | None, str | None, int | None], list[str]] = {}

    def posed(self, bones: Mapping[str, RestBone]) -> "RestBody":
        """The same body with its bones in another pose, or in F poses: then all positions and directions are (F, 3)."""
        body = copy(self)
        body.bones = bones
        body.__dict__.pop("axes", None)
        return body

    def named(
        self, part: str, side: str | None = None, finger: str | None = None, number: int | None = None
    ) -> list[str]:
        """The bones with a role; None matches anything."""
        asked = (part, side, finger, number)
        if asked not in self._named:
            wanted = [(what, value) for what, value in zip(_TOLD, asked[1:], strict=True) if value is not None]
            self._named[asked] = [
                name
                for name in self._by_part.get(part, ())
                if all(getattr(self.roles[name], what) == value for what, value in wanted)
            ]
        return self._named[asked]

    def head_of(self, part: str, side: str | None = None, number: int | None = None) -> FloatArray | None:
        """(..., 3) mean of the heads of all bones with a role; None if there are none."""
        heads = [self.bones[name].head for name in self.named(part, side, number=number)]
        return sum(heads[1:], heads[0]) / len(heads) if heads else None

    def end(self, name: str) -> FloatArray:
        """(3,) the joint at a bone's end, or its tail."""
        span, bone = self._span(name), self.bones[name]
        return bone.head + (bone.length * self.direction(name) if span is None else span)

    def direction(self, name: str) -> FloatArray:
        """(..., 3) unit vector from a bone's head to the joint at its end.

        If there is no such joint, it is the direction of the bone itself. If that bone lies across the limb, it is the
        direction from its parent's head to its own head.
        """
        bone = self.bones[name]
        span = self._span(name)
        if span is None and bone.parent in self.bones:
            before = bone.head - self.bones[bone.parent].head
            role = self.roles[name]
            goes_on = role.part == "hand" or (role.part == "finger" and role.number > 1)
            if not self._lie_along or (goes_on and (_cosine(before, bone.axes[..., 1]) < _ON).all()):
                span = before
        return bone.axes[..., 1] if span is None or (lengths(span) < SINGLE).any() else unit(span)

    @cached_property
    def _lie_along(self) -> bool:
        """Whether the bones point along their limbs, as in most rigs; after some imports they point across them."""
        spans = [(self.bones[name], span) for name in self.roles if (span := self._span(name)) is not None]
        shares = [_cosine(span, bone.axes[..., 1]) for bone, span in spans if (lengths(span) > SINGLE).all()]
        return not shares or float(np.median(shares)) > ALONG

    def _span(self, name: str) -> FloatArray | None:
        """(3,) the vector from a bone's head to the joint at its end; None if there is none."""
        end = self._end(self.roles[name])
        return None if end is None else end - self.bones[name].head

    def _end(self, role: Role) -> FloatArray | None:
        if role.part == "hand":
            knuckles = self._knuckles(role.side)
            return np.mean(knuckles, axis=0) if len(knuckles) > 1 else None
        if role.part in {"finger", "toe"}:
            following = self.named(role.part, role.side, role.finger, role.number + 1)
            return self.bones[following[0]].head if len(following) == 1 else None
        following_part = _NEXT.get(role.part, "")
        return self.head_of(following_part, role.side, 1 if following_part == "toe" else None)

    @cached_property
    def axes(self) -> BodyAxes | None:
        """The body's up, forward and left directions, armature space; None if there are too few joints."""
        hips, top = self.first_of("hips", "thigh"), self.first_of("head", "neck", "upper_arm", "shoulder", "chest")
        # A body of legs points from its feet to its hips.
        low, high = (self.first_of("foot", "shin"), hips) if top is None else (hips, top)
        if hips is None or low is None or high is None or (lengths(high - low) < SINGLE).any():
            return None
        up = _snapped(high - low)
        forward = self._forward(up)
        return None if forward is None else BodyAxes(up, forward, np.cross(up, forward), hips)

    def first_of(self, *parts: str) -> FloatArray | None:
        """(3,) mean of the heads of the bones of the first part that the body has; None if it has none of them."""
        return next((head for part in parts if (head := self.head_of(part)) is not None), None)

    def _forward(self, up: FloatArray) -> FloatArray | None:
        """The direction of the feet; if unknown, the one perpendicular to up and to the line from right to left."""
        across = sum((self.across(part) for part in ("thigh", "upper_arm", "shoulder", "hand")), np.zeros(3))
        forward, feet = np.cross(across, up), list[FloatArray]()
        for side in ("L", "R"):
            toes = self.head_of("toe", side, 1)
            for foot in (self.bones[name] for name in self.named("foot", side)[:1]):
                feet.append((foot.tail if toes is None else toes) - foot.head)
        if len(feet) == 2:
            ahead = square(feet[0] + feet[1], up)
            is_seen = lengths(ahead) > FLAT_FOOT * lengths(feet[0] + feet[1])
            forward = np.where(is_seen[..., None], ahead, forward)
        return _snapped(forward) if (lengths(forward) > SINGLE).all() else None

    def across(self, part: str) -> FloatArray:
        """(..., 3) the vector from the right bone of a pair to the left one; zero without a pair."""
        left, right = self.head_of(part, "L"), self.head_of(part, "R")
        return np.zeros(3) if left is None or right is None else left - right

    def side_sign(self, name: str) -> int:
        """1 for a bone on the body's left, -1 for one on its right, by its position; near the middle, by its name.

        0 if neither determines the side.
        """
        if self.axes is not None:
            aside = (self.bones[name].head - self.axes.middle) @ self.axes.left
            if abs(aside) > 0.01 * length(self.bones[name].head - self.axes.middle):
                return int(np.sign(aside))
        return {"L": 1, "R": -1}.get(self.roles[name].side, 0)

    def _knuckles(self, side: str) -> list[FloatArray]:
        first = [self.named("finger", side, finger, 1) for finger in FINGERS[1:]]
        return [self.bones[names[0]].head for names in first if names]

    def palm(self, side: str) -> Palm | None:
        """The directions of the hand on a side; None if unknown."""
        hands, thumbs = self.named("hand", side), self.named("finger", side, "thumb", 1)
        if not hands:
            return None
        along, knuckles = self.direction(hands[0]), self._knuckles(side)
        if len(knuckles) > 1:
            across = knuckles[-1] - knuckles[0]
        elif thumbs:
            across = self.bones[hands[0]].head - self.bones[thumbs[0]].head
        else:
            return self._natural_palm(hands[0], along)
        across = unit(square(across, along))
        # If the fingers point forward and the little finger is on the left, this points up: a left hand's palm.
        normal = np.cross(across, along)
        sign = self.side_sign(hands[0]) or self._curl(side, normal) or self._thumb_side(side, normal)
        return Palm(along, sign * normal, -across, seen=True) if sign else None

    def _natural_palm(self, hand: str, along: FloatArray) -> Palm | None:
        """A palm that faces down and toward the body, with the thumb in front."""
        sign = self.side_sign(hand)
        if self.axes is None or not sign:
            return None
        normal = unit(square(-self.axes.up - 0.5 * sign * self.axes.left, along))
        return Palm(along, normal, sign * np.cross(normal, along), seen=False)

    def _curl(self, side: str, normal: FloatArray) -> int:
        """1 or -1: the side of a plane along the hand to which the fingers are bent at rest; 0 if they are straight."""
        bones = [[self.named("finger", side, finger, number) for number in (1, 2)] for finger in FINGERS[1:]]
        ends = [(self.direction(first[0]), self.direction(second[0])) for first, second in bones if first and second]
        bent = sum(float((second - first) @ normal) for first, second in ends)
        return int(np.sign(bent)) if abs(bent) > 0.1 else 0

    def _thumb_side(self, side: str, normal: FloatArray) -> int:
        """1 or -1: the side of the knuckles' plane on which the thumb ends; 0 without a thumb."""
        thumb, knuckles = self.named("finger", side, "thumb"), self._knuckles(side)
        if not thumb or not knuckles:
            return 0
        end = self.bones[max(thumb, key=lambda name: self.roles[name].number)]
        return int(np.sign((end.tail - np.mean(knuckles, axis=0)) @ normal))


def unit(vector: FloatArray) -> FloatArray:
    """Vectors (..., 3) scaled to length one."""
    return np.asarray(vector / lengths(vector)[..., None])


def square(vector: FloatArray, along: FloatArray) -> FloatArray:
    """(..., 3) the components of vectors perpendicular to the unit vectors `along`."""
    return np.asarray(vector - (vector * along).sum(axis=-1, keepdims=True) * along)


def length(vector: FloatArray) -> float:
    """The length of a vector (3,)."""
    return math.sqrt(vector @ vector)


def signed_angle(start: FloatArray, end: FloatArray, axis: FloatArray) -> float:
    """Degrees from unit vector `start` to `end`, right-handed about the unit vector `axis`; each (3,)."""
    return float(np.degrees(np.arctan2(axis @ np.cross(start, end), start @ end)))


def degrees_between(one: FloatArray, other: FloatArray) -> FloatArray:
    """(...) angles between directions (..., 3), degrees."""
    return np.asarray(np.degrees(np.arccos(np.clip(_cosine(one, other), -1.0, 1.0))))


def _cosine(one: FloatArray, other: FloatArray) -> FloatArray:
    """(...) cosines of the angles between directions (..., 3)."""
    return np.asarray((one * other).sum(axis=-1) / np.maximum(lengths(one) * lengths(other), ROUNDING))


def _snapped(direction: FloatArray) -> FloatArray:
    """(..., 3) the unit vectors of directions, or the armature's axes that are nearly equal to them."""
    exact = unit(direction)
    is_near = np.abs(exact) > _SNAP
    return np.where(is_near.any(axis=-1, keepdims=True), np.sign(exact) * is_near, exact)


Point = tuple[str, tuple[float, float, float]]

# A foot is 0.152 of the body's height long and 0.055 wide (Drillis and Contini, 1966, as in Winter, *Biomechanics and
# Motor Control of Human Movement*, 2009, figure 4.1). Its heel is about a quarter of its length behind the ankle.
_WIDTH: Final = 0.055 / 0.152
_HEEL: Final = 0.25
# Without toe bones the foot's bone ends at the ball, at about this fraction of the distance to the tips of the toes.
_BALL: Final = 0.65
# A rig's floor is at the armature's origin if its lowest joint is within this fraction of its feet's length above it.
_ON_ORIGIN: Final = 0.5


def soles_of(body: RestBody) -> dict[str, tuple[Point, ...]]:
    """The corners of each foot's sole: heel, ball left and right, tip of the toes; by the name of the foot's bone.

    Each corner is a bone and a point in that bone's frame. Empty if the feet or the up direction are unknown.
    """
    joints = {name: _joints(body, name) for side in ("L", "R") for name in body.named("foot", side)[:1]}
    if body.axes is None or not joints:
        return {}
    up, every, soles = body.axes.up, np.concatenate(list(joints.values())), dict[str, tuple[Point, ...]]()
    lowest, reach = float((every @ up).min()), float(np.linalg.norm(np.ptp(every, axis=0)))
    ground = 0.0 if 0.0 <= lowest <= _ON_ORIGIN * reach else lowest
    for foot, own in joints.items():
        ankle, ball, tip = (joint + (ground - joint @ up) * up for joint in own)
        ahead = square(tip - ankle, up)
        forward = body.axes.forward if length(ahead) < np.finfo(float).tiny else unit(ahead)
        whole = length(ahead) / (1.0 - _HEEL)
        aside = 0.5 * _WIDTH * whole * np.cross(up, forward)
        toes = body.named("toe", body.roles[foot].side, number=1)
        corners = [(foot, ankle - _HEEL * whole * forward), (foot, ball + aside), (foot, ball - aside)]
        corners.append((toes[0] if toes else foot, tip))
        soles[foot] = tuple(_on(body.bones, name, point) for name, point in corners)
    return soles


def floor_points(body: RestBody) -> tuple[Point, ...]:
    """The points of a rig that stay above the floor: the corners of its soles, the ends of its palms, and its knees.

    Heels and tips of the toes have two points each. Those of the heel are as far apart as those of the ball, so that a
    rig's heel bone stays above the floor, too. Those of the tip are half as far apart.
    """
    bones, feet = body.bones, list[Point]()
    for heel, left, right, tip in soles_of(body).values():
        aside = 0.5 * (_at(bones, left) - _at(bones, right))
        ends = [(heel, aside), (heel, -aside), (tip, 0.5 * aside), (tip, -0.5 * aside)]
        # The ball stays on the ground when the heel rises, so it belongs to the toes.
        ends += [(tip, _at(bones, side) - _at(bones, tip)) for side in (left, right)]
        feet += [_on(bones, end[0], _at(bones, end) + shift) for end, shift in ends]
    hands = [(name, (0.0, bones[name].length, 0.0)) for name in body.named("hand")]
    knees = [(name, (0.0, 0.0, 0.0)) for name in body.named("shin")]
    return (*feet, *hands, *knees)


def convex_hull(points: FloatArray) -> FloatArray:
    """(M, 2) the corners of the convex hull of (N, 2) points, counterclockwise (Andrew's monotone chain)."""
    rows = sorted({(float(x), float(y)) for x, y in points})
    if len(rows) < 3:
        return np.array(rows).reshape(-1, 2)
    return np.array(_half(rows)[:-1] + _half(rows[::-1])[:-1])


def _half(rows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept: list[tuple[float, float]] = []
    for x, y in rows:
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            kept.pop()
        kept.append((x, y))
    return kept


def _joints(body: RestBody, foot: str) -> FloatArray:
    """(3, 3) ankle, ball and toe tip of a foot, armature space."""
    bone, toes = body.bones[foot], body.named("toe", body.roles[foot].side, number=1)
    if toes:
        toe = body.bones[toes[0]]
        return np.array([bone.head, toe.head, toe.head + toe.length * body.direction(toes[0])])
    ball = bone.head + bone.length * body.direction(foot)
    return np.array([bone.head, ball, bone.head + (ball - bone.head) / _BALL])


def _at(bones: Mapping[str, RestBone], point: Point) -> FloatArray:
    """(3,) a point on a bone, in armature space."""
    return np.asarray(bones[point[0]].head + bones[point[0]].axes @ point[1])


def _on(bones: Mapping[str, RestBone], name: str, point: FloatArray) -> Point:
    x, y, z = bones[name].axes.T @ (point - bones[name].head)
    return name, (float(x), float(y), float(z))
