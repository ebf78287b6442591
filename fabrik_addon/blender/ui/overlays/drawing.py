"""Shapes, lines and texts that overlays draw, and the lines shown while a drag runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Region

from ....core.arrays import FloatArray, IntArray
from ...edit.spread_drag import SpreadDrag
from ...posing.mouse import DragInput

Color: TypeAlias = tuple[float, ...]
# RGBA. The colors of goals are from the palette of Okabe and Ito, whose colors color-blind people can distinguish.
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
# Lines or triangles: points (N, 3); for each line or triangle the indices of its points, (L, 2) or (T, 3); and one
# color for all points (4,), or one for each (N, 4).
Part: TypeAlias = tuple[FloatArray, IntArray, Color | FloatArray]


class Lines(NamedTuple):
    """Lines of a width in pixels; the other values are those of a `Part`."""

    width: float
    points: FloatArray
    ends: IntArray
    color: Color | FloatArray


@dataclass(frozen=True, eq=False)
class Drawing:
    """All triangles and lines drawn together, in world space.

    Attributes:
        lines: (2 L, 3) ends and (2 L, 4) colors of lines, by width in pixels.
        triangles: (3 T, 3) corners. colors: (3 T, 4) colors of the corners.
    """

    lines: dict[float, tuple[Single, Single]]
    triangles: Single
    colors: Single

    @classmethod
    def of(cls, lines: Iterable[Lines], surfaces: Iterable[Part] = ()) -> "Drawing":
        """Make a drawing from lines and surfaces."""
        by_width: dict[float, list[Part]] = {}
        for width, points, rows, color in lines:
            by_width.setdefault(width, []).append((points, rows, color))
        return cls({width: _joined(parts) for width, parts in sorted(by_width.items())}, *_joined(surfaces))


def _joined(parts: Iterable[Part]) -> tuple[Single, Single]:
    """The ends of all lines, or the corners of all triangles: N positions (N, 3) and colors (N, 4)."""
    points, colors = [np.zeros((0, 3), dtype=np.float32)], [np.zeros((0, 4), dtype=np.float32)]
    for vertices, rows, rgba in parts:
        points.append(vertices.astype(np.float32)[rows.ravel()])
        colors.append(np.broadcast_to(np.asarray(rgba, dtype=np.float32), (len(vertices), 4))[rows.ravel()])
    return np.concatenate(points), np.concatenate(colors)


def along(count: int) -> IntArray:
    """(count - 1, 2) indices of the ends of the lines from each point of a path to the next."""
    return np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)


def draw_over(drawing: Drawing, context: Context) -> None:
    """Draw the lines of a drawing into the current viewport, in front of everything."""
    import gpu  # noqa: PLC0415

    gpu.state.blend_set("ALPHA")
    try:
        draw(drawing, context.region)
    finally:
        gpu.state.blend_set("NONE")


def draw(drawing: Drawing, region: Region, share: float = 1.0) -> None:
    """Draw the triangles, then the lines of a drawing, with an opacity factor."""
    import gpu  # noqa: PLC0415
    from gpu_extras.batch import batch_for_shader  # noqa: PLC0415

    if len(drawing.triangles):
        shader = gpu.shader.from_builtin("FLAT_COLOR")
        batch_for_shader(shader, "TRIS", _faded(drawing.triangles, drawing.colors, share)).draw(shader)
    shader = gpu.shader.from_builtin("POLYLINE_FLAT_COLOR")
    shader.bind()
    shader.uniform_float("viewportSize", (region.width, region.height))
    for width, (ends, colors) in drawing.lines.items():
        shader.uniform_float("lineWidth", width * bpy.context.preferences.system.ui_scale)
        batch_for_shader(shader, "LINES", _faded(ends, colors, share)).draw(shader)


def _faded(points: Single, colors: Single, share: float) -> dict[str, Any]:
    """Points and colors with an opacity factor, by the names that shaders use."""
    return {"pos": points, "color": colors * np.array((1.0, 1.0, 1.0, share), dtype=np.float32)}


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
    """Draw the lines of the locked axes into the current viewport."""
    lines = locked_lines(drag)
    if not lines:
        return
    context: Any = bpy.context
    theme = context.preferences.themes[0].user_interface
    colors = (theme.axis_x, theme.axis_y, theme.axis_z)
    draw_over(Drawing.of(Lines(_WIDTH, ends, along(2), (*colors[axis], 1.0)) for axis, ends in lines), context)


_BEFORE: Final = (0.7, 0.7, 0.7, 0.5)
_WIDTHS: Final = (1.25, 2.5)


def draw_drag_paths(drag: object) -> None:
    """Draw the old and the new path into the current viewport during a drag over time."""
    if isinstance(drag, SpreadDrag):
        lines = zip(_WIDTHS, drag.paths_before_and_after(), (_BEFORE, COLORS["pinned"]), strict=True)
        draw_over(Drawing.of(Lines(width, path, along(len(path)), color) for width, path, color in lines), bpy.context)
