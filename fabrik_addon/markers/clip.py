"""What a marker file holds once read: names, rate and positions in metres, NaN where not seen."""

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from ..core.errors import FabrikError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
UpAxis = Literal["Y", "Z"]

# A person needs this many markers before their spread says which way is up.
_FEWEST_MARKERS: Final = 3
# Up is an axis along which the markers spread at least this share of the widest one.
_TALL_SHARE: Final = 0.6
# Where both Y and Z could be up, one must spread this much more than the other.
_CLEAR_RATIO: Final = 1.25
# How far the lowest marker may lie under or over zero, as a share of the markers' extent.
_LOWEST: Final = -0.25
_HIGHEST: Final = 1.0


class ClipError(FabrikError):
    """Marker data, or a change asked of it, that makes no sense."""


class MarkerFileError(FabrikError):
    """A marker file that cannot be read; the sentence names the file and the trouble."""


@dataclass(frozen=True, eq=False)
class Clip:
    """A recording of markers.

    positions: (F, M, 3) metres, in the file's own axes, NaN where a marker is not seen; kept
    as a read-only copy. rate: Hz, of the rows of ``positions``. units: those the file was read in.
    source: the file's name. start_time: seconds, of the first frame. notes: what was put right or
    left out when it was read, a sentence each.
    Raises ClipError where shapes, rate or axis do not fit each other.
    """

    names: tuple[str, ...]
    rate: float
    positions: FloatArray
    up_axis: UpAxis = "Y"
    units: str = "m"
    source: str = ""
    start_time: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the parts against each other and make the array read-only."""
        positions = np.array(self.positions, dtype=np.float64)
        if positions.ndim != 3 or positions.shape[1:] != (len(self.names), 3):
            raise ClipError(
                f"positions of {len(self.names)} markers must have the shape "
                f"(frames, {len(self.names)}, 3), not {positions.shape}"
            )
        if np.isinf(positions).any():
            raise ClipError("positions must be finite, or NaN where a marker is not seen")
        if self.up_axis not in ("Y", "Z"):
            raise ClipError(f"the up axis must be Y or Z, not {self.up_axis!r}")
        check_rate(self.rate)
        positions.setflags(write=False)
        object.__setattr__(self, "positions", positions)

    @property
    def frame_count(self) -> int:
        """How many frames there are."""
        return int(self.positions.shape[0])

    @property
    def seen(self) -> BoolArray:
        """(F, M), true where a marker is seen."""
        return _seen(self.positions)

    @property
    def times(self) -> FloatArray:
        """(F,) seconds of each frame, the first at ``start_time``."""
        return self.start_time + np.arange(self.frame_count, dtype=np.float64) / self.rate


def guess_up_axis(positions: FloatArray, default: UpAxis = "Y") -> UpAxis:
    """Which axis points up, from the way a person's markers lie.

    positions: (F, M, 3), any unit. Up is the axis, Y or Z, along which the markers of one frame
    spread about as widely as along any, and which starts near the floor. Everything is measured
    within frames, so that the way someone walks does not count. Returns ``default`` (the file
    format's own habit) where the markers do not say: fewer than three of them, someone lying down,
    wide arms with the origin off to the side. Someone who lies along a horizontal axis wholly on
    its positive side looks the same as someone standing: there the axis has to be told.
    """
    frames = positions[_seen(positions).sum(axis=1) >= _FEWEST_MARKERS]
    if not len(frames):
        return default
    spread = np.median(np.nanstd(frames, axis=1), axis=0)
    lowest = np.median(np.nanmin(frames, axis=1), axis=0)
    extent = np.median(np.nanmax(frames, axis=1), axis=0) - lowest
    tall = spread >= _TALL_SHARE * spread.max()
    grounded = (lowest >= _LOWEST * extent) & (lowest <= _HIGHEST * extent)
    return _choose_up(tall & grounded & (extent > 0.0), spread, default)


def _choose_up(fits: BoolArray, spread: FloatArray, default: UpAxis) -> UpAxis:
    """Y or Z from (3,) flags and spreads: the only one that fits, else the clearly taller."""
    y_fits, z_fits = bool(fits[1]), bool(fits[2])
    if y_fits and (not z_fits or spread[1] >= _CLEAR_RATIO * spread[2]):
        return "Y"
    if z_fits and (not y_fits or spread[2] >= _CLEAR_RATIO * spread[1]):
        return "Z"
    return default


def to_z_up(clip: Clip) -> Clip:
    """The clip in Blender's axes: (x, y, z) becomes (x, -z, y) where Y is up."""
    if clip.up_axis == "Z":
        return clip
    x, y, z = np.moveaxis(clip.positions, -1, 0)
    return replace(clip, positions=np.stack((x, -z, y), axis=-1), up_axis="Z")


def true_spans(flags: BoolArray) -> list[tuple[int, int]]:
    """Half-open spans (first, end) of true values in (F,) flags, in order."""
    padded = np.concatenate(([False], flags, [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    return [(int(first), int(end)) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def trim(clip: Clip, first: int, last: int) -> Clip:
    """The frames from ``first`` to ``last``, both included, counted from 0.

    Raises ClipError where they are not frames of the clip in that order.
    """
    if not 0 <= first <= last < clip.frame_count:
        raise ClipError(f"cannot keep frames {first} to {last}: they must be from 0 to {clip.frame_count - 1}")
    start_time = clip.start_time + first / clip.rate
    return replace(clip, positions=clip.positions[first : last + 1], start_time=start_time)


def _seen(positions: FloatArray) -> BoolArray:
    """(...,) true where all of the (..., 3) coordinates are numbers."""
    flags: BoolArray = ~np.isnan(positions).any(axis=-1)
    return flags


def check_rate(rate: float) -> None:
    """Raise ClipError for a frame rate that is not a positive number."""
    if not (math.isfinite(rate) and rate > 0.0):
        raise ClipError(f"the frame rate must be a positive number of Hz, not {rate}")
