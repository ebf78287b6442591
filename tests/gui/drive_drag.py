"""Drives dragging on the sample person by its key; run by `test_gui.py`.

Leaves drag_header.png, drag_pinned.png, drag_squat.png, drag_axis.png and drag_turn.png to be looked at.
"""

import importlib
from math import degrees, radians

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler, Vector

EXTENSION = "bl_ext.user_default.fabrik"
FEET = ("foot.L", "foot.R")
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")


def module(name):
    return importlib.import_module(f"{EXTENSION}.{name}")


def rig():
    return bpy.data.objects["Rig"]


def tail(name):
    return rig().matrix_world @ rig().pose.bones[name].tail


def feet():
    bones = [rig().pose.bones[name] for name in FEET]
    return np.array([rig().matrix_world @ place for bone in bones for place in (bone.head, bone.tail)])


def channels():
    """The exact channels of all bones."""
    return [[tuple(getattr(bone, name)) for name in CHANNELS] for bone in rig().pose.bones]


def matrices():
    return np.array([bone.matrix for bone in rig().pose.bones])


def outside():
    """Radians by which the worst bone is outside its limit."""
    limits = module("blender.settings.limit_properties").read_limits(rig())
    legal, angle_between = module("core.limits"), module("core.rotations").angle_between
    worst = 0.0
    for name, limit in limits.items():
        turn = np.array(rig().pose.bones[name].matrix_basis.to_quaternion())[None]
        worst = max(worst, float(angle_between(turn, legal.legal_rotations(limit, turn)).max()))
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
    # A software renderer draws the mesh slowly.
    for child in rig().children:
        child.hide_set(True)
    look_from_the_front()
    g.area().spaces.active.show_region_toolbar = False
    yield 1.0
    pin_the_feet()
    yield from drag_30_cm()
    yield from undo_and_redo()
    yield from squat()
    yield from lock_an_axis()
    yield from type_a_number()
    yield from turn()
    yield from escape()


def pin_the_feet():
    with g.override():
        bpy.ops.fabrik.pin(bones=",".join(FEET), action="PIN")
        bpy.ops.ed.undo_push(message="pinned")


def begin(bone="hand.L"):
    """Start dragging a bone with the key."""
    select(bone)
    g.goto(*g.view_xy(tail(bone)))
    yield
    g.key("F")
    yield
    assert [each.bl_idname for each in g.window().modal_operators] == ["FABRIK_OT_drag"]


def move(shift, bone="hand.L"):
    """Move the mouse by a shift of the bone's tail in the plane of the view."""
    x, y = g.view_xy(tail(bone))
    to_x, to_y = g.view_xy(tail(bone) + Vector(shift))
    yield from g.drag_to(g._pos[0] + to_x - x, g._pos[1] + to_y - y)  # noqa: SLF001  nothing else says where it is
    yield


def drag_30_cm():
    """Drag a hand by 30 cm. The feet stay, and limits hold."""
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
    """One undo restores the whole pose; one redo gives the same pose again."""
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


def squat():
    """Lower the hips with only the pins set. The feet stay, the trunk stays upright, and a pinned root stays."""
    assert rig().fabrik.root == "AUTO"
    still, hips, crown = feet(), tail("hips"), tail("head")
    for root in ("AUTO", "FIXED"):
        rig().fabrik.root = root
        yield from begin("hips")
        yield from move((0.0, 0.0, -0.14), "hips")
        assert np.linalg.norm(feet() - still, axis=1).max() < 1e-3
        if root == "AUTO":
            g.shot("drag_squat.png")
            assert abs((hips - tail("hips")).z - 0.14) < 0.01, tail("hips")
            assert abs((crown - tail("head")).z - 0.14) < 0.01, tail("head")
        else:
            assert tuple(rig().pose.bones["hips"].location) == (0.0, 0.0, 0.0)
        g.key("ESC")
        yield 0.6
    rig().fabrik.root = "AUTO"


def lock_an_axis():
    """Z keeps the hand on the vertical for any mouse movement; Shift Z keeps it in the plane perpendicular to that."""
    hand = tail("hand.L")
    yield from begin()
    g.key("Z")
    yield
    yield from move((-0.15, 0.0, 0.12))
    went = tail("hand.L") - hand
    g.shot("drag_axis.png")
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
    """Type X, a number and Enter."""
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


def turn():
    """R rotates the bone about its point as the mouse moves around it."""
    hand, before = tail("hand.L"), rig().pose.bones["hand.L"].matrix.to_quaternion()
    x, y = g.view_xy(hand)
    select("hand.L")
    g.goto(x + 150, y)
    yield
    g.key("F")
    yield
    g.key("R")
    yield
    yield from g.drag_to(x + 130, y + 75)
    yield
    g.shot("drag_turn.png")
    g.key("RET")
    yield 0.8
    turned = before.rotation_difference(rig().pose.bones["hand.L"].matrix.to_quaternion()).to_axis_angle()
    assert abs(degrees(turned[1]) - 30.0) < 2.0, turned
    assert (tail("hand.L") - hand).length < 0.005, "the point has not stayed"
    g.key("Z", ctrl=True)
    yield 1.0


def escape():
    """Esc and the right button restore everything exactly."""
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


g.run(steps, limit=480.0)
