"""What a rig's present pose was solved from, and for what.

Out of reach the pose that is preferred holds back a little. Were that each time the answer of the last time, the body
would lean farther at each press of the button; so solving again begins where the first solve did.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

import bpy

from ..goals.goals import Goals
from ..goals.places import Places
from ..rig.armature import Tree
from ..rig.pose_keeper import read_channel
from ..settings.rig import rig_settings
from .posture_session import depends_on
from .stored_pose import read_stored, store_trees

_CHANNELS: Final = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "rotation_axis_angle": 4}


def remember(rig: bpy.types.Object, begins: Iterable[Tree], asked: Sequence[str]) -> None:
    """Keep with a rig that was solved just now where that began, and what was asked of each of its trees."""
    kept = rig_settings(rig)
    store_trees(rig, kept.solved_from, begins)
    kept.solved = " ".join((_channels(rig), *asked))


def recall(rig: bpy.types.Object) -> tuple[str, ...]:
    """What was asked of each tree of a rig whose present pose is the answer; nothing where it is another pose."""
    answer, *asked = rig_settings(rig).solved.split() or [""]
    return tuple(asked) if answer == _channels(rig) else ()


def began(rig: bpy.types.Object, tree: Tree) -> Tree:
    """The pose in which solving began when it last did."""
    rotations, location = read_stored(rig, rig_settings(rig).solved_from, tree)
    return replace(tree, rotations=rotations, root_location=location)


def asked_of(rig: bpy.types.Object, goals: Goals, places: Places) -> str:
    """What tells what is asked of a tree from anything else."""
    return _told([repr(depends_on(rig, goals)).encode(), *(b"" if each is None else each.tobytes() for each in places)])


def _channels(rig: bpy.types.Object) -> str:
    """What tells the present pose, by all channels that turn and move bones, from any other one."""
    return _told(read_channel(rig, channel, size).tobytes() for channel, size in _CHANNELS.items())


def _told(parts: Iterable[bytes]) -> str:
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
