"""The two passes of FABRIK over rigid bodies (the paper's section 4, with bodies for its points).

Forward, leaves to root: every body is moved rigidly to what hangs on it. Backward, root to leaves: every body is put
where its parent carries its head, turned about it, and clamped by its limit, so that lengths and limits hold exactly.
With one attachment a body and no limits this is Algorithm 1.

Two rules let limited joints reach. A body whose limit binds moves forward without turning, so that those before it
learn what it really needs from them. A ball and the hinges after it are one link of variable length (see `links`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

from ..arrays import Quaternion, Scalar, Vector
from ..model.bodies import Attachment, Body, Pose, carried_frame, carried_head
from ..model.residuals import rotation_vector
from .limbs import Link

_TINY = 1e-30
_FIT_STEPS = 2
_HEAD_SHARE = 0.05
_SAME_TURN = 1e-6


class Wish(NamedTuple):
    """Where an attachment should be, and how much that counts (0: nothing below it is seen)."""

    attachment: Attachment
    point: Vector
    weight: Scalar


@dataclass(frozen=True)
class Goals:
    """What a solve wants on every frame.

    Attributes:
        targets: E points.
        weights: E weights.
        pulls: each body's pull on its parent.
        frames: by body, the frames that bodies are to have, and how much of the way there they are turned at once.
    """

    targets: list[Vector]
    weights: list[Scalar]
    pulls: list[Scalar]
    frames: dict[int, tuple[Quaternion, Scalar]]


def make_goals(
    numbers: ModuleType,
    bodies: Sequence[Body],
    targets: list[Vector],
    weights: list[Scalar],
    frames: dict[int, tuple[Quaternion, Scalar]] | None = None,
) -> Goals:
    """Goals with every body's pull: the mean weight of the effectors seen at or below it."""
    sums: list[Scalar] = [0.0] * len(bodies)
    counts: list[Scalar] = [0.0] * len(bodies)
    for index in range(len(bodies) - 1, -1, -1):
        for attachment in bodies[index].attachments:
            for effector in attachment.effectors:
                sums[index] = sums[index] + weights[effector]
                counts[index] = counts[index] + numbers.select(weights[effector] > 0, 1.0, 0.0)
            for child in attachment.children:
                sums[index] = sums[index] + sums[child]
                counts[index] = counts[index] + counts[child]
    pulls = [total / numbers.larger(count, 1.0) for total, count in zip(sums, counts, strict=True)]
    return Goals(targets, weights, pulls, frames or {})


class Sweeper:
    """Both passes for one set of bodies on one number system.

    Args:
        numbers: the number system of `bodies`.
        bodies: parents first.
        links: the limited limbs among them.
        free_root: whether the root's head goes where the fit wants it.
        plain: the paper's way with limits: clamp in both passes, without the two rules.
    """

    def __init__(
        self, numbers: ModuleType, bodies: Sequence[Body], links: Sequence[Link], free_root: bool, plain: bool
    ) -> None:
        self.numbers, self.bodies = numbers, bodies
        self.free_root, self.plain = free_root, plain
        self.links = {} if plain else {link.ball: link for link in links}
        self.linked = {hinge for link in self.links.values() for hinge in link.hinges}

    def sweep(self, pose: Pose, local: Sequence[Quaternion], bound: list[Scalar], goals: Goals) -> list[Quaternion]:
        """One forward and one backward pass, in place; returns the local rotations of the pose.

        Args:
            pose: heads and frames.
            local: the local rotation that each body turns from (a limited one's present, a free one's of the start).
            bound: whether each body's limit bound in the last backward pass.
            goals: what to reach.
        """
        root = pose.heads[0]
        wishes = self._forward(pose, bound, goals)
        if not self.free_root:
            pose.heads[0] = root
        return self._backward(pose, local, bound, wishes, goals)

    def _forward(self, pose: Pose, bound: list[Scalar], goals: Goals) -> list[list[Wish]]:
        """Move every body to its wishes, leaves first; returns the wishes of each."""
        result: list[list[Wish]] = [[] for _ in self.bodies]
        for index in range(len(self.bodies) - 1, -1, -1):
            body = self.bodies[index]
            wishes = result[index] = [self._wish(attachment, pose, goals) for attachment in body.attachments]
            if index in self.links:
                self._meet_link(index, result[self.links[index].hinges[-1]][0], pose, bound)
            elif index in goals.frames:
                self._meet_turned(index, wishes, pose, bound, goals)
            elif index not in self.linked:
                self._meet(index, wishes, pose, bound)
        return result

    def _wish(self, attachment: Attachment, pose: Pose, goals: Goals) -> Wish:
        """The weighted centroid of what its effectors and child bodies want (section 4.1's sub-base)."""
        children, effectors = attachment.children, attachment.effectors
        if len(children) == 1 and not effectors:
            return Wish(attachment, pose.heads[children[0]], goals.pulls[children[0]])
        wanted = [(pose.heads[child], goals.pulls[child]) for child in children]
        wanted += [(goals.targets[effector], goals.weights[effector]) for effector in effectors]
        point, weight = wanted[0]
        if len(wanted) == 1:
            return Wish(attachment, point, weight)
        total = point * weight
        for other, share in wanted[1:]:
            total, weight = total + other * share, weight + share
        return Wish(attachment, total * (1.0 / self.numbers.larger(weight, _TINY)), weight)

    def _meet(self, index: int, wishes: list[Wish], pose: Pose, bound: list[Scalar]) -> None:
        """Forward step of one body: slide along the line, fit rigidly, or move without turning where it is bound."""
        numbers, head, frame = self.numbers, pose.heads[index], pose.frames[index]
        if len(wishes) == 1:
            moved, turned = self._slide(wishes[0], head, frame), frame
        else:
            moved, turned = self._fit(wishes, head, frame)
        if self.bodies[index].limit is not None and not self.plain and numbers.any_of(bound[index]):
            moved = numbers.select(bound[index], self._carry(wishes, head, frame), moved)
            turned = numbers.select(bound[index], frame, turned)
        pose.heads[index], pose.frames[index] = moved, turned
        if self.plain:
            self._clamp_forward(index, wishes, pose)

    def _meet_turned(self, index: int, wishes: list[Wish], pose: Pose, bound: list[Scalar], goals: Goals) -> None:
        """Forward step of a body whose rotation is wanted: it has it outright, and its head goes where that puts it."""
        frame = self._turned_toward(pose.frames[index], *goals.frames[index])
        if self.bodies[index].limit is not None and not self.plain:
            frame = self.numbers.select(bound[index], pose.frames[index], frame)
        pose.heads[index], pose.frames[index] = self._carry(wishes, pose.heads[index], frame), frame

    def _turned_toward(self, frame: Quaternion, wanted: Quaternion, share: Scalar) -> Quaternion:
        """A frame turned a share of the way to another."""
        turn = rotation_vector(self.numbers, wanted @ frame.conjugated())
        return (self.numbers.turn_by(turn * share) @ frame).normalized()

    def _slide(self, wish: Wish, head: Vector, frame: Quaternion) -> Vector:
        """The paper's point on a line."""
        numbers, point = self.numbers, head
        away = (head - wish.point).length_squared > _TINY
        if numbers.any_of(numbers.opposite(away)):
            point = numbers.select(away, head, wish.point - frame @ wish.attachment.offset)
        return numbers.select(wish.weight > 0, numbers.slide(wish.point, point, wish.attachment.distance), head)

    def _carry(self, wishes: list[Wish], head: Vector, frame: Quaternion) -> Vector:
        """The head of a body that meets its wishes as it stands, without turning."""
        if len(wishes) == 1:
            place = wishes[0].point - frame @ wishes[0].attachment.offset
            return self.numbers.select(wishes[0].weight > 0, place, head)
        total = _total(wishes)
        place = sum_vectors([(wish.point - frame @ wish.attachment.offset) * wish.weight for wish in wishes])
        return self.numbers.select(total > 0, place * (1.0 / self.numbers.larger(total, _TINY)), head)

    def _fit(self, wishes: list[Wish], head: Vector, frame: Quaternion) -> tuple[Vector, Quaternion]:
        """The weighted best rigid fit of a body to its wishes, its present head counting a little.

        So it is always determined. Iterative rotation extraction from the present frame (Müller et al. 2016).
        """
        total = _total(wishes)
        share = total * _HEAD_SHARE + _TINY
        scale = 1.0 / (total + share)
        middle = sum_vectors([wish.attachment.offset * wish.weight for wish in wishes]) * scale
        wanted = (sum_vectors([wish.point * wish.weight for wish in wishes]) + head * share) * scale
        pairs = [(wish.attachment.offset - middle, wish.point - wanted, wish.weight) for wish in wishes]
        pairs.append((-middle, head - wanted, share))
        turned = self._turn_onto(pairs, frame)
        return wanted - turned @ middle, turned

    def _turn_onto(self, pairs: list[tuple[Vector, Vector, Scalar]], frame: Quaternion) -> Quaternion:
        """Turn a frame so that its points (first of each pair) best meet the wanted ones, all about one centre."""
        for _ in range(_FIT_STEPS):
            arms = [(frame @ offset, wanted, weight) for offset, wanted, weight in pairs]
            torque = sum_vectors([arm.cross(wanted) * weight for arm, wanted, weight in arms])
            grip = sum(arm.dot(wanted) * weight for arm, wanted, weight in arms)
            frame = (self.numbers.turn_by(torque * (1.0 / (abs(grip) + _TINY))) @ frame).normalized()
        return frame

    def _meet_link(self, index: int, wish: Wish, pose: Pose, bound: list[Scalar]) -> None:
        """Forward step of a link: its length is clamped between its bounds and its head slides on the line."""
        numbers, link, head = self.numbers, self.links[index], pose.heads[index]
        line = head - wish.point
        length = numbers.sqrt(numbers.larger(line.length_squared, _TINY))
        slid = wish.point + line * (numbers.clamp(length, link.shortest, link.longest) / length)
        if self.bodies[index].limit is not None:
            present = pose.point(link.hinges[-1], link.end(self.bodies)) - head
            slid = numbers.select(bound[index], wish.point - present, slid)
        pose.heads[index] = numbers.select(wish.weight > 0, slid, head)

    def _clamp_forward(self, index: int, wishes: list[Wish], pose: Pose) -> None:
        """The paper's forward clamp: turn the body, its head with it, so that the limit of the one after it holds."""
        numbers, wish = self.numbers, wishes[0]
        if len(wishes) > 1:
            return
        frame = pose.frames[index]
        aim = numbers.arc(frame @ wish.attachment.offset, wish.point - pose.heads[index])
        frame = (aim @ frame).normalized()
        child = wish.attachment.children[0] if len(wish.attachment.children) == 1 else None
        limit = None if child is None else self.bodies[child].limit
        if child is not None and limit is not None and self.bodies[child].inherits_rotation:
            turn = self.bodies[child].rest_turn
            local = limit.clamp(numbers, ((frame @ turn).conjugated() @ pose.frames[child]).normalized())
            frame = (pose.frames[child] @ local.conjugated() @ turn.conjugated()).normalized()
        seen = wish.weight > 0
        pose.frames[index] = numbers.select(seen, frame, pose.frames[index])
        pose.heads[index] = numbers.select(seen, wish.point - frame @ wish.attachment.offset, pose.heads[index])

    def _backward(
        self, pose: Pose, local: Sequence[Quaternion], bound: list[Scalar], wishes: list[list[Wish]], goals: Goals
    ) -> list[Quaternion]:
        """Put every head where its parent carries it and turn the body about it, root first."""
        turns = list(local)
        for index, body in enumerate(self.bodies):
            if body.parent >= 0:
                pose.heads[index] = carried_head(body, pose)
            carried = carried_frame(body, pose)
            unturned = carried @ turns[index]
            if index in self.links:
                frame = self._aim_link(index, pose, carried, unturned, wishes, turns, bound)
            elif index in self.linked:
                frame = unturned
            else:
                frame = self._aim(wishes[index], pose.heads[index], unturned, pose.frames[index])
                if index in goals.frames:
                    frame = self._turned_toward(frame, *goals.frames[index])
                frame, turns[index] = self._clamped(index, carried, frame, bound)
            pose.frames[index] = frame
        return turns

    def _aim(self, wishes: list[Wish], head: Vector, unturned: Quaternion, present: Quaternion) -> Quaternion:
        """Backward step of one body: its frame, turned about its head to meet its wishes.

        One wish leaves the twist open: the least turn, so that nothing rolls.
        """
        numbers = self.numbers
        if len(wishes) == 1:
            wish = wishes[0]
            turn = numbers.arc(unturned @ wish.attachment.offset, wish.point - head)
            return numbers.select(wish.weight > 0, (turn @ unturned).normalized(), unturned)
        pairs = [(wish.attachment.offset, wish.point - head, wish.weight) for wish in wishes]
        return numbers.select(_total(wishes) > 0, self._turn_onto(pairs, present), unturned)

    def _aim_link(
        self,
        index: int,
        pose: Pose,
        carried: Quaternion,
        unturned: Quaternion,
        wishes: list[list[Wish]],
        turns: list[Quaternion],
        bound: list[Scalar],
    ) -> Quaternion:
        """Backward step of a link: bend its hinges to length, turn it onto the target, clamp, aim once more."""
        numbers, link = self.numbers, self.links[index]
        wish = wishes[link.hinges[-1]][0]
        line, seen = wish.point - pose.heads[index], wish.weight > 0
        bends, span = link.bend(numbers, self.bodies, line.length)
        frame, local = unturned, turns[index]
        for _ in range(2):
            aimed = (numbers.arc(frame @ span, line) @ frame).normalized()
            frame, local = self._clamped(index, carried, aimed, bound)
            if frame is aimed:  # nowhere moved by the limit
                break
        for hinge, bend in zip(link.hinges, bends, strict=True):
            turns[hinge] = numbers.select(seen, bend, turns[hinge])
        turns[index] = numbers.select(seen, local, turns[index])
        return numbers.select(seen, frame, unturned)

    def _clamped(
        self, index: int, carried: Quaternion, frame: Quaternion, bound: list[Scalar]
    ) -> tuple[Quaternion, Quaternion]:
        """The frame inside the body's limit, and as a local rotation; notes whether it had to be moved there."""
        limit, local = self.bodies[index].limit, (carried.conjugated() @ frame).normalized()
        if limit is None:
            return frame, local
        inside = limit.clamp(self.numbers, local)
        bound[index] = inside is not local and abs(local.dot(inside)) < 1.0 - _SAME_TURN
        return (frame if inside is local else carried @ inside), inside


def sum_vectors(vectors: Sequence[Vector]) -> Vector:
    """Their sum; there is one at least."""
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return total


def _total(wishes: list[Wish]) -> Scalar:
    return sum((wish.weight for wish in wishes[1:]), wishes[0].weight)
