"""Drives the sidebar through the states of a rig: every panel draws in each without an error; run by `test_gui.py`."""

import sys
from pathlib import Path

import bpy
import gui_drive as g

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_folds, open_panels

# The panels that Blender has drawn completely since the last check.
DRAWN = set()


def rig():
    return bpy.data.objects["Rig"]


def panels():
    return [kind for name in dir(bpy.types) if name.startswith("FABRIK_PT_") for kind in [getattr(bpy.types, name)]]


def note(panel, _context):
    DRAWN.add(type(panel).__name__)


def prepare():
    """Open each panel, and let it report when it has been drawn."""
    open_panels()
    open_folds()
    for kind in panels():
        kind.append(note)
    g.area().spaces.active.show_region_ui = True


def look():
    """Redraw the sidebar."""
    DRAWN.clear()
    g.region(rtype="UI").tag_redraw()
    g.redraw()
    yield 0.6
    if bpy.context.view_layer.objects.active is not None:
        assert len(DRAWN) >= 2, DRAWN


def steps():
    prepare()
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Pose"
    yield 1.0
    yield from without_a_rig()
    yield from effectors()
    yield from limits()
    g.region(rtype="UI").active_panel_category = "FABRIK Motion"
    yield 1.0
    yield from markers()


def without_a_rig():
    bpy.context.view_layer.objects.active = None
    yield from look()
    assert {"FABRIK_PT_drag"} == DRAWN, DRAWN
    g.shot("panels_no_rig.png")


def effectors():
    bpy.context.view_layer.objects.active = rig()
    with g.override():
        bpy.ops.object.mode_set(mode="OBJECT")
    kept = rig().fabrik
    kept.effectors.clear()
    rig().data.bones.active = None
    yield from look()
    rig().data.bones.active = rig().data.bones["head"]
    effector = kept.effectors.add()
    effector.name, effector.bone, effector.target = "nod", "head", rig()
    yield from look()
    effector.target, effector.pin_location, effector.point = None, (0.0, 0.0, 1.0), "OFFSET"
    yield from look()
    kept.capture.result = "11 bones, 3 frames\nRMS 2 mm"
    yield from look()
    g.shot("panels_effectors.png")


def limits():
    with g.override():
        bpy.ops.object.mode_set(mode="POSE")
        bone = rig().pose.bones["head"]
        rig().data.bones.active = bone.bone
        bpy.ops.fabrik.clear_limit(bones="head")
    yield from look()
    for kind in ("BALL", "HINGE", "FIXED", "POLYGON"):
        with g.override():
            bpy.ops.fabrik.set_limit(bones="head", type=kind)
        yield from look()
    with g.override():
        bpy.ops.fabrik.set_limit(bones="head", type="HINGE", slide=(1.0, 1.5))
    bone["fabrik_hinge"] = (1.0, 0.0)
    yield from look()
    g.shot("panels_limits.png")


def markers():
    capture = rig().fabrik.capture
    capture.markers.clear()
    marker = capture.markers.add()
    marker.name, marker.bone, marker.target, marker.point = "LASI", "head", rig(), "OFFSET"
    marker.figures = 0.002, 0.005, 1.0, 80.0
    capture.report = bpy.data.texts.new("report")
    yield from look()
    g.shot("panels_markers.png")


g.run(steps, limit=480.0)
