"""Solves a live rig for its current targets, and writes the pose if it differs from the current one.

On the same frame it continues from the last pose, on another frame from its base. So a frame has the same pose
whichever frame was posed before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.errors import FabrikError
from ...core.rotations import angle_between, slerp
from ..control.limbs import LimbOnIk, Update
from ..control.posed_rig import posed_rig
from ..goals.effectors import check_effectors
from ..goals.goals import Goals, gather_goals, moves_root
from ..goals.places import Places, present_places
from ..rig.armature import Tree, check_editable
from ..rig.legal import legal_pose, legal_rotations
from ..rig.locks import WithLocks
from ..rig.stretch import present_factors, write_stretches
from ..settings.rig import rig_settings
from ..settings.why_not import enabled_effectors, why_no_solve
from .posture_session import depends_on, session_for, why_short
from .solve_frame import is_by_posture, solve_tree, stretch_factors
from .stored_pose import BasePose, preferred_pose

# A share of the summed bone lengths, and radians: a pose with smaller differences, as in a reopened file or after undo,
# is in place. Channels have 24 bits.
_THERE: Final = 1e-5
_LEGAL: Final = 1e-5
# Radians: the accuracy with which limbs on IK are placed.
SAME_TURN_ON_IK: Final = 3e-4
# Radians, and shares of the root bone's length: controls bring a body to the same pose again within this error.
_SAME_TURN_MADE: Final = 1e-5
# The length that counts for a root bone with nearly no length.
_SHORTEST: Final = 1e-3
# Whether joints lag behind targets, with a timer that lets them catch up; in the background they do not.
IS_EASED = not bpy.app.background
# Radians, and shares of the root bone's length: a pose with smaller differences is not written again.
_SAME_TURN: Final = 2e-6
_SAME_PLACE: Final = 1e-6


@dataclass
class Written:
    """A tree as last posed: the wanted pose, and the pose that resulted in the rig, which may differ.

    Poses are (J, 4) local rotations and (3,) the root's head. `made` is None until the rig has been evaluated.
    """

    asked: tuple[FloatArray, FloatArray]
    made: tuple[FloatArray, FloatArray] | None = None

    def is_there(
        self, asked: tuple[FloatArray, FloatArray], present: Tree, most: FloatArray, bones: Sequence[int]
    ) -> bool:
        """Whether some bones' pose is wanted again, and the rig still has the pose that resulted from it.

        most: (J,) radians by which bones may differ. Locations may differ by the same share of the root bone's length.
        """
        stands = present.rotations, present.root_location
        if self.made is None:
            self.made = stands
        length = max(float(present.skeleton.lengths[0]), _SHORTEST)
        return all(
            bool((angle_between(new[bones], old[bones]) <= most[bones]).all())
            and np.abs(head - before).max() <= most.min() * length
            for (new, head), (old, before) in ((asked, self.asked), (stands, self.made))
        )


@dataclass
class LiveRig:
    """The state from which a live rig continues: by root, the sessions of its trees and their last poses."""

    trees: dict[str, "LiveSession"] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)


class LiveSession:
    """One tree of bones of a live rig.

    Attributes:
        asked: the frame that was posed last, and its targets; the targets are None if they have to be met again.
        is_on_the_way: whether joints lag behind the targets and are catching up.
        goes_on: whether the next pose should be nearer although the targets are at rest.
        limbs: by switch, a control rig's limbs that are placed on IK.
    """

    def __init__(
        self,
        rig: bpy.types.Object,
        goals: Goals,
        base: tuple[FloatArray, FloatArray],
        before: "LiveSession | None" = None,
    ) -> None:
        """Prepare the session.

        Args:
            rig: the armature.
            goals: those of the tree.
            base: the pose without live posing, (J, 4) local rotations and the root's head at (3,).
            before: the former session of the tree that no longer fits, if there was one.
        """
        self._key = depends_on(rig, goals)
        self._rig, self._free, self._goals, self._base = rig, moves_root(rig, goals), goals, base
        self._session = session_for(rig, goals, base)
        self.is_on_the_way = self.goes_on = False
        self.asked: tuple[float, Places | None] | None = None
        self.limbs: dict[str, LimbOnIk] = {} if before is None else before.limbs
        if before is not None and before.asked is not None:
            # Changed settings take effect at once, without joints catching up.
            self.asked = before.asked[0], None

    def fits(self, rig: bpy.types.Object, goals: Goals) -> bool:
        """Whether this session was made for the same goals of a rig in its current state."""
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

        present: the rig's current pose to start from; None if it is not the result of a session.
        """
        last, self.asked = self.asked, (frame, places)
        goes_on, self.goes_on = self.goes_on, False
        rebased = not all(np.array_equal(new, old) for new, old in zip(base, self._base, strict=True))
        if rebased:
            # Stay near another pose, which bones that are not solved take over.
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
        """Whether the rig is in its base pose."""
        turned = angle_between(present.rotations, self._base[0]).max()
        return bool(turned <= _LEGAL and np.allclose(present.root_location, self._base[1], atol=_THERE))

    def _is_there(self, present: Tree, asked: tuple[FloatArray, FloatArray | None]) -> bool:
        """Whether the pose already meets its targets, inside the limits."""
        size = float(self._goals.tree.skeleton.lengths.sum())
        misses = self._session.misses(present.rotations, present.root_location, *asked)
        legal = legal_pose(present.skeleton, self._goals.limits, present.rotations[None])[0]
        return bool(
            misses.max(initial=0.0) <= _THERE * size and angle_between(legal, present.rotations).max() <= _LEGAL
        )

    def why_short(self) -> str:
        """What keeps effectors from their targets, as a text to show; "" if all are met."""
        names = {each.bone: each.shown_bone for each in enabled_effectors(self._rig)}
        return why_short(self._session.holding(), {bone: names.get(bone, bone) for bone in self._goals.pinned})


def _same(places: Places, others: Places) -> bool:
    """Whether targets are unchanged."""
    pairs = zip(places, others, strict=True)
    return all(
        new is old or (new is not None and old is not None and np.array_equal(new, old, equal_nan=True))
        for new, old in pairs
    )


def try_pose(
    graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, rigs: dict[int, LiveRig], update: Update
) -> str:
    """Pose a rig that has targets; returns the reason if that fails, else "".

    rigs: by session number. update: evaluates the scene, without calling back.
    """
    try:
        if not why_no_solve(rig):
            live = rigs.setdefault(rig.session_uid, LiveRig())
            check_effectors(scene, rig)
            check_editable(rig)
            base = BasePose(rig, scene.frame_current_final)
            for goals in [each.pins_first() for each in gather_goals(rig)]:
                _pose_tree(scene, rig, goals, base, present_places(graph, scene, rig, goals), live, update)
    except FabrikError as error:
        return str(error)
    return ""


def _pose_tree(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    goals: Goals,
    base: BasePose,
    places: Places,
    live: LiveRig,
    update: Update,
) -> None:
    """Pose one tree, at a share between its base pose and the solved one."""
    free, posed, tree = moves_root(rig, goals), posed_rig(rig), goals.tree
    present, place = tree.rotations, tree.root_location
    start = present.copy()
    start[goals.bones] = base.rotations(goals.bone_names)
    head = base.root_place(tree.skeleton.names[0]) if free else place
    share = rig_settings(rig).influence
    if is_by_posture(goals, places):
        session: LiveSession | None = _session(rig, goals, (start, head), live)
        shown = tree if share == 1.0 else None
        locks = posed.locks(tree.skeleton, goals.bones, start)
        solved, solved_head = session.pose(places, (start, head), locks, scene.frame_current_final, shown)
        stretches: dict[str, float] = {}
    else:
        solution, session = solve_tree(rig, goals, places, start, head), None
        solved, solved_head = solution.rotations, solution.root_location
        factors = stretch_factors(goals, solution)
        stretches = {name: 1.0 + share * (factor - 1.0) for name, factor in factors.items()}
    rotations = blend(goals, start, solved, share)
    location = head + share * (solved_head - head)
    factors = present_factors(rig, stretches)
    stretched = any(abs(factors[name] - factor) > _SAME_PLACE for name, factor in stretches.items())
    root, names = tree.skeleton.names[0], tree.skeleton.names
    written, moving = live.written.get(root), location if free else place
    turned = bool((angle_between(rotations[goals.bones], present[goals.bones]) > _SAME_TURN).any())
    moved = np.abs(moving - place).max() > _SAME_PLACE * max(float(tree.skeleton.lengths[0]), _SHORTEST)
    stays = not (turned or moved)
    if not stays and written is not None:
        on_ik = posed.on_ik
        most = np.array([SAME_TURN_ON_IK if name in on_ik else _SAME_TURN_MADE for name in names])
        stays = written.is_there((rotations, moving), tree, most, goals.bones)
    if stretched or not stays:
        write_stretches(rig, stretches)
        live.written[root] = Written((rotations, moving))
        known = {} if session is None else session.limbs
        writer = posed.writer(update, tree.skeleton, goals.bones, moves_root=free, known=known)
        if session is not None:
            # Limbs that stay on IK continue from their current state.
            session.limbs = dict(writer.limbs)
        writer.write(rotations, location if free else None)
        rig.update_tag(refresh={"DATA"})


def _session(rig: bpy.types.Object, goals: Goals, base: tuple[FloatArray, FloatArray], live: LiveRig) -> LiveSession:
    """The session of a tree, the existing one if it still fits."""
    root = goals.tree.skeleton.names[0]
    session = live.trees.get(root)
    if session is None or not session.fits(rig, goals):
        session = live.trees[root] = LiveSession(rig, goals, base, session)
    return session


def blend(goals: Goals, start: FloatArray, end: FloatArray, share: float) -> FloatArray:
    """(J, 4) rotations at a share between two poses; bones that start inside their limits stay inside."""
    if share in {0.0, 1.0}:
        return end if share else start
    mixed = slerp(start, end, np.full(len(start), share))
    for name, limit in goals.limits.items():
        bone = goals.tree.skeleton.index(name)
        if np.array_equal(legal_rotations(limit, start[bone][None])[0], start[bone]):
            mixed[bone] = legal_rotations(limit, mixed[bone][None])[0]
    return mixed
