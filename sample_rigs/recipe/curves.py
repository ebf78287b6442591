"""Smooth curves through a few keys, for cyclic motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .bones import FloatArray


def monotone_cycle(keys: Mapping[float, float], phase: FloatArray) -> FloatArray:
    """A periodic curve that never overshoots its keys and is constant between equal ones (Fritsch and Carlson).

    Args:
        keys: by phase in [0, 1), the values, in rising order.
        phase: any shape; only its fractional part counts.
    """
    x = np.array(list(keys))
    y = np.array(list(keys.values()))
    steps = np.diff(np.append(x, x[0] + 1.0))
    slopes = np.diff(np.append(y, y[0])) / steps
    before = np.roll(slopes, 1)
    weight_before, weight_after = steps + 2.0 * np.roll(steps, 1), 2.0 * steps + np.roll(steps, 1)
    same_sign = slopes * before > 0.0
    safe_slopes, safe_before = np.where(same_sign, slopes, 1.0), np.where(same_sign, before, 1.0)
    harmonic = (weight_before + weight_after) / (weight_after / safe_before + weight_before / safe_slopes)
    tangents = np.where(same_sign, harmonic, 0.0)
    wrapped = np.mod(np.asarray(phase, dtype=float) - x[0], 1.0) + x[0]
    i = np.searchsorted(x, wrapped, side="right") - 1
    j = (i + 1) % len(x)
    return bridge((wrapped - x[i]) / steps[i], y[i], y[j], tangents[i] * steps[i], tangents[j] * steps[i])


def bridge(u: FloatArray, start: FloatArray, end: FloatArray, speed: FloatArray, end_speed: FloatArray) -> FloatArray:
    """The cubic (Hermite) with these values and speeds (per unit of u) at u = 0 and u = 1."""
    back = 1.0 - u
    from_start = back * back * ((1.0 + 2.0 * u) * start + u * speed)
    return from_start + u * u * ((1.0 + 2.0 * back) * end - back * end_speed)


def smooth_cycle(values: Sequence[float], phase: FloatArray) -> FloatArray:
    """A periodic curve through evenly spaced keys: the sum of as few sines as possible.

    Args:
        values: at the phases 0, 1/n, 2/n, …
        phase: any shape.
    """
    spectrum = np.fft.rfft(np.asarray(values)) / len(values)
    spectrum[1:] *= 2.0
    if len(values) % 2 == 0:
        spectrum[-1] *= 0.5
    turns = 2.0 * np.pi * np.multiply.outer(np.asarray(phase, dtype=float), np.arange(len(spectrum)))
    return np.cos(turns) @ spectrum.real - np.sin(turns) @ spectrum.imag
