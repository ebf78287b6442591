"""The shapes and lines that overlays draw, the lines shown while a drag runs, and trails, the paths of bones."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, Region

from ....core.arrays import FloatArray, IntArray
from ....core.errors import FabrikError
from ...edit.spread_drag import SpreadDrag
from ...edit.take import PathKeeper, Paths
from ...posing.mouse import DragInput, DragView
from ...settings.control import solved_bone
from ...settings.in_use import call_later, seen
from ...settings.rig import rig_settings
from ...settings.selection import selected_bones
from ...settings.why_not import shown_motion

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


def draw_over(lines: Drawing | Iterable[Lines] | None) -> None:
    """Draw lines into the current viewport, in front of everything."""
    import gpu  # noqa: PLC0415

    gpu.state.blend_set("ALPHA")
    try:
        draw(lines if isinstance(lines, Drawing) else Drawing.of(lines or ()), bpy.context.region)
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
    return {"pos": points, "color": colors * np.array((1.0, 1.0, 1.0, share), dtype=np.float32)}


# Pixels: the length of the lines, larger than any screen.
_FAR: Final = 10000.0
_WIDTH: Final = 1.0
# The color of the old path, and the widths of both.
_BEFORE: Final = (0.7, 0.7, 0.7, 0.5)
_WIDTHS: Final = (1.25, 2.5)


def locked_lines(drag: DragInput) -> list[tuple[int, FloatArray]]:
    """The axes to draw, 0 to 2, and the (2, 3) ends of each line; empty if no axis is locked."""
    if not drag.lock.axis:
        return []
    reach = _FAR * drag.pixel
    return [(axis, drag.place + reach * np.outer((-1.0, 1.0), drag.frame[:, axis])) for axis in drag.lock.fields]


def drag_lines(entered: DragInput, drag: object) -> Iterator[Lines]:
    """The lines of the locked axes, and during a drag over time the old and the new path."""
    theme = bpy.context.preferences.themes[0].user_interface
    colors = (theme.axis_x, theme.axis_y, theme.axis_z)
    for axis, ends in locked_lines(entered):
        yield Lines(_WIDTH, ends, along(2), (*colors[axis], 1.0))
    if isinstance(drag, SpreadDrag):
        for width, path, color in zip(_WIDTHS, drag.paths_before_and_after(), (_BEFORE, COLORS["pinned"]), strict=True):
            yield Lines(width, path, along(len(path)), color)


# Widths in pixels: lines of trails, ticks of frames, dots of keys, lines of holds.
TRAIL, TICK, KEY, HELD = 1.5, 3.0, 6.0, 4.0
_WHITE: Final = (1.0, 1.0, 1.0)
# Okabe and Ito's orange and blue.
BEFORE, AFTER = (0.90, 0.62, 0.0), COLORS["met"][:3]
# The opacity of a trail at its ends.
_FAINT: Final = 0.25
# Ticks and dots are short crosses with thick lines. Their length is this fraction of a bone's.
_CROSS: Final = 0.01


def trail_lines(paths: Paths, bones: Sequence[str], frame: float, about: int) -> Iterator[Lines]:
    """The paths of the tails of bones around a frame, in armature space: lines, ticks on frames, and dots on keys."""
    rows = paths.rows(frame - about, frame + about)
    frames = paths.frames[rows]
    if len(frames) < 2:
        return
    share = 1.0 - (1.0 - _FAINT) * np.abs(frames - frame)[:, None] / about
    tint = np.where((frames < frame)[:, None], BEFORE, AFTER)
    rgba = np.concatenate([tint, share], axis=1)
    white = np.concatenate([np.broadcast_to(_WHITE, (len(frames), 3)), share], axis=1)
    for bone in bones:
        place = paths.names.index(bone)
        path = paths.tails[rows, place]
        size = _CROSS * float(paths.lengths[place])
        keyed = paths.keyed[rows, place]
        yield Lines(TRAIL, path, along(len(path)), rgba)
        yield Lines(TICK, *_crosses(path[~keyed], 0.5 * size, rgba[~keyed]))
        yield Lines(TICK if keyed.all() else KEY, *_crosses(path[keyed], size, white[keyed]))


def held_lines(paths: Paths, bone: str, first: float, last: float) -> Iterator[Lines]:
    """The path of a bone's tail during a hold, in armature space, with a cross at each end."""
    path = paths.tails[paths.rows(first, last), paths.names.index(bone)]
    if len(path):
        size = 2.0 * _CROSS * float(paths.lengths.max())
        yield Lines(HELD, path, along(len(path)), COLORS["pinned"])
        yield Lines(HELD, *_crosses(path[[0, -1]], size, np.tile(COLORS["pinned"], (2, 1))))


def _crosses(points: FloatArray, size: float, rgba: FloatArray) -> Part:
    """Crosses at `points` (P, 3), with colors `rgba` (P, 4)."""
    arms = size * np.array([(-1, 0, 0), (1, 0, 0), (0, 0, -1), (0, 0, 1)], dtype=np.float64)
    ends = (points[:, None] + arms).reshape(-1, 3)
    return ends, np.arange(len(ends)), np.repeat(rgba, 4, axis=0)


# Seconds between checks for changed keys.
_PAUSE: Final = 0.3
# The paths of the active rig. Drawings are cached until their data changes.
KEEPER = PathKeeper()
_DRAWN: dict[tuple[object, ...], Drawing] = {}


def trails(context: Context, rig: Object) -> Drawing | None:
    """The trails of a rig as arrays for the graphics card; None if it has no motion."""
    about, frame = rig_settings(rig).trail_frames, context.scene.frame_current_final
    paths = KEEPER.paths(rig, frame)
    if paths is None:
        if not KEEPER.is_current(rig):
            # Update later, because the frame must not change while Blender draws.
            call_later(refresh_trails, _PAUSE)
        return None
    bones = trail_bones(context, rig, paths)
    world = np.array(rig.matrix_world)
    holds = tuple((hold.bone, hold.first, hold.last) for hold in rig_settings(rig).holds if hold.bone in bones)
    key = (paths, frame, about, *bones, *holds, world.tobytes())
    if key not in _DRAWN:
        _DRAWN.clear()
        lines = chain(trail_lines(paths, bones, frame, about), *(held_lines(paths, *hold) for hold in holds))
        turn, shift = world[:3, :3].T, world[:3, 3]
        _DRAWN[key] = Drawing.of(each._replace(points=each.points @ turn + shift) for each in lines)
    return _DRAWN[key]


def trail_bones(context: Context, rig: Object, paths: Paths) -> list[str]:
    """The names of the bones with trails: the selected bones, if trails are on."""
    if not rig_settings(rig).show_trails:
        return []
    chosen = dict.fromkeys(solved_bone(rig, bone.name) for bone in selected_bones(context, rig))
    return [name for name in chosen if name in paths.names]


def update_trails(context: Context, rig: Object) -> bool:
    """Update the trails of a rig whose frames Blender must play; returns whether there are paths."""
    return KEEPER.sample(rig, context.scene.frame_current, float(rig_settings(rig).trail_frames)) is not None


def refresh_trails() -> float | None:
    """Update the trails of the active rig if its keys have changed. This timer waits while other operations run.

    Returns the seconds until the next call.
    """
    context = bpy.context
    rig = shown_motion(context)
    if rig is None or KEEPER.is_current(rig):
        return None
    windows = context.window_manager.windows
    if any(len(window.modal_operators) or window.screen.is_animation_playing for window in windows):
        return _PAUSE
    with suppress(FabrikError):
        update_trails(context, rig)
        for area in (area for window in windows for area in window.screen.areas if area.type == "VIEW_3D"):
            area.tag_redraw()
    return None


def trail_points(context: Context, rig: Object) -> list[tuple[str, FloatArray, FloatArray]]:
    """The name of each bone with a trail, its frames (F,), and the world positions (F, 3) of its tail."""
    frame = context.scene.frame_current_final
    paths = KEEPER.paths(rig, frame)
    if paths is None:
        return []
    about = rig_settings(rig).trail_frames
    rows, world = paths.rows(frame - about, frame + about), np.array(rig.matrix_world)
    return [
        (bone, paths.frames[rows], paths.tails[rows, paths.names.index(bone)] @ world[:3, :3].T + world[:3, 3])
        for bone in trail_bones(context, rig, paths)
    ]


# The maximum distance of the mouse from a point, in pixels.
_NEAR: Final = 10.0


def nearest_on_trails(context: Context, rig: Object, view: DragView, mouse: FloatArray) -> tuple[str, int] | None:
    """The bone and the frame of the trail's point under the mouse (2,); None if there is none.

    The point on the current frame is on the bone itself, so it is never returned. But it has priority over points at
    most a pixel closer to the mouse, such as those of other frames on which a foot is planted.
    """
    if not seen(rig).show_trails or context.mode != "POSE":
        return None
    best, found = _NEAR * context.preferences.system.ui_scale, None
    current = context.scene.frame_current
    for bone, frames, points in trail_points(context, rig):
        for frame, point in zip(frames.tolist(), points, strict=True):
            at = view.on_screen(point)
            away = np.inf if at is None else float(np.linalg.norm(at - mouse)) - (round(frame) == current)
            if away < best:
                best, found = away, (bone, round(frame))
    return None if found is None or found[1] == current else found
