"""The two passes of FABRIK over rigid bodies (the paper's section 4, with bodies for its points).

Forward, leaves to root: every body is moved rigidly to what hangs on it. Backward, root to leaves: every body is put
where its parent carries its head and turned about it, so that lengths hold exactly. With one attachment a body and no
limits this is Algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from .arrays import Quaternion, Scalar, Vector
from .bodies import Attachment, Body, Pose, carried_frame, carried_head

_TINY = 1e-30
_FIT_STEPS = 2
_HEAD_SHARE = 0.05


@dataclass(frozen=True)
class Wish:
    """Where an attachment should be, and how much that counts (0: nothing below it is seen)."""

    attachment: Attachment
    point: Vector
    weight: Scalar


@dataclass(frozen=True)
class Goals:
    """What a solve wants on every frame: E targets and their weights, and each body's pull on its parent."""

    targets: list[Vector]
    weights: list[Scalar]
    pulls: list[Scalar]


def make_goals(numbers: ModuleType, bodies: Sequence[Body], targets: list[Vector], weights: list[Scalar]) -> Goals:
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
    return Goals(targets, weights, pulls)


def sweep(
    numbers: ModuleType, bodies: Sequence[Body], pose: Pose, rest: Sequence[Quaternion], goals: Goals, free_root: bool
) -> None:
    """One forward and one backward pass; `rest` holds the local rotations that free twist returns to."""
    wishes = _forward(numbers, bodies, pose, goals)
    if not free_root:
        pose.heads[0] = wishes[0][1]
    _backward(numbers, bodies, pose, rest, [wish for wish, _ in wishes])


def _forward(
    numbers: ModuleType, bodies: Sequence[Body], pose: Pose, goals: Goals
) -> list[tuple[list[Wish], Vector]]:
    """Move every body to its wishes, leaves first; for each body its wishes and the head it had."""
    result: list[tuple[list[Wish], Vector]] = []
    for index in range(len(bodies) - 1, -1, -1):
        wishes = [_wish(numbers, attachment, pose, goals) for attachment in bodies[index].attachments]
        result.append((wishes, pose.heads[index]))
        _meet(numbers, index, wishes, pose)
    return result[::-1]


def _wish(numbers: ModuleType, attachment: Attachment, pose: Pose, goals: Goals) -> Wish:
    """The weighted centroid of what its effectors and child bodies want (section 4.1's sub-base)."""
    wanted = [(pose.heads[child], goals.pulls[child]) for child in attachment.children]
    wanted += [(goals.targets[effector], goals.weights[effector]) for effector in attachment.effectors]
    point, weight = wanted[0]
    if len(wanted) == 1:
        return Wish(attachment, point, weight)
    total = point * weight
    for other, share in wanted[1:]:
        total, weight = total + other * share, weight + share
    return Wish(attachment, total * (1.0 / numbers.larger(weight, _TINY)), weight)


def _meet(numbers: ModuleType, index: int, wishes: list[Wish], pose: Pose) -> None:
    """Forward step of one body, in place."""
    if len(wishes) == 1:
        wish = wishes[0]
        line = pose.heads[index] - wish.point
        line = numbers.select(line.length_squared > _TINY, line, -(pose.frames[index] @ wish.attachment.offset))
        ratio = wish.attachment.distance / numbers.sqrt(numbers.larger(line.length_squared, _TINY))
        pose.heads[index] = numbers.select(wish.weight > 0, wish.point + line * ratio, pose.heads[index])
        return
    pose.heads[index], pose.frames[index] = _fit(numbers, wishes, pose.heads[index], pose.frames[index])


def _fit(numbers: ModuleType, wishes: list[Wish], head: Vector, frame: Quaternion) -> tuple[Vector, Quaternion]:
    """The weighted best rigid fit of a body to its wishes, its present head counting a little.

    So it is always determined. Iterative rotation extraction from the present frame (Müller et al. 2016, algorithm 1).
    """
    total = sum((wish.weight for wish in wishes[1:]), wishes[0].weight)
    share = total * _HEAD_SHARE + _TINY
    scale = 1.0 / (total + share)
    middle, wanted = head * 0.0, head * share
    for wish in wishes:
        middle = middle + wish.attachment.offset * wish.weight
        wanted = wanted + wish.point * wish.weight
    middle, wanted = middle * scale, wanted * scale
    pairs = [(wish.attachment.offset - middle, wish.point - wanted, wish.weight) for wish in wishes]
    pairs.append((-middle, head - wanted, share))
    frame = _turn_onto(numbers, pairs, frame)
    return wanted - frame @ middle, frame


def _turn_onto(numbers: ModuleType, pairs: list[tuple[Vector, Vector, Scalar]], frame: Quaternion) -> Quaternion:
    """Turn a frame so that its points (first of each pair) best meet the wanted ones, all about one centre."""
    for _ in range(_FIT_STEPS):
        torque, grip = None, 0.0
        for offset, wanted, weight in pairs:
            arm = frame @ offset
            twist = arm.cross(wanted) * weight
            torque = twist if torque is None else torque + twist
            grip = grip + arm.dot(wanted) * weight
        frame = (numbers.turn_by(torque * (1.0 / (abs(grip) + _TINY))) @ frame).normalized()
    return frame


def _backward(
    numbers: ModuleType, bodies: Sequence[Body], pose: Pose, rest: Sequence[Quaternion], wishes: list[list[Wish]]
) -> None:
    """Put every head where its parent carries it and turn the body about it, root first."""
    for index, body in enumerate(bodies):
        if body.parent >= 0:
            pose.heads[index] = carried_head(body, pose)
        unturned = carried_frame(body, pose) @ rest[index]
        pose.frames[index] = _aim(numbers, wishes[index], pose.heads[index], unturned, pose.frames[index])


def _aim(
    numbers: ModuleType, wishes: list[Wish], head: Vector, unturned: Quaternion, present: Quaternion
) -> Quaternion:
    """Backward step of one body: its frame, turned about its head to meet its wishes.

    One wish leaves the twist open: the least turn from the start pose's local rotation, so that nothing rolls.
    """
    if len(wishes) == 1:
        wish = wishes[0]
        turn = numbers.arc(unturned @ wish.attachment.offset, wish.point - head)
        return numbers.select(wish.weight > 0, (turn @ unturned).normalized(), unturned)
    total = sum((wish.weight for wish in wishes[1:]), wishes[0].weight)
    pairs = [(wish.attachment.offset, wish.point - head, wish.weight) for wish in wishes]
    return numbers.select(total > 0, _turn_onto(numbers, pairs, present), unturned)
