"""Drives the overlay of goals on the sample person in a crouch; run by `test_gui.py`.

Leaves goals_overlay.png and goals_missed.png for the manual.
"""

from math import radians
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler

HELD = ("foot.L", "foot.R")
TARGETS = {"hand.L": (0.62, 0.2, 1.55), "hand.R": (-0.1, -0.68, 0.55), "head": (-0.1, -0.4, 1.45)}
NEAR = 2e-3


def rig():
    return bpy.data.objects["Rig"]


def target(bone):
    return next(each.target for each in rig().fabrik.effectors if each.bone == bone)


def gap(bone):
    """World distance from a bone's tail to its target."""
    return (rig().matrix_world @ rig().pose.bones[bone].tail - target(bone).matrix_world.translation).length


def look(place, distance, turn, tilt=80.0):
    view = g.area().spaces.active.region_3d
    view.view_perspective = "PERSP"
    view.view_location, view.view_distance = place, distance
    view.view_rotation = Euler((radians(tilt), 0.0, radians(turn))).to_quaternion()


def pixels(name, rtype="WINDOW", box=(0.0, 0.0, 1.0, 1.0)):
    """The picture of a region of the viewport as (height, width, 3) floats; also saved under the name."""
    whole = bpy.data.images.load(g.shot(name))
    width, height = whole.size
    colors = np.array(whole.pixels[:], dtype=np.float32).reshape(height, width, 4)
    bpy.data.images.remove(whole)
    place = g.region(rtype=rtype)
    x = (place.x + round(box[end] * place.width) for end in (0, 2))
    y = (place.y + round(box[end] * place.height) for end in (1, 3))
    cut = colors[slice(*y), slice(*x)]
    save(name, cut)
    return cut[..., :3]


def save(name, colors):
    height, width, _ = colors.shape
    cut = bpy.data.images.new("cut", width, height)
    cut.pixels = np.ascontiguousarray(colors).ravel()
    cut.file_format, cut.filepath_raw = "PNG", str(Path(g.OUT) / name)
    cut.save()
    bpy.data.images.remove(cut)


def orange(picture):
    red, green, blue = np.moveaxis(picture, -1, 0)
    return int(((red > 0.8) & (green > 0.3) & (green < 0.6) & (blue < 0.25)).sum())


def prepare():
    """Both feet pinned, hands and head at their targets, a pole target for an elbow, all live."""
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.show_gizmo = False
    space.overlay.show_text = False
    space.overlay.show_cursor = False
    bpy.context.view_layer.objects.active = rig()
    with g.override():
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.fabrik.pin(bones=",".join(HELD), action="PIN")
        for bone in TARGETS:
            bpy.ops.fabrik.add_effector(bone=bone)
    for bone, place in TARGETS.items():
        target(bone).location, target(bone).empty_display_size = place, 0.06
    kept = rig().fabrik
    kept.effectors[3].bend_target = elbow_target()
    kept.active_effector = 3
    kept.root, kept.live = "FREE", True
    rig().data.bones.active = rig().data.bones["hand.R"]
    look((0.0, -0.1, 0.86), 2.9, 38.0)


def elbow_target():
    pole = bpy.data.objects.new("elbow", None)
    bpy.context.scene.collection.objects.link(pole)
    pole.location, pole.empty_display_size = (-0.75, 0.1, 1.25), 0.06
    return pole


def steps():
    prepare()
    yield 1.0
    assert all(gap(bone) < NEAR for bone in TARGETS), "the crouch does not meet its targets"
    yield from what_is_missed_stands_out()


def what_is_missed_stands_out():
    """A target out of reach has an orange cross, a line and a label. The switch hides all of these."""
    box = (0.2, 0.0, 0.86, 0.94)
    met = orange(pixels("goals_overlay.png", box=box))
    hand = next(each for each in rig().fabrik.effectors if each.bone == "hand.L")
    hand.priority, hand.target.location = 1, (0.98, 0.2, 1.8)
    yield 1.0
    assert gap("hand.L") > 0.05
    assert gap("hand.R") < 0.01, "what comes first gives way"
    missed = orange(pixels("goals_missed.png", box=box))
    assert missed > met + 150, "a goal that is missed does not stand out"
    bpy.context.scene.fabrik_show_goals = False
    g.area().tag_redraw()
    yield 0.6
    assert orange(pixels("goals_off.png", box=box)) < missed - 150, "the switch hides nothing"
    bpy.context.scene.fabrik_show_goals = True
    hand.priority, hand.target.location = 0, TARGETS["hand.L"]


g.run(steps, limit=480.0)
