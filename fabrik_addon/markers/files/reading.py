"""What the readers of marker files share: bytes, units, names, and what counts as seen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from ..clip import BoolArray, FloatArray, MarkerFileError, UpAxis

METRES: Final[Mapping[str, float]] = MappingProxyType(
    {"mm": 0.001, "cm": 0.01, "dm": 0.1, "m": 1.0, "in": 0.0254, "ft": 0.3048}
)
_LONG_UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "millimeter": "mm",
        "millimetre": "mm",
        "centimeter": "cm",
        "centimetre": "cm",
        "meter": "m",
        "metre": "m",
        "inch": "in",
        "inches": "in",
        "foot": "ft",
        "feet": "ft",
    }
)


def file_bytes(path: Path) -> bytes:
    """Everything in the file; raise MarkerFileError where there is none or nothing in it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise MarkerFileError(f"there is no such file ({path})") from None
    except OSError as trouble:
        raise MarkerFileError(f"cannot be read: {trouble.strerror} ({path})") from None
    if not content.strip():
        raise MarkerFileError("the file is empty")
    return content


def told_up_axis(up_axis: str | None) -> UpAxis | None:
    """The up axis as asked for, None for a guess; raise MarkerFileError for anything but Y and Z."""
    if up_axis is None:
        return None
    if up_axis.upper() == "Y":
        return "Y"
    if up_axis.upper() == "Z":
        return "Z"
    raise MarkerFileError(f"the up axis must be Y or Z, not {up_axis!r}")


def unit_name(told: str) -> str:
    """The short name of a unit; raise MarkerFileError, naming it, where it is none that we know."""
    word = told.strip().strip("\"'()[]").lower()
    word = _LONG_UNITS.get(word, _LONG_UNITS.get(word.removesuffix("s"), word))
    if word in METRES:
        return word
    known = ", ".join(METRES)
    if not word:
        raise MarkerFileError(f"the header says no units; say which they are ({known})")
    raise MarkerFileError(f"the units {told.strip()!r} are not known; say which they are ({known})")


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names with ``_2``, ``_3`` … added where one has been there already."""
    taken = set(names)
    done: list[str] = []
    given: set[str] = set()
    for name in names:
        free, count = name, 1
        while free in given or (count > 1 and free in taken):
            count += 1
            free = f"{name}_{count}"
        given.add(free)
        done.append(free)
    return tuple(done)


def without_unseen(points: FloatArray) -> FloatArray:
    """The (F, M, 3) points with NaN in all of a triple that is not a position."""
    unseen: BoolArray = ~np.isfinite(points).all(axis=-1) | (points == 0.0).all(axis=-1)
    return np.where(unseen[..., None], np.nan, points)
