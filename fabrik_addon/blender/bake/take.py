"""Solving one tree of bones for a take of markers: gaps, outliers, proportions and feet."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray
from ...markers.butterworth import low_pass
from ...markers.calibrate.proportions import height_factor, with_factors
from ...markers.clip import Clip
from ...markers.feet import Planted
from ...markers.steady import steadied_steps
from ...markers.steps import within
from ...markers.take import Gaps, Take, solve_take_steps
from ..goals.goals import Goals
from .feet import plant

# The share of the time until every frame has been solved once.
_SOLVED: Final = 0.5


@dataclass(frozen=True)
class TakeSettings:
    """How a take is solved: see `BakeSettings`. rate: baked frames a second."""

    gaps: Gaps
    robust: bool
    steady: bool
    plant_feet: bool
    rate: float
    up: int = 2
    metre: float = 1.0


@dataclass(frozen=True)
class SolvedTake:
    """A take on the rig's own bones, and how its feet were planted; None where they were not."""

    solution: Solution
    take: Take
    planted: Planted | None = None

    @property
    def keyed(self) -> BoolArray:
        """(F, J) whether a bone gets a key on a frame."""
        return self.take.keyed


def solve_tree(
    goals: Goals,
    targets: FloatArray,
    root_heads: FloatArray | None,
    factors: FloatArray | None,
    settings: TakeSettings,
) -> Generator[float, None, SolvedTake]:
    """Solve (F, M, 3) targets in armature space; yields the share done.

    root_heads: (F, 3) where a pinned root is; None where it is free. factors: (J,) how much longer than the rig's the
    recorded person's bones are, None for the rig's own proportions.
    """
    body = goals.tree.skeleton if factors is None else with_factors(goals.tree.skeleton, factors)
    root = "FREE" if root_heads is None else "FIXED"
    solver = Solver(body, goals.effectors, limits=goals.all_limits, root=root)
    take = yield from within(
        0.0,
        _SOLVED,
        solve_take_steps(
            solver,
            targets,
            gaps=settings.gaps,
            robust=settings.robust,
            root_heads=root_heads,
            rate=settings.rate,
        ),
    )
    solution = take.solution
    if settings.steady:
        believed = np.where(take.outliers, 0.0, [effector.weight for effector in goals.effectors])
        steady = steadied_steps(solver, solution, targets, believed, settings.rate)
        solution = yield from within(_SOLVED, 1.0, steady)
    if factors is not None:
        solution = _on_rig(solution, goals, factors)
    planted = None
    if settings.plant_feet:
        planted = plant(goals, solution, targets, rate=settings.rate, up=settings.up, metre=settings.metre)
    return SolvedTake(solution if planted is None else planted.solution, take, planted)


def _on_rig(solution: Solution, goals: Goals, factors: FloatArray) -> Solution:
    """Poses of the recorded person's body as those of the rig; the errors stay those of the body."""
    skeleton = goals.tree.skeleton
    lengths = np.tile(skeleton.lengths, (len(solution.status), 1))
    place = solution.root_location * height_factor(solution.skeleton, 1.0 / factors)
    return replace(solution, skeleton=skeleton, root_location=place, lengths=lengths)


def smoothed(world: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """(F, M, 3) markers without what changes faster than `cutoff` Hz; as they are where that is 0.

    Raises ClipError for a cutoff of half the rate or more.
    """
    if cutoff == 0.0:
        return world
    names = tuple(str(place) for place in range(world.shape[1]))
    return np.array(low_pass(Clip(names, rate, world, up_axis="Z"), cutoff).positions)
