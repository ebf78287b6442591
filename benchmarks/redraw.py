"""The time that the sidebar's panels and the overlays add to a redraw, on a rig of 300 limited bones with 60 markers.

Their Python is timed in any Blender; whole redraws if FABRIK_GUI_TOOLS is set, in a Blender with windows, which
`redraw_window.py` drives.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import bpy
import numpy as np
from support import scenes

from benchmarks import cases
from benchmarks.tables import Aim, Part, interleaved, table
from fabrik_addon.blender.settings.limit_properties import write_settings
from fabrik_addon.blender.settings.limit_values import settings_of
from fabrik_addon.blender.ui import panels
from fabrik_addon.blender.ui.overlays import goals as goal_overlay
from fabrik_addon.blender.ui.overlays import goals as marker_overlay
from fabrik_addon.blender.ui.overlays import limits as overlay
from fabrik_addon.blender.ui.overlays.drawing import joined
from fabrik_addon.core import Ball

ROOT = Path(__file__).parents[1]
TOOLS = os.environ.get("FABRIK_GUI_TOOLS", "")
LIMBS = 10
MARKERS, FRAMES = 60, 2000
SELECTED = 5
REPEATS = 50
# Numbers of bones of the trunk and of each limb.
SIZES = {"30 bones": (10, 2), "300 bones": (50, 25)}
ERROR = 0.03
_PANELS = "the sidebar's panels, all open"


class Layout:
    """A substitute for Blender's layout, which needs a window: accepts all calls and does nothing."""

    def row(self, **_options):
        return self

    column = split = row

    def nothing(self, *_arguments, **_options):
        return self

    label = prop = prop_search = operator = operator_menu_enum = menu = popover = separator = nothing

    def panel(self, *_arguments, **_options):
        """An open sub-panel: its header and its body."""
        return self, self

    def template_list(self, kind, _name, owner, collection, active_owner, active, rows, maxrows=5):
        """Draws the number of lines that are visible."""
        drawn_by = getattr(bpy.types, kind)
        for item in getattr(owner, collection)[:rows]:
            drawn_by.draw_item(drawn_by, bpy.context, self, owner, item, 0, active_owner, active)


class Stage:
    """The part of `self` that a panel's draw function uses."""

    def __init__(self, panel):
        self.panel, self.layout = panel, Layout()

    def draw_rig(self, *arguments):
        self.panel.draw_rig(self, *arguments)


def measure():
    """The Python of panels and overlays on a small and on a large rig, and whole redraws if there are windows."""
    spent, redraws = {}, {}
    for name, size in SIZES.items():
        spent[name] = python_of(crowded_rig(*size))
        if TOOLS:
            redraws[name] = _in_a_window()
    title = f"Redraw: the Python of panels and overlays, {LIMBS} effectors, {MARKERS} markers, processor ms"
    parts = [_table(title, "what", spent)]
    if TOOLS:
        title = "Redraw: the whole window of 800 × 900, drawn in software, the least of 20, ms"
        parts.append(_table(title, "what is shown", redraws))
    panels_ms = 1000 * spent["300 bones"][_PANELS]
    aim = Aim.at_most("Redraw of the sidebar with 300 bones, Python part", 1, panels_ms, "ms")
    return Part("\n".join(parts), (aim,))


def _table(title, what, spent):
    """Milliseconds of each part by the size of the rig."""
    names = next(iter(spent.values()))
    rows = [(name, *(f"{1000 * seconds[name]:.2f}" for seconds in spent.values())) for name in names]
    return table(title, (what, *spent), rows)


def python_of(rig):
    """Processor seconds of each part."""
    context = bpy.context
    stages = [
        Stage(panel)
        for panel in panels.CLASSES
        if issubclass(panel, bpy.types.Panel) and (not hasattr(panel, "poll") or panel.poll(context))
    ]
    bones = overlay.shown_bones(context)
    parts = {
        _PANELS: lambda: [stage.panel.draw(stage, context) for stage in stages],
        "goals and their labels": lambda: [
            joined(goal_overlay.lines_of(rig)),
            goal_overlay.labels(rig, context.scene),
        ],
        f"limits of {len(bones)} bones that have not moved": lambda: overlay.gather(bones, bones[0]),
        "lines from markers to bones": lambda: joined(marker_overlay.error_lines(rig)),
    }
    return interleaved(REPEATS, parts, time.process_time)


def crowded_rig(trunk, limb):
    """A rig in Pose mode, every bone limited, with an effector on each limb and markers that were baked."""
    cases.new_scene()
    rows = cases.row_of_bones("trunk", "", (0.0, 0.0, 0.0), (0.0, 0.0, 0.04), trunk)
    for number in range(LIMBS):
        joint = rows[(number + 1) * trunk // LIMBS - 1]
        step = (0.04 * np.cos(number), 0.04 * np.sin(number), 0.01)
        rows += cases.row_of_bones(f"limb{number} ", joint[0], joint[3], step, limb)
    rig = scenes.make_rig(rows)
    for bone in rig.pose.bones:
        write_settings(bone, settings_of(Ball(0.5, (-0.4, 0.4))))
    for number in range(LIMBS):
        end = rig.pose.bones[f"limb{number} {limb - 1}"]
        scenes.aim(rig, end.name, scenes.empty_at(end.tail + end.vector))
    _put_markers_on(rig)
    _pose_mode(rig)
    bpy.context.scene.fabrik_show_limits = rig.fabrik.capture.show_errors = True
    return rig


def _put_markers_on(rig):
    """Markers near the tails of bones, and the data that a bake stores with them."""
    rng = np.random.default_rng(8)
    bones = [rig.pose.bones[int(place)] for place in rng.integers(len(rig.pose.bones), size=MARKERS)]
    walks = np.array([bone.tail for bone in bones]) + ERROR * rng.normal(size=(FRAMES, MARKERS, 3))
    empties = scenes.import_positions(walks, [f"M{place}" for place in range(MARKERS)])
    capture = rig.fabrik.capture
    for bone, (name, empty) in zip(bones, empties.items(), strict=True):
        marker = capture.markers.add()
        marker.name, marker.target, marker.bone, marker.error = name, empty, bone.name, ERROR
    capture.report = bpy.data.texts.new("report")
    rig.fabrik.last_result = "300 bones, 2000 frames\nRMS 30.0 mm, worst 60.0 mm\nM0, frame 7"


def _pose_mode(rig):
    scenes.make_active(rig)
    bpy.ops.object.mode_set(mode="POSE")
    for place, bone in enumerate(rig.pose.bones):
        (bone if hasattr(bone, "select") else bone.bone).select = place < SELECTED
    rig.data.bones.active = rig.data.bones[0]
    bpy.context.view_layer.update()


def _in_a_window():
    """The least seconds of whole redraws for each state, in a Blender with windows and the extension from build/."""
    with tempfile.TemporaryDirectory() as folder:
        blend = Path(folder) / "crowded.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(blend), copy=True)
        options = {
            "--size": "800x900",
            "--out": folder,
            "--addon": ROOT / "build" / "fabrik.zip",
            "--blend": blend,
            "--drive": Path(__file__).with_name("redraw_window.py"),
        }
        command = [Path(TOOLS) / "screenshot.sh", *(part for option in options.items() for part in option)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    line = next(line for line in said.splitlines() if line.startswith("REDRAW "))
    return json.loads(line.removeprefix("REDRAW "))
