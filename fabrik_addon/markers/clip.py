"""The contents of a marker file: names, rate and positions in meters, NaN if not seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ..core.arrays import BoolArray, FloatArray
from ..core.errors import FabrikError

UpAxis = Literal["Y", "Z"]

# Fewer markers than this do not show which axis is up.
FEWEST_MARKERS: Final = 3
# An axis can be up only if the markers extend along it by at least this fraction of their largest extent.
_TALL_SHARE: Final = 0.6
# If both Y and Z could be up, the extent along one must exceed the other by this factor.
_CLEAR_RATIO: Final = 1.25
# The lowest marker may be this far below or above zero, as a fraction of the markers' extent.
_LOWEST: Final = -0.25
_HIGHEST: Final = 1.0
# Fraction of the frames that must vote for the same axis. While a person crawls toward the origin, up to half of the
# votes are wrong.
_SURE: Final = 0.8
# A person travels along an axis if the smallest coordinate on it changes by more than this fraction of the markers'
# extent (in place: by a few tenths).
_TRAVELS: Final = 1.0
# Maximum number of frames examined in a recording.
LOOKED_AT: Final = 2000
# Along the up axis, the smallest coordinate changes by at most this fraction of the extent.
_STAYS: Final = 0.4


class ClipError(FabrikError):
    """Invalid marker data, or an invalid change to it."""


class MarkerFileError(FabrikError):
    """A marker file that cannot be read; the message names the file and the problem."""


class ChoiceError(MarkerFileError):
    """A file needs a choice; `choices` are the values of the import's `option`."""

    def __init__(self, message: str, option: str, choices: Sequence[str]) -> None:
        super().__init__(message)
        self.option, self.choices = option, tuple(choices)


@dataclass(frozen=True, eq=False)
class Clip:
    """A recording of markers.

    positions: (F, M, 3) meters, in the file's own axes, NaN where a marker is not seen. Read-only; copied if other code
    could change the array. rate: Hz, of the rows of ``positions``. units: those of the file. source: the file's
    name. notes: sentences on corrections and omissions on reading. doubts: sentences on possible errors, such as units,
    rate, and left and right. Raises ClipError if shapes, rate or axis are invalid.
    """

    names: tuple[str, ...]
    rate: float
    positions: FloatArray
    up_axis: UpAxis = "Y"
    units: str = "m"
    source: str = ""
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        positions = np.asarray(self.positions, dtype=np.float64)
        if positions.flags.writeable or positions.base is not None:
            positions = positions.copy()
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
        """The number of frames."""
        return int(self.positions.shape[0])

    @property
    def seen(self) -> BoolArray:
        """(F, M), true where a marker is seen."""
        return _seen(self.positions)


def up_axis_by_markers(positions: FloatArray, *, clearly: bool = False) -> UpAxis | None:
    """The up axis of a recorded person, from the markers' extents; None if they do not show it.

    The markers of a standing person extend about as far along the up axis as along any other, and start near zero. Each
    frame votes for Y or Z, and a clear majority decides. Without a majority, as for someone who crawls, up is the axis
    along which the markers do not travel while they travel along the other. The result is None with fewer than three
    markers, or if a person lies still.

    positions: (F, M, 3), any unit. clearly: only a clear majority decides.
    """
    frames = positions[:: max(1, len(positions) // LOOKED_AT)]
    frames = frames[_seen(frames).sum(axis=1) >= FEWEST_MARKERS]
    if not len(frames):
        return None
    spread = np.nanstd(frames, axis=1)
    lowest = np.nanmin(frames, axis=1)
    extent = np.nanmax(frames, axis=1) - lowest
    tall = spread >= _TALL_SHARE * spread.max(axis=1, keepdims=True)
    grounded = (lowest >= _LOWEST * extent) & (lowest <= _HIGHEST * extent)
    # A frame votes for the only axis that fits, Y or Z, or for the one with a clearly larger extent.
    fits, spread, lowest = (tall & grounded & (extent > 0.0))[:, 1:], spread[:, 1:], lowest[:, 1:]
    wider = spread >= _CLEAR_RATIO * spread[:, ::-1]
    votes = (fits & (~fits[:, ::-1] | wider)).mean(axis=0)
    voted: UpAxis | None = None if votes[0] == votes[1] else "Y" if votes[0] > votes[1] else "Z"
    if clearly or votes.max() >= _SURE:
        return voted if votes.max() >= _SURE else None
    size, travelled = np.median(extent.max(axis=1)), np.ptp(lowest, axis=0)
    keeps = (travelled <= _STAYS * size) & (travelled[::-1] >= _TRAVELS * size) & (size > 0.0)
    return voted if not keeps.any() else "Y" if keeps[0] else "Z"


def to_z_up(clip: Clip) -> Clip:
    """The clip in Blender's axes: (x, y, z) becomes (x, -z, y) if Y is up."""
    if clip.up_axis == "Z":
        return clip
    turned = np.take(clip.positions, [0, 2, 1], axis=-1)
    np.negative(turned[..., 1], out=turned[..., 1])
    turned.setflags(write=False)
    return replace(clip, positions=turned, up_axis="Z")


def true_spans(flags: BoolArray) -> list[tuple[int, int]]:
    """Half-open spans (first, end) of true values in flags (F,), in order."""
    padded = np.concatenate(([False], flags, [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    return [(int(first), int(end)) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def part_of(clip: Clip, first: int = 1, last: int = 0) -> Clip:
    """The frames from ``first`` to ``last``, counted from 1; if ``last`` is 0, up to the end.

    Raises ClipError, naming the file, if the range is not inside the recording.
    """
    end = last or clip.frame_count
    if not 1 <= first <= end <= clip.frame_count:
        raise ClipError(
            f"{clip.source}: there are no frames {first} to {end}: choose a range within 1 to {clip.frame_count}"
        )
    return replace(clip, positions=clip.positions[first - 1 : end])


def _seen(positions: FloatArray) -> BoolArray:
    return np.asarray(~np.isnan(positions).any(axis=-1))


def check_rate(rate: float) -> None:
    """Raise ClipError if a frame rate, in Hz, is not a positive number."""
    if not (math.isfinite(rate) and rate > 0.0):
        raise ClipError(f"the frame rate must be a positive number of Hz, not {rate}")
