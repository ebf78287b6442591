"""Detects when a human's feet are planted in a take, from the motion of heels and toes."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...human.body_parts import Role
from ...human.naming_schemes import match
from ...markers.feet import FootPoint, find_stances, foot_points
from ..capture.clip import scene_rate
from .take import Take

# Meters. A contact ends if a point of the foot is higher or lower than in the middle of its contact by more than
# this. The noise of markers is 1 to 2 mm. The heel of the sample walk rises by 5 mm within three frames
# of a hundredth of a second when it leaves the floor.
_LIFT = 0.005
# Seconds to examine before and after a frame: enough for a foot's lowest position and a few steps.
_LOOK = 3.0


class PointContact(NamedTuple):
    """The "HEAD" or "TAIL" of a bone, and the first and last frame of its contact with the floor."""

    bone: str
    point: str
    first: float
    last: float


class Contact(NamedTuple):
    """A foot's bone, the first and last frame of its contact with the floor, and those of its ankle and ball.

    The ankle is in contact while the foot is flat, and the ball for longer. The tip of the toes leaves last, because
    toes may bend.
    """

    bone: str
    first: float
    last: float
    point_contacts: tuple[PointContact, ...]


def find_contacts(scene: bpy.types.Scene, armature: bpy.types.Object, take: Take, frames: FloatArray) -> list[Contact]:
    """The contacts of a human's feet with the floor on frames (F,), sorted by foot; empty if no bone is a foot."""
    skeleton, world = take.skeleton, np.array(armature.matrix_world, dtype=np.float64)
    points = list(foot_points(skeleton, (), int(np.argmax(np.abs(world[2, :3])))))
    if not points or len(frames) < 2:
        return []
    roles, motion = match(skeleton.names), take.motion(frames)
    posed = forward_kinematics(skeleton, motion.rotations, motion.roots)
    rate = scene_rate(scene) / float(frames[1] - frames[0])
    found: dict[str, list[PointContact]] = {}
    heights: dict[tuple[str, str], FloatArray] = {}
    # The distance between the ball, where the toe begins, and the ankle is constant. The tip of the toe moves.
    balls = [FootPoint(each.bone, (0.0, 0.0, 0.0)) for each in points if roles[each.bone].part == "toe"]
    for point in points + balls:
        bone = skeleton.index(point.bone)
        is_head = point.offset is not None
        offset = (0.0, 0.0 if is_head else skeleton.lengths[bone], 0.0)
        places = (posed[:, bone] @ (*offset, 1.0) @ world.T)[:, :3]
        heights[point.bone, "HEAD" if is_head else "TAIL"] = places[:, 2]
        found.setdefault(foot_of(roles, point.bone), []).extend(
            PointContact(point.bone, "HEAD" if is_head else "TAIL", float(frames[first]), float(frames[end - 1]))
            for first, end in find_stances(places, rate)
        )
    step = float(frames[1] - frames[0])
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
    if bone not in roles or roles[bone].part not in {"foot", "toe"}:
        return ""
    feet = (name for name, role in roles.items() if role.part == "foot" and role.side == roles[bone].side)
    return next(feet, bone)


def span_of_contact(contacts: Iterable[Contact], foot: str, frame: float) -> tuple[float, float]:
    """The first and last frame of the contact at a frame; the frame itself if there is no contact."""
    spans = ((each.first, each.last) for each in contacts if each.bone == foot and each.first <= frame <= each.last)
    return next(spans, (frame, frame))


def contacts_near(scene: bpy.types.Scene, armature: bpy.types.Object, take: Take, frame: float) -> list[Contact]:
    """The contacts of the feet within some seconds before and after a frame."""
    about = np.ceil(_LOOK * scene_rate(scene))
    keys = take.key_frames(take.skeleton.names)
    if not len(keys):
        return []
    frames = np.arange(max(frame - about, keys[0]), min(frame + about, keys[-1]) + 1.0)
    return find_contacts(scene, armature, take, frames)


def _contact(
    foot: str, point_contacts: list[PointContact], frames: FloatArray, heights: Mapping[tuple[str, str], FloatArray]
) -> Contact:
    """Combine contacts of a foot's points into one, with those of its ankle and its ball.

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
