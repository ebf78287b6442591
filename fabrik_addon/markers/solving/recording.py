"""A recording while it is solved: its targets, their weights, and the current poses."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...core import Skeleton, Solution, Solver, Status, forward_kinematics
from ...core.arrays import TINY, BoolArray, FloatArray, IntArray, lengths
from ...core.model.effector import PosePrior, effector_offset
from ..calibrate.size import points_on
from ..signals import bridge

# Frames solved together: their arrays fit the processor's cache, and memory does not grow with the take.
_TOGETHER: Final = 1000
# Maximum numbers of steps from a pose that wrong samples have displaced, from a nearby pose, and from a curve through
# nearby frames. From the curve, a second step mostly follows the noise of the markers. Three are too few from a pose
# far away.
FAR, NEARBY, ON_CURVE = 8, 3, 1
# Seconds: in shorter gaps, a marker's position is interpolated from its own motion.
_MOMENT: Final = 0.1
# Weight of an interpolated sample, relative to a visible one.
_BRIDGED_WEIGHT: Final = 0.1


class Recording:
    """F frames of E markers, and the poses that match them.

    Attributes:
        seen: (F, E) whether a sample is seen.
        outliers: (F, E) whether a sample is rejected as wrong.
        close: (F, E) whether a sample is missing or rejected only briefly, so that it is bridged.
        expected: (F, J, 4) local rotations to which undetermined bones are held.
        prior_weights: (F, J) weight of a squared radian away from `expected`.
        rest_weights: (F, J) weight of a squared radian away from rest, in addition.
    """

    def __init__(self, solver: Solver, targets: FloatArray, root_heads: FloatArray | None, rate: float) -> None:
        self.solver, self.targets, self.rate = solver, targets, rate
        self._solvers = {
            steps: with_options(solver, max_sweeps=0, restarts=0, repair_pops=False, most_steps=steps)
            for steps in (FAR, NEARBY, ON_CURVE)
        }
        self.root_heads = root_heads
        self.seen: BoolArray = ~np.isnan(targets).any(axis=-1)
        self.outliers: BoolArray = np.zeros(self.seen.shape, dtype=bool)
        self.close, self._bridges = np.zeros_like(self.outliers), np.empty((0, 3))
        self.reject(self.outliers)
        # Small numbers save memory: markers have no target rotations, and priors need no double precision.
        none: Any = np.full(self.seen.shape, np.nan, dtype=np.float16)
        empty = Solution.empty(solver.skeleton, len(targets), len(solver.effectors))
        self.solution, self.expected = replace(empty, rotation_errors=none), np.zeros(empty.rotations.shape, np.float32)
        self.prior_weights = np.zeros(self.expected.shape[:2], dtype=np.float32)
        self.rest_weights = np.zeros_like(self.prior_weights)
        self.weights = np.array([effector.weight for effector in solver.effectors])
        self.bones = [solver.skeleton.index(effector.bone) for effector in solver.effectors]
        self.offsets = np.array([effector_offset(solver.skeleton, effector) for effector in solver.effectors])

    def reject(self, outliers: BoolArray) -> IntArray:
        """Set the outliers (F, E), and bridge short gaps; returns the frames (N,) whose bridged targets change."""
        longest, changed = max(1, round(_MOMENT * self.rate)), np.zeros(len(outliers), dtype=bool)
        close, bridges = np.zeros_like(outliers), [self._bridges[:0]]
        # In parts, each with the samples that its bridges depend on.
        for part in parts(np.arange(len(outliers))):
            near = np.arange(max(part[0] - longest - 2, 0), min(part[-1] + longest + 3, len(outliers)))
            inliers, own = np.where(outliers[near, :, None], np.nan, self.targets[near]), part - near[0]
            before, after = self.bridged(part), bridge(inliers, self.rate, longest)[own]
            changed[part] = ((before != after) & ~(np.isnan(before) & np.isnan(after))).any(axis=(1, 2))
            close[part] = np.isnan(inliers[own]).any(axis=2) & ~np.isnan(after).any(axis=2)
            bridges.append(after[close[part]])
        self.outliers, self.close, self._bridges = outliers, close, np.concatenate(bridges)
        # The number of bridged samples before each frame.
        self._bridged_before = close.sum(axis=1).cumsum() - close.sum(axis=1)
        return np.flatnonzero(changed)

    def bridged(self, frames: Any) -> FloatArray:
        """(N, E, 3) targets on some frames without outliers, with short gaps bridged; NaN where there is none."""
        targets, close = np.where(self.outliers[frames, :, None], np.nan, self.targets[frames]), self.close[frames]
        if close.any():
            places = self._bridged_before[frames][:, None] + close.cumsum(axis=1) - 1
            targets[close] = self._bridges[places[close]]
        return targets

    def sample_weights(self, frames: Any) -> FloatArray:
        """(N, E) weights of the bridged targets on some frames."""
        return np.asarray(self.weights * np.where(self.close[frames], _BRIDGED_WEIGHT, 1.0))

    def solve_bridged(self, frames: Any, steps: int = NEARBY) -> None:
        """Solve some frames again from their current poses, with all visible or bridged samples."""
        self.solve_again(frames, self.sample_weights(frames), self.bridged(frames), steps)

    def solve_again(self, frames: Any, weights: FloatArray, targets: FloatArray, steps: int) -> None:
        """Solve some frames again from their current poses.

        weights: (N, E). targets: (N, E, 3). steps: FAR, NEARBY or ON_CURVE.
        """
        at_rest = self.rest_weights[frames].astype(np.float64)
        counts = self.prior_weights[frames] + at_rest
        # The weighted mean of the expected rotation and the rest rotation.
        share = (at_rest / np.maximum(counts, TINY))[..., None]
        expected = self.expected[frames]
        expected = np.where(expected[..., :1] < 0.0, -expected, expected) * (1.0 - share)
        expected[..., :1] += share
        expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        start, heads = self.solution.rotations[frames], self.solution.root_location[frames]
        prior = PosePrior(expected, counts)
        found = self._solvers[steps].solve(targets, start=start, start_location=heads, weights=weights, prior=prior)
        self.solution.put(frames, found)

    def state(self, frames: IntArray) -> tuple[Solution, Any, Any]:
        """Poses, expected poses and their weights on frames (N,), to pass to `restore`."""
        return self.solution.part(frames), self.expected[frames], self.prior_weights[frames]

    def restore(self, frames: IntArray, state: tuple[Solution, Any, Any], which: BoolArray) -> None:
        """Put a result of `state` back on some of its frames; which: (N,) True for these."""
        solution, expected, prior_weights = state
        self.solution.put(frames[which], solution.part(np.flatnonzero(which)))
        self.expected[frames[which]], self.prior_weights[frames[which]] = expected[which], prior_weights[which]

    def legal(self, rotations: FloatArray) -> FloatArray:
        """(N, J, 4) local rotations clamped to the limits, since interpolation between valid poses may leave them."""
        legal = np.empty_like(rotations)
        for part in parts(np.arange(len(rotations))):
            legal[part] = self.solver.problem.legal(rotations[part])
        return legal

    def distances(self, frames: IntArray) -> FloatArray:
        """(N, E) distances of the markers from their targets on some frames; NaN if missing."""
        distances = np.empty((len(frames), len(self.bones)))
        for places in parts(np.arange(len(frames))):
            part = frames[places]
            rotations, roots = self.solution.rotations[part], self.solution.root_location[part]
            matrices = forward_kinematics(self.solver.skeleton, rotations, roots)
            points = points_on(matrices, self.bones, self.offsets)
            distances[places] = lengths(points - self.targets[part])
        return distances

    def errors(self, *, solved: bool = True) -> FloatArray:
        """(F, E) errors of all visible samples, outliers included; NaN if missing.

        solved: whether the poses are the solver's; then the errors of the samples that it used are known already.
        """
        self.solution.errors[~self.seen] = np.nan
        frames = np.flatnonzero(self.outliers.any(axis=1) | (not solved))
        self.solution.errors[frames] = self.distances(frames)
        return self.solution.errors

    def rms(self, frames: IntArray) -> FloatArray:
        """(N,) the weighted RMS errors of some frames, without outliers."""
        weights = np.where(self.seen[frames] & ~self.outliers[frames], self.weights, 0.0)
        squares = (weights * np.nan_to_num(self.solution.errors[frames]) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(squares / np.maximum(weights.sum(axis=1), TINY)))

    def measure(self, *, solved: bool) -> None:
        """Compute the errors of the solution, see `errors`, and the status of each frame."""
        self.errors(solved=solved)
        self.solution.status[~self.seen.any(axis=1)] = Status.UNSEEN
        tolerances = self.solver.options.tolerance * self.solver.reaches.tolerance_lengths
        met = ~(self.solution.errors > tolerances).any(axis=1) & self.seen.any(axis=1)
        self.solution.status[met] = Status.SOLVED
        # A few steps from a nearby pose are accurate to a few hundredths of a millimeter, so these poses are fitted.
        self.solution.status[self.solution.status == Status.STALLED] = Status.FITTED


def near_flagged(flagged: BoolArray, near: int) -> BoolArray:
    """(F, ...) whether a frame, or one at most `near` frames away, is flagged."""
    beside = ((near + 1, near), *[(0, 0)] * (flagged.ndim - 1))
    counts = np.cumsum(np.pad(flagged, beside), axis=0, dtype=np.int64)
    return np.asarray(counts[2 * near + 1 :] > counts[: -2 * near - 1])


def parts(frames: IntArray) -> Iterator[IntArray]:
    """Split `frames` (N,) into parts that are solved together."""
    for first in range(0, len(frames), _TOGETHER):
        yield frames[first : first + _TOGETHER]


def with_options(solver: Solver, skeleton: Skeleton | None = None, **choices: Any) -> Solver:
    """The same solver with some other options, or for another skeleton of the same bones."""
    root, options = "FREE" if solver.free_root else "FIXED", replace(solver.options, **choices)
    return Solver(skeleton or solver.skeleton, solver.effectors, limits=solver.limits, root=root, options=options)
