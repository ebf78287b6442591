"""Invalid input: the errors that it causes, and readers of values.

Each message names what is wrong and what to do. Each reader accepts any object, and returns NaN or None for another
type; only `shaped` raises errors. No comparison is true for NaN, so checking the range also checks the type.
"""

from collections.abc import Collection
from operator import index
from typing import Any, Final

import numpy as np

from .arrays import TINY, BoolArray, FloatArray


class FabrikError(Exception):
    """Base of all errors that this package raises about its input."""


class SkeletonError(FabrikError):
    """An invalid skeleton: shapes, parents, lengths or rest matrices."""


class TargetError(FabrikError):
    """Effectors or targets that do not match the skeleton or each other."""


class LimitError(FabrikError):
    """An invalid joint limit, or one for an unknown bone."""


class OptionsError(FabrikError):
    """A solver option outside its range."""


def first_few(names: Collection[str], count: int = 4) -> str:
    """The first few of many names, and the number of the others, for a message."""
    more = f", and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(list(names)[:count]) + more


def bones_of(number: int) -> str:
    """The number of bones as text: "1 bone", "2 bones"."""
    return f"{number} bone" if number == 1 else f"{number} bones"


# The largest allowed number: squares of larger ones do not fit into single precision.
LARGEST: Final = 1e15
_LONGEST_TEXT: Final = 60


def number(value: object) -> float:
    """A real number of Python or numpy, or an array of shape (); NaN for anything else, including booleans."""
    if type(value) is float:  # Checking the usual case first takes a tenth of the time.
        return 0.0 if abs(value) < TINY else value
    array = np.asarray(value if isinstance(value, int | float | np.number | np.ndarray) else np.nan)
    found = numbers(array) if array.shape == () and array.dtype.kind in "iuf" else None
    return np.nan if found is None else float(found)


def numbers(values: object) -> FloatArray | None:
    """Real numbers or NaN as an array of any shape; None for anything else, including ragged lists.

    Numbers near zero become zero, so that the square of a positive number never vanishes.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            numeric = (int, float, np.integer, np.floating)
            real = all(isinstance(each, numeric) and not isinstance(each, bool) for each in array.flat)
        else:
            real = array.dtype.kind in "iuf"
        # Arrays of float64 return early, because changing numpy's error state would take half of the time.
        if array.dtype == np.float64:
            return np.where(np.abs(array) < TINY, 0.0, array)
        with np.errstate(over="ignore", under="ignore"):
            found = array.astype(np.float64) if real else None
    except (TypeError, ValueError, OverflowError):
        return None
    return None if found is None else np.where(np.abs(found) < TINY, 0.0, found)


def three_numbers(values: object) -> tuple[float, float, float] | None:
    """Three finite numbers; None for anything else."""
    if not isinstance(values, tuple):
        array = numbers(values)
        values = () if array is None or array.shape != (3,) else tuple(array.tolist())
    found = [number(each) for each in values]
    return (found[0], found[1], found[2]) if len(found) == 3 and all(abs(each) <= LARGEST for each in found) else None


def shaped(error: type[Exception], what: str, values: object, frames: int | None, *shape: int) -> FloatArray:
    """Values as an array for one pose or F poses; raises `error` if the shape is wrong. NaN is allowed.

    what: the beginning of the message. frames: F; None allows any number of poses. shape: the shape for one pose.
    """
    array = numbers(values)
    if array is None:
        raise error(f"{what} {shown(values)}: numbers are needed")
    several = array.shape[1:] == shape if frames is None else array.shape == (frames, *shape)
    if not several and array.shape != shape:
        needed = ", ".join(map(str, (f"[{'F' if frames is None else frames},]", *shape))).replace("],", "]")
        raise error(f"{what} shape {array.shape}: it must be ({needed})")
    return array


def whole(value: object) -> int | None:
    """A whole number of Python or numpy; None for anything else."""
    try:
        return None if isinstance(value, bool | np.bool_) else index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def flags(values: object) -> BoolArray | None:
    """Booleans of Python or numpy as an array of any shape; None for anything else."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    return array.astype(bool) if array.dtype.kind == "b" else None


def shown(value: Any) -> str:
    """A value as text for a message: on one line, and shortened if it is long."""
    text = " ".join(repr(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
