"""Drives pinning by its key and dragging by the tool of the toolbar; run by `test_gui.py`.

Leaves drag_tool.png and drag_tool_used.png to be looked at.
"""

from math import radians

import bpy
import gui_drive as g
from mathutils import Euler, Vector

EXTENSION = "bl_ext.user_default.fabrik"
FEET = ("foot.L", "foot.R")
# The keymaps that Blender searches for a key pressed over the viewport in Pose mode.
KEYMAPS = ("Pose", "Object Non-modal", "Frames", "3D View", "3D View Generic", "Screen", "Window")


def rig():
    return bpy.data.objects["Rig"]


def tail(name):
    return rig().matrix_world @ rig().pose.bones[name].tail


def channels():
    """The exact rotation channels of the bones."""
    return [tuple(bone.rotation_quaternion) for bone in rig().pose.bones]


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
    g.area().spaces.active.show_region_toolbar = True
    yield 1.0
    yield from pin_with_the_key()
    yield from use_the_tool()
    yield from switch_the_extension_off()


def pin_with_the_key():
    """Pin both feet, unpin them and pin them again with the key, then unpin them with Ctrl-Z."""
    select(*FEET)
    with g.override():
        bpy.ops.ed.undo_push(message="selected")
    g.goto(*g.center())
    yield
    for count in (2, 0, 2):
        g.key("P")
        yield 0.6
        assert len(pins()) == count, pins()
    assert pins() == list(FEET)
    g.key("Z", ctrl=True)
    yield 0.8
    assert pins() == []
    g.key("Z", ctrl=True, shift=True)
    yield 0.8
    assert pins() == list(FEET)
    # Simulated keys cannot release Ctrl and Shift, so a press would still count as one with these keys.
    g.key("ESC")
    yield
    for key in ("F", "P"):
        assert owners(key) == {"fabrik.drag" if key == "F" else "fabrik.pin"}, owners(key)


def pins():
    return [each.bone for each in rig().fabrik.effectors if each.kind == "PIN"]


def owners(key):
    """The operators that a key without modifiers calls in Pose mode."""
    keymaps = bpy.context.window_manager.keyconfigs.user.keymaps
    items = [item for name in KEYMAPS for item in keymaps[name].keymap_items]
    return {
        i.idname for i in items if i.active and i.type == key and not (i.shift or i.ctrl or i.alt or i.oskey or i.any)
    }


def use_the_tool():
    """Click the tool's button, then press on a forearm and drag. A press on nothing has no effect."""
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
    yield from a_cancelled_press_leaves_the_selection()
    assert channels() == posed
    yield from press_and_drag(Vector((1.0, 0.0, 0.5)), (0.1, 0.0, 0.1))
    assert channels() == posed
    g.shot("drag_tool_used.png")


def a_cancelled_press_leaves_the_selection():
    select("hips", "spine")
    chosen = [each.select for each in rig().pose.bones]
    place = rig().matrix_world @ rig().pose.bones["forearm.L"].center
    g.goto(*g.view_xy(place))
    yield
    g.press()
    yield
    yield from g.drag_to(*g.view_xy(place + Vector((0.1, 0.0, 0.1))))
    yield
    assert g.window().modal_operators
    g.key("ESC")
    yield 0.6
    g.release()
    yield 0.6
    assert not g.window().modal_operators
    assert rig().data.bones.active.name == "hips"
    assert [each.select for each in rig().pose.bones] == chosen


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
    """Tool and keys disappear with the extension, and return with it."""
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


g.run(steps, limit=480.0)
