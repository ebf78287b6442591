"""Poses a rig repeatedly, each pose continuing from the last: dragging, live posing and Solve.

Each pose is a local minimum of one problem:

    minimize  posture(x) + Σ c · |goal(x) − target|   subject to joint limits, floor, support and locks

The distance itself is the penalty, not its square. So a goal is met exactly as long as the force that holds it is below
its cap c. Otherwise the force stays at the cap, and the effector leaves its target smoothly (an exact penalty function;
the elastic mode of Gill, Murray and Saunders, *SNOPT*, SIAM Review 47, 2005). Pins have a large cap, goals of lower
priority a smaller one.

A step is one quadratic program (see `optimize/qp.py`) with the Hessian of the Lagrangian. The pose is then moved back
onto the goals that are met, and a merit function accepts or shortens the step. Forces and the active set are kept for
the next pose.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import CLOSE, ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, joined, lengths
from .kernel.bodies import AT_REST, MAX_ROTATION, Bodies, Motions, Pose, joint_axes
from .kernel.bounds import Bounds, Contacts, Floor, SelfCollision, Support
from .kernel.goals import LEVER, PRIORITY, Goals, Wanted
from .kernel.joint_limits import OUT_OF_REACH, ConstraintRows, Holder, JointLimits, Outlines
from .kernel.posture import Away, Masses, PostureTerm
from .kernel.relaxed import HangFrom, RelaxedLimbs, SaggingArms, free_limbs, hanging_limbs, joints_of
from .limits import Limit
from .model.effector import Effector, Options, on_moving_bone, participants, with_partners
from .model.skeleton import Skeleton
from .optimize.qp import MAX_SHORTER, RIGID, SHORTER, QuadraticProgram
from .rotations import (
    IDENTITY,
    angle_between,
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_matrix,
    rotation_vector_from_quaternion,
    slerp,
)
from .solve import Solver

# A lock: the function from a local rotation (4,) to the nearest allowed one.
Lock: TypeAlias = Callable[[FloatArray], FloatArray]

# The force at which a goal is released, as a multiple of the body's size: 1 moves the whole body by its size. With 10,
# goals near the edge of reach are missed. With 100, joints rotate twice as far per step.
_CAP: Final = 30.0
# A target that jumps is followed in several moves: the length of each, as a fraction of the body's size, and the
# largest number of moves.
_MOVE, _MAX_MOVES = 0.06, 12
# Stiffness along active constraints. It changes no step, but the matrix then only has to be positive definite in the
# other directions. With 10, a hand far out of reach takes twice the steps; with 100, bones turn back while targets
# move.
_FIRM: Final = 30.0
# The merit function ignores misses up to this many times the tolerance. Otherwise tiny misses of pins, whose caps are
# large, would decide whether a step is accepted.
_MET: Final = 5.0
# One move of the mouse takes at most _STEPS steps: with 3, a straight leg that is dragged up by 10 cm at once lags by
# 18 mm. It ends after _STEPS_WHEN_MET if all goals are met, and after any step that rotates joints by less than
# _NEAR_REST radians, if the next step, about its square, is less than this fraction of the rotations from the preferred
# pose. With 0.045, bones rotate back and forth while a head is dragged down.
_STEPS, _STEPS_WHEN_MET, _NEAR_REST = 4, 2, 0.035
# Most poses come to rest after 8 to 20 steps, a few after 60: some of these are 34 degrees away after 30 steps.
_STEPS_TO_REST: Final = 60
# The largest damping, as a multiple of the mass matrix. With more, a step is too small to reduce the merit.
_MOST_DAMPING: Final = 1e4
# A limb counts as straight if it is bent by less than _BEND radians, like a person's leg at rest. It is then bent by
# that angle, and stays bent if this reduces the merit.
_BEND: Final = 0.1
# An axis counts as locked if the lock leaves less than this fraction of a small rotation about it.
_OPEN_SHARE: Final = 0.5
# In an eased drag, a joint moves at most _FOLLOWS times as far as the targets, plus _MIN_DISTANCE of the body's size;
# while the targets rest, at most _CATCH_UP of that size. Otherwise straight knees move by 7 cm when the hips are
# lowered by the first centimeter.
_FOLLOWS, _MIN_DISTANCE, _CATCH_UP = 4.0, 5e-4, 1e-2
# To keep goals met, joints may move this many times as far as otherwise allowed.
_DETOUR: Final = 1.1
# Limbs are relaxed gradually over this first part of a target's path, as a fraction of the body's size. A body that
# starts off its support is also shifted over it.
_FULL_SHIFT: Final = 0.1
# A rotation by a radian counts as a movement by this fraction of the body's size: a person's bone rotates by at most
# 5.5 degrees while the target moves by 1 cm, unless goals would be missed. With less, straight knees lag when the chest
# is lowered.
_RADIAN: Final = 0.22
# For joints of limbs without goals, _RADIAN is multiplied by this number. With 1, a forearm that begins to hang lags by
# 9 degrees. With 0 (no bound), the free leg of a person on one foot swings by 20 degrees per centimeter.
_FREE: Final = 0.5
# A constraint is not reported as blocking if its force is below this fraction of the largest force on missed goals.
_BLOCKING_SHARE: Final = 0.05


@dataclass(frozen=True)
class DragPose:
    """A solved pose.

    Attributes:
        rotations: (J, 4) local rotations, w x y z.
        root_location: (3,) the root's head in armature space.
        errors: (E,) distances from the targets.
        rotation_errors: (E,) radians; NaN without a target rotation.
        steps: the number of quadratic programs solved.
        is_held_back: whether joints still lag behind; calling with the same targets again brings them nearer.
    """

    rotations: FloatArray
    root_location: FloatArray
    errors: FloatArray
    rotation_errors: FloatArray
    steps: int = 0
    is_held_back: bool = False


class _State:
    """A pose of the bodies with its targets; its costs and derivatives are computed when they are first used.

    Attributes:
        residual: (E + O, 3) differences from the effectors to their targets.
    """

    def __init__(self, solver: "DragSolver", pose: Pose, wanted: Wanted) -> None:
        self._solver, self.pose, self.wanted = solver, pose, wanted
        self.residual = solver.goals.residual(pose, wanted)

    @cached_property
    def away(self) -> Away:
        """The difference of the pose from the preferred one."""
        return self._solver.posture.away(self.pose)

    @cached_property
    def hanging(self) -> FloatArray:
        """(L, 3) the residual of the L limbs that hang."""
        term = self._solver.hanging
        return np.zeros((0, 3)) if term is None else term.residual(self.pose)

    @cached_property
    def merit(self) -> float:
        """The merit function: a step is accepted only if it reduces this."""
        solver = self._solver
        return (
            solver.posture.value(self.away)
            + 0.5 * float((self.hanging**2).sum())
            + (solver.sagging.value(self.pose) if solver.sagging else 0.0)
            + float(solver.caps @ np.maximum(lengths(self.residual) - _MET * solver.tolerance, 0.0))
            # Penetrations cost more than the goals that push parts together can gain.
            + solver.bounds.cost(self.pose, self.away, 2.0 * _CAP * solver.size)
        )

    @cached_property
    def motions(self) -> Motions:
        """The motion of the bodies per unit of each column."""
        return self._solver.bodies.motions(self.pose)

    @cached_property
    def rows(self) -> FloatArray:
        """(3 (E + O), D) the reduction of the residual per unit of each column, armature space."""
        solver = self._solver
        return solver.goals.rows(self.pose, self.motions, self.wanted).reshape(-1, solver.bodies.columns)

    @cached_property
    def mobility(self) -> FloatArray:
        """(D, D) the inverse of the mass matrix, in the directions that locks leave open."""
        mass, unlocked = self.equations[0], self._solver.unlocked(self.pose)
        if unlocked is None:
            return np.linalg.inv(mass)
        locked = np.diag(np.diagonal(mass)) * (1.0 - np.diagonal(unlocked))
        return np.asarray(unlocked @ np.linalg.inv(unlocked @ mass @ unlocked + locked) @ unlocked)

    @cached_property
    def equations(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(D, D) Gauss-Newton matrix and (D,) gradient of posture and hanging limbs together, and (D, D) a curvature.

        The curvature is the Gauss-Newton matrix of the hanging limbs minus their Hessian.
        """
        solver, curvature = self._solver, np.zeros(())
        mass, gradient = solver.posture.equations(self.away, self.pose, self.motions)
        if solver.hanging is not None:
            pulled, pull, curvature = solver.hanging.equations(self.hanging, self.pose, self.motions)
            mass, gradient = mass + pulled, gradient + pull
        if solver.sagging is not None:
            pull, sagging = solver.sagging.equations(self.pose, self.motions)
            gradient, curvature = gradient + pull, curvature + sagging
        return mass, gradient, curvature

    @cached_property
    def constraints(self) -> tuple[ConstraintRows, Contacts, Outlines | None]:
        """The rows of all constraints except goals; also their contacts, and the outlines of joint limits.

        Rows of joint limits are in units of length: a radian counts as the body's size.
        """
        solver = self._solver
        limits, outlines = solver.limits.rows(self.pose.local, MAX_ROTATION)
        limits = limits.scaled(solver.size)
        bounds, contacts = solver.bounds.rows(self.pose, self.motions, self.away)
        contacts = contacts._replace(rows=contacts.rows + len(limits.gaps))
        return joined([limits, bounds]), contacts, outlines


class _Active(NamedTuple):
    """The active constraints of the last pose: their keys (N,) and multipliers (N,)."""

    keys: npt.NDArray[np.int64]
    multipliers: FloatArray

    @classmethod
    def none(cls) -> "_Active":
        """No constraint is active."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0))

    def of(self, constraints: ConstraintRows) -> FloatArray:
        """(K,) the multipliers of constraints, zero for those that were not active."""
        return np.asarray((constraints.keys[:, None] == self.keys) @ self.multipliers)


class DragSolver:
    """A skeleton with its effectors and masses, prepared once to be posed repeatedly.

    Attributes:
        rotations: (J, 4) local rotations of the current pose.
        location: (3,) the root's head in that pose, armature space.
    """

    def __init__(  # noqa: PLR0913  each is a part of the problem
        self,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        masses: Masses,
        *,
        limits: Mapping[str, Limit] | None = None,
        still: Collection[str] = (),
        root: str = "FIXED",
        floor: Floor | None = None,
        support: Support | None = None,
        locks: Mapping[int, Lock] | None = None,
        hang_from: HangFrom | None = None,
        collision: SelfCollision | None = None,
        separate: bool = False,
        side_bends: Mapping[str, FloatArray] | None = None,
    ) -> None:
        """Start in the rest pose, which is also the first preferred pose.

        Args:
            skeleton: J bones.
            effectors: E points on bones. Goals with a lower priority number are kept before others; weights multiply
                the force at which a goal is released.
            masses: of the J bones.
            limits: bone name to joint limit.
            still: names of bones that keep their local rotation.
            root: "FIXED" or "FREE".
            floor: the points that stay above the floor.
            support: the area above which the center of mass stays.
            locks: by index of a bone, the function to its nearest allowed local rotation.
            hang_from: the pose from which limbs without goals keep their tilts; None: these limbs are rigid.
            collision: capsules that must not overlap.
            separate: whether capsules that overlap in a starting pose are moved apart; otherwise they go no deeper.
            side_bends: bones that, without goals, bend most easily about one axis (3,), in the frame that carries them.
        """
        # The head of a bone is moved by the bones above, so the bone itself may hang.
        moved = [on_moving_bone(skeleton, each) for each in effectors]
        with_goals = participants(skeleton, with_partners(moved))
        hanging = masses if hang_from and hang_from.hangs else None
        bones = sorted({*with_goals, *free_limbs(skeleton, with_goals, hanging, still, floor)})
        self._own_limits = {name: limit for name, limit in (limits or {}).items() if name not in still}
        own = [self._own_limits.get(skeleton.names[bone]) for bone in bones]
        factors = [np.inf if skeleton.names[bone] in still else masses.factors[bone] for bone in bones]
        bends = [None if bone in with_goals else (side_bends or {}).get(skeleton.names[bone]) for bone in bones]
        axes = [joint_axes(*each) for each in zip(own, factors, strict=True)]
        self._side_bends = [(body, bend) for body, bend in enumerate(bends) if bend is not None and len(axes[body])]
        self.skeleton, self.masses, self.effectors, self._separate = skeleton, masses, tuple(effectors), separate
        self.bodies = Bodies(skeleton, bones, axes, root == "FREE")
        self.goals = Goals(self.bodies, moved)
        self.lock(locks or {})
        self.limits = JointLimits(self.bodies, own)
        self.bounds = Bounds(
            self.bodies, floor, support, collision and collision.without_loops(skeleton, self.effectors)
        )
        self._free: BoolArray = ~np.isin(bones, with_goals)
        self._free[[body for body, _ in self._side_bends]] = False
        joints = joints_of(self.bodies, masses)
        self.hanging = hanging_limbs(self.bodies, masses, joints, self._free, hang_from) if hang_from else None
        up = hang_from.up if hang_from and hang_from.hangs else None
        on = self.goals.on[: self.goals.count]
        self._limbs = RelaxedLimbs(self.bodies, masses, own, joints, self._free, on, up)
        arms = self._limbs.arms_with_goals()
        self._arms = SaggingArms(self.bodies, masses, arms, up) if arms and up is not None else None
        self.sagging: SaggingArms | None = None
        self.prefer(np.tile(IDENTITY, (len(skeleton), 1)), skeleton.rest[0, :3, 3])
        self.tolerance = SINGLE * float(self.goals.lengths.max())
        ranks = np.unique([each.priority for each in effectors], return_inverse=True)[1].reshape(-1)
        caps = np.array([each.weight for each in effectors]) * _CAP * self.size * PRIORITY ** (ranks.max() - ranks)
        # The torque that holds an orientation depends on the body's size, not on `arms`, the lengths of paths to bones'
        # ends.
        torques = caps[self.goals.oriented] * self.goals.shares * LEVER * self.size
        self.caps: FloatArray = np.concatenate([caps, torques / self.goals.arms])
        # Goals that are kept before those of the lowest priority.
        self._pinned: BoolArray = self.caps > 2.0 * caps.min()
        self._last_goals: IntArray = np.flatnonzero(~self._pinned[: len(caps)])
        self._last_caps = caps[self._last_goals]
        self.begin(*self.preferred)

    @property
    def size(self) -> float:
        """The length to which forces and thresholds are relative."""
        return self.skeleton.extent

    def prefer(self, rotations: npt.ArrayLike, location: npt.ArrayLike) -> None:
        """Set the preferred pose: (J, 4) local rotations and the root's head at (3,), armature space."""
        self.preferred = np.asarray(rotations, dtype=np.float64), np.asarray(location, dtype=np.float64)
        coupled, bends = self._limbs.coupled, self._side_bends
        self.posture = PostureTerm(self.bodies, self.masses, *self.preferred, self._free, coupled, bends)
        self.bounds.prefer(self.posture, *self.preferred)
        self._preferred_pose = self.bodies.pose(self.preferred[0][self.bodies.bones], self.preferred[1])
        self._limbs.prefer(self._preferred_pose)
        if self._arms is not None:
            self._arms.prefer(self._preferred_pose)

    def lock(self, locks: Mapping[int, Lock]) -> None:
        """Replace the locks; their keys are the indices of bones."""
        body_of = {int(bone): body for body, bone in enumerate(self.bodies.bones)}
        pairs = [(body_of[bone], lock) for bone, lock in locks.items() if bone in body_of]
        self._locked = [(body, lock) for body, lock in pairs if self.bodies.counts[body]]
        self._pose: Pose | None = None

    def begin(self, rotations: FloatArray, location: FloatArray) -> None:
        """Start from a pose, (J, 4) local rotations and root (3,); forget the last forces and active set."""
        if not self._separate:
            self.bounds.capsules.allow(self.bodies.pose(rotations[self.bodies.bones], location))
        self._restart(rotations, location)

    def _restart(self, rotations: FloatArray, location: FloatArray) -> None:
        self.continue_from(rotations, location)
        self._wanted: Wanted | None = None
        self._forget()

    def _forget(self) -> None:
        self._damping = 0.0
        self._forces = np.zeros((len(self.caps), 3))
        self._compliance = np.full(len(self.caps), RIGID)
        self._active = _Active.none()
        self._bends_straight = True

    def continue_from(self, rotations: FloatArray, location: FloatArray) -> None:
        """Continue from local rotations (J, 4) and the root at (3,), with the last forces and active set."""
        self.rotations, self.location, self._pose = rotations, location, None

    def points(self, rotations: FloatArray, location: FloatArray) -> FloatArray:
        """(E, 3) the effectors in a pose of rotations (J, 4) and root (3,), armature space."""
        return self.goals.points(self.bodies.pose(rotations[self.bodies.bones], location))[: self.goals.count]

    def blocking_constraint(self) -> Holder | None:
        """The constraint that most keeps effectors from their targets in the last pose; None if all targets are met.

        Multipliers are compared as forces. Those of joint limits are torques, here divided by LEVER times the body's
        size.
        """
        let_go = self._compliance[: self.goals.count] > RIGID
        if not let_go.any():
            return None
        forces = lengths(self._forces[: self.goals.count])
        # Goals without a position only hold a rotation, and do not press against the floor.
        kept = np.flatnonzero(~let_go & self._last.wanted.seen[: self.goals.count])
        found = {Holder("GOAL", self.effectors[row].bone): float(forces[row]) for row in kept}
        for key, multiplier in zip(self._active.keys.tolist(), self._active.multipliers.tolist(), strict=True):
            holder = self.limits.holder(key) or self.bounds.holder(key)
            lever = LEVER if holder.kind == "LIMIT" else 1.0
            found[holder] = found.get(holder, 0.0) + multiplier / lever
        # The floor's force is the sum over all points. If a foot and its toes touch it, the foot is named. If the bone
        # also has a goal, the floor only presses against that goal, so the goal's force is reduced by the floor's.
        floor = {holder: force for holder, force in found.items() if holder.kind == "FLOOR"}
        for holder in [each for each in floor if Holder("GOAL", each.bone) in found]:
            goal, pressing = Holder("GOAL", holder.bone), floor.pop(holder)
            found[goal] = abs(found[goal] - pressing)
            del found[holder]
        if floor:
            path = self.skeleton.path(self.skeleton.index(max(floor, key=floor.__getitem__).bone))
            above = (Holder("FLOOR", self.skeleton.names[bone]) for bone in path)
            found[next(each for each in above if each in floor)] = sum(floor.values())
        strongest = max(found, key=found.__getitem__, default=OUT_OF_REACH)
        return strongest if found.get(strongest, 0.0) > _BLOCKING_SHARE * forces[let_go].max() else OUT_OF_REACH

    def misses(
        self, rotations: FloatArray, location: FloatArray, points: FloatArray, target_rotations: FloatArray | None
    ) -> FloatArray:
        """(E + O,) the errors of a pose: distances in armature units and angles in radians, from the targets.

        rotations: (J, 4) local. location: (3,) the root's head. points: (E, 3) and target_rotations: (E, 4), as in
        `solve`. All but `rotations` are in armature space.
        """
        wanted = self.goals.wanted(points, target_rotations)
        pose = self.bodies.pose(rotations[self.bodies.bones], location)
        return np.concatenate(self.goals.missed(self.goals.residual(pose, wanted)))

    def solve(
        self,
        points: npt.ArrayLike,
        target_rotations: npt.ArrayLike | None = None,
        *,
        free_directions: FloatArray | None = None,
        eased: bool = False,
        settled: bool = False,
    ) -> DragPose:
        """Continue from the current pose to the one for targets (E, 3) and rotations (E, 4); NaN for none.

        Args:
            points: (E, 3) in armature space.
            target_rotations: (E, 4) w x y z in armature space.
            free_directions: (E, 3) a unit direction along which an effector is free, zero for none.
            eased: let joints that would move much faster than the targets catch up over several calls.
            settled: continue until the joints are at rest.
        """
        wanted = self.goals.wanted(
            np.asarray(points, dtype=np.float64),
            None if target_rotations is None else np.asarray(target_rotations, dtype=np.float64),
            free_directions,
        )
        self._adapt_posture(wanted)
        # Reuse the pose of the last call: it is already clamped, and its capsules are measured.
        local = self.rotations[self.bodies.bones]
        first = _State(self, self._pose or self.bodies.pose(self._clamped(local), self.location), wanted)
        moved_distance = self._moved_distance(first)
        # While targets move, an orientation that was missed before may stay missed. For example, hips cannot keep
        # theirs while ankles are at their limits.
        kept_goals = (
            (np.arange(len(self.caps)) < self.goals.count)
            | ~self._is_missed(first if self._wanted is None else self._last)
            | (moved_distance == 0.0)
        )
        self._wanted = wanted
        state, distance = first, moved_distance
        if moved_distance > _MOVE * self.size:
            # After a jump the preferred pose may be closer to the targets than the current one.
            local, location = self.preferred[0][self.bodies.bones], self.preferred[1]
            preferred = self._state(local, location, wanted)
            if preferred.merit < state.merit:
                self._forget()
                state, distance = preferred, float(lengths(preferred.residual).max())
        # A target that jumps is followed in several moves, since the model of a step is inaccurate so far away.
        for left in range(min(int(distance / (_MOVE * self.size)), _MAX_MOVES), 0, -1):
            nearer = self.goals.toward(state.pose, wanted, 1.0 / (1 + left))
            state = _State(self, self._step(_State(self, state.pose, nearer), 0.0)[0].pose, wanted)
        # While the targets do not move, joints continue toward rest, over several calls.
        most = _STEPS_TO_REST if settled else _STEPS
        state, steps, is_at_rest = self._minimized(state, most, settled=settled or moved_distance == 0.0)
        missed = self._is_missed(state)
        self._bends_straight |= settled or not missed.any()
        if missed.any() and self._bends_straight:
            bent = self._with_bent_limbs(state, missed)
            if bent is not None:
                kept = self._forces, self._compliance, self._active
                other, more, rests = self._minimized(bent, most, settled=settled or moved_distance == 0.0)
                steps += more
                self._bends_straight = other.merit < state.merit
                if self._bends_straight:
                    state, is_at_rest = other, rests
                else:
                    self._forces, self._compliance, self._active = kept
        held = (
            self._limited_motion(first, state, moved_distance, kept_goals & (self._compliance <= RIGID))
            if eased
            else state
        )
        self._last: _State = held
        rotations = np.array(self.rotations)
        rotations[self.bodies.bones] = held.pose.local
        self.rotations, self.location, self._pose = rotations, held.pose.root, held.pose
        errors, turns = self.goals.missed(held.residual)
        rotation_errors = np.full(len(errors), np.nan)
        rotation_errors[self.goals.oriented] = turns
        return DragPose(rotations, held.pose.root, errors, rotation_errors, steps, held is not state or not is_at_rest)

    def _minimized(self, state: _State, most: int, *, settled: bool) -> tuple[_State, int, bool]:
        """The state after at most `most` steps, the number of steps, and whether the joints are at rest."""
        self._damping = 0.0 if self._damping > _MOST_DAMPING else self._damping
        for step in range(1, 1 + most):
            state, self._damping, longest = self._step(state, self._damping)
            if longest < AT_REST or self._damping > _MOST_DAMPING:
                return state, step, True
            if settled:
                continue
            # Stop early, or close to rest. The rest of the gain comes with the next moves, or while the mouse rests.
            is_done = np.abs(state.residual[self._compliance <= RIGID]).max(initial=0.0) <= _MET * self.tolerance
            turned = float(np.abs(state.away.turned).max(initial=0.0))
            is_close = is_done and longest < min(_NEAR_REST, (_NEAR_REST * turned) ** 0.5)
            is_met = not self._is_missed(state).any() and self.bounds.depth(state.pose) <= CLOSE * self.size
            if is_close or (step >= _STEPS_WHEN_MET and is_met):
                break
        return state, step, False

    def _is_missed(self, state: _State) -> BoolArray:
        return np.asarray(lengths(state.residual) > CLOSE * self.size)

    def _with_bent_limbs(self, state: _State, missed: BoolArray) -> _State | None:
        """The state with straight limbs bent a little, if this may help to meet a missed goal; None otherwise.

        No small rotation moves the end of a straight limb along the limb, so hips that are pulled down on straight legs
        would not move. A limb is not bent for a goal that only stretches it.
        """
        pose, bodies = state.pose, self.bodies
        upper = pose.heads[1:] - pose.heads[bodies.parents[1:]]
        along = pose.orientations[1:, :, 1]
        sine = lengths(np.cross(upper, along))
        straight = (sine <= _BEND * lengths(upper)) & ((upper * along).sum(axis=1) > 0.0) & (bodies.counts[1:] > 0)
        pull = state.residual[: self.goals.count]
        points = self.goals.points(pose)[: self.goals.count]
        arms = points - pose.heads[1:, None]
        nearing = ((arms * pull).sum(axis=2) <= 0.0) & missed[: self.goals.count]
        bent = 1 + np.flatnonzero(straight & (nearing.any(axis=1) | missed[self.goals.count :].any()))
        if not len(bent):
            return None
        local = pose.local.copy()
        for body in bent:
            axis = bodies.axes[bodies.first[body]]
            about = pose.orientations[bodies.parents[body]] @ bodies.rest_turns[body] @ axis
            angle = float(about @ np.cross(upper[body - 1], along[body - 1])) / float(lengths(upper[body - 1]))
            # A limb that is bent backward, such as an overextended knee, is bent beyond straight.
            bends = np.array([_BEND - min(angle, 0.0), -_BEND - max(angle, 0.0)])
            turns = quaternion_from_rotation_vector(np.outer(bends, axis))
            both = np.repeat(pose.local[None], 2, axis=0)
            both[:, body] = product(turns, pose.local[body])
            inside = np.array([self.limits.clamped(each)[body] for each in both])
            shares = angle_between(inside, pose.local[body]) / np.abs(bends)
            # If both sides are free, always choose the same one; otherwise rounding would choose.
            local[body] = inside[int(shares[1] > shares[0] + AT_REST)]
        return self._state(local, pose.root, state.wanted)

    def solve_from_preferred(
        self,
        points: npt.ArrayLike,
        target_rotations: npt.ArrayLike | None = None,
        *,
        try_passes: bool = False,
    ) -> DragPose:
        """The pose for targets, starting from the preferred pose instead of the current one.

        points: (E, 3) and target_rotations: (E, 4), as in `solve`. try_passes: if goals are missed, also start from the
        pose that FABRIK's passes reach.
        """
        self.begin(*self.preferred)
        found = self.solve(points, target_rotations, settled=True)
        if not try_passes or not self._is_missed(self._last).any():
            return found
        root, options = "FREE" if self.bodies.free_root else "FIXED", Options(restarts=0)
        solver = Solver(self.skeleton, self.effectors, limits=self._own_limits, root=root, options=options)
        rotations, location = self.preferred
        start = solver.solve(points, start=rotations, start_location=location, target_rotations=target_rotations)
        held, kept = self._last, (self._forces, self._compliance, self._active)
        self._restart(start.rotations, start.root_location)
        other = self.solve(points, target_rotations, settled=True)
        if self._last.merit < held.merit:
            return other
        self._restart(found.rotations, found.root_location)
        self._last, (self._forces, self._compliance, self._active) = held, kept
        return found

    def _adapt_posture(self, wanted: Wanted) -> None:
        """Shift the body over its support, and relax limbs, proportional to the movement of targets.

        This is their distance from the effectors in the preferred pose.
        """
        ways = self.goals.residual(self._preferred_pose, wanted)[: self.goals.count]
        moved = lengths(ways)
        shares = np.minimum(1.0, moved / (_FULL_SHIFT * self.size))
        # Targets that hardly moved stay met if others are out of reach. Their caps are at most two thirds of those of
        # pins.
        apart = np.minimum(moved[self._last_goals] / self.size, 1.0) + 1.5 / PRIORITY
        self.caps[self._last_goals] = self._last_caps * apart.max() / apart
        if (relaxed := self._limbs.relaxed(shares)) is not None:
            self.posture = self.posture.relaxed(*relaxed)
        self.sagging = self._arms if self._arms is not None and self._arms.relax(shares) else None
        self.bounds.lean_on(wanted.points[(moved > 0.0) & ~self._limbs.on_legs], _FULL_SHIFT * self.size)
        feet = self._limbs.below_knees
        lifted = self.bounds.lifted(ways[feet])
        share = max(float(lifted.max(initial=0.0)), float(shares[~feet].max(initial=0.0)))
        # The body is free to follow a foot that still bears weight, by half of its path.
        borne = 0.5 * (1.0 - lifted) @ ways[feet]
        carried = np.zeros(3)
        if self._side_bends:
            # Hips that are dragged sideways carry the body over one foot. If they go back, the trunk leans forward.
            body, axis = self._side_bends[0]
            forward = self._preferred_pose.carried[body] @ axis
            carried = ways[self.goals.on[: self.goals.count] == 0].sum(axis=0)
            carried -= (carried @ forward) * forward
        self.posture.shift = self.bounds.shift(share, carried, borne)

    def _moved_distance(self, state: _State) -> float:
        """The largest distance that a target has moved since the last call; a radian counts as the body's size."""
        before, wanted = self._wanted, state.wanted
        if before is None:
            errors, turns = self.goals.missed(state.residual)
            return float(max(errors.max(initial=0.0), self.size * turns.max(initial=0.0)))
        moved = lengths(wanted.points - before.points)
        turns = np.zeros(0)
        if not np.array_equal(wanted.frames, before.frames):
            turns = lengths(rotation_vector_from_matrix(wanted.frames @ np.swapaxes(before.frames, -1, -2)))
        return float(max(moved.max(initial=0.0), self.size * turns.max(initial=0.0)))

    def _step(self, state: _State, damping: float) -> tuple[_State, float, float]:
        """The state after one quadratic program, the next damping, and the largest rotation asked for, radians."""
        (mass, gradient, _), (constraints, *_) = state.equations, state.constraints
        rows, residual = state.rows, state.residual.ravel()
        multipliers = self._active.of(constraints)
        active = multipliers > 0.0
        # Constraints with compliance or an open gap get no stiffness: stiffness would push, because they are not met
        # exactly.
        exact = constraints.compliance == 0.0
        closed = active & exact & (constraints.gaps <= CLOSE * self.size)
        held, asked = constraints.rows[closed], constraints.gaps[closed]
        # Half of the stiffness with which a goal at its cap is pulled. Without it, the strong forces of pins and caps
        # make the matrix indefinite, and steps far too short.
        distances = np.maximum(lengths(state.residual), CLOSE * self.size)
        stiffness = np.repeat(0.5 * self.caps / distances, 3)
        matrix = (1.0 + damping) * mass - self._curvature(state, multipliers)
        matrix += (rows.T * stiffness) @ rows + _FIRM * held.T @ held
        slope = rows.T @ (stiffness * residual) + _FIRM * held.T @ asked - gradient
        matrix, unlocked = self._positive(matrix, state), self.unlocked(state.pose)
        if unlocked is not None:
            locked = np.diag(np.diagonal(matrix)) * (1.0 - np.diagonal(unlocked))
            matrix, slope, rows = unlocked @ matrix @ unlocked + locked, unlocked @ slope, rows @ unlocked
            constraints = constraints._replace(rows=constraints.rows @ unlocked)
        found = QuadraticProgram(matrix, slope, rows, constraints.rows, stiffness).solve(
            residual,
            constraints.gaps,
            constraint_compliance=constraints.compliance,
            caps=self.caps,
            active=active,
            expected=np.repeat(np.minimum(self._compliance, distances / self.caps), 3),
        )
        longest = float(np.abs(found.step[: self.bodies.turning]).max(initial=0.0))
        met = found.compliance <= RIGID
        # Meeting goals more exactly may raise the merit by their forces times the distance, so such a rise is allowed.
        least = float(np.abs(found.forces[met] * residual[met]).sum()) + ROUNDING * max(state.merit, self.size**2)
        share = min(1.0, MAX_ROTATION / max(longest, ROUNDING))
        kept, closed = met.copy(), found.active & exact
        kept[: 3 * self.goals.count] |= np.repeat(self._pinned[: self.goals.count], 3)
        for _ in range(MAX_SHORTER):
            trial = self._corrected(state, found.step, kept, closed, share)
            if trial.merit <= state.merit + least:
                self._forces, self._compliance = found.forces.reshape(-1, 3), found.compliance[::3]
                self._active = _Active(constraints.keys[found.active], found.pushes[found.active])
                return trial, 0.1 * damping if damping > 0.1 else 0.0, longest
            share *= SHORTER
        # Forces from another pose can make the model's curvature far too large, so the next step begins without them.
        self._forces, self._active = np.zeros_like(self._forces), _Active.none()
        return state, max(10.0 * damping, 0.3), np.inf

    def _curvature(self, state: _State, multipliers: FloatArray) -> FloatArray:
        """(D, D) the change of the forces on the columns, from goals, masses and contacts, as the bodies move."""
        goals, posture, (_, contacts, outlines) = self.goals, self.posture, state.constraints
        pressed, on_pressed, pressing = contacts.forces(multipliers)
        points = np.concatenate([goals.points(state.pose), state.away.centers, pressed])
        on = np.concatenate([goals.on, posture.carrier, on_pressed])
        forces = np.concatenate([goals.forces(self._forces), -posture.pulls(state.away), pressing])
        torques = goals.on[goals.oriented], self._forces[goals.count :] * goals.arms[:, None]
        stiffness = self.bodies.stiffness(state.pose, state.motions, points, on, forces, torques)
        return stiffness + state.equations[2] - self.limits.curvature(outlines, self.size * multipliers)

    def _positive(self, matrix: FloatArray, state: _State) -> FloatArray:
        """(D, D) a matrix that is positive definite by a margin.

        Negative curvature, in units of mass, changes its sign. So steps along it go downhill; the larger the curvature,
        the shorter the steps. All other directions stay as they are (modified eigenvalues: Nocedal and Wright,
        *Numerical Optimization*, section 3.4; Dauphin et al., NeurIPS 2014).
        """
        mass = state.equations[0]
        try:
            np.linalg.cholesky(matrix - CLOSE * mass)
        except np.linalg.LinAlgError:
            lower = np.linalg.cholesky(mass)
            by_mass = np.linalg.solve(lower, np.linalg.solve(lower, matrix).T)
            values, vectors = np.linalg.eigh(0.5 * (by_mass + by_mass.T))
            bent = values < CLOSE
            along = lower @ vectors[:, bent]
            matrix = matrix + (along * (np.maximum(-values[bent], CLOSE) - values[bent])) @ along.T
        return matrix

    def _corrected(self, state: _State, step: FloatArray, kept: BoolArray, closed: BoolArray, share: float) -> _State:
        """The state after a fraction of a step (D,), with some goals moved to where their straight paths end.

        kept: (3 (E + O),) the goals to move: those that are met, and points of pins. Their real paths are curved, and
        the large caps of pins would reject the step. closed: (K,) active constraints, whose gaps do not change. All
        overlaps are removed.
        Each correction is a Newton step with the rows of the pose it begins in, and moves as little mass as possible.
        With the rows and the Hessian of the first pose, chains that are almost stretched move away from their pins.
        """
        left = (state.residual.ravel() - share * (state.rows @ step))[kept]
        held, keys = state.constraints[0].rows[closed], state.constraints[0].keys[closed]
        trial = best = self._moved(state, share * step)
        least = np.inf
        for _ in range(5):
            # The rows of another pose take half as long as a step, so they are only computed if parts overlap.
            if self.bounds.depth(trial.pose) > CLOSE * self.size:
                constraints, *_ = trial.constraints
                overlapping = (constraints.gaps < 0.0) & (constraints.compliance == 0.0)
                used = np.isin(constraints.keys, keys) | overlapping
                held, gaps = constraints.rows[used], np.minimum(constraints.gaps[used], 0.0)
            else:
                gaps = np.zeros(len(held))
            off = np.concatenate([trial.residual.ravel()[kept] - left, gaps])
            distance = float(np.linalg.norm(off))
            if distance > 0.6 * least:
                break
            best, least = trial, distance
            if np.abs(off).max(initial=0.0) <= self.tolerance:
                break
            rows = np.concatenate([trial.rows[kept], held])
            by_forces = state.mobility @ rows.T
            square = rows @ by_forces
            diagonal = np.einsum("ii->i", square)
            diagonal *= 1.0 + SINGLE
            diagonal += RIGID
            trial = self._moved(trial, by_forces @ np.linalg.solve(square, off))
        return best

    def _moved(self, state: _State, step: FloatArray) -> _State:
        return self._state(*self.bodies.moved(state.pose, step), state.wanted)

    def _state(self, local: FloatArray, root: FloatArray, wanted: Wanted) -> _State:
        """The state for local rotations (B, 4), first brought inside limits and locks, and the root's head at (3,)."""
        return _State(self, self.bodies.pose(self._clamped(local), root), wanted)

    def _clamped(self, local: FloatArray) -> FloatArray:
        """(B, 4) the nearest local rotations inside the joint limits; locked channels do not change."""
        inside = self.limits.clamped(local)
        for body, lock in self._locked:
            inside[body] = lock(inside[body])
        return inside

    def unlocked(self, pose: Pose) -> FloatArray | None:
        """(D, D) the projection of steps onto the directions that locks leave open, to first order; None: no locks."""
        if not self._locked:
            return None
        open_steps = np.eye(self.bodies.columns)
        for body, lock in self._locked:
            own = slice(self.bodies.first[body], self.bodies.first[body] + self.bodies.counts[body])
            axes, rotation = self.bodies.axes[own], pose.local[body]
            tries = product(quaternion_from_rotation_vector(CLOSE * axes), rotation)
            back = conjugate(lock(rotation))
            allowed = np.array([rotation_vector_from_quaternion(product(lock(each), back)) for each in tries]) / CLOSE
            directions, sizes, _ = np.linalg.svd((allowed @ axes.T).T)
            kept = directions[:, sizes > _OPEN_SHARE]
            open_steps[own, own] = kept @ kept.T
        return open_steps

    def _limited_motion(self, first: _State, state: _State, moved_distance: float, kept: BoolArray) -> _State:
        """A state between two others, in which no joint moves farther than `moved_distance` of the targets allows.

        kept: (E + O,) the goals that it must meet.
        """
        max_distance = _FOLLOWS * moved_distance + (_MIN_DISTANCE if moved_distance > 0.0 else _CATCH_UP) * self.size
        farthest = self._farthest(first, state)
        rotated = np.where(self._free, _FREE, 1.0) * angle_between(first.pose.local, state.pose.local)
        turned = float(rotated.max()) if moved_distance > 0.0 else 0.0
        held = state
        # First limit the rotations of joints. If goals are then missed, limit only their movements.
        for distance in dict.fromkeys((max(farthest, _RADIAN * self.size * turned), farthest)):
            if distance <= max_distance:
                return state
            local = slerp(first.pose.local, state.pose.local, np.full(len(first.pose.local), max_distance / distance))
            root = first.pose.root + max_distance / distance * (state.pose.root - first.pose.root)
            held = self._state(local, root, state.wanted)
            met = self._with_goals_met(held, kept)
            # While the targets rest, goals stay met, even if joints have to move far for that.
            near = moved_distance == 0.0 or self._farthest(first, met) <= _DETOUR * max_distance
            if near and not (self._is_missed(met) & kept).any():
                return met
        # Targets that have moved may lag. Pins and targets that were met stay met.
        kept = self._pinned | (kept & ~self._is_missed(first))
        met = self._with_goals_met(held, kept)
        # If the two poses are far apart, a pose between them may miss these goals; then use the new pose.
        return state if (self._is_missed(met) & kept & ~self._is_missed(state)).any() else met

    def _farthest(self, first: _State, state: _State) -> float:
        """The largest distance that a joint, or a bone's center of mass, moves between two states."""
        centers, heads = state.away.centers - first.away.centers, state.pose.heads - first.pose.heads
        return float(max(lengths(centers).max(), lengths(heads).max()))

    def _with_goals_met(self, state: _State, chosen: BoolArray) -> _State:
        """The state with chosen goals (E + O,) met and without penetrations, with as little mass moved as possible."""
        off = np.where(chosen[:, None], state.residual, 0.0).ravel()
        is_met = np.abs(off).max(initial=0.0) <= _MET * self.tolerance
        if is_met and self.bounds.depth(state.pose) <= CLOSE * self.size:
            return state
        constraints, *_ = state.constraints
        exact = np.flatnonzero(constraints.compliance == 0.0)
        rows, gaps = constraints.rows[exact], constraints.gaps[exact]
        active = self._active.of(constraints)[exact] > 0.0
        program = QuadraticProgram(state.equations[0], np.zeros(self.bodies.columns), state.rows, rows)
        met = np.repeat(chosen, 3)
        found = program.solve(off, gaps, np.where(met, RIGID, 1.0 / RIGID), active=active)
        closed = np.zeros(len(constraints.keys), dtype=bool)
        closed[exact[found.active]] = True
        return self._corrected(state, found.step, met, closed, 1.0)
