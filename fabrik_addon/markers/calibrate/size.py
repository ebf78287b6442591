"""The scale between a rig and a recording."""

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
    """A recording that a rig cannot be calibrated with, or settings of a calibration that make no sense."""


def rigid_pairs(
    entries: Sequence[MappedMarker],
    parents: Mapping[str, str | None],
    connected: Collection[str] = (),
) -> tuple[tuple[int, int], ...]:
    """Which mapped points keep their distance whatever the pose, as pairs of indices into ``entries``.

    Two points do if some bone carries both: a tail or an offset is carried by its bone; a head by its bone and by the
    parent; and a tail also by those children that begin there.
    parents: each bone's parent, None for a root; bones not listed count as roots.
    connected: the bones whose head lies at their parent's tail.
    """

    def carriers(entry: MappedMarker) -> set[str]:
        parent = parents.get(entry.bone)
        if entry.point == "TAIL":
            return {entry.bone} | {bone for bone in connected if parents.get(bone) == entry.bone}
        if entry.point == "OFFSET" or parent is None:
            return {entry.bone}
        siblings = {bone for bone in connected if parents.get(bone) == parent} if entry.bone in connected else set()
        return {entry.bone, parent} | siblings

    on = [carriers(entry) for entry in entries]
    return tuple((i, j) for i, j in combinations(range(len(entries)), 2) if on[i] & on[j])


def first_scale(
    skeleton: Skeleton, entries: Sequence[MappedMarker], offsets: FloatArray, positions: FloatArray
) -> float:
    """About how many times larger than a recording a rig is.

    From the distances that no pose changes, if there are any, else from how widely the markers spread at rest and on
    the frame that shows the most of them. offsets: (M, 3) of the mapped points in their bones' frames. positions:
    (F, M, 3). Raises CalibrationError if markers are never apart.
    """
    names = skeleton.names
    parents: dict[str, str | None] = {}
    connected = set()
    for bone, parent in enumerate(skeleton.parents):
        parents[names[bone]] = names[parent] if parent >= 0 else None
        tail = (0.0, skeleton.lengths[parent], 0.0)
        if parent >= 0 and np.allclose(skeleton.head_offset(bone), tail, atol=_CONNECTED * skeleton.lengths[parent]):
            connected.add(names[bone])
    points = points_on(skeleton.rest[None], bones_of(skeleton, entries), offsets)[0]
    try:
        return uniform_scale(points, rigid_pairs(entries, parents, connected), positions)
    except CalibrationError:
        seen = ~np.isnan(positions).any(axis=2)
        frame = int(np.argmax(seen.sum(axis=1)))
        parts = points[seen[frame]], positions[frame][seen[frame]]
        spreads = [float(np.linalg.norm(np.std(part, axis=0))) if len(part) > 1 else 0.0 for part in parts]
        if min(spreads) <= 0.0:
            raise CalibrationError(
                "The markers that are seen lie on one point: map more of them, on several bones"
            ) from None
        return spreads[0] / spreads[1]


def uniform_scale(rest_points: FloatArray, pairs: Sequence[tuple[int, int]], positions: FloatArray) -> float:
    """The factor that turns marker distances into rig distances.

    rest_points: (M, 3) the mapped points on the rig at rest. positions: (F, M, 3) of the same markers, NaN where not
    seen. pairs: as from ``rigid_pairs``. Every pair gives the median over the frames on which both are seen; the result
    is the median of those, weighted by length (a long thigh says more than a short toe). So neither some bad frames nor
    some wrongly placed markers matter. Raises CalibrationError if no pair is left to measure.
    """
    points = np.asarray(rest_points, dtype=np.float64)
    samples = np.asarray(positions, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise CalibrationError(f"rest points must be finite and (M, 3), not {points.shape}")
    if samples.ndim != 3 or samples.shape[1:] != points.shape:
        raise CalibrationError(f"positions must be (F, {len(points)}, 3) for {len(points)} points, not {samples.shape}")
    for pair in pairs:
        if not all(0 <= place < len(points) for place in pair):
            raise CalibrationError(f"both of the pair {pair} must be among {len(points)} points")
    lengths = [float(np.linalg.norm(points[i] - points[j])) for i, j in pairs]
    shortest = _SHORTEST_SHARE * max(lengths, default=0.0)
    usable = [(pair, length) for pair, length in zip(pairs, lengths, strict=True) if length > shortest]
    if not usable:
        raise CalibrationError(
            "no two mapped markers keep their distance: map at least two markers to one bone, or "
            "to both ends of it, so that rig and recording can be measured against each other"
        )
    ratios = []
    for (i, j), length in usable:
        distances = np.linalg.norm(samples[:, i] - samples[:, j], axis=-1)
        distances = distances[np.isfinite(distances)]
        if len(distances) and np.median(distances) > 0.0:
            ratios.append((length / float(np.median(distances)), length))
    if not ratios:
        raise CalibrationError("no two markers on one bone are ever seen on the same frame: map more of them")
    # The weighted median: between the two middle ones on a tie.
    values = np.array(sorted(ratios, key=lambda ratio: ratio[0]))
    heights = np.cumsum(values[:, 1])
    slack = 1e-12 * heights[-1]
    low, high = (int(np.searchsorted(heights, 0.5 * heights[-1] + side * slack)) for side in (-1.0, 1.0))
    return float(0.5 * (values[low, 0] + values[high, 0]))
