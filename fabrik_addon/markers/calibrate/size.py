"""Making a rig and a recording the same size."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from ...core import Skeleton
from ...core.errors import FabrikError
from ..clip import FloatArray
from ..mapping.marker_map import MappedMarker
from .offsets import bones_of, points_on

# Pairs closer than this share of the longest one say nothing about size, only about noise.
_SHORTEST_SHARE: Final = 1e-3
# A bone begins at its parent's tail when it is nearer than this share of the parent's length.
_CONNECTED: Final = 1e-3


class CalibrationError(FabrikError):
    """A recording from which the asked-for measure cannot be taken."""


def rigid_pairs(
    entries: Sequence[MappedMarker],
    parents: Mapping[str, str | None],
    connected: Collection[str] = (),
) -> tuple[tuple[int, int], ...]:
    """Which mapped points keep their distance whatever the pose, as pairs of places in ``entries``.

    Two points do where some bone carries both: a tail or an offset is carried by its bone; a
    head by its bone and by the parent; and a tail also by those children that begin there.
    parents: each bone's parent, None for a root; bones not listed count as roots.
    connected: the bones whose head lies at their parent's tail.
    """
    carriers = [_carriers(entry, parents, connected) for entry in entries]
    return tuple((i, j) for i, j in combinations(range(len(entries)), 2) if carriers[i] & carriers[j])


def _carriers(entry: MappedMarker, parents: Mapping[str, str | None], connected: Collection[str]) -> frozenset[str]:
    """The bones on which a mapped point is fixed."""
    if entry.point == "HEAD":
        return _bones_at_head(entry.bone, parents, connected)
    if entry.point == "TAIL":
        begin_there = {bone for bone in connected if parents.get(bone) == entry.bone}
        return frozenset({entry.bone} | begin_there)
    return frozenset({entry.bone})


def _bones_at_head(bone: str, parents: Mapping[str, str | None], connected: Collection[str]) -> frozenset[str]:
    """The bone, its parent, and its connected siblings where it is connected itself."""
    parent = parents.get(bone)
    if parent is None:
        return frozenset({bone})
    there = {bone, parent}
    if bone in connected:
        there |= {other for other in connected if parents.get(other) == parent}
    return frozenset(there)


def first_scale(
    skeleton: Skeleton, entries: Sequence[MappedMarker], offsets: FloatArray, positions: FloatArray
) -> float:
    """About how many times larger than a recording a rig is.

    From the distances that no pose changes, where there are any, else from how widely the markers spread at rest and in
    the recording. offsets: (M, 3) of the mapped points in their bones' frames. positions: (F, M, 3).
    Raises CalibrationError where markers are never apart.
    """
    points = points_on(skeleton.rest[None], bones_of(skeleton, entries), offsets)[0]
    try:
        return uniform_scale(points, rigid_pairs(entries, *_family(skeleton)), positions)
    except CalibrationError:
        return _spread_ratio(points, positions)


def _family(skeleton: Skeleton) -> tuple[dict[str, str | None], set[str]]:
    """Each bone's parent, and the bones that begin at their parent's tail."""
    names, parents = skeleton.names, skeleton.parents
    above = {name: names[parent] if parent >= 0 else None for name, parent in zip(names, parents, strict=True)}
    connected = set()
    for bone, parent in enumerate(parents):
        tail = (0.0, skeleton.lengths[parent], 0.0)
        if parent >= 0 and np.allclose(skeleton.head_offset(bone), tail, atol=_CONNECTED * skeleton.lengths[parent]):
            connected.add(names[bone])
    return above, connected


def _spread_ratio(points: FloatArray, positions: FloatArray) -> float:
    """How widely (M, 3) points spread, over how widely the same ones do in the frame (F, M, 3) that shows the most."""
    seen = ~np.isnan(positions).any(axis=2)
    frame = int(np.argmax(seen.sum(axis=1)))
    parts = points[seen[frame]], positions[frame][seen[frame]]
    spreads = [float(np.linalg.norm(np.std(part, axis=0))) if len(part) > 1 else 0.0 for part in parts]
    if min(spreads) <= 0.0:
        raise CalibrationError("The markers that are seen lie on one point: map more of them, on several bones")
    return spreads[0] / spreads[1]


def uniform_scale(rest_points: FloatArray, pairs: Sequence[tuple[int, int]], positions: FloatArray) -> float:
    """The factor that turns marker distances into rig distances.

    rest_points: (M, 3) where the mapped points lie on the rig at rest. positions: (F, M, 3) of the
    same markers, NaN where not seen. pairs: as from ``rigid_pairs``. Every pair gives the median
    over the frames on which both are seen; of those the median is taken, in which a pair counts by
    its length (a long thigh says more than a short toe). So neither some bad frames nor some
    wrongly placed markers matter. Raises CalibrationError where no pair is left to measure.
    """
    rest_points, positions = _checked(rest_points, pairs, positions)
    lengths = [float(np.linalg.norm(rest_points[i] - rest_points[j])) for i, j in pairs]
    shortest = _SHORTEST_SHARE * max(lengths, default=0.0)
    usable = [(pair, length) for pair, length in zip(pairs, lengths, strict=True) if length > shortest]
    if not usable:
        raise CalibrationError(
            "no two mapped markers keep their distance: map at least two markers to one bone, or "
            "to both ends of it, so that rig and recording can be measured against each other"
        )
    measured = [(_median_distance(positions, pair), length) for pair, length in usable]
    ratios = [(length / distance, length) for distance, length in measured if distance > 0.0]
    if not ratios:
        raise CalibrationError("no two markers on one bone are ever seen on the same frame: map more of them")
    return _weighted_median(np.array(ratios))


def _median_distance(positions: FloatArray, pair: tuple[int, int]) -> float:
    """The median over frames of the distance between two markers; NaN where never both seen."""
    distances = np.linalg.norm(positions[:, pair[0]] - positions[:, pair[1]], axis=-1)
    distances = distances[np.isfinite(distances)]
    return float(np.median(distances)) if len(distances) else float("nan")


def _weighted_median(values: FloatArray) -> float:
    """The median of (N, 2) values and weights; between the two middle ones on a tie."""
    values = values[np.argsort(values[:, 0], kind="stable")]
    heights = np.cumsum(values[:, 1])
    half = 0.5 * heights[-1]
    slack = 1e-12 * heights[-1]
    low = int(np.searchsorted(heights, half - slack))
    high = int(np.searchsorted(heights, half + slack))
    return float(0.5 * (values[low, 0] + values[high, 0]))


def _checked(
    rest_points: FloatArray, pairs: Sequence[tuple[int, int]], positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The arrays as float64; raise CalibrationError where shapes or places do not fit."""
    points = np.asarray(rest_points, dtype=np.float64)
    samples = np.asarray(positions, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise CalibrationError(f"rest points must be finite and (M, 3), not {points.shape}")
    if samples.ndim != 3 or samples.shape[1:] != points.shape:
        raise CalibrationError(f"positions must be (F, {len(points)}, 3) for {len(points)} points, not {samples.shape}")
    for pair in pairs:
        if not all(0 <= place < len(points) for place in pair):
            raise CalibrationError(f"both of the pair {pair} must be among {len(points)} points")
    return points, samples
