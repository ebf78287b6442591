"""Drives dragging over time: by the bone, and by a point of its trail; a hold, and trails off; run by `test_gui.py`."""

import importlib
from math import radians, sin

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler, Vector

EXTENSION = "bl_ext.user_default.fabrik"
FRAMES = np.arange(1, 82)
HERE, SPREAD = 41, 15


def module(name):
    return importlib.import_module(f"{EXTENSION}.{name}")


def rig():
    return bpy.data.objects["Rig"]


def tail(name):
    return rig().matrix_world @ rig().pose.bones[name].tail


def key_a_wave():
    """A right arm that waves over 81 frames, with a key on every frame; hips and legs are keyed at rest."""
    keyframes = module("blender.rig.keyframes")
    action = keyframes.new_action(rig(), "Wave")
    for bone in rig().pose.bones:
        bone.rotation_mode = "XYZ"
        turns = np.zeros((len(FRAMES), 3))
        if bone.name in {"upper_arm.R", "forearm.R"}:
            turns[:, 0] = [0.35 + 0.3 * sin(0.08 * frame) for frame in FRAMES]
        path = keyframes.bone_path(bone.name, "rotation_euler")
        keyframes.write_curves(action, rig(), path, FRAMES, turns, bone.name)
    hips = keyframes.bone_path("hips", "location")
    keyframes.write_curves(action, rig(), hips, FRAMES, np.zeros((len(FRAMES), 3)), "hips")


def keys():
    """The values of all keys."""
    keyframes = module("blender.rig.keyframes")
    return {(curve.data_path, curve.array_index): keyframes.keys(curve) for curve in keyframes.curves(rig())}


def same(before):
    return all(np.array_equal(now, before[path]) for path, now in keys().items())


def way(name="hand.R"):
    """(F, 3) positions of a bone's tail on all frames, as Blender evaluates them."""
    scene, found = bpy.context.scene, []
    before = scene.frame_current
    for frame in FRAMES.tolist():
        scene.frame_set(frame)
        found.append(tail(name))
    scene.frame_set(before)
    return np.array(found)


def select(*names):
    for each in rig().pose.bones:
        each.select = each.name in names
    rig().data.bones.active = rig().data.bones[names[0]]


def steps():
    with g.override():
        bpy.context.view_layer.objects.active = rig()
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.pose.select_all(action="DESELECT")
    for child in rig().children:
        child.hide_set(True)
    space = g.area().spaces.active
    space.region_3d.view_perspective = "ORTHO"
    space.region_3d.view_rotation = Euler((radians(90.0), 0.0, radians(90.0))).to_quaternion()
    space.region_3d.view_location, space.region_3d.view_distance = (0.0, 0.0, 0.95), 2.6
    space.overlay.show_cursor = False
    key_a_wave()
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    bpy.context.scene.frame_set(HERE)
    rig().fabrik.drag.spread = SPREAD
    select("hand.R")
    with g.override():
        bpy.ops.ed.undo_push(message="keyed")
    yield 1.0
    yield from spread_drag()
    yield from escape()
    yield from trail_drag()
    yield from hold()
    yield from trails_off()


def move(shift, place):
    """Move the mouse by a shift in the plane of the view from a position."""
    x, y = g.view_xy(place)
    to_x, to_y = g.view_xy(place + Vector(shift))
    yield from g.drag_to(g._pos[0] + to_x - x, g._pos[1] + to_y - y)  # noqa: SLF001  nothing else says where it is
    yield


def spread_drag():
    """Raise a hand on this frame. The frames around it follow, and one undo reverts all of it."""
    before, was = keys(), way()
    g.goto(*g.view_xy(tail("hand.R")))
    yield
    g.key("F")
    yield
    yield from move((0.0, 0.0, 0.15), tail("hand.R"))
    g.shot("edit_spread.png")
    g.click()
    yield 1.0
    moved = (way() - was)[:, 2]
    assert abs(moved[HERE - 1] - 0.15) < 0.01, moved
    assert 0.05 < moved[HERE - 1 + SPREAD // 2] < 0.1, moved
    assert np.abs(moved[np.abs(FRAMES - HERE) >= SPREAD]).max() == 0.0
    g.key("Z", ctrl=True)
    yield 1.0
    assert same(before), "undo takes not all of it back"


def escape():
    """Esc changes no key, and restores the pose."""
    before, place = keys(), tail("hand.R")
    g.goto(*g.view_xy(tail("hand.R")))
    yield
    g.key("F")
    yield
    yield from move((0.0, 0.1, 0.1), tail("hand.R"))
    assert (tail("hand.R") - place).length > 0.05
    g.key("ESC")
    yield 0.8
    assert same(before)
    assert (tail("hand.R") - place).length < 1e-5


def trail_drag():
    """Drag a point of the trail. Its frame changes, and the current frame stays current."""
    view = rig().fabrik
    # The hand moves back and forth. Near this frame, no other frame has the position of frame 41.
    view.show_trails, view.trail_frames = True, 25
    bpy.context.scene.frame_set(50)
    yield 1.0
    g.shot("edit_trail.png")
    before, was = keys(), way()
    point = Vector(was[HERE - 1])
    g.goto(*g.view_xy(point))
    yield
    g.key("F")
    yield
    yield from move((0.0, 0.12, 0.1), point)
    g.shot("edit_trail_dragged.png")
    g.click()
    yield 1.0
    assert bpy.context.scene.frame_current == 50
    moved = way() - was
    assert np.abs(moved[HERE - 1] - (0.0, 0.12, 0.1)).max() < 0.01, moved[HERE - 1]
    assert np.abs(moved[np.abs(FRAMES - HERE) >= SPREAD]).max() == 0.0
    g.key("Z", ctrl=True)
    yield 1.0
    assert same(before)


def hold():
    """Keep a hand in place from frame 40 to 60. One undo reverts that."""
    before, was = keys(), way()
    with g.override():
        bpy.ops.fabrik.add_hold("EXEC_DEFAULT", True, bone="hand.R", first=40, last=60, ease=8)
    yield 0.6
    held = way()
    assert np.abs(held[39:60] - held[39]).max() < 1e-3
    assert np.abs(held - was).max() > 0.02
    assert len(rig().fabrik.holds) == 1
    g.shot("edit_hold.png")
    g.key("Z", ctrl=True)
    yield 1.0
    assert same(before)
    assert not len(rig().fabrik.holds)
    with g.override():
        bpy.ops.fabrik.hold_contacts("INVOKE_DEFAULT")
    yield 0.6
    assert not len(rig().fabrik.holds), "it asks first"
    g.key("ESC")
    yield 0.6
    assert not len(rig().fabrik.holds)


def trails_off():
    """Switch trails on, then off by undo; then on again, and off by the switch."""
    rig().fabrik.show_trails = False
    with g.override():
        bpy.ops.ed.undo_push(message="no trails")
        bpy.ops.wm.context_toggle("EXEC_DEFAULT", True, data_path="object.fabrik.show_trails")
    yield 0.6
    assert rig().fabrik.show_trails
    g.key("Z", ctrl=True)
    yield 1.0
    assert not rig().fabrik.show_trails
    rig().fabrik.show_trails = True
    yield 0.4
    rig().fabrik.show_trails = False
    yield 0.4


g.run(steps, limit=480.0)
