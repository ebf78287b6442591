"""Which points of a rig's feet stand on the floor, and planting them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ...core import Solution
from ...core.arrays import FloatArray
from ...human.naming_schemes import match as match_bones
from ...markers.calibrate.offsets import effector_points
from ...markers.feet import FootPoint, Planted, Stance, StandingSettings, plant_feet
from ..goals.goals import Goals

_FOOT_PARTS: Final = ("foot", "toe")
# With so many markers on a foot, its heel and its toes are among them.
_ENOUGH: Final = 2


def plant(
    goals: Goals, solution: Solution, targets: FloatArray, *, rate: float, up: int, metre: float
) -> Planted | None:
    """The poses with planted feet and the errors that they have; None where no bone of the rig is known as a foot.

    targets: (F, E, 3) in armature space, NaN where not seen. rate: frames a second. up: the armature's axis that points
    up. metre: armature units to a metre.
    """
    points = list(foot_points(goals, up))
    if not points:
        return None
    usual = StandingSettings()
    settings = replace(usual, speed=usual.speed * metre, height=usual.height * metre)
    planted = plant_feet(solution, points, rate, limits=goals.all_limits, up=up, settings=settings)
    placed = effector_points(goals.tree.skeleton, goals.effectors, planted.solution.matrices)
    errors = np.linalg.norm(placed - targets, axis=2)
    return replace(planted, solution=replace(planted.solution, errors=errors))


def foot_points(goals: Goals, up: int) -> Iterator[FootPoint]:
    """Heel and toe of each foot: the markers at its back and its front, else the ends of its bones."""
    roles = match_bones(goals.tree.skeleton.names)
    for side in ("L", "R"):
        bones = [name for name, role in roles.items() if role.part in _FOOT_PARTS and role.side == side]
        if bones:
            yield from _of_foot(goals, bones, up)


def _of_foot(goals: Goals, bones: Sequence[str], up: int) -> Iterator[FootPoint]:
    skeleton = goals.tree.skeleton
    marked = [effector for effector in goals.effectors if effector.bone in bones and effector.offset is not None]
    if len(marked) < _ENOUGH:
        yield FootPoint(bones[0], (0.0, 0.0, 0.0))
        yield FootPoint(bones[-1])
        return
    # How far each lies to the front: along the foot, on the floor.
    along = np.delete(skeleton.rest[skeleton.index(bones[0]), :3, 1], up)
    places = [skeleton.rest[skeleton.index(effector.bone)] @ (*effector.offset, 1.0) for effector in marked]
    order = np.argsort([np.delete(place[:3], up) @ along for place in places])
    for end in (order[0], order[-1]):
        yield FootPoint(marked[int(end)].bone, marked[int(end)].offset)


def feet_line(stances: Sequence[Stance], metre: float) -> str:
    """How far feet strayed while standing, before and after planting, in one line."""
    before = max(stance.drift_before for stance in stances) / metre
    after = max(stance.drift_after for stance in stances) / metre
    return f"Feet: {len(stances)} stances, drift at most {1000.0 * before:.1f} mm, planted {1000.0 * after:.1f} mm"
