"""Contacts of a person's feet with the floor, from the poses of an animation."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ..core import Effector, Skeleton
from ..core.arrays import FloatArray
from ..core.model.effector import effector_offset
from ..human.naming_schemes import Role, match
from .feet import FOOT_PARTS, find_stances, foot_points

# Meters. A contact ends when a point of the foot is more than this above or below its height in the middle of the
# contact. Markers have 1 to 2 mm of noise. When the heel leaves the floor in the sample walk, it rises by 5 mm within
# 0.03 s.
_LIFT = 0.005


class PointContact(NamedTuple):
    """A contact with the floor: a bone's end, "HEAD" or "TAIL", and the first and last frame."""

    bone: str
    point: str
    first: float
    last: float


class Contact(NamedTuple):
    """A foot's contact with the floor: the foot's bone, the first and last frame, and the contacts of ankle and ball.

    The ankle is in contact while the foot is flat, and the ball for longer. The tip of the toes leaves last, because
    toes may bend.
    """

    bone: str
    first: float
    last: float
    point_contacts: tuple[PointContact, ...]


def find_contacts(skeleton: Skeleton, posed: FloatArray, frames: FloatArray, rate: float) -> list[Contact]:
    """The contacts of the feet, sorted by foot; empty if no bone is a foot.

    posed: (F, J, 4, 4) in world space, on evenly spaced frames (F,). rate: frames per second.
    """
    points, roles, step = list(foot_points(skeleton, (), 2)), match(skeleton.names), float(frames[1] - frames[0])
    found: dict[str, list[PointContact]] = {}
    heights: dict[tuple[str, str], FloatArray] = {}
    # The distance between the ball, where the toe begins, and the ankle is constant. The tip of the toe moves.
    balls = [Effector(each.bone, (0.0, 0.0, 0.0)) for each in points if roles[each.bone].part == "toe"]
    for point in points + balls:
        matrices, tip = posed[:, skeleton.index(point.bone)], "TAIL" if point.offset is None else "HEAD"
        places = (matrices @ np.append(effector_offset(skeleton, point), 1.0))[:, :3]
        heights[point.bone, tip] = places[:, 2]
        found.setdefault(foot_of(roles, point.bone), []).extend(
            PointContact(point.bone, tip, float(frames[first]), float(frames[end - 1]))
            for first, end in find_stances(places, rate / step)
        )
    contacts = []
    for foot, every in found.items():
        # Contacts of points that overlap, or follow each other directly, are one contact.
        groups: list[list[PointContact]] = []
        for stand in sorted(every, key=lambda each: each.first):
            if groups and stand.first <= max(each.last for each in groups[-1]) + step:
                groups[-1].append(stand)
            else:
                groups.append([stand])
        contacts += [_contact(foot, point_contacts, frames, heights) for point_contacts in groups]
    return contacts


def foot_of(roles: Mapping[str, Role], bone: str) -> str:
    """The foot that a foot or toe bone belongs to, by the roles of the bones; "" for other bones."""
    if bone not in roles or roles[bone].part not in FOOT_PARTS:
        return ""
    feet = (name for name, role in roles.items() if role.part == "foot" and role.side == roles[bone].side)
    return next(feet, bone)


def span_of_contact(contacts: Iterable[Contact], foot: str, frame: float) -> tuple[float, float]:
    """The first and last frame of the contact at a frame; the frame itself if there is no contact."""
    spans = ((each.first, each.last) for each in contacts if each.bone == foot and each.first <= frame <= each.last)
    return next(spans, (frame, frame))


def _contact(
    foot: str, point_contacts: list[PointContact], frames: FloatArray, heights: Mapping[tuple[str, str], FloatArray]
) -> Contact:
    """Combine the contacts of a foot's points to a contact of the foot.

    heights: (F,) height of each point, by bone and end.
    """
    points, ends = [], dict.fromkeys(each[:2] for each in point_contacts)
    for point in [each for each in ends if each[0] == foot or each[1] == "HEAD" or (each[0], "HEAD") not in ends]:
        own = [each for each in point_contacts if each[:2] == point]
        rows = np.flatnonzero((frames >= own[0].first) & (frames <= max(each.last for each in own)))
        level = heights[point][rows]
        down = rows[np.abs(level - np.median(level)) < _LIFT]
        points.append(PointContact(*point, float(frames[down[0]]), float(frames[down[-1]])))
    # The ankle moves while the foot rolls over its heel. It is planted once the ball is down.
    flat = max(each.first for each in points)
    rolled = [each._replace(first=flat) if each[:2] == (foot, "HEAD") else each for each in points]
    points = [each for each in rolled if each.first < each.last] or points
    return Contact(foot, point_contacts[0].first, max(each.last for each in point_contacts), tuple(points))
