"""The add-on's preferences: where they are used, and that nothing is lost without them."""

import bpy
import pytest
from support import scenes

from fabrik_addon.blender.ui.chosen import COLORS, color, preferences
from fabrik_addon.blender.ui.overlays import goals as goal_overlay
from fabrik_addon.package import PACKAGE

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def chosen():
    """The preferences page if the add-on is enabled in Blender."""
    addons = bpy.context.preferences.addons
    if PACKAGE in addons:
        yield addons[PACKAGE].preferences
        return
    addon = addons.new()
    addon.module = PACKAGE
    yield addon.preferences
    addons.remove(addon)


@pytest.fixture
def rig():
    made = scenes.make_rig()
    scenes.make_active(made)
    bpy.ops.object.mode_set(mode="POSE")
    made.data.bones.active = made.data.bones["head"]
    return made


def test_colours_are_the_addon_s_own_until_others_are_chosen(chosen):
    for name, own in COLORS.items():
        assert color(name) == pytest.approx(own)
    chosen.met = (0.25, 0.5, 0.75, 1.0)
    assert color("met") == (0.25, 0.5, 0.75, 1.0)
    chosen.property_unset("met")


def test_the_overlay_is_drawn_in_them(chosen, rig):
    chosen.pinned = (1.0, 0.0, 1.0, 1.0)
    bpy.ops.fabrik.pin()
    drawing = goal_overlay.drawing(goal_overlay.lines_of(rig))
    assert all(tuple(one) == (1.0, 0.0, 1.0, 1.0) for _, colors in drawing.lines.values() for one in colors)
    chosen.property_unset("pinned")


def test_without_them_the_addon_s_own_values_hold(rig):
    if preferences() is None:
        assert color("missed") == COLORS["missed"]
        assert bpy.ops.fabrik.pin() == {"FINISHED"}
