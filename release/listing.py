"""Drives a real Blender for the pictures of the extension's listing and guide, and the README's film; `make listing`.

Run by `screenshot.sh --drive` with sample_rigs/human.blend open, in a window of 1920 × 1080. Leaves drag.png,
limits.png, markers.png, retarget.png and edit.png for the listing, posture.png and guesses.png for the guide, and
film_000.png and so on for the film. `pictures.py` makes the film and cuts the pictures of the guide.
"""

import shutil
import sys
from contextlib import contextmanager
from itertools import count
from math import cos, pi, radians, sin
from pathlib import Path

import bpy
import gui_drive as g
from mathutils import Euler, Vector

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.sidebar import all_panels, show_panels

SAMPLES = Path(bpy.data.filepath).parent
SIDE_BY_SIDE = 1.1  # meters between the two persons
RAISED = 125  # a frame of the walk with the left hand in front
NUMBERS = count()


def rig():
    return bpy.data.objects["Rig"]


def tail(name, person=None):
    person = person or rig()
    return person.matrix_world @ person.pose.bones[name].tail


def film():
    """Take the next frame of the film."""
    g.shot(f"film_{next(NUMBERS):03}.png")


def look(place, distance, around, down=80.0):
    view = g.area().spaces.active.region_3d
    view.view_perspective = "PERSP"
    view.view_location, view.view_distance = place, distance
    view.view_rotation = Euler((radians(down), 0.0, radians(around))).to_quaternion()


def choose(person, *bones, mode="POSE"):
    with g.override():
        if bpy.context.object and bpy.context.object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.object.select_all(action="DESELECT")
        bpy.context.view_layer.objects.active = person
        person.select_set(True)
        bpy.ops.object.mode_set(mode=mode)
    for bone in person.pose.bones:
        bone.select = bone.name in bones
    person.data.bones.active = person.data.bones[bones[0]] if bones else None


def show_tab(name):
    g.area().spaces.active.show_region_ui = True
    g.redraw()
    g.region(rtype="UI").active_panel_category = name


@contextmanager
def unfolded(panel):
    """Show a panel open, under another name, because Blender remembers that the panel of this name was closed."""
    kinds, kind = all_panels(), getattr(bpy.types, panel)
    own = {name: value for name, value in vars(kind).items() if name != "bl_rna"}
    opened = type(f"{panel}_open", kind.__bases__, own | {"bl_options": set()})
    show_panels(*(opened if each is kind else each for each in kinds))
    yield
    show_panels(*kinds)


def drag(bone, path, picture=""):
    """Press F over a bone's tail, move the mouse along displacements in the plane of the view, and click."""
    start = tail(bone)
    g.goto(*g.view_xy(start))
    yield 0.5
    g.key("F")
    yield 0.5
    for number, shift in enumerate(path):
        g.goto(*g.view_xy(start + Vector(shift)))
        yield 0.4
        film()
        if number == len(path) - 1 and picture:
            g.shot(picture)
    g.click()
    yield 0.8


def steps():
    bpy.context.preferences.view.ui_scale = 1.3
    bpy.context.preferences.system.viewport_aa = "FXAA"  # the default draws each picture eight times
    with g.override():
        bpy.ops.screen.screen_full_area()
    yield 1.0
    space = g.area().spaces.active
    space.overlay.show_cursor = space.overlay.show_text = False
    space.show_region_toolbar = False
    yield 1.0
    show_tab("FABRIK Pose")
    yield 1.0
    yield from dragging()
    yield from limits()
    yield from posture()
    yield from markers()
    yield from retargeting()
    yield from editing()


def dragging():
    """A crouch that reaches forward: hips down, then a hand along a curve."""
    choose(rig(), "foot.L", "foot.R")
    look((0.35, -0.15, 0.8), 2.7, 40.0)
    with g.override():
        bpy.ops.fabrik.pin()
        bpy.context.scene.fabrik_show_goals = True
    yield 1.0
    for _ in range(3):
        film()
    choose(rig(), "hips")
    yield from drag("hips", [(0.0, 0.0, -0.035 * i) for i in range(1, 9)])
    choose(rig(), "hand.L")
    turn = Euler((0.0, 0.0, radians(40.0))).to_matrix()  # x: to the right of the view
    way = [turn @ Vector((0.02 * i, 0.0, 0.4 * sin(pi * i / 11))) for i in range(1, 15)]
    yield from drag("hand.L", way, "drag.png")


def limits():
    choose(rig(), "upper_arm.L", "forearm.L", "hand.L")
    bpy.context.scene.fabrik_show_limits = True
    look((0.55, -0.1, 0.9), 2.0, 25.0)
    yield 1.5
    g.shot("limits.png")
    bpy.context.scene.fabrik_show_limits = False
    yield from stand()


def stand():
    """Restore the rest pose, without pins, in Object mode."""
    with g.override():
        bpy.ops.pose.select_all(action="SELECT")
        bpy.ops.pose.transforms_clear()
        rig().fabrik.effectors.clear()
    choose(rig(), mode="OBJECT")
    yield 0.5


def posture():
    """A hand that reaches far forward, in balance over pinned feet."""
    choose(rig(), "foot.L", "foot.R")
    with g.override():
        bpy.ops.fabrik.pin()
        bpy.ops.fabrik.drag(bone="hand.L", translation=(-0.2, -1.1, 0.1))
    look((-0.52, -0.64, 0.9), 2.9, 60.0)
    with unfolded("FABRIK_PT_posture"):
        yield 1.5
        g.shot("posture.png")
    yield from stand()


def markers():
    """The sample recording, baked after two of its markers have lost their labels."""
    show_tab("FABRIK Motion")
    with g.override():
        bpy.ops.fabrik.import_markers(filepath=str(SAMPLES / "walk.trc"))
        choose(rig(), mode="OBJECT")
    lost = {"U001": "LFIN", "U002": "RKNE"}
    for new, name in lost.items():
        bpy.data.objects[name]["fabrik_marker"] = new
    with g.override():
        bpy.ops.fabrik.match_markers()
    capture = rig().fabrik.capture
    capture.active_marker = capture.markers.find("U002")
    with unfolded("FABRIK_PT_marker_list"):
        yield 1.5
        g.shot("guesses.png")
    for name in lost.values():
        bpy.data.objects[name]["fabrik_marker"] = name
    capture.markers.clear()
    with g.override():
        bpy.ops.fabrik.match_markers()
        bpy.ops.fabrik.calibrate_markers()
        bpy.ops.fabrik.bake()
    bpy.context.scene.frame_set(60)
    look(tail("chest") + Vector((0.35, 0.0, -0.35)), 2.7, 35.0)
    yield 2.0
    g.shot("markers.png")


def retargeting():
    """The walk onto a second, smaller person."""
    copy = shutil.copy(
        SAMPLES / "human.blend", Path(g.OUT) / "smaller.blend"
    )  # the file that is open can't be appended
    with bpy.data.libraries.load(str(copy)) as (_, wanted):
        wanted.objects = ["Rig", "Human"]
    smaller = wanted.objects[0]
    for each in wanted.objects:
        bpy.context.collection.objects.link(each)
    smaller.scale = (0.75,) * 3
    for collection in bpy.data.collections:
        if collection.name.startswith("walk"):
            collection.hide_viewport = True
    choose(smaller, mode="OBJECT")
    with g.override():
        smaller.fabrik.retarget.source = rig()
        bpy.ops.fabrik.match_bones()
        bpy.ops.fabrik.retarget()
    action = smaller.animation_data.action
    assert action is not None
    rig().delta_location.x -= SIDE_BY_SIDE
    scene = bpy.context.scene
    for number in range(20):
        scene.frame_set(20 + 6 * number)
        middle = 0.5 * (tail("chest") + tail("chest", smaller))
        look((middle.x + 0.3, middle.y, 0.75), 3.3, 25.0)
        yield 0.4
        film()
        if number == 8:
            yield 1.0
            g.shot("retarget.png")
    for each in (smaller, *smaller.children):
        each.hide_set(True)
    rig().delta_location.x += SIDE_BY_SIDE


def editing():
    """A hand is raised over 25 frames, by a drag on its trail's frame."""
    scene = bpy.context.scene
    scene.frame_set(RAISED)
    choose(rig(), "hand.L")
    rig().fabrik.drag.spread = 25
    rig().fabrik.show_trails = True
    scene.tool_settings.use_keyframe_insert_auto = True
    chest = tail("chest")
    look((chest.x + 0.2, chest.y + 0.2, 0.9), 2.7, 60.0)
    yield 2.0
    turn = Euler((0.0, 0.0, radians(60.0))).to_matrix()
    way = [turn @ Vector((-0.1 * i / 12, 0.0, 0.25 * (1.0 - cos(pi * i / 12)))) for i in range(1, 13)]
    yield from drag("hand.L", way, "edit.png")
    for number in range(17):
        scene.frame_set(RAISED - 24 + 3 * number)
        yield 0.4
        film()


g.run(steps, limit=1800.0)
