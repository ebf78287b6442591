"""Means of positions, and weights that exclude outliers: swapped, fallen or badly reconstructed markers."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING
from .clip import BoolArray, FloatArray

# The median distance of a normally distributed 3D point from its mean, divided by the standard deviation on one axis.
MEDIAN_DISTANCE: Final = 1.5382
_ROUNDS: Final = 5


def outlier_weights(distances: FloatArray, limits: FloatArray) -> FloatArray:
    """Geman and McClure's weights: 1 at distance 0, ¼ at the limit, and near 0 far beyond it; 0 for NaN.

    distances: (F, M), NaN where not seen. limits: broadcasts to (F, M), in the same units.
    """
    shares = np.nan_to_num(distances / np.maximum(limits, ROUNDING), nan=np.inf)
    weights: FloatArray = 1.0 / (1.0 + np.minimum(shares, 1e6) ** 2) ** 2
    return np.where(np.isnan(distances), 0.0, weights)


def medians(values: FloatArray) -> FloatArray:
    """The medians of (F, ...) values over F, ignoring NaN; NaN where there is nothing else."""
    found = np.full(values.shape[1:], np.nan)
    some = ~np.isnan(values).all(axis=0)
    if some.any():
        found[some] = np.nanmedian(values[:, some], axis=0)
    return found


def weighted_location(samples: FloatArray, outlying: float) -> tuple[FloatArray, BoolArray]:
    """(M, 3) robust mean of each column of samples (F, M, 3), NaN if not seen, and (M,) whether it has samples.

    It starts from the median of each coordinate. The farther a sample is from the mean, the less it weighs. At
    `outlying` times the usual spread, its weight is a quarter.
    """
    seen = ~np.isnan(samples).any(axis=2)
    some = seen.any(axis=0)
    middle = np.zeros(samples.shape[1:])
    if not some.any():
        return middle, some
    part = samples[:, some]
    center = np.nanmedian(part, axis=0)
    for _ in range(_ROUNDS):
        distances = np.linalg.norm(part - center, axis=2)
        spread = medians(distances) / MEDIAN_DISTANCE
        weights = outlier_weights(distances, outlying * spread)[..., None]
        total = weights.sum(axis=0)
        mean = (weights * np.nan_to_num(part)).sum(axis=0) / np.maximum(total, ROUNDING)
        center = np.where(total > ROUNDING, mean, center)
    middle[some] = center
    return middle, some


def middle_of(places: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """(F, 3) the mean of the (F, 3) positions that are seen; NaN if none is."""
    counts = np.isfinite(places).sum(axis=0)
    return np.asarray(np.nansum(places, axis=0) / np.where(counts, counts, np.nan))
