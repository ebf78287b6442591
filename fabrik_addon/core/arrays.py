"""Array types of the core, and small functions on arrays of vectors."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Smaller numbers count as zero, and divisors are at least this. It is above the smallest number in single precision.
TINY: Final = 1e-30
# Rounding error of numbers near one after a few operations: sines, shares, radians.
ROUNDING: Final = 1e-12
# Rounding error in single precision, in which Blender stores poses. Smaller shares and radians count as zero.
SINGLE: Final = 1e-6
# Too small to see: radians (0.006 degrees), or a fraction of a length.
CLOSE: Final = 1e-4
# The largest number of rounds of Newton's method and of sweeps, which usually end after a few. A narrow ellipse needs
# the most.
ROUNDS: Final = 12
# The largest number of rounds of searches that need many, in case rounding errors cause a cycle.
MAX_ROUNDS: Final = 200
# The largest number of matrix entries in a block of frames, so that they fit into the processor's cache.
BLOCK_NUMBERS: Final = 250_000


_Rows = TypeVar("_Rows", bound=tuple[npt.NDArray[Any], ...])


def joined(found: Sequence[_Rows]) -> _Rows:
    """Concatenate named tuples of the same class, field by field, along the first axis of their arrays."""
    return type(found[0])(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def chosen(rows: _Rows, which: IntArray | BoolArray) -> _Rows:
    """Some rows of a named tuple of arrays; which: their indices (N,), or a boolean for each row."""
    return type(rows)(*(each[which] for each in rows))


def squares(vectors: FloatArray) -> FloatArray:
    """(...) squared lengths of vectors (..., n)."""
    return np.asarray(np.einsum("...i,...i->...", vectors, vectors))


def lengths(vectors: FloatArray) -> FloatArray:
    """(...) lengths of vectors (..., n); for small n `np.linalg.norm` takes five times as long."""
    return np.asarray(np.sqrt(squares(vectors)))


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(..., m) products of matrices (..., m, n) and vectors (..., n)."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def evenly_spread(count: int, most: int) -> IntArray:
    """At most `most` indices into a list of `count` items, evenly spread from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))


def wrapped(angles: FloatArray) -> FloatArray:
    """Add full turns to `angles` (...), in radians, so that they are from -π to π."""
    turn = 2.0 * np.pi
    return np.asarray(angles - turn * np.round(angles / turn))


def running_signs(vectors: FloatArray, before: npt.ArrayLike) -> FloatArray:
    """(F, ..., 1) signs that keep each vector (F, ..., n) on the side of the one before it; `before` comes first."""
    earlier = np.concatenate((np.broadcast_to(before, vectors.shape[1:])[None], vectors[:-1]))
    turned = (vectors * earlier).sum(axis=-1, keepdims=True) < 0.0
    return np.cumprod(np.where(turned, -1.0, 1.0), axis=0)


def smoothstep(share: FloatArray) -> FloatArray:
    """(...) the cubic 3 s² - 2 s³ of each `share` s (...) from 0 to 1; its slope is zero at both ends."""
    return np.asarray(share**2 * (3.0 - 2.0 * share))


def falloff(frames: FloatArray, first: float, last: float, before: float, after: float) -> FloatArray:
    """(F,) fractions of a change: 1 from frame `first` to `last`, 0 beyond `before` and `after` frames outside them.

    frames: (F,). The curve has zero speed and acceleration at its top and ends: of all curves from 1 to 0 it has the
    least jerk (Flash and Hogan, Journal of Neuroscience 5, 1985). Its acceleration is at most 5.8 / (span)².
    """
    given = np.asarray(frames, dtype=np.float64)
    times = given - np.clip(given, first, last)
    width = np.where(times < 0.0, before, after)
    distance = np.where(
        width > 0.0, np.abs(times) / np.where(width > 0.0, width, 1.0), np.where(times == 0.0, 0.0, 1.0)
    )
    share = 1.0 - np.clip(distance, 0.0, 1.0)
    smooth: FloatArray = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return smooth
