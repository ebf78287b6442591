"""Times whole redraws of a Blender with windows, with different things shown; `redraw.py` runs it.

Prints REDRAW and, as JSON, the shortest time of each state in seconds, since other processes can only slow it down.
"""

import json
import time

import bpy
import gui_drive as g

# The sidebar's tab, and the switches of goals, limits and markers' lines.
STATES = {
    "sidebar on Item, no overlay": ("Item", False, False, False),
    "sidebar on FABRIK, no overlay": ("FABRIK Pose", False, False, False),
    "sidebar on Item, goals": ("Item", True, False, False),
    "sidebar on FABRIK, goals, limits of 5 bones, lines of 60 markers": ("FABRIK Pose", True, True, True),
}
ROUNDS = 20


def steps():
    g.area().spaces.active.show_region_ui = True
    with g.override():
        bpy.ops.view3d.view_all()
    yield 1.0
    spent = {name: [] for name in STATES}
    for _ in range(ROUNDS):
        for name, state in STATES.items():
            show(*state)
            yield 0.1
            redraw()
            spent[name].append(redraw())
    print("REDRAW", json.dumps({name: min(seconds) for name, seconds in spent.items()}), flush=True)


def show(tab, goals, limits, errors):
    g.region(rtype="UI").active_panel_category = tab
    bpy.context.scene.fabrik_show_goals, bpy.context.scene.fabrik_show_limits = goals, limits
    bpy.data.objects["Rig"].fabrik.capture.show_errors = errors


def redraw():
    """Seconds of a complete redraw, including panels and overlays."""
    with g.override():
        began = time.perf_counter()
        bpy.ops.wm.redraw_timer(type="DRAW_WIN_SWAP", iterations=1)
        return time.perf_counter() - began


g.run(steps, limit=280.0)
