"""The root's setting, and its meaning for solving, live posing, baking and dragging."""

import bpy
import numpy as np
import pytest
from support import scenes
from support.dragging import active, drag_by, person, world
from support.takes import active_human

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.rig.armature import RigError

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

SHINS = ("shin.L", "shin.R")
# Farther than an arm and a spine reach.
FAR = (0.0, -1.0, 0.2)


def reaching(pinned):
    """A person whose hand has a target far in front of it, its shins pinned or not."""
    rig = person()
    scenes.aim(rig, "forearm.L", scenes.empty_at(world(rig, "forearm.L") + FAR, "target"))
    if pinned:
        pin_bones(rig, SHINS, hold_rotation=False)
    return rig


def solved(rig):
    bpy.ops.fabrik.solve()


def live(rig):
    rig.fabrik.live = True
    bpy.context.view_layer.update()


def baked(rig):
    bpy.ops.fabrik.bake(frame_start=1, frame_end=1)
    bpy.context.scene.frame_set(1)


def dragged(rig):
    rig.fabrik.effectors[0].enabled = False
    drag_by(rig, "forearm.L", FAR)


@pytest.mark.parametrize("pose", [solved, live, baked, dragged])
class TestEveryUse:
    def moved(self, pose, *, pinned, root=None):
        rig = reaching(pinned)
        if root:
            rig.fabrik.root = root
        pose(rig)
        bpy.context.view_layer.update()
        return rig.pose.bones["hips"].location.length

    def test_with_auto_the_root_is_fixed_until_a_bone_is_pinned(self, pose):
        assert self.moved(pose, pinned=False) == 0.0
        assert self.moved(pose, pinned=True) > 0.02

    def test_a_pinned_root_stays_whatever_else_is_pinned(self, pose):
        assert self.moved(pose, pinned=True, root="FIXED") == 0.0

    @pytest.mark.parametrize("root", ["FREE", "FOLLOW"])
    def test_a_free_root_moves_if_nothing_is_pinned(self, pose, root):
        assert self.moved(pose, pinned=False, root=root) > 0.1


def test_a_pin_of_another_tree_does_not_free_the_root():
    rig = reaching(pinned=False)
    bpy.ops.object.mode_set(mode="EDIT")
    prop = rig.data.edit_bones.new("prop")
    prop.head, prop.tail = (1.0, 0.0, 0.0), (1.0, 0.0, 0.3)
    bpy.ops.object.mode_set(mode="POSE")
    pin_bones(rig, ["prop"])
    solved(rig)
    drag_by(rig, "forearm.R", FAR)
    assert rig.pose.bones["hips"].location.length == 0.0


def test_a_disabled_pin_does_not_free_the_root():
    rig = reaching(pinned=True)
    for effector in rig.fabrik.effectors:
        effector.enabled = effector.kind == "TARGET"
    solved(rig)
    assert rig.pose.bones["hips"].location.length == 0.0


def test_a_root_follows_a_dragged_foot_with_toes():
    """The drag failed: the toes' goal has no position, and was a rope too."""
    rig, shift = active_human(), np.array((0.0, -0.9, 0.1))
    before = world(rig, "foot.L")
    drag_by(rig, "foot.L", shift, root="FOLLOW")
    assert world(rig, "foot.L") - before == pytest.approx(shift, abs=1e-3)
    assert rig.pose.bones["hips"].location.length > 0.05


class TestDraggedRoot:
    @pytest.mark.parametrize("root", [None, "FREE", "FOLLOW"])
    @pytest.mark.parametrize("point", ["HEAD", "TAIL"])
    def test_the_whole_rig_follows(self, point, root):
        rig = person(mode="MIXED")
        scenes.pose(rig, scenes.smooth_motion(rig, 1, 4)[0][0])
        bpy.context.view_layer.update()
        before, shift = {bone.name: np.array(bone.matrix) for bone in rig.pose.bones}, np.array((0.3, -0.2, -0.4))
        drag_by(rig, "hips", shift, point=point, root=root)
        for name, matrix in before.items():
            matrix[:3, 3] += shift
            assert np.abs(np.array(rig.pose.bones[name].matrix) - matrix).max() < 1e-4

    def test_a_root_pinned_by_the_setting_only_rotates(self):
        rig = person()
        rig.fabrik.root = "FIXED"
        with pytest.raises(RigError, match="let the root bone move"):
            begin_drag(bpy.context, rig, "hips", point="HEAD")
        drag_by(rig, "hips", (0.1, 0.0, 0.0))
        assert rig.pose.bones["hips"].location.length == 0.0

    def test_a_keyword_overrides_the_setting(self):
        rig = person()
        rig.fabrik.root = "FREE"
        drag = begin_drag(bpy.context, rig, "forearm.L", settings=DragSettings(root="FIXED"))
        drag.step(drag.start + FAR)
        assert rig.pose.bones["hips"].location.length == 0.0
        assert bpy.ops.fabrik.drag(bone="forearm.L", translation=FAR) == {"FINISHED"}
        assert rig.pose.bones["hips"].location.length > 0.1


def test_enum_values_of_older_files_keep_their_meaning():
    items = {item.identifier: item.value for item in active(person()).fabrik.bl_rna.properties["root"].enum_items}
    assert (items["FIXED"], items["FREE"]) == (0, 1)
