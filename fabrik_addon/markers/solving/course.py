"""Solves all frames of a take, estimates the uncertainty of poses, and fills rotations that are lost in gaps."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ...core import Solution, Solver, forward_kinematics
from ...core.arrays import TINY, BoolArray, FloatArray, IntArray, evenly_spread, running_signs
from ...core.model.effector import PosePrior, participants
from ...core.rotations import IDENTITY
from ..calibrate.fit import moving_pose
from ..calibrate.size import effector_points, joint_columns
from ..clip import true_spans
from ..gaps import fill_from_motion, fill_points, hold
from ..signals import between, medians
from ..steps import within
from .recording import NEARBY, ON_CURVE, Recording, parts, with_options

# Radians: a bone's rotation is lost if hidden markers add more than this to its uncertainty. With 0.3, rotations were
# lost that other markers determined. With 1.0, completely hidden limbs were not lost.
LOST: Final = 0.6
# Assumed error of a marker's position, as a fraction of the skeleton's size.
_NOISE_SHARE: Final = 0.005
_CHUNK: Final = 200
# Seconds: while the same markers are seen, frames are evaluated at these intervals, since poses change little.
_EVERY: Final = 0.2
# Number of a take's poses from which the bones' uncertainty is computed.
_SAMPLES: Final = 12


def added_uncertainty(
    solver: Solver, solution: Solution, seen: BoolArray, rate: float
) -> tuple[FloatArray, FloatArray]:
    """The uncertainty that hidden markers add: (F, J) of local rotations, radians; (F,) of the root's location.

    Its square is the variance with the visible markers minus that with all of them. Locations are in fractions of the
    skeleton's size. Bones that no effector moves have 0. solution: F poses. seen: (F, E). rate: Hz.
    """
    skeleton, frames, every = solver.skeleton, np.arange(len(seen)), max(1, round(_EVERY * rate))
    rotations, roots = np.zeros((len(seen), len(skeleton))), np.zeros(len(seen))
    bodies = np.array(participants(skeleton, solver.effectors))
    # For each frame, the evaluated frame with the same visible markers.
    changes = np.concatenate([[True], (seen[1:] != seen[:-1]).any(axis=1)])
    began = np.maximum.accumulate(np.where(changes, frames, 0))
    stands_for = frames - (frames - began) % every
    looked_at = np.unique(stands_for)
    # Frames with as many hidden markers are evaluated together.
    hidden_markers = (~seen[looked_at]).sum(axis=1)
    partly_seen = looked_at[np.argsort(hidden_markers, kind="stable")][(hidden_markers == 0).sum() :]
    for first in range(0, len(partly_seen), _CHUNK):
        chunk = partly_seen[first : first + _CHUNK]
        poses, which = np.unique(chunk - chunk % every, return_inverse=True)
        matrices = forward_kinematics(skeleton, solution.rotations[poses], solution.root_location[poses])
        rows = _rows(solver, matrices)
        which, away = which.reshape(-1), ~seen[chunk]
        # Removing markers adds to the covariance a matrix of the rank of their rows (Woodbury's identity).
        most = int(away.sum(axis=1).max())
        order = np.argsort(~away, axis=1, kind="stable")[:, :most]
        hidden = rows[which[:, None], order] * np.take_along_axis(away, order, axis=1)[..., None, None]
        hidden = hidden.reshape(len(chunk), -1, rows.shape[-1])
        spread = hidden @ _covariances(rows)[which]
        left = np.eye(hidden.shape[1]) - spread @ np.swapaxes(hidden, 1, 2)
        grown = (spread * np.linalg.solve(left, spread)).sum(axis=1)
        lost = np.sqrt(np.maximum(grown.reshape(len(grown), -1, 3).sum(axis=2), 0.0))
        rotations[np.ix_(chunk, bodies)] = lost[:, : len(bodies)]
        roots[chunk] = lost[:, -1] if solver.free_root else 0.0
    return rotations[stands_for], roots[stands_for]


def uncertainty(solver: Solver, solution: Solution) -> FloatArray:
    """(J,) uncertainty of each bone's local rotation with all markers seen, radians; the median over F poses.

    Zero for bones that no effector moves; axes fixed by a limit do not count.
    """
    bodies = participants(solver.skeleton, solver.effectors)
    every = evenly_spread(len(solution.status), _SAMPLES)
    matrices = forward_kinematics(solver.skeleton, solution.rotations[every], solution.root_location[every])
    own = np.einsum("fii->fi", _covariances(_rows(solver, matrices)))
    variances = np.median(own.reshape(len(own), -1, 3).sum(axis=2), axis=0)[: len(bodies)]
    limits = [solver.limits.get(solver.skeleton.names[body]) for body in bodies]
    # Each fixed axis adds 1, the variance of an unknown angle.
    closed = np.array([0.0 if limit is None else 3.0 - limit.freedom for limit in limits])
    unsure = np.zeros(len(solver.skeleton))
    unsure[bodies] = np.sqrt(np.maximum(variances - closed, 0.0))
    return unsure


def _rows(solver: Solver, matrices: FloatArray) -> FloatArray:
    """(F, M, 3, D) Jacobian of the markers for joints and root, divided by the markers' noise.

    matrices: (F, J, 4, 4).
    """
    skeleton, effectors = solver.skeleton, solver.effectors
    points = effector_points(skeleton, effectors, matrices)
    columns = joint_columns(skeleton, effectors, solver.limits, matrices, points)
    columns[..., :-3] /= skeleton.size
    weights = np.array([effector.weight for effector in effectors])
    share = np.sqrt(weights / max(float(weights.max()), TINY)) / _NOISE_SHARE
    return np.asarray(columns * share[:, None, None])


def _covariances(rows: FloatArray) -> FloatArray:
    """(F, D, D) covariances of joints (radians) and root location (sizes); 1 where no marker determines them."""
    flat = rows.reshape(len(rows), -1, rows.shape[-1])
    return np.asarray(np.linalg.inv(np.swapaxes(flat, 1, 2) @ flat + np.eye(flat.shape[-1])))


# The course: first some frames are solved from rest, then all frames from a curve through those.
#
# If its own markers do not determine the pose of a frame (a spine with few markers, neck and head in a row, a rig
# without limits), each frame may end in a different pose. So frames at regular intervals, the knots, are solved first:
# every fourth from rest, the others from the curve through those. All frames then start on the curve through the knots
# (the course). A prior holds bones to it. The less certain a bone is, the stronger the prior.

# Seconds between knots: a cubic between them is off by a few degrees.
SPACING: Final = 1.0 / 15.0
# One knot in this many is solved from rest. Solving all from rest took twice as many steps, with the same RMS.
_FROM_REST_ONE_IN: Final = 4
# Maximum number of steps for a knot that is solved from rest, and for one that is solved from the course.
_STEPS: Final = 12
_STEPS_FROM_NEAR: Final = 8
# Assumed error of bone positions from markers, as a fraction of the skeleton's size (5 mm on a person).
NOISE: Final = 0.002
# Expected deviation of a knot's pose from rest, as a fraction of the deviation of moving people. With 1, bones with few
# markers are at their limits more often.
_FROM_REST: Final = 0.7
# Radians: expected deviation of a pose from the course.
FROM_COURSE: Final = 0.2
# Radians: for a bone with this uncertainty, the prior has its full weight. At half the uncertainty it has a quarter.
_UNSURE: Final = 0.5
# Seconds: standard deviation of the filter that smooths the course of undetermined bones.
_SPREAD: Final = 0.1
# Frames with an RMS error this many times the usual one, such as in gaps, are solved again from their pose near the
# curve.
_UNUSUAL: Final = 1.3
# Weight of the rest pose for markers that are usually far off, such as keypoints. With less, the chest is at its limits
# more often.
_REST_COUNTS: Final = 3.5


def solve_every_frame(recording: Recording, *, steady: bool) -> Generator[float, None, None]:
    """Solve every frame; yields progress, 0 to 1.

    steady: keep bones that the markers do not determine near their smoothed motion.
    """
    count = len(recording.targets)
    several = max(1, int(np.ceil((count - 1) / max(1.0, SPACING * recording.rate)))) + 1
    knots = evenly_spread(max(count, 1), several)
    found = yield from _solve_knots(recording, knots, steady=steady)
    share = steady * np.minimum(uncertainty(recording.solver, found) / _UNSURE, 1.0) ** 2
    smooth = usual_rotations(found.rotations, _SPREAD * recording.rate * (len(knots) - 1) / max(count - 1, 1))
    rotations = _aligned(found.rotations)
    opposite = (smooth * rotations).sum(axis=-1, keepdims=True) < 0.0
    rotations += share[:, None] * (np.where(opposite, -smooth, smooth) - rotations)
    recording.prior_weights[:] = share * prior_weight(recording, FROM_COURSE)
    roots = found.root_location if recording.root_heads is None else recording.root_heads[knots]
    solution, every = recording.solution, np.arange(count)
    for frames in parts(every):
        recording.expected[frames] = recording.legal(_between(rotations, knots, frames, unit=True))
    # Knots and the frames halfway between them are solved first: the curve through those is closer to the other frames.
    first = np.union1d(knots, (knots[1:] + knots[:-1]) // 2)
    done, usual = 0, np.inf
    for chosen, steps in ((first, NEARBY), (np.setdiff1d(every, first, assume_unique=True), ON_CURVE)):
        for frames in parts(chosen):
            solution.rotations[frames] = recording.legal(_between(rotations, knots, frames, unit=True))
            solution.root_location[frames] = _between(roots[:, None], knots, frames)[:, 0]
            recording.solve_bridged(frames, steps)
            if len(far := frames[recording.rms(frames) > _UNUSUAL * usual]):
                recording.solve_bridged(far)
            done += len(frames)
            yield 0.5 + 0.5 * done / count
        knots, rotations, roots = first, _aligned(solution.rotations[first]), solution.root_location[first]
        usual = float(np.median(recording.rms(first)))


def _solve_knots(recording: Recording, knots: IntArray, *, steady: bool) -> Generator[float, None, Solution]:
    """Solve the knots, and interpolate bones at knots on which too few of their markers are seen."""
    spread = moving_pose(recording.solver.skeleton).spread
    counts = prior_weight(recording, _FROM_REST * spread)
    first = np.unique(np.append(np.arange(0, len(knots), _FROM_REST_ONE_IN), len(knots) - 1))
    found = yield from within(0.0, 0.2, _near_rest(recording, knots[first], counts))
    # Keypoints are about 12 mm off, so a nearly straight spine is more likely than a bent one that fits them.
    usual = np.nan_to_num(medians(found.errors))
    excess = float((usual**2).mean()) - (NOISE * recording.solver.skeleton.size) ** 2
    at_rest = steady * _REST_COUNTS * float(recording.weights.mean()) * max(excess, 0.0) / spread**2
    recording.rest_weights[:] = at_rest
    near = _between(_aligned(found.rotations), first, np.arange(len(knots)), unit=True)
    found = yield from within(0.2, 0.5, _near_rest(recording, knots, counts + at_rest, near))
    seen = ~np.isnan(recording.bridged(knots)).any(axis=2)
    lost, misplaced = added_uncertainty(recording.solver, found, seen, 1.0 / SPACING)
    rotations, roots = np.array(found.rotations), found.root_location
    for bone in np.flatnonzero((lost > LOST).any(axis=0)):
        rotations[:, [bone]] = interpolate_gaps(rotations[:, [bone]], lost[:, bone] <= LOST, unit=True)
    if recording.root_heads is None:
        roots = interpolate_gaps(roots[:, None], misplaced <= LOST)[:, 0]
    return replace(found, rotations=rotations, root_location=roots)


def _near_rest(
    recording: Recording, knots: IntArray, at_rest: FloatArray, start: FloatArray | None = None
) -> Generator[float, None, Solution]:
    """Solve knots with a prior at rest. start: (K, J, 4) initial rotations; None: rest.

    at_rest: (J,) weight of a squared radian away from rest. Sweeps of FABRIK are left out: they take as long as six
    steps and do not change the poses.
    """
    steps = _STEPS if start is None else _STEPS_FROM_NEAR
    solver = with_options(recording.solver, restarts=0, max_sweeps=0, most_steps=steps)
    found = Solution.empty(solver.skeleton, len(knots), len(solver.effectors))
    prior = PosePrior(np.tile(IDENTITY, (len(at_rest), 1)), at_rest)
    for part in parts(np.arange(len(knots))):
        frames, first = knots[part], None if start is None else start[part]
        targets, weights = recording.bridged(frames), recording.sample_weights(frames)
        heads = None if recording.root_heads is None else recording.root_heads[frames]
        found.put(part, solver.solve(targets, start=first, start_location=heads, weights=weights, prior=prior))
        yield (part[-1] + 1) / len(knots)
    return found


def prior_weight(recording: Recording, angle: float | FloatArray) -> FloatArray:
    """Weight of a squared radian of deviation. angle: its standard deviation in radians, for all bones or (J,)."""
    return np.asarray(recording.weights.mean() * (NOISE * recording.solver.skeleton.size / angle) ** 2)


def _aligned(rotations: FloatArray) -> FloatArray:
    """(K, ..., 4) quaternions, with the signs that make each one nearest to the one before."""
    return np.asarray(rotations * running_signs(rotations, rotations[0]))


def _between(values: FloatArray, knots: IntArray, frames: IntArray, *, unit: bool = False) -> FloatArray:
    """(F, J, C) values at frames, on the Catmull-Rom cubic through the knots (K, J, C). unit: normalize the values."""
    if len(knots) < 2:
        return np.repeat(values, len(frames), axis=0)
    after = np.clip(np.searchsorted(knots, frames, side="right"), 1, len(knots) - 1)
    # Only the knots near the frames: with all of them, the time would grow with the square of a take's length.
    first = max(int(after.min(initial=1)) - 2, 0)
    near = slice(first, int(after.max(initial=1)) + 2)
    values, knots, before = values[near], knots[near], after - first - 1
    found = between(values, before, (frames - knots[before]) / (knots[before + 1] - knots[before]))
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True)) if unit else found


def interpolate_gaps(values: FloatArray, known: BoolArray, *, unit: bool = False) -> FloatArray:
    """(K, J, C) values of knots, interpolated where they are not known, and constant at both ends.

    known: (K,). unit: normalize the values. The interpolation is linear, since the speeds next to a gap are misleading:
    with them, the roll of a straight leg was far off.
    """
    places = np.flatnonzero(known)
    if not len(places):
        return values
    beside = _aligned(values[places]) if unit else values[places]
    return _between(beside, places, np.clip(np.arange(len(values)), places[0], places[-1]), unit=unit)


def usual_rotations(rotations: FloatArray, spread: float) -> FloatArray:
    """(F, ..., 4) rotations smoothed over time, with any sign: by a median of five frames, then by a Gaussian.

    spread: the Gaussian's standard deviation in frames.
    """
    beside, last, smooth = int(np.ceil(3.0 * spread)), len(rotations) - 1, np.empty_like(rotations)
    weights = np.exp(-0.5 * (np.arange(-beside, beside + 1) / max(spread, 1e-6)) ** 2)
    # In parts, each with the neighboring frames, so that memory does not grow with the take.
    for frames in parts(np.arange(len(rotations))):
        near = _aligned(rotations[np.arange(frames[0] - beside - 2, frames[-1] + beside + 3).clip(0, last)])
        middle = np.median(np.stack([near[step : len(near) - 4 + step] for step in range(5)]), axis=0)
        mean = np.zeros_like(rotations[frames])
        for step, weight in enumerate(weights):
            mean += weight * middle[step : step + len(frames)]
        smooth[frames] = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    return smooth


# Gaps: rotations that the visible markers do not determine are filled from the frames next to the gap.
#
# These frames are then solved again, with lost bones weakly held to the filled pose, so visible markers and joint
# limits come first.

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}
GAPS: Final = tuple(_HOW)

# Seconds in which a held pose blends into the next known one.
_EASE: Final = 0.1
# Weight of a lost bone's filled pose, relative to the course. With more, the filled pose of a forearm moves the elbow.
_GUESSED: Final = 0.05
# The root's weight. All bones depend on it. With the weight above, hips of a hidden trunk rotated by up to 141°.
_GUESSED_ROOT: Final = 4.0


@dataclass(frozen=True)
class FilledSpan:
    """Frames first to last, counted from 0, on which markers do not determine a bone, and how they were filled."""

    bone: str
    first: int
    last: int
    count: int
    how: str


def fill_gaps(recording: Recording, gaps: Gaps) -> Generator[float, None, BoolArray]:
    """Fill rotations that markers do not determine. Yields progress, 0 to 1; returns (F, J) the known rotations."""
    observed = recording.seen & ~recording.outliers | recording.close
    lost, misplaced = added_uncertainty(recording.solver, recording.solution, observed, recording.rate)
    known, placed = lost <= LOST, misplaced <= LOST
    solution, rate = recording.solution, recording.rate
    rotations, roots = np.array(solution.rotations), np.array(solution.root_location)
    ease = max(1, round(_EASE * rate))
    for bone in np.flatnonzero(~known.all(axis=0)):
        if gaps == "HOLD":
            rotations[:, bone] = hold(rotations[:, bone], known[:, bone], ease)
        else:
            rotations[:, bone] = fill_from_motion(solution.rotations, known, bone, rate)
    if not placed.all() and recording.root_heads is None:
        roots = hold(roots, placed, ease) if gaps == "HOLD" else fill_points(roots, placed, rate)
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    recording.solution = replace(solution, rotations=recording.legal(rotations), root_location=roots)
    recording.expected[:] = recording.solution.rotations
    recording.rest_weights[~known] = 0.0
    recording.prior_weights[~known] = _GUESSED * prior_weight(recording, FROM_COURSE)
    recording.prior_weights[~known[:, 0], 0] = _GUESSED_ROOT * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        for part in parts(np.flatnonzero(~(known.all(axis=1) & placed))):
            recording.solve_bridged(part)
            yield part[-1] / len(recording.targets)
    return known


def filled_spans(recording: Recording, known: BoolArray, gaps: Gaps) -> tuple[FilledSpan, ...]:
    """The spans of frames on which bones were not determined by markers; known: (F, J)."""
    names = recording.solver.skeleton.names
    return tuple(
        FilledSpan(names[bone], first, end - 1, end - first, _HOW[gaps])
        for bone in np.flatnonzero(~known.all(axis=0))
        for first, end in true_spans(~known[:, bone])
    )
