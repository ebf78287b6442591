"""NumPy's own files, .npy and .npz, read without unpickling: pickles may run any code that is in them."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..clip import MarkerFileError

# The first bytes of a .npy file, of a zip as .npz files are, and of a pickle.
NPY_START: Final = b"\x93NUMPY"
NPZ_START: Final = b"PK\x03\x04"
PICKLE_START: Final = b"\x80"
PICKLED: Final = (
    "it holds pickled Python objects, which may run code when they are read: if you trust it, load it in Python and "
    "save its arrays with numpy.savez"
)
_CUT_OFF: Final = "it is cut off or no file of arrays: export it again"
# What files of poses and of markers call their frames a second: AMASS, its later releases, SOMA, video tools.
RATES: Final = ("mocap_framerate", "mocap_frame_rate", "frame_rate", "framerate", "fps")


def array_in(content: bytes) -> npt.NDArray[Any]:
    """The array of numbers in the bytes of a .npy file; raise MarkerFileError if it is none."""
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, MemoryError) as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else "it is cut off or no array: export it") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise MarkerFileError("it is no array of numbers: export it again")
    return array


def arrays_in(content: bytes, wanted: Iterable[str]) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of some names in the bytes of a .npz file; the others are not read.

    Raises MarkerFileError for a file that is cut off, and for a wanted array that would have to be unpickled.
    """
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    found = {}
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for name in wanted:
                if name in file.files:
                    found[name] = np.asarray(file[name])
    except (
        ValueError,
        EOFError,
        OSError,
        KeyError,
        SyntaxError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    return found


def names_in(content: bytes) -> tuple[str, ...]:
    """The names of the arrays in the bytes of a .npz file; raise MarkerFileError if it is cut off."""
    if content.startswith(PICKLE_START):
        raise MarkerFileError(PICKLED)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            return tuple(name.removesuffix(".npy") for name in file.namelist())
    except (OSError, zipfile.BadZipFile):
        raise MarkerFileError(_CUT_OFF) from None


def rate_in(found: Mapping[str, npt.NDArray[Any]]) -> float | None:
    """Frames a second as the arrays of a file say; None if they do not."""
    for key in RATES:
        told = found.get(key)
        if told is not None and told.size == 1 and told.dtype.kind in "fiu" and 0.0 < float(told.item()) < np.inf:
            return float(told.item())
    return None
