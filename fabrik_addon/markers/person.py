"""Detects from the motion of a person which axis of a file is up, and whether the frame rate is right.

Steps that are too quick or too slow for the length of the legs show a wrong frame rate.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, BoolArray, FloatArray, IntArray, lengths
from ..core.errors import first_few
from .clip import LOOKED_AT, true_spans
from .mapping.labels import landmarks_of
from .mapping.landmarks import LANDMARKS
from .signals import middle_of

# An axis is up if the trunk is within 45° of it on at least this fraction of the frames.
_ALONG: Final = np.sqrt(0.5)
MOST: Final = 0.7
# The largest distance of the floor from height 0, in meters or lengths of a leg.
FLOOR_OFF: Final = 0.3
# Meters: the pelvis of someone who is lying on the floor is at least this high.
_LYING: Final = 0.07


def up_of_markers(points: FloatArray, names: Sequence[str]) -> tuple[int, bool, bool] | None:
    """The result of `up_of_person` for (F, M, 3) labeled points, meters."""
    known = {name: LANDMARKS[landmark].part for name, (_, landmark) in landmarks_of(names).items()}
    if not known:
        return None
    points = points[:: max(1, len(points) // LOOKED_AT), [name in known for name in names]]

    def middle(*parts: str) -> FloatArray:
        """(F, 3) mean of the points on these parts; NaN if none of them is seen."""
        own = [known[name] in parts for name in names if name in known]
        return middle_of(np.moveaxis(points, 1, 0)[own])

    hips = middle("hips")
    return up_of_person(middle("shoulder", "chest", "head") - hips, np.fmin.reduce(points, axis=1), hips)


def up_of_person(trunks: FloatArray, lowest: FloatArray, hips: FloatArray) -> tuple[int, bool, bool] | None:
    """The up axis (1 for Y, 2 for Z), whether it points up, and whether the trunk shows it; None if unknown.

    The trunk of most people points up on most frames. If it does not, but the body stays on a floor at height 0 of Y or
    Z, the person lies, crawls or is upside down, and the floor shows the axis.

    trunks: (F, 3) vectors from the hips toward the head, NaN if not seen. lowest: (F, 3) the smallest coordinates of
    the body, meters. hips: (F, 3) meters.
    """
    along = trunks / np.maximum(lengths(trunks), np.finfo(np.float64).tiny)[:, None]
    seen = np.isfinite(along).all(axis=1)
    if not seen.any():
        return None
    shares = {
        (axis, up): float(((1 if up else -1) * along[seen, axis] >= _ALONG).mean())
        for axis in (1, 2)
        for up in (True, False)
    }
    axis, up = max(shares, key=lambda key: shares[key])
    sure = shares[axis, up] >= MOST
    near = np.abs(lowest[seen]) <= FLOOR_OFF
    if not (sure and up and near[:, axis].mean() >= MOST):
        # Someone who is always upside down along Y is upright in front of a camera, whose Y points down.
        others = (2,) if sure and axis == 1 else (2, 1)
        near &= hips[seen] >= _LYING
        if on_floor := [each for each in others if near[:, each].mean() >= MOST]:
            axis, up = max(on_floor, key=lambda each: shares[each, True]), True
        elif not sure:
            return None
    return axis, up, shares[axis, up] >= MOST


# A walk has at least this many steps in a row.
_FEWEST: Final = 3
# From one step to the next, the logarithm of the duration changes by less than this.
_EVEN: Final = 0.3
# Fractions of the feet's largest distance: in a step, they are first closer than _CLOSE, then farther than _WIDE.
_CLOSE, _WIDE = 0.45, 0.7
# The largest distance is this percentile. In a walk it is at least this fraction of a leg's length.
_OFTEN: Final = 95.0
_LONG: Final = 0.55
# Runners have both feet higher than this fraction of a leg above the floor, on more than this fraction of the frames.
_IN_THE_AIR: Final = 0.05
_RUNNING: Final = 0.1
# Steps per √(leg / gravity), in which children and adults walk alike (Alexander, Principles of Animal Locomotion,
# 2003). In real walks, this is about 0.5.
_SLOWEST, _QUICKEST = 0.33, 0.8
# m/s².
GRAVITY: Final = 9.81


def cadence_doubts(
    name: str,
    left: Sequence[FloatArray],
    right: Sequence[FloatArray],
    hips: Sequence[FloatArray],
    up: FloatArray,
    rate: float,
    meters: float = 0.0,
) -> Iterator[str]:
    """A warning if a person's steps are much quicker or slower than those of real people.

    A walker's feet are farthest apart once in each step, even on a treadmill. Runners, who are in the air between
    steps, are left out.

    name: of the person or the motion. left, right, hips: (F, 3) positions of points on the feet and hips, NaN where not
    seen; empty if there are no such points. up: (3,). rate: frames per second. meters: length of a leg in meters; 0 if
    positions are in meters.
    """
    if not (left and right and hips):
        return
    lowest = np.fmin.reduce([place @ up for place in (*left, *right)])
    found = find_walk(middle_of(left) - middle_of(right), middle_of(hips) @ up - lowest, up)
    if found is None:
        return
    walk, steps, leg = found
    if (lowest[walk] > np.nanpercentile(lowest, 100.0 - _OFTEN) + _IN_THE_AIR * leg).mean() > _RUNNING:
        return
    cadence = steps * rate / float(walk.stop - walk.start)
    if not _SLOWEST < cadence * np.sqrt((meters or leg) / GRAVITY) < _QUICKEST:
        yield (
            f"The walk of {name} has {cadence:.1f} steps per second, which is unusual for steps of this length: choose "
            "another frame rate if that is wrong"
        )


# The trunk of a person has at least this many points.
_FEWEST_POINTS: Final = 3
# While a body moves, at most this fraction of its recorded frames repeats the one before.
_REPEATED: Final = 0.1
# m/s. At a cut, a body's velocity changes by more than this from one frame to the next, and back again. In real
# recordings it changes by at most 2, or by 9 with noise of 30 mm. Nobody runs faster.
_CUT: Final = 12.0


def repeat_doubts(is_still: BoolArray) -> Iterator[str]:
    """A warning if a motion has repeated frames between others; is_still: (F - 1,) whether the next frame is equal."""
    # Someone who stands still for many frames counts once.
    if np.count_nonzero(is_still[:-1] & ~is_still[1:]) > _REPEATED * len(is_still):
        yield (
            f"{np.count_nonzero(is_still)} frames repeat the one before: export the file without them, or choose "
            "another frame rate if the motion is too slow"
        )


def cut_doubts(name: str, trunk: FloatArray, rate: float) -> Iterator[str]:
    """A warning if a body jumps to another location from one frame to the next.

    name: of the person or the motion. trunk: (F, P, 3) points on it, meters, NaN where not visible. rate: Hz.
    """
    speeds = rate * np.stack([of_most(np.diff(trunk[..., axis], axis=0)) for axis in range(3)], axis=1)
    changes = lengths(np.diff(speeds, axis=0))
    if len(cuts := np.flatnonzero(np.minimum(changes[:-1], changes[1:]) > _CUT)):
        frames = first_few([str(cut + 3) for cut in cuts])
        yield (
            f"The body of {name} jumps to another location, as at a cut, on frame {frames}: bake the parts before "
            "and after separately"
        )


def of_most(values: FloatArray) -> FloatArray:
    """(F,) the medians of values (F, P) over visible points; 0 on frames with fewer than three of them."""
    known, result = np.isfinite(values).sum(axis=1) >= _FEWEST_POINTS, np.zeros(len(values))
    result[known] = np.nanmedian(values[known], axis=1)
    return result


def find_walk(between: FloatArray, heights: FloatArray, up: FloatArray) -> tuple[slice, int, float] | None:
    """A person's longest walk or run: its frames, the number of steps and the length of a leg; None if there is none.

    between: (F, 3) vectors from the right foot to the left. heights: (F,) of the hips above the lower foot. NaN where
    not seen. up: (3,).
    """
    apart = lengths(between - (between @ up)[:, None] * up)
    if not (np.isfinite(apart).any() and np.isfinite(heights).any()):
        return None
    leg, longest = max(float(np.nanmedian(heights)), ROUNDING), np.nanpercentile(apart, _OFTEN)
    sides: IntArray = (apart > _WIDE * longest).astype(int) - (apart < _CLOSE * longest)
    frames = np.flatnonzero(sides)
    begins = frames[1:][np.diff(sides[frames]) > 0]
    even = true_spans(np.abs(np.diff(np.log(np.maximum(np.diff(begins), 1)))) < _EVEN)
    first, last = max(even, key=lambda span: span[1] - span[0], default=(0, 0))
    if last + 1 - first < _FEWEST:
        return None
    walk = slice(int(begins[first]), int(begins[last + 1]))
    is_long = np.nanpercentile(apart[walk], _OFTEN) >= _LONG * leg
    return (walk, last + 1 - first, leg) if is_long else None
