"""A drag by the mouse that ends with Esc, or that can't begin, leaves the selection as it was."""

from types import SimpleNamespace

import bpy
import pytest
from support import limited, scenes

from fabrik_addon.blender.settings.selection import selected_bones
from fabrik_addon.blender.ui.operators.drag import FABRIK_OT_drag

PRESS = SimpleNamespace(mouse_x=0, mouse_y=0, mouse_prev_press_x=0, mouse_prev_press_y=0)
ESC = SimpleNamespace(type="ESC", value="PRESS")


def pick(self, context):
    """Blender needs a window to find what is under the mouse: here that is the left forearm."""
    limited.select(context.active_object, ["forearm.L"], active="forearm.L")
    self.bone = "forearm.L"


@pytest.fixture
def press(clean_scene):
    """Press the button in the viewport; the operators that are at work since.

    Without a window Blender executes what it is to invoke: another operator has the drag's methods, as a class that
    inherits another operator can't be unregistered.
    """
    running = []
    taken = {name: value for name, value in vars(FABRIK_OT_drag).items() if name not in {"bl_rna", "__dict__"}}
    taken |= {
        "bl_idname": "fabrik.drag_without_window",
        "_pick": pick,
        "execute": lambda self, context: running.append(self) or self.invoke(context, PRESS),
    }
    operator = type("FABRIK_OT_drag_without_window", FABRIK_OT_drag.__bases__, taken)
    bpy.utils.register_class(operator)
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        yield lambda: bpy.ops.fabrik.drag_without_window(pick=True) and running
    bpy.utils.unregister_class(operator)


@pytest.fixture
def rig(clean_scene):
    made = scenes.make_rig()
    scenes.make_active(made)
    limited.select(made, ["head", "spine"], active="head")
    return made


def chosen(rig):
    return [bone.name for bone in selected_bones(bpy.context, rig)], rig.data.bones.active.name


def test_esc_gives_the_selection_back(rig, press):
    before = chosen(rig)
    (drag,) = press()
    assert chosen(rig) == (["forearm.L"], "forearm.L")
    assert drag.modal(bpy.context, ESC) == {"CANCELLED"}
    assert chosen(rig) == before


def test_so_does_a_bone_that_can_not_be_dragged(rig, press):
    rig.pose.bones["forearm.L"].scale = (1.0, 2.0, 1.0)
    before = chosen(rig)
    with pytest.raises(RuntimeError, match=r"forearm\.L"):
        press()
    assert chosen(rig) == before
