"""A tree of a live rig from pose to pose: while a frame stays, from the last pose; on another frame, from its base.

So a frame has the same pose whichever frame was posed before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..control.limbs import LimbOnIk
from ..goals.goals import Goals
from ..goals.kept import KeptGoals
from ..goals.places import Places
from ..goals.root import moves_root
from ..rig.armature import Tree
from ..rig.legal import legal_pose
from ..rig.locks import WithLocks
from .posture_session import depends_on, session_for, stands_by
from .stored_pose import preferred_pose

# A share of all bones' length together, and radians: a pose that is off by less, as in a file that was opened or after
# undo, is where it is to be. Channels have 24 bits.
_THERE: Final = 1e-5
_LEGAL: Final = 1e-5
# Radians: limbs on IK are placed so nearly.
SAME_TURN_ON_IK: Final = 3e-4
# Whether joints come after targets, with a timer that lets them arrive: where nobody looks they are there at once.
IS_EASED = not bpy.app.background


@dataclass
class OnIk:
    """Limbs on IK as they were posed last: (J, 4) the rotations asked for, and those that their IK made of them.

    The second are None until the rig has been evaluated.
    """

    asked: FloatArray
    made: FloatArray | None = None

    def are_there(self, asked: FloatArray, present: FloatArray, bones: Sequence[int]) -> bool:
        """Whether those of some bones are asked for again, and are still as their IK made them."""
        if self.made is None:
            self.made = present
        pairs = (asked, self.asked), (present, self.made)
        return all(bool((angle_between(new[bones], old[bones]) <= SAME_TURN_ON_IK).all()) for new, old in pairs)


@dataclass
class LiveRig:
    """What a live rig goes on from: its goals, and by their roots the sessions of its trees and the limbs on IK."""

    goals: KeptGoals = field(default_factory=KeptGoals)
    trees: dict[str, "LiveSession"] = field(default_factory=dict)
    on_ik: dict[str, OnIk] = field(default_factory=dict)


class LiveSession:
    """One tree of bones of a live rig.

    Attributes:
        asked: the frame that was posed last, and its targets; None for those where they were met otherwise.
        is_on_the_way: whether joints would have run ahead of the targets, and come after them.
        goes_on: whether the next pose is to be nearer, though the targets rest.
        limbs: those of a control rig that are placed on IK, by switch.
    """

    def __init__(
        self,
        rig: bpy.types.Object,
        goals: Goals,
        base: tuple[FloatArray, FloatArray],
        before: "LiveSession | None" = None,
    ) -> None:
        """Be ready.

        Args:
            rig: the armature.
            goals: those of the tree.
            base: the pose without live posing, (J, 4) local rotations and the root's head at (3,).
            before: the session of the tree that no longer fits, if there was one.
        """
        self._key, self._stands_by = depends_on(rig, goals), stands_by(rig)
        self._rig, self._free, self._goals, self._base = rig, moves_root(rig, goals), goals, base
        self._session = session_for(rig, goals, base)
        self.is_on_the_way = self.goes_on = False
        self.asked: tuple[float, Places | None] | None = None
        self.limbs: dict[str, LimbOnIk] = {} if before is None else before.limbs
        if before is not None and before.asked is not None:
            # What was set otherwise shows at once: the way to the pose does not count.
            self.asked = before.asked[0], None

    def fits(self, rig: bpy.types.Object, goals: Goals) -> bool:
        """Whether it was made for these goals of a rig as it is now, or for others like them."""
        if goals is self._goals:
            return self._stands_by == stands_by(rig)
        if self._key != depends_on(rig, goals) or not self._goals.tree.skeleton.is_like(goals.tree.skeleton):
            return False
        self._goals = goals
        return True

    def pose(
        self,
        places: Places,
        base: tuple[FloatArray, FloatArray],
        locks: Mapping[int, WithLocks],
        frame: float,
        present: Tree | None,
    ) -> tuple[FloatArray, FloatArray]:
        """(J, 4) local rotations and (3,) the root's head for targets on a frame.

        present: how the rig stands, to begin with; None where that is not what a session has made of it.
        """
        last, self.asked = self.asked, (frame, places)
        goes_on, self.goes_on = self.goes_on, False
        rebased = not all(np.array_equal(new, old) for new, old in zip(base, self._base, strict=True))
        if rebased:
            # Stay near another pose; what is not solved is as it has it.
            rotations, location = base[0].copy(), self._session.location if self._free else base[1]
            rotations[self._goals.bones] = self._session.rotations[self._goals.bones]
            self._base = base
            self._session.prefer(
                *preferred_pose(self._rig, self._goals.tree, *base, bones=self._goals.bones, moves_root=self._free)
            )
            self._session.go_on_from(rotations, location)
        self._session.lock(locks)
        asked = places.points, places.rotations
        if last is None and present is not None and self._is_there(present, asked):
            self._session.begin(present.rotations, present.root_location)
            self.is_on_the_way = False
        elif last is None and present is not None and not self._is_base(present):
            self._session.begin(present.rotations, present.root_location)
            self.is_on_the_way = self._session.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        elif last is None or last[1] is None or frame != last[0]:
            self.is_on_the_way = self._session.solve_anew(
                *asked, is_frame=bpy.context.screen is not None and bpy.context.screen.is_animation_playing
            ).is_held_back
        elif rebased or goes_on or not _same(places, last[1]):
            self.is_on_the_way = self._session.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        return self._session.rotations, self._session.location

    def _is_base(self, present: Tree) -> bool:
        """Whether the rig stands as it would without live posing."""
        turned = angle_between(present.rotations, self._base[0]).max()
        return bool(turned <= _LEGAL and np.allclose(present.root_location, self._base[1], atol=_THERE))

    def _is_there(self, present: Tree, asked: tuple[FloatArray, FloatArray | None]) -> bool:
        """Whether everything is where it is to be, inside the limits."""
        size = float(self._goals.tree.skeleton.lengths.sum())
        misses = self._session.misses(present.rotations, present.root_location, *asked)
        legal = legal_pose(present.skeleton, self._goals.limits, present.rotations[None])[0]
        return bool(
            misses.max(initial=0.0) <= _THERE * size and angle_between(legal, present.rotations).max() <= _LEGAL
        )


def _same(places: Places, others: Places) -> bool:
    """Whether targets are where they were."""
    pairs = zip(places, others, strict=True)
    return all(
        new is old or (new is not None and old is not None and np.array_equal(new, old, equal_nan=True))
        for new, old in pairs
    )
