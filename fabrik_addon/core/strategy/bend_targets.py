"""Bend targets: a limb turns about the line from its base to its end until its middle points at a pole.

A limb that ends at an effector can reach its target with its middle anywhere on a circle. The start pose is brought to
the right place on it, so that the sweeps stay in the plane of base, target and pole, and the limb does not flip when
the target passes through the pose in which it is straight. What the solve leaves of an angle is turned away at the end.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ..arrays import FloatArray, IntArray, Quaternion, Scalar, Vector
from ..fabrik.limbs import Link
from ..fabrik.passes import sum_vectors
from ..least_squares.solve import LeastSquares
from ..limits.kinds import Hinge
from ..model.bodies import Attachment, Body, Pose, carried_frame, only_child
from ..model.residuals import Measures
from ..state import Work

_ROUNDS = 6
_CLOSE = 1e-4
_BETTER = 0.95
_NO_WORSE = 1e-6
_BOW = 0.1
_CLEAR = 1e-3
_TINY = 1e-30


@dataclass(frozen=True)
class Limb:
    """A run of bodies that ends at an effector, each hanging alone on the one before it.

    Attributes:
        effector: the effector.
        bodies: two or more bodies, base first, that turn with the limb.
        middle: those of them at whose heads the limb bends.
        end: what hangs on the last of them.
        hand: the body after them that keeps its frame, because more hangs on it than the effector or because its frame
            is wanted; None where the limb ends at the effector itself.
    """

    effector: int
    bodies: tuple[int, ...]
    middle: tuple[int, ...]
    end: Attachment
    hand: int | None


def find_limbs(bodies: Sequence[Body], links: Sequence[Link], measures: Measures) -> list[Limb]:
    """The limb of every effector that has one: from its sub-base, the root, or the last ball before a run of hinges.

    Args:
        bodies: parents first.
        links: the limited limbs among them, which begin at a ball.
        measures: which effectors there are, and which of them keep the frames of their bodies.
    """
    hinges = {link.ball: link.hinges for link in links}
    limbs = []
    for holder, body in enumerate(bodies):
        for attachment in body.attachments:
            alone = len(body.attachments) == len(attachment.effectors) == 1 and not attachment.children
            for effector in attachment.effectors:
                hand = None if alone and effector not in measures.oriented else holder
                run = _run_to(bodies, holder, hand is not None, hinges)
                if len(run) > 1 and effector < measures.count:
                    middle = tuple(index for index in hinges.get(run[0], ()) if index in run) or run[1:]
                    limbs.append(Limb(effector, run, middle, bodies[run[-1]].attachments[0], hand))
    return limbs


def _run_to(bodies: Sequence[Body], last: int, before: bool, balls: Collection[int]) -> tuple[int, ...]:
    """The bodies up from one, or from the one before it, as long as nothing else hangs on them."""
    run = [] if before else [last]
    parent = bodies[last].parent
    while last not in balls or (before and not run):
        if parent < 0 or only_child(bodies[parent]) != last:
            break
        last, parent = parent, bodies[parent].parent
        run.insert(0, last)
    return tuple(run)


class Bends:
    """The limbs of one set of bodies on one number system, and the finish that mends what limits do to a turn."""

    def __init__(
        self, numbers: ModuleType, bodies: Sequence[Body], limbs: Sequence[Limb], finish: LeastSquares
    ) -> None:
        self.numbers, self.bodies, self.limbs, self.finish = numbers, bodies, limbs, finish

    def bow(self, work: Work) -> None:
        """Bend limbs without hinges that are dead straight slightly toward their poles, in place, so nothing rolls."""
        work.local = list(work.local)
        for limb in self.limbs:
            if any(isinstance(self.bodies[index].limit, Hinge) for index in limb.bodies):
                continue
            pose = work.pose(self.bodies)
            about = self._bowing(limb, pose, self._pole(work, limb))
            for place, index in enumerate(limb.bodies):
                share = 1.0 if place == 0 else -2.0 / (len(limb.bodies) - 1)
                turn = self.numbers.turn_by(carried_frame(self.bodies[index], pose).conjugated() @ (about * share))
                work.local[index] = self._legal(index, turn @ work.local[index])

    def aim(self, work: Work) -> None:
        """Turn limbs of the start pose with a pole onto their targets, their middles toward the poles, in place."""
        numbers = self.numbers
        work.local = list(work.local)
        for limb in self.limbs:
            pose = work.pose(self.bodies)
            base, pole = pose.heads[limb.bodies[0]], self._pole(work, limb)
            closed = limb.effector in work.measures.loops  # it has no place to be turned to
            seen = numbers.scalar(work.weights[:, limb.effector] * (not closed)) > 0
            target = numbers.vector(work.targets[:, limb.effector])
            turn = numbers.arc(pose.point(limb.bodies[-1], limb.end) - base, target - base)
            turn = numbers.select(numbers.both(seen, pole.x == pole.x), turn, numbers.Quaternion((1.0, 0.0, 0.0, 0.0)))
            self._turn(work, pose, limb, turn)
            self._swivel(work, limb)

    def settle(self, work: Work) -> None:
        """Turn limbs of solved frames toward their poles, in place, as far as limits and targets let them."""
        frames = np.flatnonzero(self.angles(work) > _CLOSE)
        for _ in range(_ROUNDS):
            if not len(frames):
                return
            frames = frames[self._settle_once(work, frames)]

    def _settle_once(self, work: Work, frames: IntArray) -> IntArray:
        """One round on some frames; which of them came nearer and are not there yet."""
        part = work.part(self.numbers, frames)
        points, angles = part.points(self.numbers, self.bodies), self.angles(part)
        unmet, cost = part.unmet(part.misses(points)), part.cost(points)
        for limb in self.limbs:
            self._swivel(part, limb)
        if self.finish.limited or len(self.limbs) > 1:
            part.stationary[:] = False
            self.finish.run(self.numbers, part)
        points, turned = part.points(self.numbers, self.bodies), self.angles(part)
        kept = np.where(part.unmet(part.misses(points)), unmet & (part.cost(points) <= cost * (1 + _NO_WORSE)), True)
        better = np.flatnonzero(kept & (turned < angles * _BETTER))
        work.replace(self.numbers, frames[better], part.part(self.numbers, better))
        return better[turned[better] > _CLOSE]

    def angles(self, work: Work) -> FloatArray:
        """(F,) the greatest angle in radians by which a limb's middle is beside its pole."""
        pose, frames = work.pose(self.bodies), len(work.targets)
        turns = [self._angle(limb, pose, self._pole(work, limb)) for limb in self.limbs]
        return np.asarray(np.linalg.norm(self.numbers.stack(turns, frames), axis=2).max(axis=1))

    def _swivel(self, work: Work, limb: Limb) -> None:
        """Turn a limb about the line from its base to its end."""
        pose = work.pose(self.bodies)
        self._turn(work, pose, limb, self.numbers.turn_by(self._angle(limb, pose, self._pole(work, limb))))

    def _turn(self, work: Work, pose: Pose, limb: Limb, turn: Quaternion) -> None:
        """Turn the bodies of a limb about its base, but not its hand, each inside its limit."""
        for index in (*limb.bodies, *([] if limb.hand is None else [limb.hand])):
            body = self.bodies[index]
            carried = carried_frame(body, pose)
            if index == limb.hand:
                work.local[index] = self._legal(index, carried.conjugated() @ pose.frames[index])
            elif index == limb.bodies[0] or not body.inherits_rotation:
                work.local[index] = self._legal(index, carried.conjugated() @ (turn @ pose.frames[index]))
            pose.frames[index] = carried @ work.local[index]

    def _angle(self, limb: Limb, pose: Pose, pole: Vector) -> Vector:
        """The rotation vector that turns a limb's middle to its pole; none where no pole is seen.

        It fades where middle or pole are all but on the axis: there the angle means little, and may jump.
        """
        numbers = self.numbers
        base = pose.heads[limb.bodies[0]]
        axis, length = _direction(numbers, pose.point(limb.bodies[-1], limb.end) - base)
        side = sum_vectors([_beside(pose.heads[index] - base, axis) for index in limb.middle])
        wish = _beside(pole - base, axis)
        angle = numbers.atan2(axis.dot(side.cross(wish)), side.dot(wish))
        clear = numbers.smaller(side.length, wish.length) / numbers.larger(length * _CLEAR, _TINY)
        seen = numbers.both(pole.x == pole.x, length > _TINY)
        return axis * numbers.select(seen, angle * numbers.smaller(clear, 1.0), 0.0)

    def _bowing(self, limb: Limb, pose: Pose, pole: Vector) -> Vector:
        """The rotation vector that bends a straight limb's first body away toward its pole; none for any other."""
        numbers = self.numbers
        base = pose.heads[limb.bodies[0]]
        axis, length = _direction(numbers, pose.point(limb.bodies[-1], limb.end) - base)
        side = [_beside(pose.heads[index] - base, axis).length for index in limb.middle]
        bent = side[0]
        for more in side[1:]:
            bent = numbers.larger(bent, more)
        about, clear = _direction(numbers, axis.cross(_beside(pole - base, axis)))
        straight = numbers.both(bent < length * _CLEAR, clear > length * _CLEAR)
        return numbers.select(straight, about * _BOW, numbers.Vector((0.0, 0.0, 0.0)))

    def _pole(self, work: Work, limb: Limb) -> Vector:
        return self.numbers.vector(work.poles[:, limb.effector])

    def _legal(self, index: int, rotation: Quaternion) -> Quaternion:
        limit, turned = self.bodies[index].limit, rotation.normalized()
        return turned if limit is None else limit.clamp(self.numbers, turned)


def _beside(arm: Vector, axis: Vector) -> Vector:
    """What of an arm is at right angles to a unit axis."""
    return arm - axis * arm.dot(axis)


def _direction(numbers: ModuleType, arm: Vector) -> tuple[Vector, Scalar]:
    """The direction of an arm, and its length."""
    length = arm.length
    return arm * (1.0 / numbers.larger(length, _TINY)), length
