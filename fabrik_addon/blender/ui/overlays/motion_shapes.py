"""The lines of trails, as plain arrays: points, pairs of them, and a color for each pair."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ....core.arrays import FloatArray
from ...edit.paths import Paths
from .drawing import Lines, Single

# Pixels: a trail's line, a frame's tick, a key's dot, a hold.
TRAIL, TICK, KEY, HELD = 1.5, 3.0, 6.0, 4.0
# Yellow, the color of pins.
_HELD: Final = (0.94, 0.89, 0.26)
_WHITE: Final = (1.0, 1.0, 1.0)
# Okabe and Ito's orange and blue, which people with red-green color blindness can tell apart.
BEFORE, AFTER = (0.90, 0.62, 0.0), (0.34, 0.71, 0.91)
# How opaque a trail is at its ends.
_FAINT: Final = 0.25
# Ticks and dots are crosses, as long as this share of a bone and as thick as they are long on the screen.
_CROSS: Final = 0.01


def trail_lines(paths: Paths, bones: Sequence[str], frame: float, about: int) -> Iterator[tuple[float, Single, Single]]:
    """For each bone its tail's path around a frame: lines, ticks on frames, dots on keys.

    Yields the width, (2 L, 3) ends and (2 L, 4) colors.
    """
    rows = paths.rows(frame - about, frame + about)
    frames = paths.frames[rows]
    if len(frames) < 2:
        return
    share = 1.0 - (1.0 - _FAINT) * np.abs(frames - frame)[:, None] / about
    tint = np.where((frames < frame)[:, None], BEFORE, AFTER)
    rgba = np.concatenate([tint, share], axis=1)
    pairs = np.repeat(np.arange(len(frames)), 2)[1:-1]
    for bone in bones:
        place = paths.names.index(bone)
        way = paths.tails[rows, place]
        size = _CROSS * float(np.linalg.norm(paths.tails[0, place] - paths.heads[0, place]))
        keyed = paths.keyed[rows, place]
        yield TRAIL, way[pairs].astype(np.float32), rgba[pairs].astype(np.float32)
        yield TICK, *_crosses(way[~keyed], 0.5 * size, rgba[~keyed])
        white = np.concatenate([np.broadcast_to(_WHITE, (len(frames), 3)), share], axis=1)
        yield (TICK if keyed.all() else KEY), *_crosses(way[keyed], size, white[keyed])


def held_lines(paths: Paths, bone: str, first: float, last: float) -> tuple[Single, Single]:
    """(2 L, 3) ends and (2 L, 4) colors of a tail's path during a hold, with a cross at either end of it."""
    way = paths.tails[paths.rows(first, last), paths.names.index(bone)]
    pairs = np.repeat(np.arange(len(way)), 2)[1:-1]
    size = 2.0 * _CROSS * float(np.linalg.norm(paths.tails[0] - paths.heads[0], axis=1).max())
    crosses, _ = _crosses(way[[0, -1]], size, np.zeros((2, 4))) if len(way) else (way, way)
    ends = np.concatenate([way[pairs], crosses]).astype(np.float32)
    return ends, np.full((len(ends), 4), (*_HELD, 1.0), dtype=np.float32)


def _crosses(points: FloatArray, size: float, rgba: FloatArray) -> tuple[Single, Single]:
    """Crosses at points (P, 3), as ends (4 P, 3) of lines and their colors (4 P, 4)."""
    arms = size * np.array([(-1, 0, 0), (1, 0, 0), (0, 0, -1), (0, 0, 1)], dtype=np.float64)
    ends = (points[:, None] + arms).reshape(-1, 3)
    return ends.astype(np.float32), np.repeat(rgba, 4, axis=0).astype(np.float32)


def joined(parts: Sequence[tuple[float, Single, Single]]) -> Lines:
    """All lines of one width together."""
    return {
        width: (
            np.concatenate([ends for own, ends, _ in parts if own == width]),
            np.concatenate([colors for own, _, colors in parts if own == width]),
        )
        for width in sorted({width for width, _, _ in parts})
    }
