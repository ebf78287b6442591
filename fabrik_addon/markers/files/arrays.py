"""Reads NumPy's .npy and .npz files without unpickling, since pickles can run code."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..clip import MarkerFileError
from .reading import number_in, plausible_rate

# The first bytes of a .npy file, a zip file (.npz) and a pickle.
NPY_START: Final = b"\x93NUMPY"
NPZ_START: Final = b"PK\x03\x04"
PICKLE_START: Final = b"\x80"
PICKLED: Final = (
    "it holds pickled Python objects, which may run code when they are read: if you trust it, load it in Python and "
    "save its arrays with numpy.savez"
)
_CUT_OFF: Final = "it is truncated or not a file of arrays: export it again"
# The errors that NumPy raises for damaged files.
_BROKEN: Final = (ValueError, EOFError, OSError, KeyError, SyntaxError, MemoryError, zipfile.BadZipFile, zlib.error)
# Names that files use for the frame rate: AMASS and its later releases; SOMA, video tools.
RATES: Final = ("mocap_framerate", "mocap_frame_rate", "frame_rate", "framerate", "frameRate", "fps")


def array_in(content: bytes) -> npt.NDArray[Any]:
    """The array of numbers in the bytes of a .npy file; raises MarkerFileError if it is not one."""
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except _BROKEN as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise MarkerFileError("it is not an array of numbers: export it again")
    return array


def arrays_in(content: bytes, wanted: Iterable[str]) -> Mapping[str, npt.NDArray[Any]]:
    """The wanted arrays in the bytes of a .npz file; others are not read.

    Raises MarkerFileError if the file is truncated, or if a wanted array would have to be unpickled.
    """
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    found = {}
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for name in wanted:
                if name in file.files:
                    found[name] = np.asarray(file[name])
    except _BROKEN as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    return found


def names_in(content: bytes) -> tuple[str, ...]:
    """The names of the arrays in the bytes of a .npz file; raises MarkerFileError if it is truncated."""
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            return tuple(name.removesuffix(".npy") for name in file.namelist())
    except (OSError, zipfile.BadZipFile):
        raise MarkerFileError(_CUT_OFF) from None


def rate_in(found: Mapping[str, npt.NDArray[Any]]) -> float | None:
    """Frames per second from the arrays `found` in a file, of any shape; None if none of them is the rate."""
    for key in RATES:
        value = found.get(key)
        # Some writers store the rate as text.
        if value is not None and value.size == 1 and value.dtype.kind in "fiuSU":
            text = value.item()
            rate = number_in(text.decode("latin-1") if isinstance(text, bytes) else str(text))
            if rate is not None and plausible_rate(rate):
                return rate
    return None
