"""Drags the sample person into poses by key and mouse, with pinned feet and default settings; run by `test_gui.py`."""

from math import atan2, degrees, radians

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler, Vector

FEET = ("foot.L", "foot.R")
# The views of the pictures: degrees of tilt, and of rotation about Z.
OBLIQUE, ASIDE = (78.0, 35.0), (80.0, 60.0)
SKIN = (0.86, 0.66, 0.54)


def rig():
    return bpy.data.objects["Rig"]


def bone(name):
    return rig().pose.bones[name]


def tail(name):
    return rig().matrix_world @ bone(name).tail


def feet():
    places = [place for name in FEET for place in (bone(name).head, bone(name).tail)]
    return np.array([rig().matrix_world @ place for place in places])


def look(view):
    """View from a side."""
    region = g.area().spaces.active.region_3d
    region.view_perspective = "ORTHO"
    region.view_rotation = Euler((radians(view[0]), 0.0, radians(view[1]))).to_quaternion()
    region.view_location, region.view_distance = (0.0, -0.2, 0.85), 2.1


def show(picture, view):
    """A picture with the skin."""
    look(view)
    for child in rig().children:
        child.hide_set(False)
    yield 0.6
    g.shot(picture)
    for child in rig().children:
        child.hide_set(True)
    yield


def begin(name, place):
    """Start dragging a bone by its key, with a view whose plane contains the path to a position."""
    way = Vector(place) - tail(name)
    look((90.0, degrees(atan2(way.y, way.x))))
    for each in rig().pose.bones:
        each.select = each.name == name
    rig().data.bones.active = rig().data.bones[name]
    yield 0.6
    g.goto(*g.view_xy(tail(name)))
    yield
    g.key("F")
    yield


def move(place, steps=6):
    """Move the mouse to the pixel of a position."""
    yield from g.drag_to(*g.view_xy(Vector(place)), steps=steps)
    yield


def lead(name, *places):
    """Drag a bone to several positions in the world in turn."""
    for place in places:
        yield from begin(name, place)
        yield from move(place)
        g.click()
        yield 0.6
        assert not g.window().modal_operators
        assert np.abs(feet() - STILL["feet"]).max() < 2e-3, "a pinned foot has moved"


def rest():
    """Restore the start pose."""
    for each in rig().pose.bones:
        each.matrix_basis.identity()
        each.location, each.rotation_quaternion = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    yield 0.6


STILL = {}


def steps():
    with g.override():
        bpy.context.view_layer.objects.active = rig()
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.pose.select_all(action="DESELECT")
        bpy.ops.fabrik.pin(bones=",".join(FEET))
    with g.override():
        bpy.ops.screen.screen_full_area(use_hide_panels=True)
    yield 1.0
    space = g.area().spaces.active
    space.show_gizmo = False
    space.shading.color_type, space.shading.single_color = "SINGLE", SKIN
    space.overlay.show_cursor = space.overlay.show_text = False
    # A software renderer draws the mesh slowly.
    for child in rig().children:
        child.hide_set(True)
    STILL["feet"] = feet()
    yield
    for pose in (front, squat, pick_up, shoulder, far, head):
        yield from pose()
        yield from rest()


def front():
    """Move a hand 70 cm forward. The arm moves, and the body hardly moves."""
    hips, hand = rig().matrix_world @ bone("hips").head, tail("hand.L")
    place = hand + Vector((-0.5, -0.66, 0.4))
    yield from lead("hand.L", place)
    assert (tail("hand.L") - place).length < 0.02
    assert (rig().matrix_world @ bone("hips").head - hips).length < 0.05
    yield from show("pose_front.png", ASIDE)


def squat():
    """The hips move down: knees bend, the trunk leans forward, feet stay flat."""
    place = tail("hips") - Vector((0.0, -0.05, 0.3))
    yield from lead("hips", place)
    trunk = (tail("head") - rig().matrix_world @ bone("hips").head).normalized()
    assert trunk.z > 0.75, trunk
    assert abs(trunk.x) < 0.01, trunk
    assert trunk.y < 0.0, trunk
    assert bone("shin.L").head.y < -0.1
    yield from show("pose_squat.png", ASIDE)


def pick_up():
    """Move the hips down and back, a hand to the floor in front of the feet, and the other hand to its knee."""
    yield from lead("hips", tail("hips") + Vector((0.0, 0.1, -0.22)))
    yield from lead("hand.L", Vector((0.15, -0.4, 0.06)))
    assert tail("hand.L").z < 0.12, tail("hand.L")
    knee = rig().matrix_world @ bone("shin.R").head
    yield from lead("hand.R", knee + Vector((-0.02, -0.06, 0.1)))
    assert tail("hand.L").z < 0.2, tail("hand.L")
    yield from show("pose_pick_up.png", ASIDE)


def shoulder():
    """Move a hand in front of the chest and onto the other shoulder."""
    before = rig().matrix_world @ bone("upper_arm.R").head
    place = before + Vector((0.02, -0.06, 0.03))
    ahead = Vector((0.15, -0.4, place.z))
    yield from lead("hand.L", ahead, place)
    assert (tail("hand.L") - place).length < 0.1, tail("hand.L")
    yield from show("pose_shoulder.png", OBLIQUE)


def far():
    """A hand is pulled far out of reach: the body leans toward it, in balance, and the feet do not move."""
    place = tail("hand.L") + Vector((0.6, -1.2, 0.4))
    yield from lead("hand.L", place)
    yield from show("pose_far.png", ASIDE)


def head():
    """Move the head forward and down in twelve steps of one drag."""
    for child in rig().children:
        child.hide_set(False)
    begun = tail("head")
    yield from begin("head", begun + Vector((0.0, -0.25, -0.45)))
    for number in range(1, 13):
        yield from move(begun + number / 12.0 * Vector((0.0, -0.25, -0.45)), steps=1)
        g.shot(f"pose_head_{number:02}.png")
    g.key("ESC")
    yield 0.6


g.run(steps, limit=560.0)
