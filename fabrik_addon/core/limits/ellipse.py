"""The ellipses between the four angles of a ball limit, on the swing chart."""

import numpy as np
import numpy.typing as npt

from ..arrays import ROUNDING, FloatArray
from ..backend.protocol import Backend, Scalar

_STEPS = 12


def outline(angles: npt.ArrayLike, azimuth: FloatArray) -> FloatArray:
    """(..., 2) swings (x, z) on the edge of a cone at azimuths (...) from +X toward +Z, radians.

    angles: (4,) half-axes toward +X, +Z, -X, -Z, radians.
    """
    right, front, left, back = np.asarray(angles)
    x, z = np.cos(azimuth), np.sin(azimuth)
    return np.stack([x * np.where(x >= 0.0, right, left), z * np.where(z >= 0.0, front, back)], axis=-1)


def level(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """(x/a)² + (z/b)²: at most 1 inside. A half-axis of zero allows only the other axis."""
    return backend.square(x / backend.maximum(a, ROUNDING)) + backend.square(z / backend.maximum(b, ROUNDING))


def nearest_on_ellipse(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The point itself if it is inside the ellipse with half-axes a and b, else the nearest point on it."""
    outside = level(backend, x, z, a, b) > 1.0 + ROUNDING
    if not backend.any_of(outside):
        return x, z
    frames, count = backend.frames_where(outside), backend.count(outside)
    nearest_x, nearest_z = _nearest_from_outside(backend, *[backend.take(value, frames) for value in (x, z, a, b)])
    # Adding zero makes new arrays, which can be written to.
    return backend.put(x + 0.0, frames, nearest_x, count), backend.put(z + 0.0, frames, nearest_z, count)


def _nearest_from_outside(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The point of the ellipse nearest to one outside.

    The paper's Newton iteration (section 4.3), as the root t of (a x / (t + a²))² + (b z / (t + b²))² = 1; the point is
    (a² x / (t + a²), b² z / (t + b²)). One over the square root of the left side increases nearly linearly and is
    concave (Conn, Gould and Toint 2000, lemma 7.3.1), so few Newton steps are needed, and from a t below the root every
    step stays below it. Robust on the axes and for half-axes of zero.
    """
    aa, bb, ax, bz = a * a, b * b, a * backend.absolute(x), b * backend.absolute(z)
    t = backend.maximum(backend.maximum(ax - aa, bz - bb), 0.0)
    for _ in range(_STEPS):
        across, along = backend.maximum(t + aa, ROUNDING), backend.maximum(t + bb, ROUNDING)
        pp, qq = backend.square(ax / across), backend.square(bz / along)
        excess = backend.sqrt(pp + qq) - 1.0
        if not backend.any_of(excess > ROUNDING):
            break
        t = t + backend.maximum(excess, 0.0) * (pp + qq) / backend.maximum(pp / across + qq / along, ROUNDING)
    across, along = backend.maximum(t + aa, ROUNDING), backend.maximum(t + bb, ROUNDING)
    return aa * x / across, bb * z / along


def side(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
    """The outward unit normal of the ellipse near a point inside, and the approximate distance of the point from it."""
    gx: Scalar = backend.select(a > 0, x / backend.square(backend.maximum(a, ROUNDING)), 0.0)
    gz: Scalar = backend.select(b > 0, z / backend.square(backend.maximum(b, ROUNDING)), 0.0)
    size = backend.sqrt(gx * gx + gz * gz)
    reach = backend.sqrt(gx * x + gz * z)
    scale = 1.0 / backend.maximum(size, ROUNDING)
    gap = backend.select(size > ROUNDING, (1.0 - reach) * reach * scale, backend.maximum(a, b))
    return (gx * scale, gz * scale), gap
