"""Solving a whole recording: markers that are hidden for a while, and markers that cannot be right.

First every frame is solved by itself with what is seen, markers that are away for a moment where they must have been. A
bone about which that says too little is then carried over from the frames before and after. The pose so guessed gives
the hidden markers targets that count for almost nothing beside those that are seen, except at a gap's edges, where
they fade; such frames are solved again from that pose. So what is still seen decides what it can, joint limits hold,
time decides the rest, and nothing jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from ..core import Solution, Solver, Status, forward_kinematics
from ..core.backend import array as many
from ..core.errors import FabrikError
from ..core.model.bodies import effector_offset
from ..core.rotations import angle_between
from .calibrate.offsets import points_on, seen_from_bones
from .clip import BoolArray, FloatArray, true_spans
from .determined import lost_certainty
from .gaps.bridge import MOST_BESIDE, bridge_gaps, fill_points, hold, smoothed_turns
from .gaps.fill_from_motion import recall_turns
from .robust import outlier_weights, usual_distances
from .steps import at_once

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
GAPS: Final = ("SOLVE", "HOLD", "INTERPOLATE", "UNKEYED")
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}

_CHUNK: Final = 1000
# A bone's turn is lost when hidden markers make it this much (radians) less sure than it is with all of them. Where it
# is solved for all the same, the pose to begin with and to fall back on is a guess already from the lesser one on.
_LOST: Final = 0.1
_UNSURE: Final = 0.1
# What a marker's place counts beside a seen one where it is bridged over a moment.
_BRIDGED_WEIGHT: Final = 0.1
# What a hidden marker's guessed place counts beside a seen one and in the middle of a gap; in how many frames it fades.
_EDGE_WEIGHT: Final = 0.2
_GUESS_WEIGHT: Final = 1e-3
_FADE: Final = 3.0
# Over gaps longer than this (seconds) the motion at the edges carries less far; held poses go on over the second.
_CARRIED: Final = 0.5
_EASE: Final = 0.1
# A marker that is away for no longer than this (seconds) is where its own motion leads it.
_MOMENT: Final = 0.1
# A sample may be so many times farther off than its marker usually is, but not more than one share of the skeleton's
# size and not less than another.
_USUAL_TIMES: Final = 4.0
_ALWAYS_SHARE: Final = 0.015
_NEVER_SHARE: Final = 0.05
# A pose whose bones turn by more than this (radians) from the course of so many frames on either side is not steady.
_ROUGH: Final = 0.02
_BESIDE: Final = 5
# Doubt begins wide, so that one bad marker does not make its neighbours look bad.
_DOUBTS: Final = (4.0, 2.0, 1.0)
_NOT_BELIEVED: Final = 2.0
# With fewer of a frame's markers than this left to believe, all of them are.
_LEAST_BELIEVED: Final = 0.5
# Shares of the time, for the progress.
_FIRST_PASS: Final = 0.6


class TakeError(FabrikError):
    """A take that cannot be solved as asked."""


@dataclass(frozen=True)
class FilledSpan:
    """Frames first to last, counted from 0, on which markers say too little about a bone; how that was got over."""

    bone: str
    first: int
    last: int
    count: int
    how: str


@dataclass(frozen=True, eq=False)
class Take:
    """A solved recording.

    Attributes:
        solution: F poses; its errors are NaN where a marker is not seen.
        outliers: (F, E) samples that are seen but were not believed.
        filled: the spans on which a bone was not determined by what is seen.
        keyed: (F, J) False where a bone is to get no keys.
    """

    solution: Solution
    outliers: BoolArray
    filled: tuple[FilledSpan, ...]
    keyed: BoolArray


def solve_take_steps(
    solver: Solver,
    targets: FloatArray,
    *,
    gaps: Gaps = "SOLVE",
    robust: bool = True,
    start: FloatArray | None = None,
    root_heads: FloatArray | None = None,
    rate: float = 100.0,
) -> Generator[float, None, Take]:
    """Find the poses that fit F frames of targets, in small steps; may be closed at any time.

    Args:
        solver: its effectors are the markers.
        targets: (F, E, 3) in armature space, NaN where not seen.
        gaps: what a bone does that is not determined: SOLVE goes on with what is seen, INTERPOLATE goes from the pose
            before to the pose after whatever is seen, HOLD stays, UNKEYED interpolates and is to get no keys.
        robust: leave out samples that cannot be right.
        start: (J, 4) local rotations to start from; rest when None.
        root_heads: (F, 3) where a pinned root's head is.
        rate: frames a second.

    Yields:
        The share done.

    Returns:
        The take.

    Raises:
        TakeError: for an unknown policy or a rate that is none; TargetError where targets do not fit the solver.
    """
    if gaps not in GAPS:
        raise TakeError(f"The way to fill gaps is {gaps!r}: it must be one of {', '.join(GAPS)}.")
    if not (np.isfinite(rate) and rate > 0.0):
        raise TakeError(f"The rate is {rate} frames a second: it must be more than 0.")
    work = _Take(solver, np.asarray(targets, dtype=np.float64), root_heads, rate)
    yield from work.solve_each(start)
    if robust:
        yield from work.doubt()
    return (yield from work.fill(gaps))


solve_take = at_once(solve_take_steps)


class _Take:
    """A recording while it is being solved."""

    def __init__(self, solver: Solver, targets: FloatArray, root_heads: FloatArray | None, rate: float) -> None:
        self.solver, self.targets, self.rate = solver, targets, rate
        self.nearby = _from_nearby(solver)
        self.root_heads = root_heads
        self.seen: BoolArray = ~np.isnan(targets).any(axis=-1)
        self.outliers = np.zeros(self.seen.shape, dtype=bool)
        self.bridged, self.close = self._bridge()
        self.weights = np.array([effector.weight for effector in solver.effectors])
        self.bones = [solver.skeleton.index(effector.bone) for effector in solver.effectors]
        self.offsets = np.array([effector_offset(solver.skeleton, effector) for effector in solver.effectors])

    def solve_each(self, start: FloatArray | None) -> Generator[float, None, None]:
        """Solve every frame by itself."""
        count = len(self.targets)
        self.solution = Solution.empty(self.solver.skeleton, count, len(self.solver.effectors))
        for first in range(0, count, _CHUNK):
            part = slice(first, first + _CHUNK)
            heads = None if self.root_heads is None else self.root_heads[part]
            weights = self._trust(part)
            found = self.solver.solve(self.bridged[part], start=start, start_location=heads, weights=weights)
            self.solution.put(part, found)
            yield _FIRST_PASS * min(1.0, part.stop / count)

    def doubt(self) -> Generator[float, None, None]:
        """Find the samples that cannot be right: solve their frames with less and less trust in what is far off."""
        distances = self._by_parts(self._distances)
        allowed = self._allowed(distances)
        frames = np.flatnonzero((distances > allowed).any(axis=1))
        if not len(frames):
            return
        for factor in _DOUBTS:
            distances = self._distances(frames)
            self._solve_again(frames, outlier_weights(distances, factor * allowed) * self.weights, self.targets[frames])
            yield _FIRST_PASS
        wrong = self._distances(frames) > _NOT_BELIEVED * allowed
        left = (self.seen[frames] & ~wrong).sum(axis=1)
        enough = left >= _LEAST_BELIEVED * self.seen[frames].sum(axis=1)
        self.outliers[frames] = wrong & enough[:, None]
        before = self.bridged
        self.bridged, self.close = self._bridge()
        beside = np.flatnonzero((np.nan_to_num(before) != np.nan_to_num(self.bridged)).any(axis=(1, 2)))
        frames = np.union1d(frames, beside)
        self._solve_again(frames, self._trust(frames), self.bridged[frames])

    def _trust(self, frames: Any) -> FloatArray:
        """(N, E) what the targets of some frames weigh: less where they are bridged."""
        return np.asarray(self.weights * np.where(self.close[frames], _BRIDGED_WEIGHT, 1.0))

    def _bridge(self) -> tuple[FloatArray, BoolArray]:
        """(F, E, 3) the targets, those that are away or not believed for a moment bridged; (F, E) which those are."""
        believed = np.where(self.outliers[..., None], np.nan, self.targets)
        return bridge_gaps(believed, max(1, round(_MOMENT * self.rate)))

    def _steady(self, known: BoolArray) -> None:
        """Solve frames beside gaps again that differ from those about them, from where those would have them.

        Where a pose has ways to turn on which markers say little, each frame for itself has taken one of them; across
        a gap that would carry far. known: (F, J).
        """
        beside = np.convolve(~known.all(axis=1), np.ones(2 * MOST_BESIDE + 1), mode="same") > 0.5
        smooth = smoothed_turns(self.solution.rotations, _BESIDE)
        rough = angle_between(smooth, self.solution.rotations).max(axis=1) > _ROUGH
        frames = np.flatnonzero(rough & beside[: len(rough)])
        if len(frames):
            self.solution.rotations[frames] = self._legal(smooth[frames])
            self._solve_again(frames, self._trust(frames), self.bridged[frames])

    def fill(self, gaps: Gaps) -> Generator[float, None, Take]:
        """Carry bones over what is not seen; the finished take."""
        believed = self.seen & ~self.outliers
        told = believed | self.close
        lost, misplaced = lost_certainty(self.solver, self.solution, told)
        unsure = _UNSURE if gaps == "SOLVE" else _LOST
        self._carry_over(lost <= unsure, misplaced <= unsure, gaps)
        self._steady(lost <= unsure)
        self._carry_over(lost <= unsure, misplaced <= unsure, gaps)
        known = lost <= _LOST
        if gaps == "SOLVE":
            frames = np.flatnonzero(~told.all(axis=1))
            guesses, weights = self._guesses(believed, frames)
            for first in range(0, len(frames), _CHUNK):
                part = slice(first, first + _CHUNK)
                self._solve_again(frames[part], weights[part], guesses[part])
                yield _FIRST_PASS + (1.0 - _FIRST_PASS) * min(1.0, part.stop / len(frames))
        self._measure()
        keyed = known if gaps == "UNKEYED" else np.ones_like(known)
        return Take(self.solution, self.outliers, self._spans(known, _HOW[gaps]), keyed)

    def _carry_over(self, known: BoolArray, placed: BoolArray, gaps: Gaps) -> None:
        """Put every bone that is not known to where the frames beside the gap lead it."""
        rotations, roots = np.array(self.solution.rotations), np.array(self.solution.root_location)
        longest, ease = _CARRIED * self.rate, max(1, round(_EASE * self.rate))
        for bone in np.flatnonzero(~known.all(axis=0)):
            if gaps == "HOLD":
                rotations[:, bone] = hold(rotations[:, bone], known[:, bone], ease)
            else:
                rotations[:, bone] = recall_turns(self.solution.rotations, known, bone, longest, self.rate)
        if not placed.all() and self.root_heads is None:
            roots = hold(roots, placed, ease) if gaps == "HOLD" else fill_points(roots, placed, longest)
        rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
        self.solution = replace(self.solution, rotations=self._legal(rotations), root_location=roots)

    def _legal(self, rotations: FloatArray) -> FloatArray:
        """Between two poses inside the limits there may be one outside."""
        for name, limit in self.solver.limits.items():
            bone = self.solver.skeleton.index(name)
            inside = limit.clamp(many, many.quaternion(rotations[:, bone]))
            rotations[:, bone] = many.stack([inside], len(rotations))[:, 0]
        return rotations

    def _guesses(self, believed: BoolArray, frames: Any) -> tuple[FloatArray, FloatArray]:
        """(N, E, 3) targets for frames with hidden markers, those at their guessed places, and (N, E) weights."""
        away = self._by_parts(lambda part: self._away(part, believed[part]))
        local = self._carried_places(away, believed)[frames] + self.offsets
        places = _carried_points(self._matrices(frames), self.bones, local)
        seen = believed[frames]
        weights = self.weights * np.where(seen, 1.0, _fading(believed)[frames])
        return np.where(seen[..., None], self.targets[frames], places), weights

    def _away(self, frames: Any, believed: BoolArray) -> FloatArray:
        """(N, E, 3) how far markers of some frames are from their offsets, in their bones' frames."""
        shown = np.where(believed[..., None], self.targets[frames], np.nan)
        away: FloatArray = seen_from_bones(self._matrices(frames), self.bones, shown) - self.offsets
        return away

    def _by_parts(self, work: Callable[[slice], FloatArray]) -> FloatArray:
        """(F, ...) what is worked out of all frames, part by part: what it takes on the way is far more."""
        starts = range(0, max(len(self.targets), 1), _CHUNK)
        return np.concatenate([work(slice(first, first + _CHUNK)) for first in starts])

    def _carried_places(self, away: FloatArray, believed: BoolArray) -> FloatArray:
        """(F, E, 3) how far markers are from their offsets, in their bones' frames, on straight lines across gaps."""
        frames, filled = np.arange(len(away)), np.zeros_like(away)
        for marker in np.flatnonzero(believed.any(axis=0)):
            at = frames[believed[:, marker]]
            for axis in range(3):
                filled[:, marker, axis] = np.interp(frames, at, away[at, marker, axis])
        return filled

    def _solve_again(self, frames: Any, weights: FloatArray, targets: FloatArray) -> None:
        """Solve some frames from their present poses."""
        heads = self.solution.root_location[frames]
        part = self.nearby.solve(targets, start=self.solution.rotations[frames], start_location=heads, weights=weights)
        self.solution.put(frames, part)

    def _matrices(self, frames: Any) -> FloatArray:
        """(N, J, 4, 4) of some frames."""
        rotations, roots = self.solution.rotations[frames], self.solution.root_location[frames]
        return forward_kinematics(self.solver.skeleton, rotations, roots)

    def _distances(self, frames: Any) -> FloatArray:
        """(N, E) of the markers from their targets on some frames, NaN where those are."""
        points = points_on(self._matrices(frames), self.bones, self.offsets)
        distances: FloatArray = np.linalg.norm(points - self.targets[frames], axis=2)
        return distances

    def _allowed(self, distances: FloatArray) -> FloatArray:
        """(E,) how far off a sample of each marker may be."""
        skeleton = self.solver.skeleton
        usual = _USUAL_TIMES * np.nan_to_num(usual_distances(distances))
        return np.clip(usual, _ALWAYS_SHARE * skeleton.size, _NEVER_SHARE * skeleton.size)

    def _measure(self) -> None:
        """Errors of what is seen, whatever it weighed; frames that show nothing say so."""
        self.solution.errors[...] = self._by_parts(self._distances)
        self.solution.status[~self.seen.any(axis=1)] = Status.UNSEEN
        reach = self.solver.options.tolerance * self.solver.reaches.tolerance_lengths
        met = ~(self.solution.errors > reach).any(axis=1) & self.seen.any(axis=1)
        self.solution.status[met] = Status.SOLVED

    def _spans(self, known: BoolArray, how: str) -> tuple[FilledSpan, ...]:
        names = self.solver.skeleton.names
        return tuple(
            FilledSpan(names[bone], first, end - 1, end - first, how)
            for bone in np.flatnonzero(~known.all(axis=0))
            for first, end in true_spans(~known[:, bone])
        )


def _from_nearby(solver: Solver) -> Solver:
    """The same solver for start poses that are close."""
    options = replace(solver.options, max_sweeps=0, restarts=0, repair_pops=False)
    root = "FREE" if solver.free_root else "FIXED"
    return Solver(solver.skeleton, solver.effectors, limits=solver.limits, root=root, options=options)


def _fading(believed: BoolArray) -> FloatArray:
    """(F, E) what hidden samples count: almost all beside a seen one, next to nothing far from any.

    Before a marker is first and after it is last seen its place is only guessed from one side.
    """
    frames = np.arange(len(believed))
    fade = np.full(believed.shape, _GUESS_WEIGHT)
    for marker in np.flatnonzero(believed.any(axis=0)):
        at = frames[believed[:, marker]]
        after = np.searchsorted(at, frames)
        next_ = np.abs(at[np.minimum(after, len(at) - 1)] - frames)
        last = np.abs(at[np.maximum(after - 1, 0)] - frames)
        inside = slice(at[0], at[-1])
        fade[inside, marker] = np.maximum(
            _EDGE_WEIGHT * np.exp(-np.minimum(next_, last)[inside] / _FADE), _GUESS_WEIGHT
        )
    return fade


def _carried_points(matrices: FloatArray, bones: list[int], local: FloatArray) -> FloatArray:
    """(F, E, 3) points at local places (F, E, 3) of bones that stand at matrices (F, J, 4, 4)."""
    frames = matrices[:, bones]
    return np.asarray(frames[..., :3, 3] + (frames[..., :3, :3] @ local[..., None])[..., 0])
