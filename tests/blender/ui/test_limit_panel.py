"""The Limits panel: what it shows for each type, empty states, reasons, and that drawing changes nothing.

There is no window here, so the panel draws on a layout that notes what it is given.
"""

import inspect

import bpy
import pytest
from support import limited, scenes

from fabrik_addon.blender.settings.limit_properties import CONE, HINGE, LIMIT, SLIDE, TWIST, WINDOW, write_limit
from fabrik_addon.blender.ui.panels import limit_sliders
from fabrik_addon.blender.ui.panels import limits as limit_panel
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = pytest.mark.usefixtures("clean_scene")

ICONS = set(bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items.keys())


class Layout:
    """Stands in for Blender's layout: notes labels, sliders and buttons, and whether they are greyed."""

    def __init__(self, notes=None, parent=None):
        self.notes = [] if notes is None else notes
        self.parent, self.enabled = parent, True

    def row(self, **_options):
        return Layout(self.notes, self)

    column = row

    def label(self, text="", icon="NONE"):
        assert icon in ICONS
        assert len(text) < 60
        self.note("label", text)

    def prop(self, owner, path, index=-1, text="", **_options):
        # Raises for a path that Blender does not know.
        value = owner.path_resolve(path)
        self.note("slider", (path, index, text, value[index]))

    def operator(self, name, text="", icon="NONE", depress=False):
        assert icon in ICONS
        kind = getattr(bpy.ops.fabrik, name.split(".")[1]).get_rna_type()
        self.note("button", f"{name} {text}{'*' if depress else ''}".strip())
        return Options(kind)

    def operator_menu_enum(self, name, choice, text=""):
        kind = getattr(bpy.ops.fabrik, name.split(".")[1]).get_rna_type()
        assert kind.properties[choice].type == "ENUM"
        self.note("menu", text)

    def note(self, kind, what):
        self.notes.append((kind, what, self.is_enabled()))

    def is_enabled(self):
        return self.enabled and (self.parent is None or self.parent.is_enabled())

    def found(self, kind):
        return [what for noted, what, _ in self.notes if noted == kind]

    def sliders(self):
        return [(path[2:-2], index) for path, index, _, _ in self.found("slider")]


class Options:
    """Stands in for a button's keywords: only those that its operator has."""

    def __init__(self, kind):
        object.__setattr__(self, "kind", kind)

    def __setattr__(self, name, value):
        assert name in self.kind.properties


class Stage:
    """What a panel's draw function needs of `self`."""

    def __init__(self, panel):
        self.panel, self.layout = panel, Layout()

    def draw_rig(self, *arguments):
        self.panel.draw_rig(self, *arguments)


def draw(panel=limit_panel.FABRIK_PT_limits):
    stage = Stage(panel)
    before = scenes.digest()
    panel.draw(stage, bpy.context)
    assert scenes.digest() == before
    return stage.layout


@pytest.fixture
def rig(clean_scene):
    made = limited.make_mirrored_rig()
    limited.select(made, ["head"], active="head")
    return made


@pytest.fixture
def bone(rig):
    return rig.pose.bones["head"]


@pytest.mark.parametrize("panel", limit_panel.CLASSES)
def test_it_is_in_the_sidebar_s_fabrik_tab(panel):
    assert getattr(bpy.types, panel.__name__).is_registered
    assert (panel.bl_space_type, panel.bl_region_type, panel.bl_category) == ("VIEW_3D", "UI", "FABRIK")


@pytest.mark.parametrize("panel", limit_panel.CLASSES)
def test_without_an_armature_it_says_what_to_select(panel):
    assert draw(panel).notes == [("label", "Select an armature", True)]


def test_without_an_active_bone_it_says_what_to_pick(rig):
    limited.select(rig, [])
    assert draw().notes == [("label", "Pick a bone in Pose mode", True)]


def test_free_bone(rig):
    layout = draw()
    assert layout.found("label") == ["head"]
    assert layout.found("menu") == ["Free"]
    assert layout.found("slider") == []


def test_ball(bone):
    write_limit(bone, Ball((0.1, 0.2, 0.3, 0.4), (-0.5, 0.6)))
    layout = draw()
    assert layout.found("menu") == ["Ball"]
    assert layout.sliders() == [(CONE, 0), (CONE, 1), (CONE, 2), (CONE, 3), (TWIST, 0), (TWIST, 1)]
    assert [value for *_, value in layout.found("slider")] == pytest.approx([0.1, 0.2, 0.3, 0.4, -0.5, 0.6])


def test_hinge(bone):
    write_limit(bone, Hinge("Z", -0.5, 0.6))
    layout = draw()
    assert layout.found("menu") == ["Hinge"]
    assert layout.sliders() == [(HINGE, 0), (HINGE, 1)]
    axes = [button for button in layout.found("button") if "set_limit" in button and "Stretch" not in button]
    assert axes == ["fabrik.set_limit X", "fabrik.set_limit Y", "fabrik.set_limit Z*"]


def test_fixed(bone):
    write_limit(bone, Fixed())
    assert draw().sliders() == []


def test_polygon(bone):
    write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
    layout = draw()
    assert layout.sliders() == [*((WINDOW, index) for index in range(6)), (TWIST, 0), (TWIST, 1)]
    assert sum("remove_limit_point" in button for button in layout.found("button")) == 3


def test_a_bone_that_may_stretch(bone):
    assert "fabrik.set_limit Let It Stretch" in draw().found("button")
    bpy.ops.fabrik.set_limit(bones="head", slide=limit_sliders.FIRST_STRETCH)
    layout = draw()
    low, high = layout.found("slider")
    assert (low[3], high[3]) == (1.0, 1.5)
    assert SLIDE in low[0]


def test_type_without_numbers(bone):
    bone[LIMIT] = "BALL"
    layout = draw()
    assert layout.sliders() == []
    assert "Twist from: free" in layout.found("label")


def test_nonsense_is_said(bone):
    write_limit(bone, Hinge("X", 0.0, 1.0))
    bone[HINGE] = (1.0, 0.0)
    assert "lower one first" in " ".join(draw().found("label"))
    bone[LIMIT] = "BAL"
    assert "'BAL'" in " ".join(draw().found("label"))


def test_several_selected_bones(rig):
    limited.select(rig, ["head", "spine", "hips"], active="head")
    assert draw().found("label") == ["head and 2 more"]


def test_an_active_bone_that_is_not_selected(rig):
    limited.select(rig, ["spine"], active="head")
    assert draw().found("label") == ["head", "Not selected: buttons change the selected bones"]


def test_greyed_with_the_reason_on_an_override_without_limits(rig, bone, tmp_path):
    write_limit(bone, Hinge("X", 0.0, 1.0))
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
    own = limited.override(tmp_path / "source.blend", "Rig")
    limited.select(own, ["spine"], active="spine")
    layout = draw()
    assert "'spine' has no limit in 'source.blend'" in " ".join(layout.found("label"))
    assert all(not enabled for kind, _, enabled in layout.notes if kind != "label")
    limited.select(own, ["head"], active="head")
    assert all(enabled for *_, enabled in draw().notes)


def test_tools(rig):
    buttons = draw(limit_panel.FABRIK_PT_limit_tools).found("button")
    wanted = {"limits_from_ik", "limits_from_action", "limits_to_constraints", "clamp_pose", "check_action"}
    assert wanted <= {button.split()[0].split(".")[1] for button in buttons}


def test_it_does_not_compute():
    source = inspect.getsource(limit_panel)
    assert "numpy" not in source
    assert "view_layer" not in source
