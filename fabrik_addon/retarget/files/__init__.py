"""Reads files of poses, BVH, MVNX and SMPL; their content shows the format."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...core.errors import FabrikError
from ...markers.files import POSE_SUFFIXES
from ...markers.files.reading import NPZ_START, file_bytes
from ...markers.person import repeat_doubts
from ..motion import Recorded, RetargetError
from .bvh import parse_bvh
from .mvnx import parse_mvnx
from .smpl import has_poses, parse_smpl


def read_recorded(path: str | os.PathLike[str], up_axis: str | None = None, rate: float | None = None) -> Recorded:
    """The body in a BVH file, an MVNX file or a .npz file of SMPL poses.

    up_axis: "Y" or "Z" in a .npz file; None: detected from the poses. rate: frames per second, overrides the
    file's. Raises RetargetError, one sentence that names the file, if it cannot be read.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in POSE_SUFFIXES:
        kinds = ", ".join(POSE_SUFFIXES)
        raise RetargetError(f"{path.name}: it has no poses: import its markers, or choose one of {kinds}")
    if up_axis not in (None, "Y", "Z"):
        raise RetargetError(f"the up axis is {up_axis!r}: it must be Y or Z")
    if rate is not None and not 0.0 < rate < math.inf:
        raise RetargetError(f"the frame rate must be a positive number of Hz, not {rate}")
    try:
        content = file_bytes(path)
        if suffix == ".npz":
            body = parse_smpl(content, up_axis, rate)
        else:
            body = (parse_mvnx if suffix == ".mvnx" else parse_bvh)(content, rate)
    except FabrikError as trouble:
        raise RetargetError(f"{path.name}: {trouble}") from None
    steps = np.diff(body.rotations, axis=0).any(axis=(1, 2)), np.diff(body.root, axis=0).any(axis=1)
    is_still = ~np.logical_or(*steps)
    return replace(body, doubts=(*body.doubts, *repeat_doubts(is_still)))


def holds_poses(path: str | os.PathLike[str]) -> bool:
    """Whether a file contains poses, judged by its suffix or, for .npz files, by its content."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() in POSE_SUFFIXES
    try:
        content = path.read_bytes()
        return content.startswith(NPZ_START) and has_poses(content)
    except (OSError, FabrikError):
        # The error is reported when the file is read.
        return True
