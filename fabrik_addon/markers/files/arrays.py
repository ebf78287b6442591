"""Reads NumPy's .npy and .npz files without unpickling, since pickles can run code; and the markers in AMASS's files.

AMASS's .npz files have `marker_data` (F, M, 3) and `marker_labels`, meters, Z up. Source: the keys listed in AMASS's
notebook 01-AMASS_Visualization (nghorbani/amass). The rate is `mocap_framerate`, in later files `mocap_frame_rate`.
SOMA uses `markers`, `labels` and `frame_rate`, in millimeters (nghorbani/soma). Units that are not given follow from
the person's size.
"""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..clip import Clip, MarkerFileError
from .reading import Chosen, number_in, plausible_rate, to_clip

# The first bytes of a .npy file, a zip file (.npz) and a pickle.
NPY_START: Final = b"\x93NUMPY"
NPZ_START: Final = b"PK\x03\x04"
PICKLE_START: Final = b"\x80"
PICKLED: Final = (
    "it contains pickled Python objects, which may run code when they are read: if you trust it, load it in Python and "
    "save its arrays with numpy.savez"
)
_CUT_OFF: Final = "it is truncated or not a file of arrays: export it again"
# The errors that NumPy raises for damaged files.
_BROKEN: Final = (ValueError, EOFError, OSError, KeyError, SyntaxError, MemoryError, zipfile.BadZipFile, zlib.error)
# Names that files use for the frame rate: AMASS and its later releases; SOMA, video tools.
RATES: Final = ("mocap_framerate", "mocap_frame_rate", "frame_rate", "framerate", "frameRate", "fps")
_POSITIONS: Final = ("marker_data", "markers")
_LABELS: Final = ("marker_labels", "labels")


def array_in(content: bytes) -> npt.NDArray[Any]:
    """The array of numbers in the bytes of a .npy file; raises MarkerFileError if it is not one."""
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
    found = {}
    if not content.startswith((NPZ_START, PICKLE_START)):
        # NumPy would take it for a pickle.
        raise MarkerFileError(_CUT_OFF)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for name in wanted:
                if name in file.files:
                    found[name] = np.asarray(file[name])
    except _BROKEN as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    return found


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


def parse_npz(content: bytes, chosen: Chosen) -> Clip:
    """The markers in a file's bytes, as a clip in meters.

    Raises MarkerFileError, without the file's name, if the file is truncated, has no markers or no rate, or if its
    markers would have to be unpickled.
    """
    found = arrays_in(content, (*_POSITIONS, *_LABELS, *RATES))
    positions = next((found[key] for key in _POSITIONS if key in found), None)
    if positions is None:
        raise MarkerFileError("it has no markers (marker_data): if it has poses, use them to retarget")
    if positions.ndim != 3 or positions.shape[2] != 3 or positions.dtype.kind not in "fiu" or not positions.size:
        raise MarkerFileError(f"its markers have the shape {positions.shape}: export them as (frames, markers, 3)")
    labels = next((found[key] for key in _LABELS if key in found), None)
    count = positions.shape[1]
    names = [f"*{place}" for place in range(1, count + 1)]
    notes: tuple[str, ...] = ()
    if labels is not None and labels.size == count:
        names = [label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label) for label in labels.flat]
    else:
        notes = ("its markers have no labels: use a marker map",)
    return to_clip(chosen, names, np.asarray(positions, dtype=np.float64), None, "Z", rate_in(found), notes=notes)
