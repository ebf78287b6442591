"""Reads the markers in AMASS's .npz files: `marker_data` (F, M, 3) and `marker_labels`, meters, Z up.

Source: the keys listed in AMASS's notebook 01-AMASS_Visualization (nghorbani/amass). The rate is `mocap_framerate`, in
later files `mocap_frame_rate`. SOMA uses `markers`, `labels` and `frame_rate`, in millimeters (nghorbani/soma). Units
that are not given follow from the person's size.
"""

from typing import Final

import numpy as np

from ..clip import Clip, MarkerFileError
from .arrays import RATES, arrays_in, rate_in
from .reading import Chosen, to_clip

_POSITIONS: Final = ("marker_data", "markers")
_LABELS: Final = ("marker_labels", "labels")


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
