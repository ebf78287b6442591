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
from ...markers.feet.stances import find_stances
from ..capture.clip import scene_rate
from .take import Take

# Seconds about a frame that are looked at: a foot's lowest place and its steps are in them.
_LOOK = 3.0


class Contact(NamedTuple):
    """A foot's bone, and the frames from which and to which some point of the foot stands."""

    bone: str
    first: float
    last: float


def find_contacts(scene: bpy.types.Scene, armature: bpy.types.Object, take: Take, frames: FloatArray) -> list[Contact]:
    """When the feet of a human stand on some of (F,) frames, one after the other; none where no bone is a foot."""
    skeleton, world = take.skeleton, np.array(armature.matrix_world, dtype=np.float64)
    points = list(foot_points(skeleton, (), int(np.argmax(np.abs(world[2, :3])))))
    if not points or len(frames) < 2:
        return []
    roles, motion = match(skeleton.names), take.motion(frames)
    posed = forward_kinematics(skeleton, motion.rotations, motion.roots)
    rate = scene_rate(scene) / float(frames[1] - frames[0])
    found: dict[str, list[tuple[int, int]]] = {}
    for point in points:
        bone = skeleton.index(point.bone)
        offset = (0.0, skeleton.lengths[bone], 0.0) if point.offset is None else point.offset
        places = posed[:, bone] @ (*offset, 1.0) @ world.T
        found.setdefault(foot_of(roles, point.bone), []).extend(find_stances(places[:, :3], rate))
    return [
        Contact(foot, float(frames[first]), float(frames[end - 1]))
        for foot, spans in found.items()
        for first, end in _joined(spans)
    ]


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


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap or touch made one."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    return joined
