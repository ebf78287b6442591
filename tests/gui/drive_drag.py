"""Drives dragging and pinning on the sample person; run by `test_gui.py`.

Leaves drag_header.png, drag_pinned.png and drag_tool.png to be looked at.
"""

import importlib
from math import radians

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler, Vector

EXTENSION = "bl_ext.user_default.fabrik"
FEET = ("foot.L", "foot.R")
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")


def module(name):
    return importlib.import_module(f"{EXTENSION}.fabrik_addon.blender.{name}")


def rig():
    return bpy.data.objects["Rig"]


def tail(name):
    return rig().matrix_world @ rig().pose.bones[name].tail


def feet():
    bones = [rig().pose.bones[name] for name in FEET]
    return np.array([rig().matrix_world @ place for bone in bones for place in (bone.head, bone.tail)])


def channels():
    """What all channels of all bones hold, to the bit."""
    return [[tuple(getattr(bone, name)) for name in CHANNELS] for bone in rig().pose.bones]


def matrices():
    return np.array([bone.matrix for bone in rig().pose.bones])


def outside():
    """Radians that the worst bone is outside its limit."""
    limits = module("limit_properties").read_limits(rig())
    legal = module("legal")
    worst = 0.0
    for name, limit in limits.items():
        turn = np.array(rig().pose.bones[name].matrix_basis.to_quaternion())[None]
        worst = max(worst, float(legal.angles_between(turn, legal.legal_rotations(limit, turn)).max()))
    return worst


def select(*names):
    for each in rig().pose.bones:
        each.select = each.name in names
    rig().data.bones.active = rig().data.bones[names[0]]


def look_from_the_front():
    space = g.area().spaces.active
    space.region_3d.view_perspective = "ORTHO"
    space.region_3d.view_rotation = Euler((radians(90.0), 0.0, 0.0)).to_quaternion()
    space.region_3d.view_location, space.region_3d.view_distance = (0.0, 0.0, 0.95), 3.2
    space.overlay.show_cursor = False


def steps():
    with g.override():
        bpy.context.view_layer.objects.active = rig()
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.pose.select_all(action="DESELECT")
    look_from_the_front()
    g.area().spaces.active.show_region_toolbar = True
    yield 1.0
    yield from pin_with_the_key()
    yield from drag_30_cm()
    yield from undo_and_redo()
    yield from lock_an_axis()
    yield from type_a_number()
    yield from escape()
    yield from use_the_tool()
    yield from switch_the_extension_off()


def pin_with_the_key():
    """Both feet; the same key lets them go and pins them again."""
    select(*FEET)
    g.goto(*g.center())
    yield
    for count in (2, 0, 2):
        g.key("P")
        yield 0.6
        pins = [each for each in rig().fabrik.effectors if each.kind == "PIN"]
        assert len(pins) == count, [each.bone for each in pins]
    assert {each.bone for each in pins} == set(FEET)
    select("hand.L")
    with g.override():
        bpy.ops.ed.undo_push(message="pinned")


def begin():
    """Take hold of the left hand by its key."""
    select("hand.L")
    g.goto(*g.view_xy(tail("hand.L")))
    yield
    g.key("F")
    yield
    assert [each.bl_idname for each in g.window().modal_operators] == ["FABRIK_OT_drag"]


def move(shift):
    """Move the mouse by a shift of the hand in the plane of the view."""
    x, y = g.view_xy(tail("hand.L"))
    to_x, to_y = g.view_xy(tail("hand.L") + Vector(shift))
    yield from g.drag_to(g._pos[0] + to_x - x, g._pos[1] + to_y - y)  # noqa: SLF001  nothing else says where it is
    yield


def drag_30_cm():
    """A hand goes 30 cm; the feet stay, limits hold."""
    still, hand = feet(), tail("hand.L")
    yield from begin()
    yield from move((0.18, 0.0, 0.24))
    g.shot("drag_header.png")
    g.click()
    yield 0.8
    assert not g.window().modal_operators
    went = tail("hand.L") - hand
    assert (went - Vector((0.18, 0.0, 0.24))).length < 0.01, went
    assert abs(went.length - 0.3) < 0.01
    assert np.linalg.norm(feet() - still, axis=1).max() < 1e-3
    assert outside() < 1e-4
    g.shot("drag_pinned.png")


def undo_and_redo():
    """One step back, the whole pose; one step on, the same pose."""
    dragged = channels()
    g.key("Z", ctrl=True)
    yield 1.0
    assert np.abs(matrices() - np.array([bone.bone.matrix_local for bone in rig().pose.bones])).max() < 1e-6
    assert len(rig().fabrik.effectors) == 2, "undo takes more than the drag back"
    g.key("Z", ctrl=True, shift=True)
    yield 1.0
    assert channels() == dragged
    g.key("Z", ctrl=True)
    yield 1.0


def lock_an_axis():
    """Z keeps the hand on the vertical whatever the mouse does; Shift Z in the plane across it."""
    hand = tail("hand.L")
    yield from begin()
    g.key("Z")
    yield
    yield from move((-0.15, 0.0, 0.12))
    went = tail("hand.L") - hand
    assert max(abs(went.x), abs(went.y)) < 1e-3, went
    assert 0.1 < went.z < 0.14, went
    g.key("X")
    yield 0.4
    went = tail("hand.L") - hand
    assert max(abs(went.z), abs(went.y)) < 1e-3, went
    assert -0.17 < went.x < -0.13, went
    g.key("ESC")
    yield 0.6


def type_a_number():
    """X, a number and Enter."""
    hand = tail("hand.L")
    yield from begin()
    g.key("X")
    yield
    g.text("-.1")
    yield 0.4
    g.key("RET")
    yield 0.8
    assert (tail("hand.L") - hand - Vector((-0.1, 0.0, 0.0))).length < 1e-3
    g.key("Z", ctrl=True)
    yield 1.0
    assert (tail("hand.L") - hand).length < 1e-5


def escape():
    """Esc and the right button put everything back, to the bit."""
    rig().pose.bones["forearm.L"].rotation_quaternion = (0.9, 0.31, 0.01, -0.02)
    rig().pose.bones["thigh.R"].rotation_quaternion = (1.9, 0.5, 0.1, 0.2)
    with g.override():
        bpy.ops.ed.undo_push(message="posed")
    yield
    before = channels()
    for way in ("ESC", "RIGHTMOUSE"):
        yield from begin()
        yield from move((-0.1, 0.0, 0.2))
        assert channels() != before
        g.key(way)
        yield 0.6
        assert not g.window().modal_operators
        assert channels() == before
    assert np.array_equal(feet(), feet())


def use_the_tool():
    """Its button, then press on a forearm and drag; a press on nothing does nothing."""
    yield from g.find_button("fabrik.drag_tool", rtype="TOOLS", xfrac=0.5, step=14)
    g.click()
    yield 0.8
    assert bpy.context.workspace.tools.from_space_view3d_mode("POSE").idname == "fabrik.drag_tool"
    g.shot("drag_tool.png")
    select("hips")
    before = tail("forearm.R")
    middle = rig().matrix_world @ rig().pose.bones["forearm.R"].center
    yield from press_and_drag(middle.lerp(before, 0.3), (0.1, 0.0, 0.12))
    assert rig().data.bones.active.name == "forearm.R"
    assert (tail("forearm.R") - before).length > 0.08, tail("forearm.R") - before
    assert not g.window().modal_operators
    posed = channels()
    yield from press_and_drag(Vector((1.0, 0.0, 0.5)), (0.1, 0.0, 0.1))
    assert channels() == posed
    g.shot("drag_tool_used.png")


def press_and_drag(place, shift):
    g.goto(*g.view_xy(place))
    yield
    g.press()
    yield
    x, y = g.view_xy(place + Vector(shift))
    yield from g.drag_to(x, y)
    yield
    g.release()
    yield 0.8


def switch_the_extension_off():
    """Tool and keys are gone, and come back."""
    with g.override():
        bpy.ops.preferences.addon_disable(module=EXTENSION)
    yield 0.8
    assert not shortcuts()
    g.shot("drag_off.png")
    with g.override():
        bpy.ops.preferences.addon_enable(module=EXTENSION)
    yield 0.8
    assert shortcuts() == {"fabrik.drag", "fabrik.pin"}


def shortcuts():
    keys = bpy.context.window_manager.keyconfigs.addon.keymaps
    return {
        item.idname
        for keymap in keys
        for item in keymap.keymap_items
        if "fabrik" in item.idname and "Tool" not in keymap.name
    }


g.run(steps)
