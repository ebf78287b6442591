"""The shapes and lines that overlays draw, the lines shown while a drag runs, and trails, the paths of bones."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object

from ....core.arrays import BoolArray, FloatArray, IntArray
from ....core.errors import FabrikError
from ...edit.spread_drag import SpreadDrag
from ...edit.take import PathKeeper
from ...posing.mouse import DragInput, DragView
from ...rig.armature import object_scale
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
# For each width in pixels: the ends of lines, or for width 0 the corners of triangles, (N, 3), and their colors (N, 4).
Drawing: TypeAlias = dict[float, tuple[Single, Single]]


class Part(NamedTuple):
    """Lines of a width in pixels, or triangles, which have width 0; in world space.

    points: (N, 3). rows: the indices of the points of each line or triangle, (L, 2) or (T, 3). color: one for all
    points (4,), or one for each (N, 4).
    """

    width: float
    points: FloatArray
    rows: IntArray
    color: Color | FloatArray


def joined(parts: Iterable[Part]) -> Drawing:
    """Join the parts of each width, so that they are drawn together."""
    by_width: dict[float, list[tuple[Single, Single]]] = {}
    for width, points, rows, color in parts:
        colors = np.broadcast_to(np.asarray(color, dtype=np.float32), (len(points), 4))
        by_width.setdefault(width, []).append((points.astype(np.float32)[rows.ravel()], colors[rows.ravel()]))
    pairs = ((width, zip(*own, strict=True)) for width, own in sorted(by_width.items()))
    return {width: (np.concatenate(points), np.concatenate(colors)) for width, (points, colors) in pairs}


def along(count: int) -> IntArray:
    """(count - 1, 2) indices of the ends of the lines from each point of a path to the next."""
    return np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)


def draw_over(parts: Iterable[Part]) -> None:
    """Draw parts into the current viewport, in front of everything."""
    draw((joined(parts), "NONE", 1.0))


def draw(*layers: tuple[Drawing, str, float]) -> None:
    """Draw layers into the current viewport. Each is a drawing, a depth test and an opacity factor."""
    import gpu  # noqa: PLC0415  not to be had without a window
    from gpu_extras.batch import batch_for_shader  # noqa: PLC0415

    region, scale = bpy.context.region, bpy.context.preferences.system.ui_scale
    gpu.state.blend_set("ALPHA")
    gpu.state.depth_mask_set(False)
    try:
        for drawing, depth_test, share in layers:
            gpu.state.depth_test_set(depth_test)
            for width, (points, colors) in drawing.items():
                shader = gpu.shader.from_builtin("POLYLINE_FLAT_COLOR" if width else "FLAT_COLOR")
                if width:
                    shader.bind()
                    shader.uniform_float("viewportSize", (region.width, region.height))
                    shader.uniform_float("lineWidth", width * scale)
                content: Any = {"pos": points, "color": colors * np.array((1.0, 1.0, 1.0, share), dtype=np.float32)}
                batch_for_shader(shader, "LINES" if width else "TRIS", content).draw(shader)
    finally:
        gpu.state.depth_test_set("NONE")
        gpu.state.blend_set("NONE")


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


def drag_lines(entered: DragInput, drag: object) -> Iterator[Part]:
    """The lines of the locked axes, and during a drag over time the old and the new path; notes that it is drawn."""
    entered.is_drawn = True
    theme = bpy.context.preferences.themes[0].user_interface
    colors = (theme.axis_x, theme.axis_y, theme.axis_z)
    for axis, ends in locked_lines(entered):
        yield Part(_WIDTH, ends, along(2), (*colors[axis], 1.0))
    if isinstance(drag, SpreadDrag):
        for width, path, color in zip(_WIDTHS, drag.paths_before_and_after(), (_BEFORE, COLORS["pinned"]), strict=True):
            yield Part(width, path, along(len(path)), color)


# Widths in pixels: lines of trails, ticks of frames, dots of keys, lines of holds.
TRAIL, TICK, KEY, HELD = 1.5, 3.0, 6.0, 4.0
# Okabe and Ito's orange and blue.
BEFORE, AFTER = (0.90, 0.62, 0.0), COLORS["met"][:3]
# The opacity of a trail at its ends.
_FAINT: Final = 0.25
# Ticks and dots are short crosses with thick lines. Their length is this fraction of a bone's.
_CROSS: Final = 0.01
# Seconds between checks for changed keys.
_PAUSE: Final = 0.3
# The paths of the active rig.
KEEPER = PathKeeper()


class Trail(NamedTuple):
    """The path of a bone's tail around the current frame, in world space.

    frames: (F,). points: (F, 3). keyed: (F,) whether the bone has a key on a frame. length: that of the bone.
    """

    bone: str
    frames: FloatArray
    points: FloatArray
    keyed: BoolArray
    length: float


def trails(context: Context, rig: Object) -> list[Trail]:
    """The trails of the selected bones; none if they are off, or if the rig has no motion."""
    settings, frame = seen(rig), context.scene.frame_current_final
    paths = KEEPER.paths(rig, frame) if settings.show_trails else None
    if paths is None:
        if settings.show_trails and not KEEPER.is_current(rig):
            # Update later, because the frame must not change while Blender draws.
            call_later(refresh_trails, _PAUSE)
        return []
    rows, world = np.abs(paths.frames - frame) <= settings.trail_frames, np.array(rig.matrix_world)
    chosen = dict.fromkeys(solved_bone(rig, bone.name) for bone in selected_bones(context, rig))
    found = []
    for bone, path in [(bone, paths.bones[bone]) for bone in chosen if bone in paths.bones]:
        points = path.tails[rows] @ world[:3, :3].T + world[:3, 3]
        length = path.length * float(object_scale(world))
        found.append(Trail(bone, paths.frames[rows], points, path.keyed[rows], length))
    return found


def trail_lines(context: Context, rig: Object) -> Iterator[Part]:
    """The trails of a rig: lines, ticks on frames, dots on keys, and holds with a cross at each end."""
    settings, frame = seen(rig), context.scene.frame_current_final
    for bone, frames, points, keyed, length in trails(context, rig):
        share = 1.0 - (1.0 - _FAINT) * np.abs(frames - frame)[:, None] / settings.trail_frames
        rgba = np.concatenate([np.where((frames < frame)[:, None], BEFORE, AFTER), share], axis=1)
        white = np.concatenate([np.ones((len(frames), 3)), share], axis=1)
        yield Part(TRAIL, points, along(len(points)), rgba)
        yield _crosses(TICK, points[~keyed], 0.5 * _CROSS * length, rgba[~keyed])
        yield _crosses(TICK if keyed.all() else KEY, points[keyed], _CROSS * length, white[keyed])
        for hold in settings.holds:
            held = points[(frames >= hold.first) & (frames <= hold.last)] if hold.bone == bone else points[:0]
            if len(held):
                yield Part(HELD, held, along(len(held)), COLORS["pinned"])
                yield _crosses(HELD, held[[0, -1]], 4.0 * _CROSS * length, np.tile(COLORS["pinned"], (2, 1)))


def _crosses(width: float, points: FloatArray, size: float, rgba: FloatArray) -> Part:
    """Crosses at `points` (P, 3), with colors `rgba` (P, 4)."""
    arms = size * np.array([(-1, 0, 0), (1, 0, 0), (0, 0, -1), (0, 0, 1)], dtype=np.float64)
    ends = (points[:, None] + arms).reshape(-1, 3)
    return Part(width, ends, np.arange(len(ends)).reshape(-1, 2), np.repeat(rgba, 4, axis=0))


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


# The maximum distance of the mouse from a point, in pixels.
_NEAR: Final = 10.0


def nearest_on_trails(context: Context, rig: Object, view: DragView, mouse: FloatArray) -> tuple[str, int] | None:
    """The bone and the frame of the trail's point under the mouse (2,); None if there is none.

    The point on the current frame is on the bone itself, so it is never returned. But it has priority over points at
    most a pixel closer to the mouse, such as those of other frames on which a foot is planted.
    """
    if context.mode != "POSE":
        return None
    best, found = _NEAR * context.preferences.system.ui_scale, None
    current = context.scene.frame_current
    for trail in trails(context, rig):
        for frame, point in zip(trail.frames.tolist(), trail.points, strict=True):
            at = view.on_screen(point)
            away = np.inf if at is None else float(np.linalg.norm(at - mouse)) - (round(frame) == current)
            if away < best:
                best, found = away, (trail.bone, round(frame))
    return None if found is None or found[1] == current else found
