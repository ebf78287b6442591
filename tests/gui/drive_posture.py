"""Drives stiffness, balance, floor, root and preferred pose in the sidebar on the sample person.

Run by `test_gui.py`.
"""

import importlib
import sys
from math import radians
from pathlib import Path

import bpy
import gui_drive as g
from mathutils import Euler, Vector

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.sidebar import open_folds, open_panels

EXTENSION = "bl_ext.user_default.fabrik"
FEET = ("foot.L", "foot.R")


def rig():
    return bpy.data.objects["Rig"]


def bone(name):
    return rig().pose.bones[name]


def channels():
    """The exact rotation channels of the bones."""
    return [tuple(each.rotation_quaternion) for each in rig().pose.bones]


def select(*names):
    for each in rig().pose.bones:
        each.select = each.name in names
    rig().data.bones.active = rig().data.bones[names[0]]


def steps():
    with g.override():
        bpy.context.view_layer.objects.active = rig()
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.pose.select_all(action="DESELECT")
        bpy.ops.fabrik.pin(bones=",".join(FEET))
    # A software renderer draws the mesh slowly.
    for child in rig().children:
        child.hide_set(True)
    space = g.area().spaces.active
    space.show_region_toolbar = False
    space.overlay.show_cursor = False
    space.region_3d.view_perspective = "ORTHO"
    space.region_3d.view_rotation = Euler((radians(80.0), 0.0, radians(50.0))).to_quaternion()
    space.region_3d.view_location, space.region_3d.view_distance = (0.0, -0.2, 0.9), 3.2
    open_folds()
    open_panels("FABRIK_PT_drag", "FABRIK_PT_posture", "FABRIK_PT_limits", only=True)
    space.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Pose"
    select("spine.001" if "spine.001" in rig().pose.bones else "chest", "head")
    yield 1.0
    g.shot("posture_panel.png")
    yield from stiffen()
    yield from drag_a_stiff_trunk()
    yield from keep_the_pose()
    yield from use_the_floor()
    yield from use_the_balance()
    yield from use_the_root()


def stiffen():
    """The slider makes the property of both selected bones; Ctrl-Z removes it again."""
    with g.override():
        bpy.ops.ed.undo_push(message="selected")
    yield from g.find_button("fabrik_stiffness_of_selected", xfrac=0.7, step=8)
    yield from type_in("0.5")
    assert all(abs(bone(name)["fabrik_stiffness"] - 0.5) < 1e-6 for name in ("head", rig().data.bones.active.name))
    g.goto(*g.center())
    yield
    g.key("Z", ctrl=True)
    yield 1.0
    assert bone("head").get("fabrik_stiffness", 0.0) == 0.0, "undo leaves the stiffness"
    # Simulated keys cannot release Ctrl.
    g.key("ESC")
    yield


def type_in(text):
    g.click()
    g.click()
    yield 0.5
    g.key("A", ctrl=True)
    yield 0.2
    g.text(text)
    g.key("RET")
    yield 0.8


def keep_the_pose():
    yield from g.find_button("fabrik.keep_pose", xfrac=0.83, step=8)
    g.click()
    yield 0.8
    assert rig().fabrik.preferred_pose == "KEPT"
    assert len(rig().fabrik.kept_pose) == len(rig().pose.bones)
    rig().fabrik.preferred_pose = "START"


def dragged(name, shift, look=lambda: None, steps=6):
    """The result of `look` after a drag of a bone by a shift of its tail, which Esc then reverts exactly."""
    select(name)
    posed = channels()
    tail = rig().matrix_world @ bone(name).tail
    g.goto(*g.view_xy(tail))
    yield
    g.key("F")
    yield 0.6
    yield from g.drag_to(*g.view_xy(tail + Vector(shift)), steps=steps)
    yield 0.8
    seen = look()
    g.key("ESC")
    yield 0.8
    assert not g.window().modal_operators
    assert channels() == posed, "Esc leaves something"
    return seen


def drag_a_stiff_trunk():
    """A bone with full stiffness keeps its rotation, and the others compensate."""
    trunk = ["spine", "chest", "upper_chest"]
    for stiff in (0.0, 1.0):
        for name in trunk:
            bone(name)["fabrik_stiffness"] = stiff
        turned = yield from dragged(
            "hand.L", (-0.3, -0.5, -0.5), lambda: [bone(each).matrix_basis.to_quaternion().angle for each in trunk]
        )
        assert max(turned) < 1e-3 if stiff else max(turned) > 0.05, turned
    for name in trunk:
        bone(name)["fabrik_stiffness"] = 0.0


def use_the_floor():
    """A hand dragged down with F and the mouse ends on the floor, and Esc restores the pose exactly."""
    yield from g.find_button("fabrik.use_floor", xfrac=0.41, step=8)
    g.click()
    yield 0.8
    assert rig().fabrik.use_floor

    def look():
        g.shot("posture_floor.png")
        return (rig().matrix_world @ bone("hand.L").tail).z

    tail = rig().matrix_world @ bone("hand.L").tail
    height = yield from dragged("hand.L", (-0.3, -0.5, -0.3 - tail.z), look, steps=8)
    assert height > -0.01, "the hand is through the floor"
    rig().fabrik.use_floor = False


def use_the_balance():
    """With a load in the hand, the body moves with it. With balance, it leans against the load."""
    body = importlib.import_module(f"{EXTENSION}.blender.goals.body")
    bone("hand.L")["fabrik_mass"] = 0.6
    ahead = {}
    for balance, xfrac in (("OFF", 0.78), ("ON", 0.62), ("AUTO", 0.47)):
        yield from g.find_button("fabrik.balance", xfrac=xfrac, step=8)
        g.click()
        yield 0.8
        assert rig().fabrik.balance == balance

        def look(balance=balance):
            if balance == "AUTO":
                g.shot("posture_balance.png")
            return -body.center_of_mass(rig())[1]

        ahead[balance] = yield from dragged("hand.L", (-0.4, -0.7, 0.0), look)
    assert ahead["AUTO"] < ahead["OFF"] - 0.02, ahead
    assert ahead["ON"] < ahead["OFF"] - 0.02, ahead
    del bone("hand.L")["fabrik_mass"]


def use_the_root():
    """The mouse wheel changes the root setting. If it is fixed, the hips do not move; with *Auto* they follow."""
    yield from g.find_button("fabrik.root", xfrac=0.7, step=8)
    seen = {}
    for _ in range(4):
        root = rig().fabrik.root
        place = g._pos  # noqa: SLF001  nothing else has this position
        seen[root] = yield from dragged("hand.L", (-0.4, -0.6, -0.8), lambda: bone("hips").location.length)
        g.goto(*place)
        yield 0.4
        g.event("WHEELDOWNMOUSE", "PRESS", x=place[0], y=place[1], ctrl=True)
        yield 0.8
    g.goto(*g.center())
    yield
    assert set(seen) == {"AUTO", "FIXED", "FREE", "FOLLOW"}, seen
    assert seen["FIXED"] == 0.0, seen
    assert min(seen[root] for root in ("AUTO", "FREE", "FOLLOW")) > 0.02, seen
    g.key("ESC")
    yield


g.run(steps, limit=560.0)
