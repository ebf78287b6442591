"""Solves a recording: all frames, outliers, gaps, undetermined bones, the rig's own proportions, and feet.

First every frame is solved with its visible markers and short gaps bridged. Then samples that cannot be right lose
their weight. Rotations that hidden markers leave unknown are filled from the frames before and after. Rotations that
even all markers do not determine follow neighboring frames. Finally, remaining jumps are smoothed.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from ..core import Solution, Solver
from ..core.arrays import BoolArray, FloatArray
from .calibrate.size import height_factor, with_factors
from .feet import Stance, StandingSettings, foot_points, plant_feet
from .solving.course import FilledSpan, Gaps, fill_gaps, filled_spans, solve_every_frame
from .solving.outliers import reject_implausible_samples, reject_outliers, smooth_jumps
from .solving.recording import Recording, with_options
from .steps import within


@dataclass(frozen=True)
class TakeSettings:
    """How a take is solved.

    Attributes:
        rate: frames per second.
        gaps: the method for undetermined bones: SOLVE uses the visible markers, INTERPOLATE ignores them and
            interpolates, HOLD keeps the last pose, UNKEYED interpolates without keyframes.
        robust: leave out samples that cannot be right.
        steady: bones that markers do not determine follow the neighboring frames; with SOLVE, jumps are smoothed too.
        plant_feet: keep planted feet in place.
        up: index of armature space's up axis.
        meter: armature units in a meter.
    """

    rate: float = 100.0
    gaps: Gaps = "SOLVE"
    robust: bool = True
    steady: bool = True
    plant_feet: bool = False
    up: int = 2
    meter: float = 1.0


@dataclass(frozen=True, eq=False)
class SolvedTake:
    """A solved recording.

    Attributes:
        solution: F poses on the rig's own bones; errors are NaN where a marker is not seen.
        outliers: (F, E) samples that are seen but were rejected.
        filled: the spans on which visible markers do not determine a bone.
        keyed: (F, J) False where a bone gets no keyframes.
        stances: the contacts of planted feet.
    """

    solution: Solution
    outliers: BoolArray
    filled: tuple[FilledSpan, ...]
    keyed: BoolArray
    stances: tuple[Stance, ...] = ()


def solve_take_steps(
    solver: Solver,
    targets: FloatArray,
    settings: TakeSettings,
    *,
    root_heads: FloatArray | None = None,
    factors: FloatArray | None = None,
) -> Generator[float, None, SolvedTake]:
    """Find the poses that fit targets on F frames, in small steps; yields progress, 0 to 1.

    solver: its skeleton is the rig's, its effectors are the markers. targets: (F, E, 3) in armature space, NaN where
    not seen. root_heads: (F, 3) locations of a pinned root's head, armature space. factors: (J,) bone lengths of the
    recorded person divided by the rig's; None: the rig's. Raises TargetError if targets do not match the solver.
    """
    body = solver if factors is None else with_options(solver, with_factors(solver.skeleton, factors))
    recording = Recording(body, np.asarray(targets), root_heads, settings.rate)
    if settings.robust:
        reject_implausible_samples(recording)
    yield from within(0.0, 0.6, solve_every_frame(recording, steady=settings.steady))
    if settings.robust:
        reject_outliers(recording)
    known = yield from within(0.6, 0.9, fill_gaps(recording, settings.gaps))
    if settings.steady and settings.gaps == "SOLVE":
        smooth_jumps(recording)
    recording.measure(solved=settings.gaps == "SOLVE")
    solution, effectors, stances = recording.solution, list(solver.effectors), tuple[Stance, ...]()
    if factors is not None:
        # The rig gets the poses of the recorded person's body. Errors are still measured on that body.
        root = solution.root_location * height_factor(solution.skeleton, 1.0 / factors)
        lengths = np.broadcast_to(solver.skeleton.lengths, solution.lengths.shape)
        solution = replace(solution, skeleton=solver.skeleton, root_location=root, lengths=lengths)
        marked = [(each, each.offset, factors[solver.skeleton.index(each.bone)]) for each in effectors if each.offset]
        effectors = [replace(each, offset=tuple((np.array(offset) / size).tolist())) for each, offset, size in marked]
    if settings.plant_feet and (points := list(foot_points(solver.skeleton, effectors, settings.up))):
        rate, limits, up, standing = settings.rate, solver.limits, settings.up, StandingSettings.at_size(settings.meter)
        solution, stances = plant_feet(solution, points, rate, limits=limits, up=up, settings=standing)
        # The errors are those of the recorded person's body, since the targets have its size.
        recording.solution.rotations[:] = solution.rotations
        solution = replace(solution, errors=recording.errors(solved=False))
    filled, keyed = filled_spans(recording, known, settings.gaps), np.ones_like(known)
    return SolvedTake(solution, recording.outliers, filled, known if settings.gaps == "UNKEYED" else keyed, stances)
