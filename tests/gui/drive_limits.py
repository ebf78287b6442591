"""Drives the Joint Limits panel and the overlay on the sample person; run by `test_gui.py`.

Leaves limits_panel.png and limits_overlay.png for the manual.
"""

import sys
from math import degrees, radians
from pathlib import Path

import bpy
import gui_drive as g
import numpy as np
from mathutils import Euler

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_folds, open_panels

EXTENSION = "bl_ext.user_default.fabrik"


def rig():
    return bpy.data.objects["Rig"]


def bone(name):
    return rig().pose.bones[name]


def pose(name, x=0.0, y=0.0, z=0.0):
    bone(name).rotation_mode = "XYZ"
    bone(name).rotation_euler = [radians(angle) for angle in (x, y, z)]


def select(*names):
    """Select these bones; the first one becomes the active one."""
    for each in rig().pose.bones:
        each.select = each.name in names
    rig().data.bones.active = rig().data.bones[names[0]]


def look(place, distance, turn, tilt=78.0):
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
    # Both have their origin at the bottom left.
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


def blue(picture):
    red, green, blue_ = np.moveaxis(picture, -1, 0)
    return int(((blue_ > 0.8) & (red < 0.45) & (green > 0.4) & (green < 0.8)).sum())


def vermilion(picture):
    red, green, blue_ = np.moveaxis(picture, -1, 0)
    return int(((red > 0.8) & (green < 0.45) & (blue_ < 0.3)).sum())


def prepare():
    open_panels("FABRIK_PT_limits")
    with g.override():
        bpy.context.view_layer.objects.active = rig()
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.pose.select_all(action="DESELECT")
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.show_gizmo = False
    space.overlay.show_text = False
    space.overlay.show_cursor = False
    show_skin(False)


def show_skin(shown):
    """Show the mesh, which a software renderer draws slowly."""
    for child in rig().children:
        child.hide_set(not shown)


def steps():
    prepare()
    look((0.12, 0.0, 1.22), 1.45, -28.0)
    select("forearm.L")
    yield
    assert not bpy.context.scene.fabrik_show_limits
    off = pixels("limits_off.png")
    yield from switch_on()
    yield from follow_the_pose(off)
    yield from type_into_a_slider()
    yield from take_pictures()
    yield from switch_in_the_popover()
    yield from switch_the_extension_off()


def switch_on():
    """The button in the panel's header."""
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Pose"
    yield 1.0
    yield from g.find_button("fabrik_show_limits", xfrac=0.8, step=6)
    g.click()
    yield 0.6
    assert bpy.context.scene.fabrik_show_limits, "the switch in the panel's header does nothing"


def follow_the_pose(off):
    """The limit is blue inside, vermilion at the limit and beyond it, and blue again."""
    shown = pixels("limits_inside.png")
    assert blue(shown) > blue(off) + 300, "no fan is drawn"
    assert vermilion(shown) < 20
    for angle, binds in ((145.0, True), (170.0, True), (100.0, False)):
        pose("forearm.L", x=angle)
        yield 0.6
        assert (vermilion(pixels("limits_posed.png")) > 300) == binds, f"at {angle} degrees"


def type_into_a_slider():
    """An angle of the hinge: 90 degrees, below the current 100, is shown at once, and Ctrl-Z reverts it."""
    with g.override():
        bpy.ops.ed.undo_push(message="posed")
    yield from g.find_button('["fabrik_hinge"][1]', xfrac=0.7, step=5)
    g.click()
    g.click()
    yield 0.5
    g.key("A", ctrl=True)
    yield 0.2
    g.text("90")
    g.key("RET")
    yield 0.8
    assert abs(degrees(bone("forearm.L")["fabrik_hinge"][1]) - 90.0) < 0.01, list(bone("forearm.L")["fabrik_hinge"])
    assert vermilion(pixels("limits_slider.png")) > 300, "the slider shows in the viewport only later"
    g.goto(*g.center())
    yield
    g.key("Z", ctrl=True)
    yield 1.0
    assert abs(degrees(bone("forearm.L")["fabrik_hinge"][1]) - 145.0) < 0.2, "undo leaves the limit changed"


def switch_in_the_popover():
    """The switch for limits is also in the popover of the viewport's bone overlays."""
    g.goto(*g.center())
    yield
    with g.override():
        bpy.ops.wm.call_panel(name="VIEW3D_PT_overlay_bones", keep_open=True)
    yield 0.8
    g.shot("limits_popover.png")
    g.key("ESC")
    yield 0.5


def take_pictures():
    """Take pictures for the manual: a ball's panel with its tools, and an arm's limits, one of them reached."""
    pose("forearm.L", x=40.0)
    pose("upper_arm.L", x=20.0)
    pose("forearm.R", x=145.0)
    select("upper_arm.L", "forearm.R", "head")
    open_folds("limits")
    g.redraw()
    yield 0.8
    yield from g.find_button("fabrik.limit_preset", xfrac=0.4, step=6)
    g.goto(*g.center())
    show_skin(True)
    yield 0.8
    pixels("limits_panel.png", rtype="UI", box=(0.0, 0.09, 0.91, 0.717))
    g.area().spaces.active.show_region_ui = False
    yield 1.0
    picture = pixels("limits_overlay.png", box=(0.07, 0.2, 0.845, 0.94))
    assert blue(picture) > 1000
    assert vermilion(picture) > 300
    show_skin(False)


def switch_the_extension_off():
    """Nothing is left that draws; on again, the switch is as the file has it."""
    for _ in range(2):
        with g.override():
            bpy.ops.preferences.addon_disable(module=EXTENSION)
        yield 0.6
        gone = pixels("limits_gone.png")
        assert vermilion(gone) < 20, "the overlay outlives the extension"
        with g.override():
            bpy.ops.preferences.addon_enable(module=EXTENSION)
        # The first redraw imports the drawing code.
        for _ in range(10):
            yield 0.6
            if vermilion(pixels("limits_back.png")) > 300:
                break
        assert vermilion(pixels("limits_back.png")) > 300, "the overlay does not come back with the extension"


g.run(steps, limit=480.0)
