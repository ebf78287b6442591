"""A drag by the mouse: it leaves the selection as it was if it ends with Esc or can't begin; joints catch up."""

from types import SimpleNamespace

import bpy
import pytest
from support import limited, scenes
from support.takes import active_human
from support.viewports import ESC, mouse, pressing

from fabrik_addon.blender.rig.pose_writer import pose_key
from fabrik_addon.blender.settings.selection import selected_bones


def pick(self, context):
    """Replaces Blender's search for the bone under the mouse, which needs a window; finds the left forearm."""
    limited.select(context.active_object, ["forearm.L"], active="forearm.L")
    self.bone = "forearm.L"


@pytest.fixture
def press(clean_scene):
    with pressing(_pick=pick) as press:
        yield press


@pytest.fixture
def rig(clean_scene):
    made = scenes.make_rig()
    scenes.make_active(made)
    limited.select(made, ["head", "spine"], active="head")
    return made


def chosen(rig):
    return [bone.name for bone in selected_bones(bpy.context, rig)], rig.data.bones.active.name


def test_esc_restores_the_selection(rig, press):
    before = chosen(rig)
    (drag,) = press(pick=True)
    assert chosen(rig) == (["forearm.L"], "forearm.L")
    assert drag.modal(bpy.context, ESC) == {"CANCELLED"}
    assert chosen(rig) == before


def test_a_refused_drag_restores_the_selection(rig, press):
    rig.pose.bones["forearm.L"].scale = (1.0, 2.0, 1.0)
    before = chosen(rig)
    with pytest.raises(RuntimeError, match=r"forearm\.L"):
        press(pick=True)
    assert chosen(rig) == before


def test_a_key_toggles_whether_orientation_is_kept(rig, press):
    limited.select(rig, ["shin.L"], active="shin.L")
    (drag,) = press()
    for keeps in (False, True):
        assert drag.modal(bpy.context, SimpleNamespace(type="O", value="PRESS")) == {"RUNNING_MODAL"}
        assert drag.keep_orientation is keeps
    assert drag.modal(bpy.context, ESC) == {"CANCELLED"}
    assert not rig.fabrik.drag.is_property_set("keep_orientation")


def test_joints_catch_up_once_for_each_redraw(clean_scene):
    """Fixed: with slow redraws, each move of the mouse was followed by another step before the redraw."""
    rig, timer = active_human(), SimpleNamespace(type="TIMER", value="NOTHING")
    bpy.ops.fabrik.pin(bones="foot.L,foot.R")
    limited.select(rig, ["hips"], active="hips")
    with pressing() as press:
        (drag,) = press(point="HEAD")
        region, (x, y) = bpy.context.region, drag._seen.astype(int).tolist()  # noqa: SLF001
        drag.modal(bpy.context, mouse("MOUSEMOVE", region.x + x, region.y + y - 40, "NOTHING"))
        poses = [pose_key(rig)]
        for is_drawn in (False, True, False):
            drag._input.is_drawn |= is_drawn  # noqa: SLF001
            drag.modal(bpy.context, timer)
            poses.append(pose_key(rig))
        assert drag.modal(bpy.context, ESC) == {"CANCELLED"}
    assert poses[0] == poses[1] != poses[2] == poses[3]
