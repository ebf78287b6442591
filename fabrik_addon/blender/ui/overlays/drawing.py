"""Shapes, lines and texts that overlays draw, and the lines shown while a drag runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Region

from ....core.arrays import FloatArray, IntArray
from ...edit.spread_drag import SpreadDrag
from ...posing.mouse import DragInput

Color: TypeAlias = tuple[float, ...]
# RGBA. The colors of goals are from the palette of Okabe and Ito, which color-blind people can distinguish.
COLORS: Final[dict[str, Color]] = {
    "met": (0.34, 0.71, 0.91, 1.0),
    "missed": (0.95, 0.40, 0.0, 1.0),
    "pinned": (0.94, 0.89, 0.26, 1.0),
    "bend": (0.80, 0.47, 0.65, 1.0),
    "free": (0.30, 0.66, 1.0, 1.0),
    "binds": (1.0, 0.25, 0.10, 1.0),
}
# The number type of the graphics card.
Single: TypeAlias = npt.NDArray[np.float32]
# Maps a width in pixels to (2 L, 3) ends of lines and (2 L, 4) colors.
Lines: TypeAlias = dict[float, tuple[Single, Single]]


def _none(columns: int) -> Single:
    return np.zeros((0, columns), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Drawing:
    """All triangles and lines drawn together, in world space.

    Attributes:
        lines: ends and colors of lines, by width.
        triangles: (3 T, 3) corners. colors: (3 T, 4) colors of the corners.
    """

    lines: Lines
    triangles: Single = field(default_factory=lambda: _none(3))
    colors: Single = field(default_factory=lambda: _none(4))


def draw_over(drawing: Drawing, context: Context) -> None:
    """Draw the lines of a drawing into the current viewport, in front of everything."""
    import gpu  # noqa: PLC0415

    gpu.state.blend_set("ALPHA")
    try:
        draw_lines(drawing, 1.0, context.region)
    finally:
        gpu.state.blend_set("NONE")


def draw_triangles(drawing: Drawing, share: float) -> None:
    """Draw the triangles of a drawing with an opacity factor."""
    import gpu  # noqa: PLC0415
    from gpu_extras.batch import batch_for_shader  # noqa: PLC0415

    if not len(drawing.triangles):
        return
    shader = gpu.shader.from_builtin("FLAT_COLOR")
    batch_for_shader(shader, "TRIS", _faded(drawing.triangles, drawing.colors, share)).draw(shader)


def draw_lines(drawing: Drawing, share: float, region: Region) -> None:
    """Draw the lines of a drawing with an opacity factor."""
    import gpu  # noqa: PLC0415
    from gpu_extras.batch import batch_for_shader  # noqa: PLC0415

    shader = gpu.shader.from_builtin("POLYLINE_FLAT_COLOR")
    shader.bind()
    shader.uniform_float("viewportSize", (region.width, region.height))
    for width, (ends, colors) in drawing.lines.items():
        shader.uniform_float("lineWidth", width * bpy.context.preferences.system.ui_scale)
        batch_for_shader(shader, "LINES", _faded(ends, colors, share)).draw(shader)


def _faded(points: Single, colors: Single, share: float) -> dict[str, Any]:
    """Points and colors with an opacity factor, by the names that shaders use."""
    return {"pos": points, "color": colors * np.array((1.0, 1.0, 1.0, share), dtype=np.float32)}


def colored(parts: Iterable[tuple[FloatArray, IntArray, Color]]) -> tuple[Single, Single]:
    """(N, 3) points and (N, 4) colors of several parts: vertices (V, 3), rows of vertex indices, and a color each."""
    points, colors = [_none(3)], [_none(4)]
    for vertices, rows, rgba in parts:
        points.append(vertices.astype(np.float32)[rows.ravel()])
        colors.append(np.full((rows.size, 4), rgba, dtype=np.float32))
    return np.concatenate(points), np.concatenate(colors)


def joined(parts: Iterable[tuple[float, Single, Single]]) -> Lines:
    """The lines of several parts, each a width, ends and colors, by width."""
    found: dict[float, list[tuple[Single, Single]]] = {}
    for width, ends, colors in parts:
        found.setdefault(width, []).append((ends, colors))
    return {
        width: (np.concatenate([ends for ends, _ in own]), np.concatenate([colors for _, colors in own]))
        for width, own in sorted(found.items())
    }


# The length of the lines in pixels at the depth of the point. It is larger than any screen.
_FAR: Final = 10000.0
_WIDTH: Final = 1.0


def locked_lines(drag: DragInput) -> list[tuple[int, FloatArray]]:
    """The axes to draw, 0 to 2, and the (2, 3) ends of each line; empty if no axis is locked."""
    if not drag.lock.axis:
        return []
    reach = _FAR * drag.pixel
    return [(axis, drag.place + reach * np.outer((-1.0, 1.0), drag.frame[:, axis])) for axis in drag.lock.fields]


def draw_locks(drag: DragInput) -> None:
    """Draw into the current viewport."""
    lines = locked_lines(drag)
    if not lines:
        return
    context: Any = bpy.context
    theme = context.preferences.themes[0].user_interface
    colors = (theme.axis_x, theme.axis_y, theme.axis_z)
    parts = ((ends, np.array([[0, 1]]), (*colors[axis], 1.0)) for axis, ends in lines)
    draw_over(Drawing({_WIDTH: colored(parts)}), context)


_BEFORE: Final = (0.7, 0.7, 0.7, 0.5)
_AFTER: Final = (0.94, 0.89, 0.26, 1.0)
_WIDTHS: Final = (1.25, 2.5)


def draw_drag_paths(drag: object) -> None:
    """Draw the old and the new path into the current viewport during a drag over time."""
    if isinstance(drag, SpreadDrag):
        paths = drag.paths_before_and_after()
        pairs = np.repeat(np.arange(len(paths[0])), 2)[1:-1].reshape(-1, 2)
        lines = zip(_WIDTHS, paths, (_BEFORE, _AFTER), strict=True)
        draw_over(Drawing({width: colored([(path, pairs, color)]) for width, path, color in lines}), bpy.context)
