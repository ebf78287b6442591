"""Which points of a rig's feet stand on the floor: told from the names of its bones and the markers on them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ...core import Effector, Skeleton
from ...human.naming_schemes import match
from .stances import FootPoint

_FOOT_PARTS: Final = ("foot", "toe")
# With so many markers on a foot, its heel and its toes are among them.
_ENOUGH: Final = 2


def foot_points(skeleton: Skeleton, effectors: Sequence[Effector], up: int) -> Iterator[FootPoint]:
    """Heel and toe of each foot: the markers at its back and its front, else the ends of its bones.

    Nothing if no bone is named as a foot. up: the axis of armature space that points up.
    """
    roles = match(skeleton.names)
    for side in ("L", "R"):
        bones = [name for name, role in roles.items() if role.part in _FOOT_PARTS and role.side == side]
        marked = [(each.bone, each.offset) for each in effectors if each.bone in bones and each.offset is not None]
        if bones and len(marked) < _ENOUGH:
            yield FootPoint(bones[0], (0.0, 0.0, 0.0))
            yield FootPoint(bones[-1])
        elif bones:
            # How far each lies to the front: along the foot, on the floor.
            along = np.delete(skeleton.rest[skeleton.index(bones[0]), :3, 1], up)
            places = [skeleton.rest[skeleton.index(bone)] @ (*offset, 1.0) for bone, offset in marked]
            order = np.argsort([np.delete(place[:3], up) @ along for place in places])
            for end in (order[0], order[-1]):
                yield FootPoint(*marked[int(end)])
