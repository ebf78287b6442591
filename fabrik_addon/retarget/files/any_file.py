"""Reads files of poses; their content shows the format."""

import math
import os
from pathlib import Path

from ...core.errors import FabrikError
from ...markers.files.arrays import NPZ_START
from ...markers.files.reading import file_bytes
from ...markers.files.suffixes import POSE_SUFFIXES
from ..motion import RetargetError
from .mvnx import parse_mvnx
from .recorded import Recorded
from .smpl import has_poses, parse_smpl


def read_recorded(path: str | os.PathLike[str], up_axis: str | None = None, rate: float | None = None) -> Recorded:
    """The body in an MVNX file or in a .npz file of SMPL poses.

    up_axis: "Y" or "Z"; None: detected from the poses; MVNX always has Z up. rate: frames per second, overrides the
    file's. Raises RetargetError, one sentence that names the file, if it cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() not in POSE_SUFFIXES:
        kinds = ", ".join(POSE_SUFFIXES)
        raise RetargetError(f"{path.name}: it has no poses: import its markers, or choose one of {kinds}")
    if up_axis not in (None, "Y", "Z"):
        raise RetargetError(f"the up axis is {up_axis!r}: it must be Y or Z")
    if rate is not None and not 0.0 < rate < math.inf:
        raise RetargetError(f"the rate is {rate}: it must be a positive number of frames per second")
    try:
        content = file_bytes(path)
        return parse_mvnx(content, rate) if path.suffix.lower() == ".mvnx" else parse_smpl(content, up_axis, rate)
    except FabrikError as trouble:
        raise RetargetError(f"{path.name}: {trouble}") from None


def holds_poses(path: str | os.PathLike[str]) -> bool:
    """Whether a file contains poses, judged by its suffix or, for .npz files, by its content."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() == ".mvnx"
    try:
        content = path.read_bytes()
        return content.startswith(NPZ_START) and has_poses(content)
    except (OSError, FabrikError):
        # The error is reported when the file is read.
        return True
