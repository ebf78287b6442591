"""Bend targets: a limb turns about the line from its base to its end until its middle points at its bend target.

A limb that ends at an effector can reach its target with its middle anywhere on a circle. The start pose is brought to
the right place on it, so that the sweeps stay in the plane of base, target and bend target, and the limb does not flip
when the target passes through the pose in which it is straight. What the solve leaves of an angle is turned away last.
"""

import numpy as np

from ..arrays import TINY, FloatArray, IntArray
from ..backend.protocol import Backend, Quaternion, Scalar, Vector
from ..fabrik.limbs import BendLimb
from ..fabrik.passes import sum_vectors
from ..fabrik.spheres import beside
from ..model.bodies import SweepPose, carried_frame
from ..problem import Problem
from ..state import State

# Rounds of turning and mending what limits do to a turn; each is to bring a limb nearer by so much, or it is the last.
_ROUNDS = 6
_BETTER = 0.95
# Radians beside a bend target that nobody sees.
_CLOSE = 1e-4
# The share by which turning may miss more where the targets cannot be met: rounding.
_NO_WORSE = 1e-6
# A straight limb's first body is turned away by so many radians, as dead straight limbs are at the start.
_BOW = 0.1
# The share of a limb's length beside its line from which on a direction means something.
_CLEAR = 1e-3


def bow_limbs(problem: Problem, state: State) -> None:
    """Bend dead straight limbs without hinges slightly toward their bend targets, in place, so that nothing rolls."""
    state.local = list(state.local)
    for limb in problem.bend_limbs:
        if any(problem.bodies[index].hinge for index in limb.bodies):
            continue
        pose = state.pose(problem.bodies)
        about = _bowing(problem, limb, pose, _bend_target(problem, state, limb))
        for place, index in enumerate(limb.bodies):
            share = 1.0 if place == 0 else -2.0 / (len(limb.bodies) - 1)
            turn = problem.backend.exp_map(carried_frame(problem.bodies[index], pose).conjugated() @ (about * share))
            state.local[index] = _legal(problem, index, turn @ state.local[index])


def aim_limbs(problem: Problem, state: State) -> None:
    """Turn limbs that have bend targets onto their targets, their middles toward the bend targets, in place."""
    backend = problem.backend
    state.local = list(state.local)
    for limb in problem.bend_limbs:
        pose = state.pose(problem.bodies)
        base, toward = pose.heads[limb.bodies[0]], _bend_target(problem, state, limb)
        closed = limb.effector in state.residuals.loops  # it has no place to be turned to
        seen = backend.scalar(state.weights[:, limb.effector] * (not closed)) > 0
        target = backend.vector(state.targets[:, limb.effector])
        turn = backend.rotation_between(pose.point(limb.bodies[-1], limb.end) - base, target - base)
        turn = backend.select(
            backend.logical_and(seen, toward.x == toward.x), turn, backend.Quaternion((1.0, 0.0, 0.0, 0.0))
        )
        _turn(problem, state, pose, limb, turn)
        _swivel(problem, state, limb)


def turn_to_bend_targets(problem: Problem, state: State) -> None:
    """Turn limbs of solved frames toward their bend targets, in place, as far as limits and targets let them."""
    frames = np.flatnonzero(_angles(problem, state) > _CLOSE)
    for _ in range(_ROUNDS):
        if not len(frames):
            return
        frames = frames[_turn_once(problem, state, frames)]


def _turn_once(problem: Problem, state: State, frames: IntArray) -> IntArray:
    """One round on some frames; which of them came nearer and are not there yet."""
    part = state.part(frames)
    points, angles = part.points(problem.bodies), _angles(problem, part)
    unmet, cost = part.unmet(part.misses(points)), part.cost(points)
    for limb in problem.bend_limbs:
        _swivel(problem, part, limb)
    if problem.least_squares.limited or len(problem.bend_limbs) > 1:
        part.stationary[:] = False
        problem.least_squares.run(part)
    points, turned = part.points(problem.bodies), _angles(problem, part)
    kept = np.where(part.unmet(part.misses(points)), unmet & (part.cost(points) <= cost * (1 + _NO_WORSE)), True)
    better = np.flatnonzero(kept & (turned < angles * _BETTER))
    state.replace(frames[better], part.part(better))
    return better[turned[better] > _CLOSE]


def _angles(problem: Problem, state: State) -> FloatArray:
    """(F,) the greatest angle in radians by which a limb's middle is beside its bend target."""
    pose, frames = state.pose(problem.bodies), len(state.targets)
    rotation_vectors = [_angle(problem, limb, pose, _bend_target(problem, state, limb)) for limb in problem.bend_limbs]
    return np.asarray(np.linalg.norm(problem.backend.stack(rotation_vectors, frames), axis=2).max(axis=1))


def _swivel(problem: Problem, state: State, limb: BendLimb) -> None:
    """Turn a limb about the line from its base to its end."""
    pose = state.pose(problem.bodies)
    _turn(
        problem,
        state,
        pose,
        limb,
        problem.backend.exp_map(_angle(problem, limb, pose, _bend_target(problem, state, limb))),
    )


def _turn(problem: Problem, state: State, pose: SweepPose, limb: BendLimb, turn: Quaternion) -> None:
    """Turn the bodies of a limb about its base, but not its hand, each inside its limit."""
    for index in (*limb.bodies, *([] if limb.hand is None else [limb.hand])):
        body = problem.bodies[index]
        carried = carried_frame(body, pose)
        if index == limb.hand:
            state.local[index] = _legal(problem, index, carried.conjugated() @ pose.orientations[index])
        elif index == limb.bodies[0] or not body.inherits_rotation:
            state.local[index] = _legal(problem, index, carried.conjugated() @ (turn @ pose.orientations[index]))
        pose.orientations[index] = carried @ state.local[index]


def _angle(problem: Problem, limb: BendLimb, pose: SweepPose, toward: Vector) -> Vector:
    """The rotation vector that turns a limb's middle to its bend target; none where no bend target is seen.

    It fades where middle or bend target are all but on the axis: there the angle means little, and may jump.
    """
    backend = problem.backend
    base = pose.heads[limb.bodies[0]]
    axis, length = _direction(backend, pose.point(limb.bodies[-1], limb.end) - base)
    side = sum_vectors([beside(pose.heads[index] - base, axis) for index in limb.middle])
    wish = beside(toward - base, axis)
    angle = backend.atan2(axis.dot(side.cross(wish)), side.dot(wish))
    clear = backend.minimum(side.length, wish.length) / backend.maximum(length * _CLEAR, TINY)
    seen = backend.logical_and(toward.x == toward.x, length > TINY)
    return axis * backend.select(seen, angle * backend.minimum(clear, 1.0), 0.0)


def _bowing(problem: Problem, limb: BendLimb, pose: SweepPose, toward: Vector) -> Vector:
    """The rotation vector that bends a straight limb's first body away toward its bend target; none for any other."""
    backend = problem.backend
    base = pose.heads[limb.bodies[0]]
    axis, length = _direction(backend, pose.point(limb.bodies[-1], limb.end) - base)
    side = [beside(pose.heads[index] - base, axis).length for index in limb.middle]
    bent = side[0]
    for more in side[1:]:
        bent = backend.maximum(bent, more)
    about, clear = _direction(backend, axis.cross(beside(toward - base, axis)))
    straight = backend.logical_and(bent < length * _CLEAR, clear > length * _CLEAR)
    return backend.select(straight, about * _BOW, backend.Vector((0.0, 0.0, 0.0)))


def _bend_target(problem: Problem, state: State, limb: BendLimb) -> Vector:
    return problem.backend.vector(state.bend_targets[:, limb.effector])


def _legal(problem: Problem, index: int, rotation: Quaternion) -> Quaternion:
    limit, turned = problem.bodies[index].limit, rotation.normalized()
    return turned if limit is None else limit.clamp(problem.backend, turned)


def _direction(backend: Backend, arm: Vector) -> tuple[Vector, Scalar]:
    """The direction of an arm, and its length."""
    length = arm.length
    return arm * (1.0 / backend.maximum(length, TINY)), length
