"""A drag by the mouse that ends with Esc, or that can't begin, leaves the selection as it was."""

from types import SimpleNamespace

import bpy
import pytest
from support import limited, scenes
from support.viewports import ESC, pressing

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
