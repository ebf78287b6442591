"""Finds the points of a rig's feet that touch the floor, from bone names and the markers on them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ...core import Effector, Skeleton
from ...human.naming_schemes import match
from .stances import FootPoint

_FOOT_PARTS: Final = ("foot", "toe")
# A foot with at least this many markers has some at heel and toes.
_ENOUGH: Final = 2


def foot_points(skeleton: Skeleton, effectors: Sequence[Effector], up: int) -> Iterator[FootPoint]:
    """Heel and toe of each foot: its rearmost and foremost markers, or the ends of its bones.

    Empty if no bone is named as a foot. up: index of armature space's up axis.
    """
    roles = match(skeleton.names)
    for side in ("L", "R"):
        bones = [name for name, role in roles.items() if role.part in _FOOT_PARTS and role.side == side]
        marked = [(each.bone, each.offset) for each in effectors if each.bone in bones and each.offset is not None]
        if bones and len(marked) < _ENOUGH:
            yield FootPoint(bones[0], (0.0, 0.0, 0.0))
            yield FootPoint(bones[-1])
        elif bones:
            # Forward distance of each marker: along the foot, in the floor plane.
            along = np.delete(skeleton.rest[skeleton.index(bones[0]), :3, 1], up)
            places = [skeleton.rest[skeleton.index(bone)] @ (*offset, 1.0) for bone, offset in marked]
            order = np.argsort([np.delete(place[:3], up) @ along for place in places])
            for end in (order[0], order[-1]):
                yield FootPoint(*marked[int(end)])
