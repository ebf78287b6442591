"""Drives a generated Rigify human by what animators see of it: hand_ik, torso, chest and head; run by `test_gui.py`.

Set up by the panel's button, both feet pinned. Leaves control_*.png, the mesh's bones alone, to be looked at.
"""

from math import radians

import addon_utils
import bpy
import gui_drive as g
from mathutils import Euler, Vector

PLACE = 2e-4


def rig():
    return bpy.data.objects["Generated"]


def generate():
    """A human as Rigify generates it, in the place of the sample person."""
    addon_utils.enable("rigify", default_set=True)
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    data = bpy.data.armatures.new("Meta")
    meta = bpy.data.objects.new("Meta", data)
    bpy.context.scene.collection.objects.link(meta)
    bpy.context.view_layer.objects.active = meta
    bpy.ops.object.mode_set(mode="EDIT")
    from rigify.metarigs.Basic import basic_human

    basic_human.create(meta)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.pose.rigify_generate()
    bpy.context.object.name = "Generated"
    bpy.data.objects.remove(meta)
    bpy.context.view_layer.objects.active = rig()


def show(mesh_bones):
    """Show the bones that the mesh follows, or what animators see."""
    for collection in rig().data.collections_all:
        collection.is_visible = (collection.name == "DEF") == mesh_bones and collection.name not in {"ORG", "MCH"}


def steps():
    with g.override():
        generate()
        rig().show_in_front = True
        bpy.ops.object.mode_set(mode="POSE")
        assert bpy.ops.fabrik.use_control_rig() == {"FINISHED"}
        show(mesh_bones=False)
        bpy.ops.fabrik.pin(bones="foot_ik.L,foot_ik.R")
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.overlay.show_cursor = False
    space.region_3d.view_perspective = "ORTHO"
    space.region_3d.view_rotation = Euler((radians(80.0), 0.0, radians(40.0))).to_quaternion()
    space.region_3d.view_location, space.region_3d.view_distance = (0.0, -0.2, 1.0), 4.0
    yield 1.0
    yield from dragged("hand_ik.L", (0.0, -0.45, 0.2))
    yield from dragged("torso", (0.0, 0.05, -0.2))
    yield from dragged("chest", (0.0, -0.2, -0.05))
    yield from dragged("head", (0.0, -0.15, -0.05))


def dragged(control, shift):
    """Lead a control's bone to where it is wanted by `F` and the mouse; the feet stay."""
    bone = rig().pose.bones[rig().fabrik.control.controls[control].stands_for]
    feet = {pin.bone: rig().pose.bones[pin.bone].tail.copy() for pin in rig().fabrik.effectors}
    for each in rig().pose.bones:
        each.select = each.name == control
    rig().data.bones.active = rig().data.bones[control]
    tail = rig().matrix_world @ bone.tail
    g.goto(*g.view_xy(tail))
    yield
    g.key("F")
    yield 0.6
    yield from g.drag_to(*g.view_xy(tail + Vector(shift)), steps=8)
    yield 0.8
    g.click()
    yield 0.8
    assert not g.window().modal_operators
    moved = (rig().matrix_world @ bone.tail - tail).length
    assert moved > 0.5 * Vector(shift).length, (control, moved)
    for name, place in feet.items():
        assert (rig().pose.bones[name].tail - place).length < PLACE, (control, name)
    kept = rig().fabrik.control
    assert all(rig().path_resolve(row.name) == row.ik for row in kept.switches if "thigh" in row.name), control
    show(mesh_bones=True)
    yield 0.6
    g.shot(f"control_{control.partition('_')[0]}.png")
    show(mesh_bones=False)
    yield 0.4


g.run(steps, limit=240.0)
