"""Names for the arrays that the core passes around, and how long the vectors in arrays are."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# What is less is nothing: whatever is divided by is at least this, in either precision.
TINY: Final = 1e-30
# What numbers of the size of one are off by after a few operations: sines, shares, radians.
ROUNDING: Final = 1e-12


def squares(vectors: FloatArray) -> FloatArray:
    """(...) the squared lengths of vectors (..., n)."""
    return np.asarray(np.einsum("...i,...i->...", vectors, vectors))


def lengths(vectors: FloatArray) -> FloatArray:
    """(...) the lengths of vectors (..., n); along short axes `np.linalg.norm` takes five times as long."""
    return np.asarray(np.sqrt(squares(vectors)))


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(..., m) the products of matrices (..., m, n) and vectors (..., n), each with its own."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def wrapped(angles: FloatArray) -> FloatArray:
    """The same directions within half a turn of zero, radians."""
    turn = 2.0 * np.pi
    return np.asarray(angles - turn * np.round(angles / turn))


def smoothstep(share: FloatArray) -> FloatArray:
    """(...) shares from 0 to 1 that neither start nor end with a jolt: their slope is zero at both ends."""
    return np.asarray(share**2 * (3.0 - 2.0 * share))
