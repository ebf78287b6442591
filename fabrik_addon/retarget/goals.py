"""Targets for a rig's hands and feet on each frame of a motion."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core import Skeleton
from ..core.arrays import FloatArray, lengths, smoothstep
from ..core.rotations import quaternion_from_matrix
from ..human.rest_body import RestBody
from ..markers.feet.stances import Stance, StandingSettings
from .alignment import leg_length, path_length
from .feet import Floor, FootPlan, Legal, Sole, find_soles, highest_tip
from .motion import Motion
from .transfer import Transfer

_LIMBS: Final = (("hand", ("upper_arm", "forearm", "hand")), ("foot", ("thigh", "shin", "foot")))
# The leg length, in meters, for which the settings of foot contacts hold.
_USUAL_LEG: Final = 0.85
# The parts that hands touch besides each other.
_TOUCHED: Final = ("head", "thigh")
# Shares of the leg's length: closer than the first is a full touch, farther than the second is none. Wrists of a person
# who claps are about 10 cm apart; those of hanging arms are 20 cm from the hip joints.
_NEAR: Final = 0.15
_FAR: Final = 0.22


@dataclass(frozen=True)
class RetargetSettings:
    """How a motion is retargeted to a rig.

    Attributes:
        places: 0 keeps rotations, the silhouette; 1 keeps positions, the contacts.
        hands_in_world: 0: hands reach as far from the body as the source's, relative to the arms' lengths; 1: they are
            at the source's positions.
        plant_feet: planted feet of the source stay planted, and none goes through the floor.
        reference: the frame, counted from 0, on which the source has the rig's rest pose; None: detected.
    """

    places: float = 1.0
    hands_in_world: float = 0.0
    plant_feet: bool = True
    reference: int | None = None


@dataclass(frozen=True)
class End:
    """A hand or foot that both bodies have.

    name: of the rig's bone. limb: indices of the limb's bones in the skeleton, the end last. source, source_begin: the
    source's bone, and the one at whose head its limb begins. length: of the rig's limb; ratio: of that to the source's.
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
    for what, limb in _LIMBS:
        for side in ("L", "R"):
            other, own = ([name for part in limb for name in body.named(part, side)[:1]] for body in (source, target))
            if len(other) < len(limb) or len(own) < len(limb):
                continue
            length, theirs = (
                path_length([body.bones[name].head for name in path]) for body, path in ((target, own), (source, other))
            )
            upper, lower, end = (skeleton.index(name) for name in own)
            found.append(
                End(
                    own[-1],
                    (upper, lower, end),
                    names.index(other[-1]),
                    names.index(other[0]),
                    length,
                    length / theirs,
                    what == "hand",
                    soles.get(own[-1]),
                )
            )
    return found


class Goals:
    """Targets for hands and feet, prepared once for all frames.

    stances: when feet are planted. floor: the floor of the rig.
    """

    def __init__(
        self,
        transfer: Transfer,
        source: RestBody,
        target: RestBody,
        ends: Sequence[End],
        settings: RetargetSettings,
        legal: Legal,
    ) -> None:
        """legal: clamps (F, J, 4) local rotations to the limits."""
        self._motion, self._alignment, self._settings = transfer.motion, transfer.alignment, settings
        self._plans: dict[str, FootPlan] = {}
        # Bones of the source that hands touch, and the rig's.
        self._touched: list[tuple[int, int]] = []
        self._leg = leg_length(target)
        self.floor = Floor.of(target, {end.name: end.sole for end in ends if end.sole is not None})
        self.stances: list[Stance] = []
        if not settings.plant_feet or settings.places <= 0.0:
            return
        size, usual = self._leg / _USUAL_LEG, StandingSettings()
        standing = replace(usual, speed=usual.speed * size, height=usual.height * size)
        for end in ends:
            if end.sole is not None:
                places = self._alignment.place(self._motion.heads[:, end.source])
                rotations = transfer.turned(end.limb[-1], slice(None))
                tip = highest_tip(transfer.skeleton, end.name, end.sole, self.floor.axes.up, legal)
                plan = FootPlan(end.name, end.sole, tip, places, rotations, self.floor, self._motion.rate, standing)
                self._plans[end.name] = plan
                self.stances += plan.stances
        names = list(self._motion.names)
        for part in _TOUCHED:
            for side in ("L", "R", ""):
                other, own = source.named(part, side)[:1], target.named(part, side)[:1]
                if other and own:
                    self._touched.append((names.index(other[0]), transfer.skeleton.index(own[0])))

    @property
    def keeps_floor(self) -> bool:
        """Whether feet are kept above the floor."""
        return bool(self._plans)

    def place(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 3) target positions of a limb's end on some frames, armature space.

        Matrices: (F, J, 4, 4) the transferred poses.
        """
        carried, heads = matrices[:, end.limb[-1], :3, 3], self._motion.heads[frames]
        plan = self._plans.get(end.name)
        place = self._alignment.place(heads[:, end.source]) if plan is None else plan.places[frames]
        if end.is_hand:
            arm = (heads[:, end.source] - heads[:, end.source_begin]) @ self._alignment.axes.T
            own = matrices[:, end.limb[0], :3, 3] + end.ratio * arm
            place = own + self._settings.hands_in_world * (place - own)
        return np.asarray(carried + self._settings.places * (place - carried))

    def hands(self, hands: Sequence[End], frames: slice, matrices: FloatArray) -> list[FloatArray]:
        """(F, 3) target positions of each hand: as near to the other hand, the head or a hip as the source's.

        matrices: (F, J, 4, 4) the transferred poses, armature space.
        """
        places = [self.place(hand, frames, matrices) for hand in hands]
        if not self._touched:
            return places
        heads, result = self._motion.heads[frames], []
        for hand, place in zip(hands, places, strict=True):
            touched = [(heads[:, other], matrices[:, bone, :3, 3], 1.0) for other, bone in self._touched]
            # Each of two hands moves half of the distance.
            touched += [
                (heads[:, other.source], theirs, 0.5)
                for other, theirs in zip(hands, places, strict=True)
                if other is not hand
            ]
            shift, total = np.zeros(place.shape), np.zeros(len(place))
            for source, own, part in touched:
                apart = self._alignment.scale * (heads[:, hand.source] - source) @ self._alignment.axes.T
                far = np.clip((lengths(apart) / self._leg - _NEAR) / (_FAR - _NEAR), 0.0, 1.0)
                share = smoothstep(1.0 - far)
                shift += (part * share)[:, None] * (own + apart - place)
                total += share
            result.append(place + shift / np.maximum(total, 1.0)[:, None])
        return result

    def rotation(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 4) target rotations of a limb's end on some frames; matrices: (F, J, 4, 4) the transferred poses."""
        plan = self._plans.get(end.name)
        return quaternion_from_matrix(matrices[:, end.limb[-1], :3, :3]) if plan is None else plan.rotations[frames]

    def standing(self, end: End, frames: slice, count: int) -> FloatArray:
        """(F, 2) how firmly heel and ball of a foot are planted on some frames, 0 to 1."""
        plan = self._plans.get(end.name)
        return np.zeros((count, 2)) if plan is None else plan.standing[frames]
