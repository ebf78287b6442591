"""Every frame of a recording: a few frames from rest first, then all of them near the course through these.

A frame that is solved by itself depends on its own markers only. Where these leave a pose undecided (a spine with few
markers, neck and head in a row, folds of a rig without limits) each frame would take a way of its own. So frames some
way apart, the knots, are solved: every fourth from rest, the others from the course through these, and those that jump
though their markers do not once more from their neighbours. The course through the knots is where all frames begin, and
a prior that counts as much as a bone is undecided.
"""

from collections.abc import Generator
from typing import Final

import numpy as np

from ...core import Solution, Solver
from ...core.arrays import IntArray
from ...core.model.targets import PosePrior
from ...core.rotations import NO_TURN
from ..calibrate.expected_pose import moving_pose
from ..clip import BoolArray, FloatArray
from ..resample import hermite, slopes
from ..robust import usual_distances
from ..steps import within
from .determined import LOST, lost_certainty, uncertainty
from .folds import unfold
from .recording import Recording, parts, with_options

# Seconds between knots: people's joints do nothing in between that a cubic does not follow to a few degrees.
SPACING: Final = 1.0 / 15.0
# From rest so many steps bring a knot close enough: all frames go on from there.
_STEPS: Final = 12
# One knot in so many is solved from rest, the others from the course through these, in so many steps: the knots of
# keypoints took 4.8 steps for each frame of the take from rest, now 2.5, for the same RMS.
_FROM_REST_ONE_IN: Final = 4
_STEPS_FROM_NEAR: Final = 8
# How exactly markers say where a bone is, as a share of the skeleton's size (some 5 mm of a person).
NOISE: Final = 0.002
# How far a knot's pose is expected to be from rest, as a share of how far moving people's are: with one radian for all
# bones collars of takes with holes stood at their limits on 74 % of the frames, with the whole spread on 61, so on 40.
_FROM_REST: Final = 0.7
# Radians: how far a pose is expected to be from the course.
FROM_COURSE: Final = 0.2
# A bone that its markers leave this unsure (radians) goes by the course with all the prior's weight; one that is twice
# as sure with a quarter of it. A least share for every bone, up to 0.3, changed nothing in six takes.
_UNSURE: Final = 0.5
# What the pose of a lost bone counts that the frames beside the gap lead to, as a share of what a course does: with all
# of it a forearm without its marker kept the elbow 13 mm off, with this share 9.
GUESSED: Final = 0.05
# Knots are solved from rest, so a bone is sooner lost (radians) than on frames that begin at the course: without
# limits and half a second of each marker away shins folded anew by 48 degrees a frame with 0.3, by 119 with 0.6.
_KNOT_LOST: Final = 0.15
# Seconds over which the course of undecided bones is smooth (one standard deviation).
_SPREAD: Final = 0.1
# What being at rest counts beside markers that are usually far off: with 3 the chest of a balancing trial stood at its
# limits on 53 % of the frames (on 74 without), with 3.5 on 48, with 5 on 37; each step takes the RMS 0.1 to 0.6 mm up.
_REST_COUNTS: Final = 3.5


def solve_each(recording: Recording, *, steady: bool) -> Generator[float, None, None]:
    """Solve every frame; yields the share done.

    steady: bones that markers leave undecided go by the course.
    """
    count = len(recording.targets)
    knots = _knots(count, recording.rate)
    found = yield from _solve_knots(recording, knots, steady=steady)
    unsure = uncertainty(recording.solver, found)
    share = steady * np.minimum(unsure / _UNSURE, 1.0) ** 2
    smooth = usual_rotations(found.rotations, _SPREAD * recording.rate * (len(knots) - 1) / max(count - 1, 1))
    rotations = _aligned(found.rotations)
    rotations += share[:, None] * (_aligned_to(smooth, rotations) - rotations)
    recording.prior_weights[:] = share * prior_weight(recording, FROM_COURSE)
    for frames in parts(np.arange(count)):
        recording.expected[frames] = recording.legal(_between(rotations, knots, frames, unit=True))
        recording.solution.rotations[frames] = recording.expected[frames]
        roots = found.root_location if recording.root_heads is None else recording.root_heads[knots]
        recording.solution.root_location[frames] = _between(roots[:, None], knots, frames)[:, 0]
        recording.solve_bridged(frames)
        yield 0.5 + 0.5 * (frames[-1] + 1) / count


def _knots(count: int, rate: float) -> IntArray:
    """Frames some way apart, the first and the last among them."""
    several = max(1, int(np.ceil((count - 1) / max(1.0, SPACING * rate)))) + 1
    return np.unique(np.linspace(0, max(count - 1, 0), several).round().astype(np.int64))


def _solve_knots(recording: Recording, knots: IntArray, *, steady: bool) -> Generator[float, None, Solution]:
    """The knots' poses; what jumps is solved again from its neighbours."""
    first = np.unique(np.append(np.arange(0, len(knots), _FROM_REST_ONE_IN), len(knots) - 1))
    spread = moving_pose(recording.solver.skeleton).spread
    counts = prior_weight(recording, _FROM_REST * spread)
    found = yield from within(0.0, 0.2, _from_rest(recording, knots[first], counts))
    _unfold(recording, knots[first], found)
    recording.rest_weights[:] = steady * _rest_weights(recording, found, spread)
    counts = counts + recording.rest_weights[0]
    near = _between(_aligned(found.rotations), first, np.arange(len(knots)), unit=True)
    found = yield from within(0.2, 0.5, _from_rest(recording, knots, counts, near))
    found = _carried_over(recording, knots, found, counts)
    _unfold(recording, knots, found)
    return found


def _carried_over(recording: Recording, knots: IntArray, found: Solution, at_rest: FloatArray) -> Solution:
    """Knots' poses, solved again where markers of a bone are away from where the knots beside lead it.

    From rest it would be at rest there, or folded anew, and the course beside a gap would lead to that.
    at_rest: (J,) what a squared radian off rest counts.
    """
    wanted, weights = recording.bridged[knots], recording.sample_weights(knots)
    lost, misplaced = lost_certainty(recording.solver, found, ~np.isnan(wanted).any(axis=2))
    known, placed = lost <= _KNOT_LOST, misplaced <= LOST
    rotations, roots = np.array(found.rotations), found.root_location
    for bone in np.flatnonzero(~known.all(axis=0)):
        rotations[:, [bone]] = over_gaps(rotations[:, [bone]], known[:, bone], unit=True)
    if recording.root_heads is None:
        roots = over_gaps(roots[:, None], placed)[:, 0]
    rotations = recording.legal(rotations)
    counts = np.where(known, at_rest, GUESSED * prior_weight(recording, FROM_COURSE))
    means = np.where(known[..., None], NO_TURN, rotations)
    solver = _knot_solver(recording, near=True)
    for part in parts(np.flatnonzero(~(known.all(axis=1) & placed))):
        prior = PosePrior(means[part], counts[part])
        start, heads = rotations[part], roots[part]
        again = solver.solve(wanted[part], start=start, start_location=heads, weights=weights[part], prior=prior)
        found.put(part, again)
    return found


def _rest_weights(recording: Recording, found: Solution, spread: FloatArray) -> FloatArray:
    """(J,) what a squared radian off rest counts where markers are farther off their bones than skin moves.

    Keypoints are some 12 mm off: what they want of a spine is no truer than that people hold it about straight.
    spread: (J,) how far moving people's bones are from rest, radians.
    """
    usual = np.nan_to_num(usual_distances(found.errors))
    excess = float((usual**2).mean()) - (NOISE * recording.solver.skeleton.size) ** 2
    return np.asarray(_REST_COUNTS * float(recording.weights.mean()) * max(excess, 0.0) / spread**2)


def _from_rest(
    recording: Recording, knots: IntArray, at_rest: FloatArray, near: FloatArray | None = None
) -> Generator[float, None, Solution]:
    """The knots' poses, from rest, or from poses that are near; at_rest: (J,) what a squared radian off rest counts."""
    solver = _knot_solver(recording, near=near is not None)
    found = Solution.empty(solver.skeleton, len(knots), len(solver.effectors))
    prior = PosePrior(np.tile(NO_TURN, (len(at_rest), 1)), at_rest)
    for places in parts(np.arange(len(knots))):
        frames = knots[places]
        heads = None if recording.root_heads is None else recording.root_heads[frames]
        wanted, counts = recording.bridged[frames], recording.sample_weights(frames)
        start = None if near is None else near[places]
        part = solver.solve(wanted, start=start, start_location=heads, weights=counts, prior=prior)
        found.put(places, part)
        yield (places[-1] + 1) / len(knots)
    return found


def _knot_solver(recording: Recording, *, near: bool) -> Solver:
    """What solves knots from rest, or from near.

    Sweeps before the first step cost as much as six steps there, for the same poses.
    """
    return with_options(recording.solver, restarts=0, max_sweeps=0, most_steps=_STEPS_FROM_NEAR if near else _STEPS)


def _unfold(recording: Recording, knots: IntArray, found: Solution) -> None:
    """Make knots alike that are folded differently, in place."""
    wanted, weights = recording.bridged[knots], recording.sample_weights(knots)

    def cost(errors: FloatArray, places: IntArray) -> FloatArray:
        return np.asarray((weights[places] * np.nan_to_num(errors) ** 2).sum(axis=1))

    def resolve(places: IntArray, neighbours: IntArray) -> tuple[Solution, FloatArray]:
        rotations, roots = found.rotations[neighbours], found.root_location[neighbours]
        if recording.root_heads is not None:
            roots = recording.root_heads[knots[places]]
        other = recording.nearby.solve(wanted[places], start=rotations, start_location=roots, weights=weights[places])
        return other, cost(other.errors, places)

    unfold(found, cost(found.errors, np.arange(len(knots))), resolve)


def prior_weight(recording: Recording, angle: float | FloatArray) -> FloatArray:
    """What a squared radian counts where poses are expected within an angle, or each bone within its own (radians)."""
    return np.asarray(recording.weights.mean() * (NOISE * recording.solver.skeleton.size / angle) ** 2)


def _aligned(rotations: FloatArray) -> FloatArray:
    """(K, ..., 4) quaternions with signs that make each nearest to the one before."""
    signs = np.sign((rotations[1:] * rotations[:-1]).sum(axis=-1, keepdims=True))
    signs = np.where(signs == 0.0, 1.0, signs)
    signs = np.concatenate([np.ones_like(rotations[:1, ..., :1]), signs]).cumprod(axis=0)
    return np.asarray(rotations * signs)


def _aligned_to(rotations: FloatArray, others: FloatArray) -> FloatArray:
    """(..., 4) quaternions with the signs that make each nearest to another."""
    return np.where((rotations * others).sum(axis=-1, keepdims=True) < 0.0, -rotations, rotations)


def _between(values: FloatArray, knots: IntArray, frames: IntArray, *, unit: bool = False) -> FloatArray:
    """(F, J, C) values at frames, on the cubic (Catmull and Rom's) through those at the knots (K, J, C)."""
    if len(knots) < 2:
        return np.repeat(values, len(frames), axis=0)
    after = np.clip(np.searchsorted(knots, frames, side="right"), 1, len(knots) - 1)
    before = after - 1
    share = ((frames - knots[before]) / (knots[after] - knots[before]))[:, None, None]
    slope = slopes(values)
    found = hermite(values[before], values[after], slope[before], slope[after], share)
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True)) if unit else found


def over_gaps(values: FloatArray, known: BoolArray, *, unit: bool = False) -> FloatArray:
    """(K, J, C) values of knots, those that are not known (K,) on the way from known to known ones; at ends these stay.

    With the speeds that bones have beside a gap the roll of a straight leg without limits was led 150 degrees away.
    """
    places = np.flatnonzero(known)
    if not len(places):
        return values
    beside = _aligned(values[places]) if unit else values[places]
    return _between(beside, places, np.clip(np.arange(len(values)), places[0], places[-1]), unit=unit)


def usual_rotations(rotations: FloatArray, spread: float) -> FloatArray:
    """(F, ..., 4) rotations, each the mean of those about it: of the three next ones first, then with Gauss's weights.

    spread: the standard deviation in frames.
    """
    turned = _aligned(rotations)
    beside, every = int(np.ceil(3.0 * spread)), np.arange(len(turned))
    middle = np.empty_like(turned)
    for frames in parts(every):
        middle[frames] = np.median(np.stack([_shifted(turned, step, frames) for step in range(-2, 3)]), axis=0)
    total = sum(
        np.exp(-0.5 * (step / max(spread, 1e-6)) ** 2) * _shifted(middle, step, every)
        for step in range(-beside, beside + 1)
    )
    mean: FloatArray = np.asarray(total)
    return np.asarray(mean / np.linalg.norm(mean, axis=-1, keepdims=True))


def _shifted(values: FloatArray, step: int, frames: IntArray) -> FloatArray:
    """(N, ...) values, each taken from so many frames later; the first and the last go on for ever."""
    return np.asarray(values[np.clip(frames + step, 0, len(values) - 1)])
