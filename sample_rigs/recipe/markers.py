"""The markers on the person's skin, and the recording of the walk with them: `walk.trc`, `walk_map.json`.

Markers have the names of the usual full-body set. The recording has noise, and gaps as if cameras had lost a marker.
One marker is hidden for half a second, and the two markers of a wrist are hidden together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from . import trunk, walk
from .body import on_bone, skin_distance
from .bones import FloatArray, Point, other_side

RATE = 100.0  # Hz
NOISE = 0.0015  # meters, standard deviation along each axis
BALL_RADIUS = 0.007  # distance of a marker's center from the skin
GAP_SHARE = 0.03
GAP_FRAMES = (3, 25)
HIDDEN = (("LTHI", 1.20, 0.50), ("RWRA", 2.10, 0.30), ("RWRB", 2.10, 0.30))  # marker, from, for how long, seconds
_SEED = 20110

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Marker:
    """A marker and its point on the bone, in meters in the bone's rest frame."""

    name: str
    bone: str
    offset: tuple[float, float, float]


@dataclass(frozen=True)
class _Site:
    """The position of a left or middle marker: where a ray from inside the body leaves the skin, in armature space."""

    marker: str
    bone: str
    inside: Point
    outward: Point


_OUT_OF_ARM: Point = (0.64, 0.0, 0.77)  # away from the body, perpendicular to the hanging arm

_SITES = (
    _Site("LFHD", "head", (0.0, 0.0, 1.690), (0.60, -0.80, 0.0)),
    _Site("LBHD", "head", (0.0, 0.0, 1.690), (0.65, 0.75, 0.0)),
    _Site("C7", "upper_chest", (0.0, 0.02, 1.470), (0.0, 1.0, 0.20)),
    _Site("T10", "chest", (0.0, 0.0, 1.215), (0.0, 1.0, 0.0)),
    _Site("CLAV", "upper_chest", (0.0, 0.0, 1.395), (0.0, -1.0, 0.10)),
    _Site("STRN", "chest", (0.0, 0.0, 1.265), (0.0, -1.0, 0.0)),
    _Site("LASI", "hips", (0.09, 0.0, 1.000), (0.45, -0.90, 0.0)),
    _Site("LPSI", "hips", (0.045, 0.0, 0.985), (0.10, 1.0, 0.0)),
    _Site("LSHO", "shoulder.L", on_bone("shoulder.L", 0.95), (0.10, 0.0, 1.0)),
    _Site("LUPA", "upper_arm.L", on_bone("upper_arm.L", 0.50), (0.64, 0.40, 0.77)),
    _Site("LELB", "upper_arm.L", on_bone("upper_arm.L", 0.97), _OUT_OF_ARM),
    _Site("LFRM", "forearm.L", on_bone("forearm.L", 0.45), (0.64, -0.40, 0.77)),
    _Site("LWRA", "forearm.L", on_bone("forearm.L", 0.96), (0.0, -1.0, 0.0)),
    _Site("LWRB", "forearm.L", on_bone("forearm.L", 0.96), (0.0, 1.0, 0.0)),
    _Site("LFIN", "hand.L", on_bone("hand.L", 0.48), _OUT_OF_ARM),
    _Site("LTHI", "thigh.L", on_bone("thigh.L", 0.50), (1.0, -0.30, 0.0)),
    _Site("LKNE", "thigh.L", on_bone("thigh.L", 0.97), (1.0, 0.10, 0.0)),
    _Site("LTIB", "shin.L", on_bone("shin.L", 0.45), (1.0, -0.40, 0.0)),
    _Site("LANK", "shin.L", on_bone("shin.L", 0.97), (1.0, 0.10, 0.0)),
    _Site("LHEE", "foot.L", (0.088, 0.010, 0.040), (0.0, 1.0, 0.0)),
    _Site("LTOE", "foot.L", (0.090, -0.100, 0.030), (0.0, -0.10, 1.0)),
    _Site("LMT5", "foot.L", (0.098, -0.085, 0.026), (1.0, 0.0, 0.10)),
    _Site("LHLX", "toe.L", (0.085, -0.165, 0.022), (0.0, -0.30, 1.0)),
)


@cache
def markers() -> tuple[Marker, ...]:
    """All markers; each left one is followed by the right one."""
    result = []
    for site in _SITES:
        left = Marker(site.marker, site.bone, _offset(site))
        result.append(left)
        if site.marker[0] == "L":
            x, y, z = left.offset
            result.append(Marker("R" + left.name[1:], other_side(left.bone), (-x, y, z)))
    return tuple(result)


def _offset(site: _Site) -> tuple[float, float, float]:
    """Position of the marker in its bone's rest frame, rounded to 0.1 mm."""
    direction = np.array(site.outward) / np.linalg.norm(site.outward)
    depths = np.arange(0.0, 0.25, 0.0005)
    outside = skin_distance(np.add(site.inside, np.multiply.outer(depths, direction))) > 0.0
    place = np.array(site.inside) + (depths[np.argmax(outside)] + BALL_RADIUS) * direction
    bone = walk.bones()[site.bone]
    x, y, z = ((bone.rotation.T @ (place - bone.head)).round(4) + 0.0).tolist()  # adding zero removes the sign of zero
    return (x, y, z)


def recording_times() -> FloatArray:
    """Times of the samples (F,), seconds."""
    return np.arange(round(trunk.DURATION * RATE) + 1) / RATE


def true_positions() -> FloatArray:
    """Positions of the markers (F, M, 3), meters, Z up."""
    motion = walk.walk_motion(recording_times())
    return np.stack([motion.point(marker.bone, np.array(marker.offset)) for marker in markers()], axis=1)


def recording() -> FloatArray:
    """The recorded positions (F, M, 3), meters, Z up, NaN for hidden markers. The same in each run."""
    positions = true_positions()
    chance = np.random.RandomState(_SEED)  # gives the same numbers in every version of numpy
    positions += chance.normal(0.0, NOISE, positions.shape)
    positions[_unseen(positions.shape[:2], chance)] = np.nan
    return positions


def _unseen(shape: tuple[int, int], chance: np.random.RandomState) -> Mask:
    """(F, M) whether a sample is missing: markers hidden on purpose, and random gaps up to their share."""
    unseen = np.zeros(shape, dtype=bool)
    names = [marker.name for marker in markers()]
    for name, start, duration in HIDDEN:
        unseen[round(start * RATE) : round((start + duration) * RATE), names.index(name)] = True
    while unseen.mean() < GAP_SHARE:
        length = chance.randint(*GAP_FRAMES)
        first = chance.randint(1, shape[0] - length)
        unseen[first : first + length, chance.randint(shape[1])] = True
    return unseen


def trc_text(positions: FloatArray, name: str) -> str:
    """A TRC file of positions (F, M, 3) in meters with Z up; like most, the file has millimeters and Y up."""
    names = [marker.name for marker in markers()]
    frames, count = positions.shape[:2]
    y_up = 1000.0 * np.stack([positions[..., 0], positions[..., 2], -positions[..., 1]], axis=-1)
    axes = "\t".join(f"X{i}\tY{i}\tZ{i}" for i in range(1, count + 1))
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{RATE:.2f}\t{RATE:.2f}\t{frames}\t{count}\tmm\t{RATE:.2f}\t1\t{frames}",
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
        f"\t\t{axes}",
        "",
    ]
    for i, (time, row) in enumerate(zip(recording_times(), y_up.reshape(frames, -1), strict=True), start=1):
        cells = "\t".join("" if np.isnan(value) else f"{value:.2f}" for value in row)
        lines.append(f"{i}\t{time:.2f}\t{cells}")
    return "\n".join(lines) + "\n"


def map_text() -> str:
    """The marker map: each marker's bone, and its position in the bone's rest frame."""
    entries = [f'    "{m.name}": {json.dumps({"bone": m.bone, "offset": list(m.offset)})}' for m in markers()]
    return '{\n  "fabrik_marker_map": 1,\n  "markers": {\n' + ",\n".join(entries) + "\n  }\n}\n"
