"""Array types of the core, and small functions on arrays of vectors."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Smaller numbers count as zero, and divisors are at least this. Single precision can represent it too.
TINY: Final = 1e-30
# Rounding error of numbers near one after a few operations: sines, shares, radians.
ROUNDING: Final = 1e-12
# Rounding error in single precision, in which Blender stores poses. Smaller shares and radians count as zero.
SINGLE: Final = 1e-6
# Too small to see: radians (0.006 degrees), or a share of a length.
CLOSE: Final = 1e-4
# The largest number of rounds of Newton's method and of sweeps, which usually end after a few. A narrow ellipse needs
# the most: with 10 rounds, the nearest point on it is off by 4e-6 radians.
ROUNDS: Final = 12


_Rows = TypeVar("_Rows", bound=tuple[npt.NDArray[Any], ...])


def joined(found: Sequence[_Rows]) -> _Rows:
    """Concatenate named tuples of the same class, field by field, along the first axis of their arrays."""
    return type(found[0])(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


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


def smoothstep(share: FloatArray) -> FloatArray:
    """(...) the cubic 3 s² - 2 s³ of each `share` s (...) from 0 to 1; its slope is zero at both ends."""
    return np.asarray(share**2 * (3.0 - 2.0 * share))
