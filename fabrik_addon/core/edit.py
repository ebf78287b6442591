"""Edits over time: the poses of many frames follow changed goals smoothly.

If each frame were solved by itself, poses would jump, because an arm can bend in two ways, and limbs jerk as they
become straight. So all frames are solved at once. The result is the most probable change that is smooth over time (see
`ChangeOverTime`) and meets the goals inside joint limits, without self-collision.

Each step is a Gauss-Newton step for the change of all frames. Limits and capsules that push are equations. Held goals
are then met exactly on each frame, since their paths are curved, and the step is shortened until the other errors fall.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from .arrays import (
    CLOSE,
    ROUNDING,
    ROUNDS,
    SINGLE,
    TINY,
    BoolArray,
    FloatArray,
    IntArray,
    chosen,
    falloff,
    joined,
    lengths,
    squares,
    times,
)
from .drag import DragSolver
from .kernel.bodies import AT_REST, Bodies, Pose, joint_axes
from .kernel.bounds import NEAR, Capsules, SelfCollision
from .kernel.goals import LEVER, Goals, Wanted
from .kernel.joint_limits import JointLimits
from .kernel.posture import Masses, PostureTerm
from .limits import Limit
from .model.effector import Effector, participants
from .model.skeleton import Skeleton
from .optimize.qp import MAX_SHORTER, RIGID, SHORTER
from .rotations import (
    conjugate,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

# The length of the smooth kernel, as a fraction of the time in which a change fades. With 0.33, a hand jerks if a hold
# moves it by 31 cm; with 1.0, limbs of some recorded walks jerk.
_LENGTH: Final = 0.5
# The smallest and the largest fraction of the variance for the part that is independent on each frame.
_ROUGH: Final = (1e-5, 0.1)
# The variance of the error of an exact equation, as a fraction of the variance of its values. So contradicting
# equations do not cause large changes.
EXACT: Final = SINGLE


class ChangeOverTime:
    """The least change of a motion that meets linear equations on some of its frames, smooth over time.

    Finds the most probable change x of F frames, with D numbers each, that meets A x = b on the given rows, if changes
    are drawn from a Gaussian process (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, chapter
    2) about an expected change. Its covariance has two parts:

    * a change that is smooth over time and moves the masses as little as possible: a Matérn kernel of order 3/2, whose
      most probable curve is a spline of least acceleration, times the inverse of the mass matrix;
    * a smaller change that is independent on each frame. It takes up noise in b, such as that of recordings. Its
      variance falls with the square of the mass of each number, so that light bones take up the noise and the trunk
      remains calm.

    The Matérn process is Markov in its value and velocity, so a Kalman filter and a smoother find the change in a time
    that is proportional to F (Hartikainen and Särkkä, *Kalman filtering and smoothing solutions to temporal Gaussian
    process regression models*, 2010).
    """

    def __init__(
        self,
        frames: FloatArray,
        window: FloatArray,
        ease: float,
        mass: FloatArray,
        rough: float,
        units: FloatArray,
        expected: FloatArray,
    ) -> None:
        """Prepare frames (F,), in increasing order.

        window: (F,) factors on the deviations from the expected changes, such as 0 on frames that must not deviate.
        ease: frames over which a change fades in. mass: (D, D) the mass matrix. rough: the fraction of the variance
        that may change quickly. units: (D,) the amount that counts as much as one radian: 1 for angles, the size of the
        body for lengths. expected: (F, D) the mean of the changes.
        """
        self._window, self._expected = window, expected
        light = np.linalg.inv(mass)
        # The smooth part is this matrix times D independent processes of variance 1.
        self._mixing: FloatArray = np.linalg.cholesky(light)
        lightest, alike = 1.0 / (np.diag(mass) * units**2) ** 2, np.diag(light) / units**2
        # (D,) the variances of the part that is independent on each frame.
        self._rough: FloatArray = rough * alike.sum() / lightest.sum() * lightest * units**2
        # A process's value and velocity have the covariance `stationary`; over a time t they are multiplied by `moves`.
        rate, apart = np.sqrt(3.0) / (_LENGTH * max(ease, 1.0)), np.diff(frames, prepend=frames[0])
        turn = np.array([[rate, 1.0], [-(rate**2), -rate]])
        self._moves: FloatArray = np.exp(-rate * apart)[:, None, None] * (np.eye(2) + apart[:, None, None] * turn)
        self._stationary: FloatArray = np.diag([1.0, rate**2])
        self._noise: FloatArray = self._stationary - self._moves @ self._stationary @ np.swapaxes(self._moves, 1, 2)

    def least(
        self, on: IntArray, rows: FloatArray, wanted: FloatArray, slack: FloatArray | float = EXACT
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D) the change for rows (N, D) with values (N,) on frames with the indices `on` (N,), and (N,) forces.

        slack: (N,) variances of the errors of the equations, as fractions of the variances of their values.
        """
        (count, columns), slack = self._expected.shape, np.broadcast_to(slack, on.shape)
        missing = wanted - (rows * self._expected[on]).sum(axis=1)
        # The equations of each frame. Frames that hardly deviate can't meet any.
        order = np.flatnonzero(self._window[on] > SINGLE)
        order = order[np.argsort(on[order], kind="stable")]
        own = np.split(order, np.searchsorted(on[order], np.arange(1, count)))
        mixed, rough = (self._window[on, None] * rows) @ self._mixing, self._window**2 * self._rough[:, None]
        bumps = rows * rough.T[on]
        errors = slack * (squares(mixed) + (bumps * rows).sum(axis=1))
        # Forward: the mean (2, D) of values and velocities, and covariance (2, 2, D, D), given the equations so far.
        mean, covariance = np.zeros((2, columns)), np.multiply.outer(self._stationary, np.eye(columns))
        pulls, gains = [], []
        pairs = np.einsum("fij,fkl->fikjl", self._moves, self._moves).reshape(-1, 4, 4)
        for frame in range(count):
            if frame:
                mean = self._moves[frame] @ mean
                covariance = (pairs[frame] @ covariance.reshape(4, -1)).reshape(covariance.shape)
                np.einsum("ijaa->ija", covariance)[...] += self._noise[frame][..., None]
            here, onto = own[frame], mixed[own[frame]]
            across = onto @ covariance[0]
            system = across[0] @ onto.T + bumps[here] @ rows[here].T
            np.einsum("ii->i", system)[...] += errors[here]
            # Products with a root of the inverse keep the covariance symmetric, so that rounding errors do not grow.
            root = np.linalg.inv(np.linalg.cholesky(system))
            half, pull = root @ across, root @ (missing[here] - onto @ mean[0])
            pulls.append(root.T @ pull)
            gains.append(root.T @ half)
            mean = mean + pull @ half
            covariance -= half.swapaxes(1, 2)[:, None] @ half
        # Backward: the forces of the equations, and the pull (2, D) of all later ones on each frame.
        forces, later, total = np.zeros(len(on)), np.zeros((2, columns)), np.zeros((count, 2, columns))
        for frame in reversed(range(count)):
            forces[own[frame]] = pulls[frame] - np.einsum("imd,id->m", gains[frame], later)
            later[0] += forces[own[frame]] @ mixed[own[frame]]
            total[frame] = later
            later = self._moves[frame].T @ later
        # Forward again: the smoothed values (Koopman, Biometrika 80, 1993).
        change, state = self._expected.copy(), np.zeros((2, columns))
        for frame in range(count):
            noise = self._noise[frame] if frame else self._stationary
            state = self._moves[frame] @ state + noise @ total[frame]
            change[frame] += self._window[frame] * (self._mixing @ state[0])
            change[frame] += rough[:, frame] * (forces[own[frame]] @ rows[own[frame]])
        return change, forces


def noise_share(values: FloatArray) -> float:
    """The fraction of noise in the variance of (F, n) values on successive frames; NaN for none.

    Noise of variance v gives fourth differences of variance 70 v. Motion that is smooth over five frames has almost
    none.
    """
    differences, total = np.diff(values, 4, axis=0), np.nansum(values**2)
    count = np.isfinite(differences).sum()
    noise = np.nansum(differences**2) / (70.0 * max(count, 1)) * np.isfinite(values).sum()
    return float(np.clip(noise / max(total, TINY), *_ROUGH))


# Radians. No joint rotates by more than _MAX_TURN in a step; with 0.5, as in drags, a hand stays 17 mm inside the body.
# Steps end once held goals are met and no joint rotates by more than _SETTLED. In a drag, they also end after a step
# that gains less than the fraction _LEAST_GAIN of the total: for a hand over 240 frames, 5 of 8 steps only toggled
# contacts.
_MAX_TURN, _LEAST_GAIN = 1.0, 0.01
# Radians: stops are added and dropped between the solves of a step. One that changes no rotation by more than this is
# the last, because the next step continues from there.
_SETTLED: Final = 1e-2
# A side of a joint's limit replaces an earlier one if the cosine between their rows is above this.
_ALIKE: Final = 0.9
# The slack of points that are not held: the variance of their errors, as a fraction of that of their movements. They
# follow paths within reach to 1 %. With a tenth of it, points held near the edge of reach miss by millimeters; with ten
# times as much, dragged feet go through the floor. On frames with the whole change of a drag, they are exact.
_FOLLOWING: Final = 1e-2
# The slack of capsules that touch. With that of exact equations, feet that are held slip by 0.5 mm to keep parts apart.
_TOUCHING: Final = 1e-3


@dataclass(frozen=True)
class EditModel:
    """The bones, goals and limits of an edit.

    Attributes:
        skeleton: J bones.
        effectors: E points on them; those of priority 0 are held exactly, others give way.
        masses: of the bones.
        limits: bone name to limit.
        turning: names of the bones that may rotate.
        free_root: whether the root may move.
        collision: capsules that must not overlap.
        separate: whether capsules that overlap in a frame's original pose are moved apart; otherwise they go no deeper.
    """

    skeleton: Skeleton
    effectors: Sequence[Effector]
    masses: Masses
    limits: Mapping[str, Limit]
    turning: Collection[str]
    free_root: bool = False
    collision: SelfCollision | None = None
    separate: bool = False


@dataclass(frozen=True)
class EditPoses:
    """F poses.

    Attributes:
        rotations: (F, J, 4) local rotations, w x y z.
        roots: (F, 3) the root's head, armature space.
        errors: (F, E) distances of effectors from their targets; NaN without a target.
    """

    rotations: FloatArray
    roots: FloatArray
    errors: FloatArray


class KnownPose(NamedTuple):
    """The pose on one of F frames: the frame's index, (J, 4) local rotations and the root's head (3,)."""

    frame: int
    rotations: FloatArray
    root: FloatArray


class EditSolver:
    """An edit of F successive frames, prepared once to be solved for any targets.

    Attributes:
        own_points: (F, E, 3) the effectors in the original poses, armature space.
        own_rotations: (F, E, 4) the rotations of their bones there, armature space.
        overlaps: (F,) the deepest overlap of capsules there beyond the allowed one, armature units.
    """

    def __init__(
        self, model: EditModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray | None = None
    ) -> None:
        """Prefer local rotations (F, J, 4) and the root's head at (F, 3), armature space.

        shares: (F,) the fraction of a change on each frame. Original poses beyond limits are clamped by that fraction,
        so that nothing jumps at the ends of the change. None: 1 on every frame.
        """
        skeleton = model.skeleton
        self._rotations, self._size = rotations, skeleton.extent
        self._shares = np.ones(len(rotations)) if shares is None else shares
        self._bones = participants(skeleton, model.effectors)
        names = [skeleton.names[bone] for bone in self._bones]
        limits = [model.limits.get(name) for name in names]
        factors = np.where([name in model.turning for name in names], model.masses.factors[self._bones], np.inf)
        axes = [joint_axes(limit, factor) for limit, factor in zip(limits, factors, strict=True)]
        self._bodies = bodies = Bodies(skeleton, self._bones, axes, model.free_root)
        self._limits = _Limits(bodies, limits, rotations[:, self._bones], self._shares)
        self._goals = goals = Goals(bodies, model.effectors)
        is_held = np.array([effector.priority == 0 for effector in model.effectors])
        self._is_held = np.concatenate([is_held, is_held[goals.oriented]])
        weights = np.array([effector.weight for effector in model.effectors])
        self._weights = np.concatenate([weights, weights[goals.oriented]])
        self._model, self._roots = model, roots
        self._own = own = bodies.pose(rotations[:, self._bones], roots)
        self._capsules = Capsules(bodies, model.collision)
        self._capsules.carry(rotations, roots)
        if not model.separate:
            self._capsules.allow(own)
        self.overlaps = np.broadcast_to(self._capsules.depths(own).max(axis=-1, initial=0.0), len(rotations))
        self.own_points, self.own_rotations = self._effectors(own)

    @cached_property
    def _mass(self) -> FloatArray:
        """(D, D) the mean mass matrix of the frames."""
        posture = PostureTerm(self._bodies, self._model.masses, self._rotations, self._roots)
        motions = self._bodies.motions(self._own)
        return np.asarray(posture.equations(posture.away(self._own), self._own, motions)[0].mean(axis=0))

    @cached_property
    def _light(self) -> FloatArray:
        return np.linalg.inv(self._mass)

    def over_time(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        frames: FloatArray,
        ease: float,
        known: KnownPose | None = None,
    ) -> EditPoses:
        """Poses for targets on some of the frames; on the others, the change fades in and out smoothly.

        targets: (F, E, 3) and rotations: (F, E, 4) of the effectors' bones, armature space; NaN for none. frames: (F,)
        increasing frame numbers. ease: the number of frames over which the change fades. known: the pose on one frame.
        The other frames follow its change by their shares, and all targets are shifted to match the known pose.
        """
        if known is not None:
            targets, rotations = self._through(known, targets, rotations)
        pose = self._followed(targets, rotations, frames, ease, known)
        points, turned = self._effectors(pose)
        held = self._is_held[: self._goals.count]
        far = (lengths(targets - points)[:, held] > CLOSE * self._size).any(axis=1)
        if known is None and far.any():
            # Targets out of reach would bend limbs on other frames too, so they become the nearest points within reach.
            seen = far[:, None, None] & ~np.isnan(targets)
            nearer = np.where(seen, points, targets), np.where(seen[..., :1], turned, rotations)
            pose = self._followed(*nearer, frames, ease)
        local = self._rotations.copy()
        local[:, self._bones] = pose.local
        return EditPoses(local, pose.root, lengths(targets - self._effectors(pose)[0]))

    def _through(self, known: KnownPose, targets: FloatArray, rotations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Targets (F, E, 3) and rotations (F, E, 4) shifted so that a known pose meets them on its frame.

        Other frames get their share of the shift.
        """
        points, turned = self._effectors(self._bodies.pose(known.rotations[None, self._bones], known.root[None]))
        off = rotation_vector_from_quaternion(product(turned[0], conjugate(rotations[known.frame])))
        turns = quaternion_from_rotation_vector(self._shares[:, None, None] * off)
        shifts = self._shares[:, None, None] * (points[0] - targets[known.frame])
        return targets + shifts, product(turns, rotations)

    def _followed(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        frames: FloatArray,
        ease: float,
        known: KnownPose | None = None,
    ) -> Pose:
        """The poses of `over_time` for targets within reach.

        Takes Gauss-Newton steps for the change of all frames. Its columns are rotation vectors relative to the original
        poses, and the root's translation.
        """
        bodies, goals, own, count = self._bodies, self._goals, self._own, len(frames)
        wanted, exact = goals.wanted(targets, rotations), self._is_held
        units = np.where(np.arange(bodies.columns) < bodies.turning, 1.0, self._size)
        # The equations that keep a known pose, in units in which changes of all columns are equally probable.
        fixed, expected = _Equations.none(bodies.columns), np.zeros((count, bodies.columns))
        if known is not None:
            wanted.seen[known.frame] = False
            to_known = self._change(bodies.pose(known.rotations[self._bones], known.root))[known.frame]
            expected, equal = self._shares[:, None] * to_known, np.linalg.cholesky(self._mass).T
            at = np.full(bodies.columns, known.frame)
            fixed = _Equations(at, equal, equal @ to_known, np.full(len(at), EXACT))
            exact = exact | (self._shares == 1.0)[:, None]
        slack = np.broadcast_to(np.where(exact, EXACT, _FOLLOWING) / self._weights, wanted.seen.shape)
        moves = wanted.seen & ~wanted.seen.all(axis=0)
        missed = goals.residual(own, wanted)
        rough = noise_share(np.where(moves[..., None], missed, np.nan).reshape(count, -1))
        prior = ChangeOverTime(frames, self._shares, ease, self._mass, rough, units, expected)
        change, stops = expected, _Stops(bodies, LEVER * self._size)
        pose = self._moved(own, change)
        residual = goals.residual(pose, wanted)

        def cost(pose: Pose, left: FloatArray, change: FloatArray) -> float:
            overlaps = float((self._capsules.depths(pose) ** 2).sum()) * EXACT / _TOUCHING
            return float((squares(left) * EXACT / slack).sum()) + overlaps + stops.cost(change)

        last, relaxed = np.zeros(change.shape), 1.0
        first = spent = cost(pose, residual, change)
        for _ in range(ROUNDS):
            motions, rates = bodies.motions(pose), bodies.rates(change)
            rows = goals.rows(pose, motions, wanted).reshape(count, -1, bodies.columns)
            touching, gaps = self._capsules.sides(pose, motions, NEAR * self._size)
            for each in (rows, touching):
                each[..., : bodies.turning] = each[..., : bodies.turning] @ rates
            missing = residual.reshape(count, -1) + times(rows, change)
            on, used = np.nonzero((rows != 0.0).any(axis=2))
            asked = _Equations(on, rows[on, used], missing[on, used], slack[on, used // 3])
            on, used = np.nonzero(np.isfinite(gaps))
            bounds = times(touching, change) + gaps
            near = _Equations(on, touching[on, used], bounds[on, used], np.full(len(on), _TOUCHING))
            step = stops.least(prior, joined([asked, fixed]), near, gaps[on, used] <= SINGLE * self._size) - change
            longest = float(np.abs(step[:, : bodies.turning]).max(initial=0.0))
            # Along curved paths of goals, a step may partly undo the last one. Aitken's relaxation shortens it (Irons
            # and Tuck, Int. J. Numer. Methods Eng. 1, 1969).
            even = step / units
            if last.any():
                turn = last - even
                share = float((last * turn).sum()) / max(float(squares(turn).sum()), TINY)
                relaxed = float(np.clip(relaxed * share, 0.1, 1.0))
            last, step = even, relaxed * min(1.0, _MAX_TURN / max(longest, ROUNDING)) * step
            before = spent
            for _ in range(MAX_SHORTER):
                stopped = self._moved(own, change + step)
                trial = self._corrected(stopped, wanted)
                left = goals.residual(trial, wanted)
                # Goals that are met must not be compared, because their errors are only rounding errors.
                if cost(trial, left, change + step) <= before + (SINGLE * self._size) ** 2:
                    break
                step = SHORTER * step
            else:
                break
            stops.add(change + step, self._change(stopped))
            pose, residual, change = trial, left, self._change(trial)
            spent = cost(pose, residual, change)
            is_met = lengths(residual)[:, self._is_held].max(initial=0.0) <= SINGLE * self._size
            is_little = known is not None and before - spent < _LEAST_GAIN * (first - spent)
            if is_met and (longest < _SETTLED or is_little):
                break
        return pose

    def _corrected(self, pose: Pose, wanted: Wanted) -> Pose:
        """The pose moved back onto its held goals and out of overlaps, with as little mass moved as possible.

        Without this, steps overshoot if limbs are almost straight, because the paths of goals are curved.
        """
        goals, bodies, held, count = self._goals, self._bodies, self._is_held, len(pose.local)
        errors, exact = self._errors(pose, wanted), (ROUNDING * self._size) ** 2
        for _ in range(3):
            if errors.max() <= exact:
                break
            motions = bodies.motions(pose)
            touching, gaps = self._capsules.sides(pose, motions, 0.0)
            touching[gaps == np.inf], gaps[gaps == np.inf] = 0.0, 0.0
            off = np.concatenate([goals.residual(pose, wanted)[:, held].reshape(count, -1), gaps], axis=1)
            rows = goals.rows(pose, motions, wanted)[:, held]
            rows = np.concatenate([rows.reshape(count, -1, bodies.columns), touching], axis=1)
            by_forces = self._light @ rows.swapaxes(1, 2)
            system = rows @ by_forces
            np.einsum("fii->fi", system)[...] *= 1.0 + SINGLE
            np.einsum("fii->fi", system)[...] += RIGID
            trial = self._moved(pose, times(by_forces, np.linalg.solve(system, off[..., None])[..., 0]))
            left = self._errors(trial, wanted)
            worse = left > np.maximum(errors, exact)
            if worse.any():
                local = np.where(worse[:, None, None], pose.local, trial.local)
                trial = bodies.pose(local, np.where(worse[:, None], pose.root, trial.root))
            pose, errors = trial, np.where(worse, errors, left)
        return pose

    def _errors(self, pose: Pose, wanted: Wanted) -> FloatArray:
        """(F,) the sum of squared errors of held goals, and of overlaps."""
        held = squares(self._goals.residual(pose, wanted))[:, self._is_held]
        return np.asarray(held.sum(axis=1) + (self._capsules.depths(pose) ** 2).sum(axis=-1))

    def _change(self, pose: Pose) -> FloatArray:
        """(F, D) the change from the original poses: rotation vectors of joints, and the root's translation."""
        bodies, own = self._bodies, self._own
        turned = bodies.columns_of(rotation_vector_from_quaternion(product(pose.local, conjugate(own.local))))
        return np.concatenate([turned, pose.root - own.root], axis=1) if bodies.free_root else turned

    def _effectors(self, pose: Pose) -> tuple[FloatArray, FloatArray]:
        """(F, E, 3) positions and (F, E, 4) rotations of the effectors in some poses."""
        goals = self._goals
        turned = quaternion_from_matrix(pose.orientations[:, goals.on[: goals.count]])
        return goals.points(pose)[:, : goals.count], turned

    def _moved(self, pose: Pose, step: FloatArray) -> Pose:
        """The pose after a step (F, D), inside the limits."""
        local, root = self._bodies.moved(pose, step)
        return self._bodies.pose(self._limits.clamped(local), root)


class _Limits:
    """The limits of B bodies on F frames, shifted for joints whose original pose exceeds them."""

    def __init__(self, bodies: Bodies, limits: Sequence[Limit | None], own: FloatArray, shares: FloatArray) -> None:
        """Shift the limits. own: (F, B, 4) original poses. shares: (F,) the fraction of the excess that is removed."""
        self._bodies, self._limits = bodies, JointLimits(bodies, limits)
        away = rotation_vector_from_quaternion(product(own, conjugate(self._limits.clamped(own))))
        # A hinge can only rotate about its axis. Very small rotations, and rotations about other axes, are rounding
        # errors.
        is_hinge = np.array([limit is not None and limit.rotation_axis is not None for limit in limits])
        away[is_hinge | (lengths(away) < SINGLE)] = 0.0
        self._is_beyond = bool(away.any())
        self._beyond = quaternion_from_rotation_vector((1.0 - shares)[:, None, None] * away)

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, B, 4) the nearest local rotations inside the limits."""
        if not self._is_beyond:
            return self._limits.clamped(local)
        return product(self._beyond, self._limits.clamped(product(conjugate(self._beyond), local)))


class _Equations(NamedTuple):
    """N linear equations of a change: the frames' indices (N,), rows (N, D), values (N,) and slack (N,)."""

    on: IntArray
    rows: FloatArray
    values: FloatArray
    slack: FloatArray

    @classmethod
    def none(cls, columns: int) -> "_Equations":
        """An empty list of equations with D columns."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, columns)), np.zeros(0), np.zeros(0))


class _Stops:
    """The equations that stop joints in a change over time, in its columns: for limits, and for capsules that touch."""

    def __init__(self, bodies: Bodies, unit: float) -> None:
        """Start without stops; unit: the length that counts as much as a radian."""
        self._bodies, self._unit = bodies, unit
        self._at_limits = _Equations.none(bodies.columns)

    def least(self, prior: ChangeOverTime, asked: _Equations, near: _Equations, touching: BoolArray) -> FloatArray:
        """(F, D) the least change that meets some equations, while joints at their limits stop there.

        near: N upper bounds of pairs of capsules. touching: (N,) those that probably stop the bodies. Stops whose
        multiplier has the wrong sign are dropped, so that bodies can move away; bounds that are exceeded are added.
        """
        touching, before = touching.copy(), None
        for _ in range(ROUNDS):
            change, forces = prior.least(*joined([asked, chosen(near, touching), self._at_limits]))
            pushes = forces[len(asked.on) :] <= 0.0
            count = np.count_nonzero(touching)
            touching[touching] = pushes[:count]
            self._at_limits = chosen(self._at_limits, pushes[count:])
            passed = (near.rows * change[near.on]).sum(axis=1) > near.values + AT_REST * self._unit
            is_settled = before is not None and np.abs(change - before).max() < _SETTLED
            if is_settled or (pushes.all() and not (passed & ~touching).any()):
                break
            before = change
            touching |= passed
        return change

    def add(self, change: FloatArray, allowed: FloatArray) -> None:
        """Add stops for joints whose limits prevent a part of a change (F, D); `allowed` (F, D) is the other part."""
        bodies = self._bodies
        over = change - allowed
        for first, columns in zip(bodies.first.tolist(), bodies.counts.tolist(), strict=True):
            part = slice(first, first + columns)
            far = lengths(over[:, part])
            on = np.flatnonzero(far > AT_REST)
            rows = np.zeros((len(on), bodies.columns))
            rows[:, part] = self._unit * over[on, part] / far[on, None]
            alike = (self._at_limits.on[:, None] == on) & (self._at_limits.rows @ rows.T > _ALIKE * self._unit**2)
            found = _Equations(on, rows, (rows * allowed[on]).sum(axis=1), np.full(len(on), EXACT))
            self._at_limits = joined([chosen(self._at_limits, ~alike.any(axis=1)), found])

    def cost(self, change: FloatArray) -> float:
        """The sum of the squared errors of the equations of limits."""
        on, rows, values, _ = self._at_limits
        return float((((rows * change[on]).sum(axis=1) - values) ** 2).sum())


# Frames over which limbs return to their motion, before and after an overlap.
_FADES: Final = 10


def without_overlaps(
    model: EditModel, drag: DragSolver, rotations: FloatArray, roots: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A motion without self-collisions: (F, J, 4) rotations, (F, 3) roots, and the (F,) overlaps that it had.

    Effectors of priority 0 keep their position and rotation, others their position as closely as the surface of the
    body allows. Each frame with overlaps is posed like a drag. The other frames follow smoothly.

    drag: poses a single frame of the same model.
    """
    own = EditSolver(model, rotations, roots)
    overlaps = np.where(own.overlaps > CLOSE * model.skeleton.size, own.overlaps, 0.0)
    inside, is_led = overlaps > 0.0, np.array([each.priority > 0 for each in model.effectors])
    targets, turned = own.own_points.copy(), own.own_rotations.copy()
    turned[:, is_led] = np.nan
    for frame in np.flatnonzero(inside):
        drag.prefer(rotations[frame], roots[frame])
        posed = drag.solve_from_preferred(targets[frame], turned[frame])
        targets[frame] = drag.points(posed.rotations, posed.root_location)
    targets[np.ix_(~inside, is_led)] = np.nan
    rotations, roots = rotations.copy(), roots.copy()
    # Each group of frames with overlaps is solved separately, together with the frames around it.
    near = np.flatnonzero(np.convolve(inside, np.ones(4 * _FADES + 1))[2 * _FADES :][: len(inside)] > 0.0)
    for rows in np.split(near, np.flatnonzero(np.diff(near) > 1) + 1) if len(near) else ():
        frames, among = rows.astype(np.float64), rows[inside[rows]]
        shares = falloff(frames, among[0] - _FADES, among[-1] + _FADES, _FADES, _FADES)
        found = EditSolver(model, rotations[rows], roots[rows], shares).over_time(
            targets[rows], turned[rows], frames, _FADES
        )
        rotations[rows], roots[rows] = found.rotations, found.roots
    return rotations, roots, overlaps
