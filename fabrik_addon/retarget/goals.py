"""What is asked of the solver: where hips, hands and feet are to be on each frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core import Effector, Skeleton
from ..core.arrays import FloatArray
from ..human.rest_body import RestBody
from .alignment import Alignment, path_length
from .motion import Motion

# What the hips' place counts beside that of hands and feet: where legs are long enough it stays.
_HIPS_WEIGHT: Final = 0.3
_HEAD: Final = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Ends:
    """A limb's end.

    name, bone: of the rig's. limb: its bones. source, source_begin: the source's bone, and the one at whose head its
    limb begins. ratio: of the limbs' lengths.
    """

    name: str
    bone: int
    source: int
    source_begin: int
    is_hand: bool
    ratio: float
    limb: tuple[int, int, int]


def find_ends(motion: Motion, source: RestBody, skeleton: Skeleton, target: RestBody) -> list[Ends]:
    """The hands and feet that both bodies have."""
    names = list(motion.names)
    found = []
    for end, limb in (("hand", ("upper_arm", "forearm", "hand")), ("foot", ("thigh", "shin", "foot"))):
        for side in ("L", "R"):
            ways = [[body.named(part, side)[:1] for part in limb] for body in (source, target)]
            if not all(bone for way in ways for bone in way):
                continue
            other, own = ([bone[0] for bone in way] for way in ways)
            ratio = _reach(target, own) / _reach(source, other)
            found.append(
                Ends(
                    own[-1],
                    skeleton.index(own[-1]),
                    names.index(other[-1]),
                    names.index(other[0]),
                    end == "hand",
                    ratio,
                    (skeleton.index(own[0]), skeleton.index(own[1]), skeleton.index(own[2])),
                )
            )
    return found


def _reach(body: RestBody, way: Sequence[str]) -> float:
    return path_length([body.bones[name].head for name in way])


@dataclass(frozen=True)
class RetargetSettings:
    """How a motion is brought onto a rig.

    Attributes:
        places: 0 keeps rotations, the silhouette; 1 keeps places, the contacts.
        hands_in_world: 0: hands reach as far from the body as the source's, by the arms' lengths; 1: they are at the
            source's places.
        reference: the frame, counted from 0, on which the source stands as the rig at rest; None: found.
    """

    places: float = 1.0
    hands_in_world: float = 0.0
    reference: int | None = None


class Goals:
    """The effectors and where they are to be, prepared once for many frames."""

    def __init__(
        self,
        motion: Motion,
        alignment: Alignment,
        skeleton: Skeleton,
        hips: int,
        ends: Sequence[Ends],
        settings: RetargetSettings,
    ) -> None:
        """Prepare for a rig's hips, hands and feet."""
        self._motion, self._alignment, self._ends, self._hips, self._settings = motion, alignment, ends, hips, settings
        name = skeleton.names[hips]
        self.effectors = [Effector(name, _HEAD, _HIPS_WEIGHT), *(Effector(end.name, _HEAD) for end in ends)]
        self.names = [name, *(end.name for end in ends)]

    def targets(self, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, E, 3) for F frames; matrices: (F, J, 4, 4) the poses with the rotations carried over."""
        heads = self._motion.heads[frames]
        places = [matrices[:, self._hips, :3, 3]]
        for end in self._ends:
            place = self._alignment.place(heads[:, end.source])
            if end.is_hand:
                way = (heads[:, end.source] - heads[:, end.source_begin]) @ self._alignment.axes.T
                own = matrices[:, end.limb[0], :3, 3] + end.ratio * way
                place = own + self._settings.hands_in_world * (place - own)
            carried = matrices[:, end.bone, :3, 3]
            places.append(carried + self._settings.places * (place - carried))
        return np.stack(places, axis=1)
