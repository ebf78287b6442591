"""Solves a live rig for its current targets, and writes the pose if it differs from the current one.

On the same frame it continues from the last pose, on another frame from its base pose. So the pose of a frame does not
depend on the frame before.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.drag import DragSolver
from ...core.errors import FabrikError
from ...core.rotations import angle_between, slerp
from ..control.limbs import LimbOnIk, Update
from ..control.posed_rig import posed_rig
from ..control.writer import ControlWriter
from ..goals.effectors import check_effectors
from ..goals.places import SampledTargets, current_targets
from ..goals.problem import RigProblem, find_problems
from ..rig.armature import Tree, check_editable
from ..rig.legal import legal_pose, legal_rotations
from ..rig.locks import WithLocks
from ..rig.pose_writer import PoseWriter
from ..rig.stretch import current_factors, write_stretches
from ..settings.rig import rig_settings
from ..settings.why_not import why_no_solve
from .solve_frame import depends_on, is_by_posture, session_for, solve_tree, stretch_factors
from .stored_pose import BasePose, preferred_pose

# Share of the summed bone lengths, and radians. A pose with smaller errors, as in a reopened file or after undo, meets
# its targets. Channels have 24 bits.
_THERE: Final = 1e-5
_LEGAL: Final = 1e-5
# Radians. The accuracy with which limbs on IK are placed.
SAME_TURN_ON_IK: Final = 3e-4
# Radians, and shares of the root bone's length. Controls reproduce the pose of a body within this error.
_SAME_TURN_MADE: Final = 1e-5
# The length to assume for a root bone with almost no length.
_SHORTEST: Final = 1e-3
# Whether joints ease in, and a timer lets them catch up with targets. In the background they don't.
IS_EASED = not bpy.app.background
# Radians, and shares of the root bone's length. A pose with smaller differences is not written again.
_SAME_TURN: Final = 2e-6
# (J, 4) local rotations and (3,) the head of the root.
_Pose: TypeAlias = tuple[FloatArray, FloatArray]


class LiveSession:
    """One tree of bones of a live rig, and the data with which its next pose is compared.

    Attributes:
        asked: the frame that was posed last, and its targets; the targets are None if they must be solved again.
        is_catching_up: whether joints lag behind the targets and are catching up.
        may_continue: whether to continue toward targets at rest.
        limbs: a control rig's limbs that are placed on IK, by switch.
        wanted: the pose that was written last; None if no pose was written.
        made: the resulting pose of the rig, which may differ; None until it is evaluated.
    """

    def __init__(self, problem: RigProblem, base: _Pose, before: "LiveSession | None" = None) -> None:
        """Prepare the session.

        Args:
            problem: the tree's problem.
            base: the pose without live posing, (J, 4) local rotations and the root's head at (3,).
            before: the tree's previous session, which no longer fits; None without one.
        """
        self._key = depends_on(problem)
        self._problem, self._base = problem, base
        self._solver: DragSolver | None = None
        self.is_catching_up = self.may_continue = False
        self.asked: tuple[float, SampledTargets | None] | None = None
        self.limbs: dict[str, LimbOnIk] = {} if before is None else before.limbs
        self.wanted: _Pose | None = None if before is None else before.wanted
        self.made: _Pose | None = None if before is None else before.made
        if before is not None and before.asked is not None:
            # Changed settings take effect at once, without easing.
            self.asked = before.asked[0], None

    def fits(self, problem: RigProblem) -> bool:
        """Whether this session was made for the same problem of a rig in its current state."""
        is_same_body = self._problem.tree.skeleton.is_like(problem.tree.skeleton)
        if not is_same_body or self._key != depends_on(problem):
            return False
        self._problem = problem
        return True

    def pose(
        self,
        places: SampledTargets,
        base: _Pose,
        locks: Mapping[int, WithLocks],
        frame: float,
        present: Tree | None,
    ) -> _Pose:
        """(J, 4) local rotations and (3,) the root's head for targets on a frame.

        present: the rig's current pose to start from; None if it is not the result of a session.
        """
        problem = self._problem
        last, self.asked = self.asked, (frame, places)
        may_continue, self.may_continue = self.may_continue, False
        if self._solver is None:
            self._solver, self._base = session_for(problem, base), base
        solver, rebased = self._solver, not _same(base, self._base)
        if rebased:
            # Stay near another pose; bones that are not solved take their rotations from it.
            rotations, location = base[0].copy(), solver.location if problem.free_root else base[1]
            rotations[problem.bones] = solver.rotations[problem.bones]
            self._base = base
            solver.prefer(
                *preferred_pose(problem.rig, problem.tree, *base, bones=problem.bones, moves_root=problem.free_root)
            )
            solver.continue_from(rotations, location)
        solver.lock(locks)
        asked = places.points, places.rotations
        if last is None and present is not None and self._is_there(solver, present, asked):
            solver.begin(present.rotations, present.root_location)
            self.is_catching_up = False
        elif last is None and present is not None and not self._is_base(present):
            solver.begin(present.rotations, present.root_location)
            self.is_catching_up = solver.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        elif last is None or last[1] is None or frame != last[0]:
            self.is_catching_up = solver.solve_from_preferred(
                *asked, is_frame=bpy.context.screen is not None and bpy.context.screen.is_animation_playing
            ).is_held_back
        elif rebased or may_continue or not _same(places, last[1]):
            self.is_catching_up = solver.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        return solver.rotations, solver.location

    def _is_base(self, present: Tree) -> bool:
        """Whether the rig is in its base pose."""
        turned = angle_between(present.rotations, self._base[0]).max()
        return bool(turned <= _LEGAL and np.allclose(present.root_location, self._base[1], atol=_THERE))

    def _is_there(self, solver: DragSolver, present: Tree, asked: tuple[FloatArray, FloatArray | None]) -> bool:
        """Whether the pose already meets its targets, inside the limits."""
        size = float(self._problem.tree.skeleton.lengths.sum())
        misses = solver.misses(present.rotations, present.root_location, *asked)
        legal = legal_pose(present.skeleton, self._problem.limits, present.rotations[None])[0]
        return bool(
            misses.max(initial=0.0) <= _THERE * size and angle_between(legal, present.rotations).max() <= _LEGAL
        )

    def stays(self, wanted: _Pose, on_ik: Collection[str]) -> bool:
        """Whether a pose need not be written, because the rig already has this pose, or the result of writing it.

        wanted: (J, 4) local rotations and (3,) the root's head. on_ik: names of bones on IK.
        """
        tree, bones = self._problem.tree, self._problem.bones
        present = tree.rotations, tree.root_location
        length = max(float(tree.skeleton.lengths[0]), _SHORTEST)

        def alike(one: _Pose, other: _Pose, most: FloatArray) -> bool:
            turned = angle_between(one[0][bones], other[0][bones])
            return bool((turned <= most[bones]).all() and np.abs(one[1] - other[1]).max() <= most.min() * length)

        if alike(wanted, present, np.full(len(tree.skeleton), _SAME_TURN)):
            return True
        if self.wanted is None:
            return False
        self.made = self.made or present
        most = np.array([SAME_TURN_ON_IK if name in on_ik else _SAME_TURN_MADE for name in tree.skeleton.names])
        return alike(wanted, self.wanted, most) and alike(present, self.made, most)

    def write(self, writer: PoseWriter | ControlWriter, rotations: FloatArray, head: FloatArray | None) -> None:
        """Pose the rig by local rotations (J, 4) and the root's head (3,); None if the root does not move."""
        self.wanted, self.made = (rotations, self._problem.tree.root_location if head is None else head), None
        # Limbs that stay on IK continue from their current state.
        self.limbs = dict(writer.limbs)
        writer.write(rotations, head)

    def why_short(self) -> str:
        """A text about why effectors miss their targets; "" if all are met."""
        return "" if self._solver is None else self._problem.why_short(self._solver)


def _same(ones: Iterable[FloatArray | None], others: Iterable[FloatArray | None]) -> bool:
    """Whether arrays, such as targets or poses, are equal."""
    pairs = zip(ones, others, strict=True)
    return all(
        new is old or (new is not None and old is not None and np.array_equal(new, old, equal_nan=True))
        for new, old in pairs
    )


def try_pose(
    graph: bpy.types.Depsgraph,
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    rigs: dict[int, dict[str, LiveSession]],
    update: Update,
) -> str:
    """Pose a rig that has targets; returns the reason if that fails, else "".

    rigs: the sessions of each rig's trees, by the rig's session ID and the root's name. update: evaluates the scene
    without calling handlers.
    """
    try:
        if not why_no_solve(rig):
            sessions = rigs.setdefault(rig.session_uid, {})
            check_effectors(scene, rig)
            check_editable(rig)
            base = BasePose(rig, scene.frame_current_final)
            for problem in [each.pins_first() for each in find_problems(rig)]:
                places = current_targets(graph, scene, rig, problem)
                _pose_tree(scene.frame_current_final, problem, base, places, sessions, update)
    except FabrikError as error:
        return str(error)
    return ""


def _pose_tree(
    frame: float,
    problem: RigProblem,
    base: BasePose,
    places: SampledTargets,
    sessions: dict[str, LiveSession],
    update: Update,
) -> None:
    """Pose one tree, blended between its base pose and the solved pose by the rig's share."""
    rig, free, tree = problem.rig, problem.free_root, problem.tree
    posed, place, root = posed_rig(rig), tree.root_location, tree.skeleton.names[0]
    start = tree.rotations.copy()
    start[problem.bones] = base.rotations(problem.bone_names)
    head = base.root_place(root) if free else place
    share = rig_settings(rig).influence
    session = sessions.get(root)
    if session is None or not session.fits(problem):
        session = sessions[root] = LiveSession(problem, (start, head), session)
    stretches: dict[str, float] = {}
    if is_by_posture(problem, places):
        shown = tree if share == 1.0 else None
        solved, solved_head = session.pose(places, (start, head), problem.locks(start), frame, shown)
    else:
        solution = solve_tree(problem, places, start, head)
        solved, solved_head = solution.rotations, solution.root_location
        factors = stretch_factors(problem, solution)
        stretches = {name: 1.0 + share * (factor - 1.0) for name, factor in factors.items()}
    rotations = blend(problem, start, solved, share)
    location = head + share * (solved_head - head) if free else None
    present = current_factors(rig, stretches)
    stretched = any(abs(present[name] - factor) > _SAME_TURN for name, factor in stretches.items())
    if stretched or not session.stays((rotations, place if location is None else location), posed.on_ik):
        write_stretches(rig, stretches)
        session.write(
            posed.writer(update, tree.skeleton, problem.bones, moves_root=free, known=session.limbs),
            rotations,
            location,
        )
        rig.update_tag(refresh={"DATA"})


def blend(problem: RigProblem, start: FloatArray, end: FloatArray, share: float) -> FloatArray:
    """(J, 4) rotations at a share between two poses; bones that start inside their limits stay inside."""
    if share in {0.0, 1.0}:
        return end if share else start
    mixed = slerp(start, end, np.full(len(start), share))
    for name, limit in problem.limits.items():
        bone = problem.tree.skeleton.index(name)
        if np.array_equal(legal_rotations(limit, start[bone][None])[0], start[bone]):
            mixed[bone] = legal_rotations(limit, mixed[bone][None])[0]
    return mixed
