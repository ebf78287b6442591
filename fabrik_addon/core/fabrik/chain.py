"""Solves one unlimited chain with one target, on points alone: the paper's Algorithm 1 and an exact finish.

A chain is n + 1 points, root first, and the n distances between them. Joint rotations are computed afterwards, once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..arrays import ROUNDING, ROUNDS, SINGLE, TINY, IntArray
from ..backend.array import Backend, Quaternion, Scalar, Vector
from ..model.effector import Options
from .limbs import Body, SweepPose, carried_turn

# Number of sweeps before an exact finish, if targets are far. With 1, three times as many poses need restarts.
OPENING_SWEEPS = 3
# A frame is at rest if its tip, or all effectors, move by less than this fraction of the tolerance in a sweep.
NO_CHANGE = 0.01


@dataclass
class Chain:
    """A chain on every frame: n + 1 points, root first, n distances, and the number of steps taken.

    The number of frames is stored too, because values may be the same on all of them.
    """

    points: list[Vector]
    distances: list[float]
    iterations: Scalar
    count: int = 1

    def miss(self, target: Vector) -> Scalar:
        """Distance from the tip to the target."""
        return (self.points[-1] - target).length

    def part(self, backend: Backend, frames: IntArray) -> "Chain":
        """The chain on some of the frames, `frames` (N,)."""
        if len(frames) == self.count:
            return Chain(self.points, self.distances, self.iterations, self.count)
        points = [backend.take(point, frames) for point in self.points]
        return Chain(points, self.distances, backend.take(self.iterations, frames), len(frames))

    def replace(self, backend: Backend, frames: IntArray, part: "Chain") -> None:
        """Replace some frames, `frames` (N,), by the results of a part."""
        if len(frames) == self.count:
            self.points, self.iterations = part.points, part.iterations
            return
        pairs = zip(self.points, part.points, strict=True)
        self.points = [backend.put(point, frames, new, self.count) for point, new in pairs]
        self.iterations = backend.put(self.iterations, frames, part.iterations, self.count)


def is_chain(bodies: Sequence[Body]) -> bool:
    """Whether the bodies are one unlimited chain with one effector at its end, so that points are enough."""
    return all(
        body.limit is None
        and len(body.attachments) == 1
        and len(body.attachments[0].children) + len(body.attachments[0].effectors) == 1
        for body in bodies
    )


def reach(backend: Backend, chain: Chain, target: Vector, tolerance: Scalar, options: Options) -> None:
    """Bring the tip of a chain to a target, or as close as possible, in place; only the sweeps use the tolerance."""
    if options.plain:
        everything = backend.frames_where(chain.miss(target) >= 0.0)
        reach_by_sweeps(backend, chain, target, tolerance, options.max_sweeps, everything)
        return
    open_frames = reach_directly(backend, chain, target)
    if options.finish:
        reach_exactly(backend, chain, target, open_frames)
    else:
        reach_by_sweeps(backend, chain, target, tolerance, options.max_sweeps, open_frames)


def turn_bodies(
    backend: Backend, bodies: Sequence[Body], rest: Sequence[Quaternion], root: Vector, aims: Mapping[int, Vector]
) -> tuple[list[Quaternion], Vector]:
    """Point each body of a chain at its aim, by the shortest rotation from `rest`, without roll.

    Each aim is the next body's head. Returns the local rotations and the tip.
    """
    pose, local, head = SweepPose([], []), [], root
    for index, (body, rotation) in enumerate(zip(bodies, rest, strict=True)):
        pose.heads.append(head)
        frame, turned = carried_turn(body, pose, rotation), rotation
        if index in aims:
            # In the body's own frame, its direction does not depend on the other bodies.
            wanted = frame.conjugated() @ (aims[index] - head)
            turn = backend.rotation_between(body.attachments[0].offset, wanted)
            frame, turned, head = frame @ turn, rotation @ turn, aims[index]
        pose.orientations.append(frame)
        local.append(turned)
    return local, pose.point(len(bodies) - 1, bodies[-1].attachments[0])


def reach_directly(backend: Backend, chain: Chain, target: Vector) -> IntArray:
    """Stretch or fold the chain along the line to a target that its lengths cannot reach; returns the other frames."""
    distance, total = (target - chain.points[0]).length, sum(chain.distances)
    nearest = 2.0 * max(chain.distances) - total
    frames = backend.frames_where((distance > total) | (distance < nearest))
    if len(frames):
        part = chain.part(backend, frames)
        part.points = straight(backend, part.points, chain.distances, backend.take(target, frames))
        part.iterations = part.iterations + 1
        chain.replace(backend, frames, part)
    return backend.frames_where((distance <= total) & (distance >= nearest))


def reach_by_sweeps(
    backend: Backend, chain: Chain, target: Vector, tolerance: Scalar, max_sweeps: int, open_frames: IntArray
) -> None:
    """Run Algorithm 1 until the tip is within `tolerance`, the tip stops moving, or `max_sweeps` sweeps are done.

    open_frames: (N,) the frames that are solved.
    """
    for _ in range(max_sweeps):
        if not len(open_frames):
            return
        part, wanted = chain.part(backend, open_frames), backend.take(target, open_frames)
        tip = part.points[-1]
        part.points = sweep(backend, part.points, part.distances, wanted)
        part.iterations = part.iterations + 1
        chain.replace(backend, open_frames, part)
        limit = backend.take(tolerance, open_frames)
        moves = (part.points[-1] - tip).length > limit * NO_CHANGE
        unmet = part.miss(wanted) > limit
        open_frames = open_frames[backend.frames_where(moves & unmet)]


def reach_exactly(backend: Backend, chain: Chain, target: Vector, open_frames: IntArray) -> None:
    """Alternate a few sweeps with the exact finish until the frames are solved; open_frames: (N,).

    For targets close to the root, the sweeps need a chain that is already curled up.
    """
    swept, total = chain.part(backend, open_frames), sum(chain.distances)
    for round_ in range(ROUNDS):
        if not len(open_frames):
            return
        wanted = backend.take(target, open_frames)
        if round_ == 1:
            swept.points = curl(backend, swept.points, chain.distances, wanted)
        for _ in range(OPENING_SWEEPS):
            swept.points = sweep(backend, swept.points, chain.distances, wanted)
        swept.iterations = swept.iterations + OPENING_SWEEPS
        points, steps = scale_to_chord(backend, swept.points, chain.distances, wanted)
        swept.iterations = swept.iterations + steps
        finished = Chain(points, chain.distances, swept.iterations, len(open_frames))
        chain.replace(backend, open_frames, finished)
        missed = backend.frames_where(finished.miss(wanted) > SINGLE * total)
        open_frames, swept = open_frames[missed], swept.part(backend, missed)


def sweep(backend: Backend, points: list[Vector], distances: Sequence[float], target: Vector) -> list[Vector]:
    """One full iteration of Algorithm 1: forward from the target to the root, backward from the root."""
    slide, last = backend.point_on_line, target
    reached = [target]
    # The root's new position is not needed, since the root is put back.
    for point, distance in zip(points[-2:0:-1], distances[:0:-1], strict=True):
        last = slide(last, point, distance)
        reached.append(last)
    last = points[0]
    result = [last]
    for point, distance in zip(reversed(reached), distances, strict=True):
        last = slide(last, point, distance)
        result.append(last)
    return result


def straight(backend: Backend, points: list[Vector], distances: Sequence[float], target: Vector) -> list[Vector]:
    """Lay the chain on the line to a target out of reach: stretched, or folded against the longest bone.

    Both give the reachable points nearest to the target (Algorithm 1, steps 1.3 to 1.12, and its counterpart).
    """
    root, longest = points[0], distances.index(max(distances))
    direction = first_direction(backend, target - root, points[-1] - root, points[1] - root)
    beyond = (target - root).length >= sum(distances)
    result = [root]
    for index, distance in enumerate(distances):
        folded = distance if index == longest else -distance
        result.append(result[-1] + direction * backend.select(beyond, distance, folded))
    return result


def curl(backend: Backend, points: list[Vector], distances: Sequence[float], target: Vector) -> list[Vector]:
    """Lay the chain on an arc of constant curvature whose chord is about the target's distance.

    An arc of length L that turns by 2x has the chord L · sin(x) / x.
    """
    root, total = points[0], sum(distances)
    share = backend.minimum((target - root).length / total, 1.0)
    half_turn = backend.sqrt(6.0 * (1.0 - share)) * (1.0 + (math.pi / math.sqrt(6.0) - 1.0) * (1.0 - share))
    along = first_direction(backend, points[1] - root, points[-1] - root, points[-1] - root)
    side = points[len(points) // 2] - root
    side = side - along * side.dot(along)
    others = backend.vector_of((along.y, along.z, along.x)), backend.vector_of((1.0, 0.0, 0.0))
    across = along.cross(others[0]) + along.cross(others[1])
    aside = first_direction(backend, side, across, across)
    result, passed = [root], 0.0
    for distance in distances:
        angle = half_turn * (2.0 * (passed + 0.5 * distance) / total)
        direction = along * backend.cos(angle) + aside * backend.sin(angle)
        result.append(result[-1] + direction * distance)
        passed += distance
    return result


def scale_to_chord(
    backend: Backend, points: list[Vector], distances: Sequence[float], target: Vector
) -> tuple[list[Vector], Scalar]:
    """Bring the tip of a chain exactly onto a target that its lengths can reach.

    With c the chord's direction from root to tip, every bone's direction u becomes normalize(c + s (u − c)). At s = 0
    the chain is straight, at s = 1 unchanged, and with a larger s it folds more. Safeguarded Newton on s² finds the s
    at which root and tip are as far apart as root and target. The whole chain is then rotated about the root.

    Returns:
        The points and the number of steps. If the chain cannot be brought there, its tip misses the target.
    """
    root, near = points[0], SINGLE * sum(distances)
    span = points[-1] - root
    chord = first_direction(backend, span, points[1] - root, points[1] - root)
    bends = [(b - a) * (1.0 / distance) - chord for a, b, distance in zip(points, points[1:], distances, strict=False)]
    # |u - c|² is 4 for a bone that points back along the chord. Its vector c + s (u - c) would vanish at s = 1/2.
    squares = [backend.minimum(bend.length_squared, 4.0 - ROUNDING) for bend in bends]
    wanted = (target - root).length
    low, steps = wanted * 0.0, wanted * 0.0
    found, high, frames = low + 1.0, low + math.inf, backend.frames_where(wanted >= 0.0)
    square, axis, asides, bents, count = found, chord, bends, squares, len(frames)
    for _ in range(ROUNDS):
        # The vector from root to tip and its derivative with respect to s². Since u and c have length 1,
        # |c + s (u − c)|² is 1 + (s² − s) |u − c|²: one factor for each bone is enough.
        s = backend.sqrt(square)
        beyond = square - s
        along = along_slope = low * 0.0
        aside = aside_slope = axis * 0.0
        for bend, bent, distance in zip(asides, bents, distances, strict=True):
            size = bent * beyond + 1.0
            scale = distance / backend.sqrt(size)
            fall = scale * bent / size
            along, aside = along + scale, aside + bend * scale
            along_slope, aside_slope = along_slope + fall, aside_slope + bend * fall
        tip = axis * along + aside * s
        missed = backend.absolute(tip.length - wanted) > near
        left = backend.frames_where(missed)
        if not len(left):
            break
        slope = aside - (axis * along_slope + aside_slope * s) * (s - 0.5)
        change = tip.dot(slope) * (1.0 / backend.maximum(s, 1e-9))
        excess = tip.length_squared - wanted * wanted
        low, high = backend.select(excess > 0, square, low), backend.select(excess > 0, high, square)
        newton = square - excess / backend.select(backend.absolute(change) > TINY, change, -1.0)
        middle = backend.select(high >= math.inf, low * 4.0 + 1.0, (low + high) * 0.5)
        inside = (newton > low) & (newton < high)
        square = backend.select(missed, backend.select(inside, newton, middle), square)
        found = backend.put(found, frames, square, count)
        steps = backend.put(steps, frames, backend.take(steps, frames) + backend.select(missed, 1, 0), count)
        if 2 * len(left) < len(frames):
            frames = frames[left]
            axis = backend.take(axis, left)
            wanted, square, low, high = (backend.take(each, left) for each in (wanted, square, low, high))
            asides, bents = [backend.take(each, left) for each in asides], [backend.take(each, left) for each in bents]
    arms, s = [], backend.sqrt(found)
    for bend, distance in zip(bends, distances, strict=True):
        raw = chord + bend * s
        arms.append(raw * (distance / backend.sqrt(backend.maximum(raw.length_squared, TINY))))
    turn = backend.rotation_between(sum(arms[1:], arms[0]), target - root)
    result = [root]
    for arm in arms:
        result.append(result[-1] + turn @ arm)
    return result, steps


def first_direction(backend: Backend, first: Vector, second: Vector, third: Vector) -> Vector:
    """The unit direction of the first vector that has a length."""
    chosen = backend.select(first.length_squared > TINY, first, second)
    chosen = backend.select(chosen.length_squared > TINY, chosen, third)
    return chosen * (1.0 / backend.sqrt(backend.maximum(chosen.length_squared, TINY)))
