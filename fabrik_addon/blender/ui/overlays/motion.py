"""Trails drawn in the viewport; `handlers.py` has it done."""

from typing import Final

import bpy
import numpy as np

from ....core.arrays import FloatArray
from ...edit.paths import PathKeeper, Paths
from ...settings.control import solved_bone
from ...settings.rig import rig_settings
from ...settings.selection import selected_bones
from .drawing import Drawing, Lines, draw_over
from .later import call_later, shown_motion
from .motion_shapes import HELD, held_lines, joined, trail_lines

# Seconds after which trails are computed again: longer than between the keys of two bones.
_PAUSE: Final = 0.3
# The active rig's; drawings are cached until something that they depend on changes.
KEEPER = PathKeeper()
_DRAWN: dict[tuple[object, ...], Drawing] = {}


def drawing_of(context: bpy.types.Context, rig: bpy.types.Object) -> Drawing | None:
    """The trails of a rig as a drawing; None if it has no motion."""
    about, frame = rig_settings(rig).trail_frames, context.scene.frame_current_final
    paths, state = KEEPER.paths(rig, frame)
    if paths is None:
        if not KEEPER.is_current(rig, frame):
            # The frame must not change while Blender draws.
            call_later(refresh_trails, _PAUSE)
        return None
    bones = trail_bones(context, rig, paths)
    world = np.array(rig.matrix_world)
    holds = tuple((hold.bone, hold.first, hold.last) for hold in rig_settings(rig).holds if hold.bone in bones)
    key = (state, frame, about, *bones, *holds, world.tobytes())
    if key not in _DRAWN:
        _DRAWN.clear()
        _DRAWN[key] = Drawing(_lines(paths, bones, holds, frame, about, world))
    return _DRAWN[key]


def trail_bones(context: bpy.types.Context, rig: bpy.types.Object, paths: Paths) -> list[str]:
    """The bones that have trails: the selected ones, if trails are on."""
    if not rig_settings(rig).show_trails:
        return []
    chosen = dict.fromkeys(solved_bone(rig, bone.name) for bone in selected_bones(context, rig))
    return [name for name in chosen if name in paths.names]


def work_out(context: bpy.types.Context, rig: bpy.types.Object) -> bool:
    """Let Blender play the shown frames of a rig whose paths need it; returns whether there are any."""
    return KEEPER.sample(rig, context.scene.frame_current, float(rig_settings(rig).trail_frames)) is not None


def refresh_trails() -> float | None:
    """Compute the trails of the active rig again if its keys have changed; a timer, which waits while operators run.

    Returns the seconds until the next call.
    """
    context = bpy.context
    rig = shown_motion(context)
    if rig is None or KEEPER.is_current(rig, context.scene.frame_current_final):
        return None
    windows = context.window_manager.windows
    if any(len(window.modal_operators) or window.screen.is_animation_playing for window in windows):
        return _PAUSE
    work_out(context, rig)
    for area in (area for window in windows for area in window.screen.areas if area.type == "VIEW_3D"):
        area.tag_redraw()
    return None


def trail_points(context: bpy.types.Context, rig: bpy.types.Object) -> list[tuple[str, FloatArray, FloatArray]]:
    """For each bone with a trail its name, (F,) frames, and (F, 3) its tail in world space."""
    frame = context.scene.frame_current_final
    paths, _ = KEEPER.paths(rig, frame)
    if paths is None:
        return []
    about = rig_settings(rig).trail_frames
    rows, world = paths.rows(frame - about, frame + about), np.array(rig.matrix_world)
    return [
        (bone, paths.frames[rows], paths.tails[rows, paths.names.index(bone)] @ world[:3, :3].T + world[:3, 3])
        for bone in trail_bones(context, rig, paths)
    ]


def _lines(
    paths: Paths,
    bones: list[str],
    holds: tuple[tuple[str, float, float], ...],
    frame: float,
    about: int,
    world: FloatArray,
) -> Lines:
    parts = list(trail_lines(paths, bones, frame, about))
    parts += [(HELD, *held_lines(paths, *hold)) for hold in holds]
    turn, shift = world[:3, :3].T.astype(np.float32), world[:3, 3].astype(np.float32)
    return {width: (ends @ turn + shift, colors) for width, (ends, colors) in joined(parts).items()}


def draw_motion(context: bpy.types.Context, rig: bpy.types.Object) -> None:
    """Draw a rig's trails into the current viewport, on top of everything."""
    drawing = drawing_of(context, rig)
    if drawing is not None:
        draw_over(drawing, context)
