"""Where hips, hands and feet of a rig are to be on each frame of a motion."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core import Skeleton
from ..core.arrays import FloatArray
from ..core.rotations import quaternion_from_matrix
from ..human.rest_body import RestBody
from ..markers.feet.stances import Stance, StandingSettings
from .alignment import leg_length, path_length
from .feet import Floor, FootPlan, Legal, Sole, find_soles, highest_tip
from .motion import Motion
from .transfer import Transfer

LIMBS: Final = (("hand", ("upper_arm", "forearm", "hand")), ("foot", ("thigh", "shin", "foot")))
# The legs' length, in metres, of the people by whom it is told when feet stand.
_USUAL_LEG: Final = 0.85


@dataclass(frozen=True)
class RetargetSettings:
    """How a motion is brought onto a rig.

    Attributes:
        places: 0 keeps rotations, the silhouette; 1 keeps places, the contacts.
        hands_in_world: 0: hands reach as far from the body as the source's, by the arms' lengths; 1: they are at the
            source's places.
        plant_feet: feet that stand in the source stand, and none goes under the floor.
        reference: the frame, counted from 0, on which the source stands as the rig at rest; None: found.
    """

    places: float = 1.0
    hands_in_world: float = 0.0
    plant_feet: bool = True
    reference: int | None = None


@dataclass(frozen=True)
class End:
    """A limb's end, which both bodies have.

    name: of the rig's bone. limb: places of the limb's bones in the skeleton, the end last. source, source_begin: the
    source's bone, and the one at whose head its limb begins. length: of the rig's limb; ratio: to that of the source's.
    sole: of a foot.
    """

    name: str
    limb: tuple[int, int, int]
    source: int
    source_begin: int
    length: float
    ratio: float
    is_hand: bool
    sole: Sole | None = None


def find_ends(motion: Motion, source: RestBody, skeleton: Skeleton, target: RestBody) -> list[End]:
    """The hands and feet that both bodies have."""
    names, soles = list(motion.names), find_soles(target)
    found = []
    for what, limb in LIMBS:
        for side in ("L", "R"):
            ways = [[body.named(part, side)[:1] for part in limb] for body in (source, target)]
            if not all(bone for way in ways for bone in way):
                continue
            other, own = ([bone[0] for bone in way] for way in ways)
            length = _reach(target, own)
            places = (skeleton.index(own[0]), skeleton.index(own[1]), skeleton.index(own[2]))
            begin, end = names.index(other[0]), names.index(other[-1])
            ratio = length / _reach(source, other)
            found.append(End(own[-1], places, end, begin, length, ratio, what == "hand", soles.get(own[-1])))
    return found


def _reach(body: RestBody, way: Sequence[str]) -> float:
    return path_length([body.bones[name].head for name in way])


class Goals:
    """Where hands and feet are to be, prepared once for all frames.

    stances: when feet stand. floor: what the rig stands on.
    """

    def __init__(
        self, transfer: Transfer, target: RestBody, ends: Sequence[End], settings: RetargetSettings, legal: Legal
    ) -> None:
        """legal: brings (F, J, 4) local rotations inside the limits."""
        self._transfer, self._motion, self._alignment = transfer, transfer.motion, transfer.alignment
        self.ends, self._settings = ends, settings
        self._plans: dict[str, FootPlan] = {}
        self.floor = Floor.of(target, {end.name: end.sole for end in ends if end.sole is not None})
        self.stances: list[Stance] = []
        if settings.plant_feet and settings.places > 0.0:
            self._plan(target, legal)

    def _plan(self, target: RestBody, legal: Legal) -> None:
        """Plan where feet go."""
        size, usual = leg_length(target) / _USUAL_LEG, StandingSettings()
        standing = replace(usual, speed=usual.speed * size, height=usual.height * size)
        for end in self.ends:
            if end.sole is None:
                continue
            places = self._alignment.place(self._motion.heads[:, end.source])
            rotations = self._transfer.turned(end.limb[-1], slice(None))
            tip = highest_tip(self._transfer.skeleton, end.name, end.sole, self.floor.axes.up, legal)
            plan = FootPlan(end.name, end.sole, tip, places, rotations, self.floor, self._motion.rate, standing)
            self._plans[end.name] = plan
            self.stances += plan.stances

    def place(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 3) where a limb's end is to be on some frames; matrices: (F, J, 4, 4) the poses carried over."""
        carried, heads = matrices[:, end.limb[-1], :3, 3], self._motion.heads[frames]
        plan = self._plans.get(end.name)
        place = self._alignment.place(heads[:, end.source]) if plan is None else plan.places[frames]
        if end.is_hand:
            way = (heads[:, end.source] - heads[:, end.source_begin]) @ self._alignment.axes.T
            own = matrices[:, end.limb[0], :3, 3] + end.ratio * way
            place = own + self._settings.hands_in_world * (place - own)
        return np.asarray(carried + self._settings.places * (place - carried))

    def rotation(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 4) how a limb's end is to be turned on some frames; matrices: as for `place`."""
        plan = self._plans.get(end.name)
        return quaternion_from_matrix(matrices[:, end.limb[-1], :3, :3]) if plan is None else plan.rotations[frames]

    def standing(self, end: End, frames: slice, count: int) -> FloatArray:
        """(F, 2) how much heel and ball of a foot stand on some frames."""
        plan = self._plans.get(end.name)
        return np.zeros((count, 2)) if plan is None else plan.standing[frames]


def lowered(hips: FloatArray, feet: FloatArray, reach: float, up: FloatArray) -> FloatArray:
    """(F,) how far down a hip joint (F, 3) has to go for a leg to reach its foot (F, 3); 0 where that does not help."""
    way = feet - hips
    height = way @ up
    aside = (way * way).sum(axis=1) - height**2
    most = np.sqrt(np.maximum(reach**2 - aside, 0.0))
    return np.asarray(np.where(aside < reach**2, np.maximum(-height - most, 0.0), 0.0))
