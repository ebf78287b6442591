"""The exact finish of an unlimited chain: its bones are scaled toward the chord until its span fits."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..arrays import TINY, IntArray
from ..backend.protocol import Backend, Condition, Scalar, Vector

# Accuracy of a span, as a share of the chain's length: that of single precision.
_EXACT = 1e-7
_MOST_STEPS = 8
_NO_BOUND = 1e12
# |u - c|² is 4 for a bone that points back along the chord; it would have no direction halfway.
_MOST_BENT = 4.0 - 1e-12


def scale_to_chord(
    backend: Backend, points: list[Vector], distances: Sequence[float], target: Vector
) -> tuple[list[Vector], Scalar]:
    """Bring the tip of a chain exactly onto a target that its lengths can reach.

    Every bone direction u is scaled toward the chord c from root to tip, u → normalise(c + s (u − c)), and the s is
    found whose span equals the target's distance (safeguarded Newton on s²; at s = 0 the chain is straight, at s = 1
    unchanged, beyond it folds more). The whole chain is then rotated about the root.

    Returns:
        The points and the number of steps. If the chain cannot be brought there, its tip misses the target.
    """
    root = points[0]
    span = points[-1] - root
    chord = first_direction(backend, span, points[1] - root, points[1] - root)
    bends = [(b - a) * (1.0 / distance) - chord for a, b, distance in zip(points, points[1:], distances, strict=False)]
    wanted = (target - root).length
    squares = [backend.minimum(bend.length_squared, _MOST_BENT) for bend in bends]
    search = _Search(chord, bends, squares, wanted, wanted * 0.0 + 1.0, wanted * 0.0, wanted * 0.0 + _NO_BOUND)
    square, steps = _find_bend(backend, search, span, distances)
    arms = _arms(backend, chord, bends, distances, square)
    turn = backend.rotation_between(sum(arms[1:], arms[0]), target - root)
    result = [root]
    for arm in backend.turn_each(turn, arms):
        result.append(result[-1] + arm)
    return result, steps


@dataclass
class _Search:
    """The search for the squared s whose span is `wanted`, between two bounds.

    Attributes:
        chord: c, the direction from root to tip.
        bends: u − c of every bone.
        squares: |u − c|² of every bone.
        wanted: the span.
        square: s².
        low, high: the bounds of s².
    """

    chord: Vector
    bends: list[Vector]
    squares: list[Scalar]
    wanted: Scalar
    square: Scalar
    low: Scalar
    high: Scalar

    def part(self, backend: Backend, frames: IntArray) -> "_Search":
        """The search on some of the frames."""
        scalars = (self.wanted, self.square, self.low, self.high)
        bends = [backend.take(bend, frames) for bend in self.bends]
        squares = [backend.take(square, frames) for square in self.squares]
        return _Search(
            backend.take(self.chord, frames), bends, squares, *(backend.take(value, frames) for value in scalars)
        )

    def unbent(self, span: Vector, distances: Sequence[float]) -> tuple[Vector, Vector]:
        """The vector from root to tip at s = 1, which is the chain's `span`, and its derivative with respect to s²."""
        along: Scalar = 0.0
        aside = self.chord * 0.0
        for bend, square, distance in zip(self.bends, self.squares, distances, strict=True):
            fall = square * distance
            along, aside = along + fall, aside + bend * fall
        slope = span - self.chord * (sum(distances) + 0.5 * along) - aside * 0.5
        return span, slope * 0.5

    def bent(self, backend: Backend, distances: Sequence[float]) -> tuple[Vector, Vector]:
        """The vector from root to tip at s² = `square`, and its derivative with respect to s².

        Since u and c have length 1, |c + s (u − c)|² is 1 + (s² − s) |u − c|²: one factor for each bone is enough.
        """
        s = backend.sqrt(self.square)
        beyond = self.square - s
        along: Scalar = 0.0
        along_slope: Scalar = 0.0
        aside = aside_slope = self.chord * 0.0
        for bend, square, distance in zip(self.bends, self.squares, distances, strict=True):
            size = square * beyond + 1.0
            scale = distance / backend.sqrt(size)
            fall = scale * square / size
            along, aside = along + scale, aside + bend * scale
            along_slope, aside_slope = along_slope + fall, aside_slope + bend * fall
        tip = self.chord * along + aside * s
        slope = aside - (self.chord * along_slope + aside_slope * s) * (s - 0.5)
        return tip, slope * (0.5 / backend.maximum(s, 1e-9))

    def step(self, backend: Backend, tip: Vector, slope: Vector, missed: Condition) -> None:
        """A Newton step on frames that miss the span, from the tip and its derivative with respect to s².

        Bisects if the step would leave the bounds.
        """
        excess = tip.length_squared - self.wanted * self.wanted
        self.low = backend.select(excess > 0, self.square, self.low)
        self.high = backend.select(excess > 0, self.high, self.square)
        fall = 2.0 * tip.dot(slope)
        newton = self.square - excess / backend.select(backend.absolute(fall) > TINY, fall, -1.0)
        middle = backend.select(self.high >= _NO_BOUND, self.low * 4.0 + 1.0, (self.low + self.high) * 0.5)
        inside = backend.logical_and(newton > self.low, newton < self.high)
        self.square = backend.select(missed, backend.select(inside, newton, middle), self.square)


def _find_bend(backend: Backend, search: _Search, span: Vector, distances: Sequence[float]) -> tuple[Scalar, Scalar]:
    """The squared s whose span is wanted, and the number of steps."""
    square, steps, near = search.square, search.square * 0.0, _EXACT * sum(distances)
    frames = backend.frames_where(search.wanted >= 0.0)
    count = len(frames)
    tip, slope = search.unbent(span, distances)
    for _ in range(_MOST_STEPS):
        missed = backend.absolute(tip.length - search.wanted) > near
        left = backend.frames_where(missed)
        if not len(left):
            break
        if 2 * len(left) < len(frames):
            frames, search = frames[left], search.part(backend, left)
            tip, slope, missed = backend.take(tip, left), backend.take(slope, left), backend.take(missed, left)
        search.step(backend, tip, slope, missed)
        square = backend.put(square, frames, search.square, count)
        steps = backend.put(steps, frames, backend.take(steps, frames) + backend.select(missed, 1, 0), count)
        tip, slope = search.bent(backend, distances)
    return square, steps


def _arms(
    backend: Backend, chord: Vector, bends: list[Vector], distances: Sequence[float], square: Scalar
) -> list[Vector]:
    """The chain's bone vectors at s² = `square`."""
    s = backend.sqrt(square)
    arms = []
    for bend, distance in zip(bends, distances, strict=True):
        raw = chord + bend * s
        arms.append(raw * (distance / backend.sqrt(backend.maximum(raw.length_squared, TINY))))
    return arms


def first_direction(backend: Backend, first: Vector, second: Vector, third: Vector) -> Vector:
    """The unit direction of the first vector that has a length."""
    chosen = backend.select(first.length_squared > TINY, first, second)
    chosen = backend.select(chosen.length_squared > TINY, chosen, third)
    return chosen * (1.0 / backend.sqrt(backend.maximum(chosen.length_squared, TINY)))
