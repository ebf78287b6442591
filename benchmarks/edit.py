"""Editing motion: times of a move of a drag over time, of its release, and of trails in a redraw."""

import time
from statistics import median

import bpy
import numpy as np
from support import takes

from benchmarks.tables import Aim, Part, interleaved, table
from fabrik_addon.blender.edit.spread_drag import Spread, begin_spread
from fabrik_addon.blender.settings.selection import selected_bones
from fabrik_addon.blender.ui.overlays import drawing, handlers

HERE, MOVES = 200, 20
UP = np.array((0.0, 0.0, 0.2))
TRAILS = ("hand.L", "hand.R", "foot.L", "foot.R", "head")
REPEATS = 50


def measure():
    """Processor milliseconds on the walking sample person, with 401 frames and 22 bones."""
    rig = takes.walking_human(401, first=0)
    drags = {spread: _drag(rig, spread) for spread in (30, 60, 120)}
    shown = _redraw(rig)
    rows = [(f"{2 * spread} frames", f"{move:.0f}", f"{release:.0f}") for spread, (move, release) in drags.items()]
    parts = [
        table("Editing: a hand is dragged 20 cm over time, processor ms", ("span", "a move", "release"), rows),
        table(
            "Editing: 5 trails of 120 frames, Python's part of a redraw, processor ms",
            ("what", "ms"),
            [(name, f"{1000 * seconds:.3f}") for name, seconds in shown.items()],
        ),
    ]
    aims = (
        Aim.at_least("Drag over 60 frames: moves per second", 15, 1000.0 / drags[30][0], ""),
        Aim.at_most("Drag over 240 frames: release", 500, drags[120][1], "ms"),
        Aim.at_most("Trails: Python part of a redraw", 3, 1000 * shown["on, the next frame"], "ms"),
    )
    return Part("\n".join(parts), aims)


def _drag(rig, spread):
    """Processor milliseconds of a move and of the release, while a hand is dragged up."""
    takes.go_to(HERE)
    moves = []
    drag = begin_spread(bpy.context, rig, "hand.R", Spread(spread))
    for share in np.linspace(1.0 / MOVES, 1.0, MOVES):
        began = time.process_time()
        drag.step(drag.start + share * UP)
        moves.append(time.process_time() - began)
    began = time.process_time()
    drag.finish(bpy.context)
    release = time.process_time() - began
    back = begin_spread(bpy.context, rig, "hand.R", Spread(spread))
    back.step(back.start - UP)
    back.finish(bpy.context)
    return 1000 * median(moves), 1000 * release


def _redraw(rig):
    """Processor seconds of Python, by the overlays that are on."""
    for bone in rig.pose.bones:
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in TRAILS
    assert len(selected_bones(bpy.context, rig)) == len(TRAILS)
    view = rig.fabrik
    view.trail_frames = 60

    def shown(*, frame):
        view.show_trails = True
        bpy.context.scene.frame_current += frame
        drawing.joined(drawing.trail_lines(bpy.context, handlers.shown_motion(bpy.context)))

    def off():
        view.show_trails = False
        assert handlers.shown_motion(bpy.context) is None

    parts = {
        "off": off,
        "on, nothing has changed": lambda: shown(frame=0),
        "on, the next frame": lambda: shown(frame=1),
    }
    return interleaved(REPEATS, parts, time.process_time)
