"""Problems that an animator met in the first hour: details of buttons, lists and texts."""

import bpy
import numpy as np
import pytest
from support import scenes
from support.control_rigs import arp_like
from support.dragging import person
from support.layouts import Layout, drawn
from support.limited import refusal
from support.rigify import open_set_up
from support.takes import active_human, walking_human

from fabrik_addon.blender.posing import live
from fabrik_addon.blender.ui.entries import FABRIK_WT_drag
from fabrik_addon.blender.ui.panels.motion import FABRIK_PT_edit
from fabrik_addon.blender.ui.panels.pose import FABRIK_PT_drag, FABRIK_PT_effectors

pytestmark = pytest.mark.usefixtures("clean_scene")


def texts(panel):
    """All that a panel shows: labels, and names of properties and operators."""
    return str(drawn(panel).texts())


def test_the_tools_header_shows_the_rigs_root():
    rig = person()
    layout = Layout(split=True)
    FABRIK_WT_drag.draw_settings(bpy.context, layout, None)
    # Skip bones without a name of their own.
    assert "Root" in str(layout.texts())
    assert rig.fabrik.root == "AUTO"


@pytest.mark.parametrize(
    ("operator", "names"),
    [("retarget", ("source", "action_name")), ("bake", ("action_name",)), ("add_effector", ("bone", "target"))],
)
def test_operator_arguments_are_not_remembered_for_the_next_call(operator, names):
    properties = getattr(bpy.ops.fabrik, operator).get_rna_type().properties
    assert all(properties[name].is_skip_save for name in names)


@pytest.mark.one_blender
def test_a_retarget_has_no_options_without_effect():
    """Fixed: options of bakes from markers or targets were shown, but did nothing."""
    bake, retarget = (
        set(operator.get_rna_type().properties.keys()) for operator in (bpy.ops.fabrik.bake, bpy.ops.fabrik.retarget)
    )
    assert bake - retarget == {"gaps", "robust", "low_pass"}


@pytest.mark.one_blender
def test_a_target_that_loses_its_object_does_not_move_its_bone():
    """Fixed: it became a pin at the armature's origin."""
    rig = active_human()
    bpy.ops.fabrik.add_effector(bone="hand.L")
    before = np.array(rig.pose.bones["hand.L"].matrix)
    rig.fabrik.effectors[0].target = None
    assert "has no object (was it deleted?): choose one" in refusal(bpy.ops.fabrik.solve)
    rig.fabrik.live = True
    bpy.context.scene.frame_set(2)
    assert np.array_equal(np.array(rig.pose.bones["hand.L"].matrix), before)
    assert live.trouble_of(rig)


@pytest.mark.one_blender
def test_a_rig_that_is_switched_to_live_leaves_another_paused():
    """Fixed: a rig that was paused for a bake was posed again."""
    rig = active_human()
    bpy.ops.fabrik.add_effector(bone="hand.L")
    rig.fabrik.live = True
    live.pause(rig)
    other = scenes.make_rig((("bone", "", (0, 0, 0), (0, 0, 1)),), "Other")
    other.fabrik.live = True
    assert live.is_paused(rig)
    assert not live.is_paused(other)
    live.resume()


def test_the_spread_setting_does_not_change_with_layers():
    rig = walking_human(frames=21)
    rig.fabrik.drag.spread_to = {"LAYER"}
    bpy.ops.fabrik.drag(bone="forearm.L", translation=(0.0, 0.0, 0.1), spread=5)
    assert rig.animation_data.action is None
    assert "Spread" in texts(FABRIK_PT_drag)
    assert "Spread" in texts(FABRIK_PT_edit)


def test_a_failed_set_up_keeps_the_previous_one():
    rig = open_set_up(arp_like)
    kept = rig.fabrik.control
    before = [(row.name, row.control, row.parent, row.switch) for row in kept.carriers], kept.place, len(kept.controls)
    for bone in rig.pose.bones:
        # A constraint that rotates every bone slightly, so that none reaches its pose.
        limit = bone.constraints.new("LIMIT_ROTATION")
        limit.owner_space = "LOCAL"
        for axis in "xyz":
            setattr(limit, f"use_limit_{axis}", True)
            setattr(limit, f"min_{axis}", -0.05)
            setattr(limit, f"max_{axis}", 0.05)
    assert "can move a deform bone to its pose" in refusal(bpy.ops.fabrik.use_control_rig)
    after = [(row.name, row.control, row.parent, row.switch) for row in kept.carriers], kept.place, len(kept.controls)
    assert after == before


def test_add_target_has_a_label_beside_pins():
    person()
    bpy.ops.fabrik.pin(bones="shin.L")
    assert "Add Target" in texts(FABRIK_PT_drag)


def test_a_pin_of_a_control_has_the_controls_name():
    rig = open_set_up("Basic.basic_human")
    bpy.ops.fabrik.pin(bones="foot_ik.L,foot_ik.R")
    assert [each.shown_bone for each in rig.fabrik.effectors] == ["foot_ik.L", "foot_ik.R"]
    assert [each.bone for each in rig.fabrik.effectors] == ["ORG-foot.L", "ORG-foot.R"]
    assert rig.fabrik.effectors[0].name == "foot_ik.L pin"
    bpy.ops.fabrik.add_effector(bone="hand_ik.L")
    assert rig.fabrik.effectors[2].shown_bone == "hand_ik.L"
    assert rig.fabrik.effectors[2].target.name == "hand_ik.L target"
    bpy.ops.fabrik.pin(bones="foot_ik.L", action="UNPIN")
    assert np.array_equal([each.shown_bone for each in rig.fabrik.effectors], ["foot_ik.R", "hand_ik.L"])


def test_a_duplicated_rig_gets_its_own_targets():
    rig = person()
    bpy.ops.fabrik.add_effector(bone="forearm.L")
    assert "same targets" not in texts(FABRIK_PT_effectors)
    bpy.ops.object.mode_set(mode="OBJECT")
    copy = rig.copy()
    copy.data = rig.data.copy()
    bpy.context.scene.collection.objects.link(copy)
    bpy.context.view_layer.update()
    scenes.make_active(copy)
    assert "same targets" in texts(FABRIK_PT_effectors)
    assert bpy.ops.fabrik.own_targets() == {"FINISHED"}
    first, second = (each.fabrik.effectors[0].target for each in (rig, copy))
    assert first != second
    assert second.location == first.location
    assert set(second.users_collection) == set(first.users_collection)
    assert "same targets" not in texts(FABRIK_PT_effectors)
    assert not bpy.ops.fabrik.own_targets.poll()
