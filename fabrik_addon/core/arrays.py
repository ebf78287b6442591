"""Names for the arrays and numbers that the core passes around."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# What the kernel computes with: a mathutils value, or its look-alike over frames.
Scalar: TypeAlias = Any
Vector: TypeAlias = Any
Quaternion: TypeAlias = Any
