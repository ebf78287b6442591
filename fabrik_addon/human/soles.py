"""The points at which a human rig touches the floor: soles, palms and knees, as points on its bones.

Found from the bones at rest; the rig is assumed to stand on its feet. Plain Python.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..core.arrays import FloatArray
from .rest_body import BodyAxes, RestBody, RestBone, length, square, unit

Point = tuple[str, tuple[float, float, float]]

# A foot is 0.152 of the body's height long and 0.055 wide (Drillis and Contini, 1966, as in Winter, *Biomechanics and
# Motor Control of Human Movement*, 2009, figure 4.1). Its heel is about a quarter of its length behind the ankle.
_WIDTH: Final = 0.055 / 0.152
_HEEL: Final = 0.25
# Without toe bones the foot's bone ends at the ball, at about this share of the distance to the tips of the toes.
_BALL: Final = 0.65
# A rig whose lowest joint is within this share of its feet's length above the armature's origin stands on the origin.
_ON_ORIGIN: Final = 0.5


def soles(bones: Mapping[str, RestBone]) -> dict[str, tuple[Point, ...]]:
    """The corners of each foot's sole: heel, ball left and right, tip of the toes; by the name of the foot's bone.

    Each corner is a bone and a point in that bone's frame. Empty if the feet or the up direction are unknown.
    """
    return soles_of(RestBody(bones))


def soles_of(body: RestBody) -> dict[str, tuple[Point, ...]]:
    """The corners of each foot's sole, as from `soles`, for a body whose bones are known."""
    if body.axes is None:
        return {}
    feet = [name for side in ("L", "R") for name in body.named("foot", side)[:1]]
    joints = {name: _joints(body, name) for name in feet}
    if not feet:
        return {}
    ground = _ground(np.concatenate(list(joints.values())), body.axes.up)
    return {name: _sole(body, body.axes, name, joints[name], ground) for name in feet}


def floor_points(bones: Mapping[str, RestBone]) -> tuple[Point, ...]:
    """The points of a rig that stay above the floor: those of its soles, the ends of its palms, and its knees.

    Heels and tips of the toes have two points each. Those of the heel are as far apart as those of the ball, so that a
    rig's heel bone stays above the floor, too. Those of the tip are half as far apart.
    """
    body = RestBody(bones)
    feet: list[Point] = []
    for heel, left, right, tip in soles(bones).values():
        aside = 0.5 * (_at(bones, left) - _at(bones, right))
        ends = [(heel, aside), (heel, -aside), (tip, 0.5 * aside), (tip, -0.5 * aside)]
        feet += [_on(bones, end[0], _at(bones, end) + shift) for end, shift in ends] + [left, right]
    hands = [(name, (0.0, bones[name].length, 0.0)) for name in body.named("hand")]
    knees = [(name, (0.0, 0.0, 0.0)) for name in body.named("shin")]
    return (*feet, *hands, *knees)


def convex_hull(points: FloatArray) -> FloatArray:
    """(M, 2) the corners of the convex hull of (N, 2) points, counter-clockwise (Andrew's monotone chain)."""
    rows = sorted({(float(x), float(y)) for x, y in points})
    if len(rows) < 3:
        return np.array(rows).reshape(-1, 2)
    return np.array(_half(rows)[:-1] + _half(rows[::-1])[:-1])


def _half(rows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """One half of the hull, along sorted points."""
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


def _ground(joints: FloatArray, up: FloatArray) -> float:
    """The height of the ground along `up` under foot joints (N, 3), armature space."""
    lowest = float((joints @ up).min())
    reach = float(np.linalg.norm(np.ptp(joints, axis=0)))
    return 0.0 if 0.0 <= lowest <= _ON_ORIGIN * reach else lowest


def _sole(body: RestBody, axes: BodyAxes, foot: str, joints: FloatArray, ground: float) -> tuple[Point, ...]:
    """The corners of one foot's sole."""
    up = axes.up
    ankle, ball, tip = (joint + (ground - joint @ up) * up for joint in joints)
    ahead = square(tip - ankle, up)
    forward = axes.forward if length(ahead) < np.finfo(float).tiny else unit(ahead)
    whole = length(ahead) / (1.0 - _HEEL)
    aside = 0.5 * _WIDTH * whole * np.cross(up, forward)
    toes = body.named("toe", body.roles[foot].side, number=1)
    corners = [(foot, ankle - _HEEL * whole * forward), (foot, ball + aside), (foot, ball - aside)]
    return tuple(_on(body.bones, name, point) for name, point in [*corners, (toes[0] if toes else foot, tip)])


def _at(bones: Mapping[str, RestBone], point: Point) -> FloatArray:
    """(3,) a point on a bone, in armature space."""
    return np.asarray(bones[point[0]].head + bones[point[0]].axes @ point[1])


def _on(bones: Mapping[str, RestBone], name: str, point: FloatArray) -> Point:
    """A point in armature space converted to a bone's own frame."""
    x, y, z = bones[name].axes.T @ (point - bones[name].head)
    return name, (float(x), float(y), float(z))
