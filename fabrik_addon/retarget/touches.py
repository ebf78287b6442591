"""Hands that touch: where the source's is near the other hand, the head or a hip, the rig's is as near to its own."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..core import Skeleton
from ..core.arrays import FloatArray, lengths, smoothstep
from ..human.rest_body import RestBody
from .alignment import Alignment
from .goals import End
from .motion import Motion

# What hands touch.
_TOUCHED: Final = ("head", "thigh")
# Shares of the leg's length: nearer than the one a touch counts wholly, farther than the other not at all. Wrists of
# somebody who claps are some 10 cm apart; those of arms that just hang are 20 cm from the hips' joints.
_NEAR: Final = 0.15
_FAR: Final = 0.22


class Touches:
    """Brings hands near to what they touch, prepared once."""

    def __init__(
        self, motion: Motion, alignment: Alignment, source: RestBody, skeleton: Skeleton, target: RestBody, leg: float
    ) -> None:
        """leg: the length of the rig's legs."""
        self._motion, self._alignment, self._leg = motion, alignment, leg
        names = list(motion.names)
        pairs = [
            (source.named(part, side)[:1], target.named(part, side)[:1]) for part in _TOUCHED for side in ("L", "R", "")
        ]
        self._touched = [(names.index(other[0]), skeleton.index(own[0])) for other, own in pairs if other and own]

    def brought(
        self, frames: slice, hands: Sequence[End], places: Sequence[FloatArray], matrices: FloatArray
    ) -> list[FloatArray]:
        """The places (F, 3) of hands, brought near to what these touch; matrices: (F, J, 4, 4) of the bones."""
        heads = self._motion.heads[frames]
        result = []
        for hand, place in zip(hands, places, strict=True):
            own = heads[:, hand.source]
            shifts = [
                self._shift(own, place, heads[:, other], matrices[:, bone, :3, 3]) for other, bone in self._touched
            ]
            for end, other_place in zip(hands, places, strict=True):
                if end is not hand:
                    # Of two hands each comes half the way.
                    shift, share = self._shift(own, place, heads[:, end.source], other_place)
                    shifts.append((0.5 * shift, share))
            if not shifts:
                result.append(place)
                continue
            shares = np.stack([share for _, share in shifts])
            shift = (shares[..., None] * np.stack([shift for shift, _ in shifts])).sum(axis=0)
            result.append(place + shift / np.maximum(shares.sum(axis=0), 1.0)[:, None])
        return result

    def _shift(
        self, source: FloatArray, place: FloatArray, touched: FloatArray, own: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, 3) what brings a hand as near to something as the source's is, and (F,) how much that counts."""
        way = self._alignment.scale * (source - touched) @ self._alignment.axes.T
        far = np.clip((lengths(way) / self._leg - _NEAR) / (_FAR - _NEAR), 0.0, 1.0)
        return own + way - place, smoothstep(1.0 - far)
