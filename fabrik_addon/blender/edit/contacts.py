"""When a human's feet stand in a take, told from how their heels and toes move."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...human.body_parts import Role
from ...human.naming_schemes import match
from ...markers.feet.points import foot_points
from ...markers.feet.stances import FootPoint, find_stances
from ..capture.clip import scene_rate
from .take import Take

# Meters: a point of a foot that is higher or lower than in the middle of its contact is landing or leaving. Markers'
# noise is 1 to 2 mm; where the heel of the sample walk leaves it rises by 5 mm within three frames of a hundredth of a
# second.
_LIFT = 0.005
# Seconds about a frame that are looked at: a foot's lowest place and its steps are in them.
_LOOK = 3.0


class Stand(NamedTuple):
    """The "HEAD" or "TAIL" of a bone, and the first and the last frame on which it is in contact with the floor."""

    bone: str
    point: str
    first: float
    last: float


class Contact(NamedTuple):
    """A foot's bone, the first and the last frame on which any point of the foot is in contact, and ankle and ball.

    The ankle stays while the foot is flat, and the ball longer. The tip of the toes, which may bend, leaves last.
    """

    bone: str
    first: float
    last: float
    stands: tuple[Stand, ...]


def find_contacts(scene: bpy.types.Scene, armature: bpy.types.Object, take: Take, frames: FloatArray) -> list[Contact]:
    """The contacts of a human's feet with the floor on (F,) frames, foot by foot; none if no bone is a foot."""
    skeleton, world = take.skeleton, np.array(armature.matrix_world, dtype=np.float64)
    points = list(foot_points(skeleton, (), int(np.argmax(np.abs(world[2, :3])))))
    if not points or len(frames) < 2:
        return []
    roles, motion = match(skeleton.names), take.motion(frames)
    posed = forward_kinematics(skeleton, motion.rotations, motion.roots)
    rate = scene_rate(scene) / float(frames[1] - frames[0])
    found: dict[str, list[Stand]] = {}
    heights: dict[tuple[str, str], FloatArray] = {}
    # The ball of a foot, where its toe begins, stays a fixed distance from its ankle; the tip of the toe does not.
    balls = [FootPoint(each.bone, (0.0, 0.0, 0.0)) for each in points if roles[each.bone].part == "toe"]
    for point in points + balls:
        bone = skeleton.index(point.bone)
        is_head = point.offset is not None
        offset = (0.0, 0.0 if is_head else skeleton.lengths[bone], 0.0)
        places = (posed[:, bone] @ (*offset, 1.0) @ world.T)[:, :3]
        heights[point.bone, "HEAD" if is_head else "TAIL"] = places[:, 2]
        found.setdefault(foot_of(roles, point.bone), []).extend(
            Stand(point.bone, "HEAD" if is_head else "TAIL", float(frames[first]), float(frames[end - 1]))
            for first, end in find_stances(places, rate)
        )
    step = float(frames[1] - frames[0])
    groups = [(foot, stands) for foot, every in found.items() for stands in _together(every, step)]
    return [_contact(foot, stands, frames, heights) for foot, stands in groups]


def foot_of(roles: Mapping[str, Role], bone: str) -> str:
    """The foot that a bone is, or is a toe of, by what bones are; "" for none."""
    if bone not in roles or roles[bone].part not in {"foot", "toe"}:
        return ""
    feet = (name for name, role in roles.items() if role.part == "foot" and role.side == roles[bone].side)
    return next(feet, bone)


def standing(contacts: Iterable[Contact], foot: str, frame: float) -> tuple[float, float]:
    """The frames between which a foot stands at a frame; that frame alone where it does not."""
    spans = ((each.first, each.last) for each in contacts if each.bone == foot and each.first <= frame <= each.last)
    return next(spans, (frame, frame))


def contacts_about(scene: bpy.types.Scene, armature: bpy.types.Object, take: Take, frame: float) -> list[Contact]:
    """When feet stand, some seconds before and after a frame."""
    about = np.ceil(_LOOK * scene_rate(scene))
    keys = take.key_frames(take.skeleton.names)
    if not len(keys):
        return []
    frames = np.arange(max(frame - about, keys[0]), min(frame + about, keys[-1]) + 1.0)
    return find_contacts(scene, armature, take, frames)


def _together(stands: list[Stand], step: float) -> list[list[Stand]]:
    """Stands that overlap or follow each other without a free frame, in groups; frames are a step apart."""
    groups: list[list[Stand]] = []
    for stand in sorted(stands, key=lambda each: each.first):
        if groups and stand.first <= max(each.last for each in groups[-1]) + step:
            groups[-1].append(stand)
        else:
            groups.append([stand])
    return groups


def _contact(
    foot: str, stands: list[Stand], frames: FloatArray, heights: Mapping[tuple[str, str], FloatArray]
) -> Contact:
    """The contact of a foot, with the ankle and the ball of it while each of them stays.

    heights: (F,) of each point, by bone and end.
    """
    points, ends = [], dict.fromkeys(each[:2] for each in stands)
    for point in [each for each in ends if each[0] == foot or each[1] == "HEAD" or (each[0], "HEAD") not in ends]:
        own = [each for each in stands if each[:2] == point]
        rows = np.flatnonzero((frames >= own[0].first) & (frames <= max(each.last for each in own)))
        level = heights[point][rows]
        down = rows[np.abs(level - np.median(level)) < _LIFT]
        points.append(Stand(*point, float(frames[down[0]]), float(frames[down[-1]])))
    # While the foot rolls over its heel the ankle moves: it stays once the ball is down.
    flat = max(each.first for each in points)
    rolled = [each._replace(first=flat) if each[:2] == (foot, "HEAD") else each for each in points]
    points = [each for each in rolled if each.first < each.last] or points
    return Contact(foot, stands[0].first, max(each.last for each in stands), tuple(points))
