"""The README's first five minutes, step by step on the sample person, with only the settings that it mentions."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support.dragging import farthest_outside, world
from support.takes import active_human

from fabrik_addon.blender.posing.drag import begin_drag

FEET = ("foot.L", "foot.R")


@pytest.fixture
def human(clean_scene):
    """The sample person in Pose mode, both feet pinned: step 1."""
    rig = active_human()
    assert bpy.ops.fabrik.pin(bones=",".join(FEET)) == {"FINISHED"}
    return rig


def feet(rig):
    return np.array([world(rig, foot, end) for foot in FEET for end in ("head", "tail")])


def upright(rig):
    """The cosine of the trunk's tilt: 1 upright, -1 upside down."""
    bones = rig.pose.bones
    trunk = bones["head"].tail - bones["hips"].head
    return trunk.normalized().dot(Vector((0.0, 0.0, 1.0)))


class TestDrag:
    """Step 2."""

    def test_the_body_follows_a_hand_and_the_feet_stay(self, human):
        before, hips = feet(human), world(human, "hips", "head")
        drag = begin_drag(bpy.context, human, "hand.L")
        for share in np.linspace(0.1, 1.0, 10):
            # Down in front of the feet: too low for arms alone.
            result = drag.step(drag.start + share * np.array((-0.2, -0.45, -0.75)))
        assert result.error < 1e-3
        assert np.abs(feet(human) - before).max() < 1e-3
        assert np.linalg.norm(world(human, "hips", "head") - hips) > 0.02
        assert farthest_outside(human) < 1e-4

    @pytest.mark.parametrize("point", ["HEAD", "TAIL"])
    def test_lowered_hips_are_a_squat(self, human, point):
        before, knees = feet(human), [world(human, f"shin.{side}", "head") for side in "LR"]
        drag = begin_drag(bpy.context, human, "hips", point=point)
        for drop in np.arange(0.01, 0.31, 0.01):
            result = drag.step(drag.start - (0.0, 0.0, drop))
            assert np.abs(feet(human) - before).max() < 1e-3
            # In the first two steps, straight knees begin to bend. With flat feet, hips can go down by 16 cm.
            assert result.error < 1e-3 or not 0.015 < drop < 0.165
        lean = human.pose.bones["spine"].y_axis
        assert abs(lean.x) < 1e-3
        assert np.radians(5.0) < np.arctan2(-lean.y, lean.z) < np.radians(60.0), "the trunk leans forward"
        for side, knee in zip("LR", knees, strict=True):
            assert world(human, f"shin.{side}", "head")[1] < knee[1] - 0.1
        assert farthest_outside(human) < 1e-4

    @pytest.mark.parametrize(("forward", "told"), [(0.3, "rotated\n"), (1.5, " short: ")])
    def test_the_report_is_about_the_final_pose(self, human, capfd, forward, told):
        """Joints may still ease in when the button is released."""
        before = world(human, "chest")
        bpy.ops.fabrik.drag(bone="chest", translation=(0.0, -forward, -0.3))
        off = np.linalg.norm(world(human, "chest") - before - (0.0, -forward, -0.3))
        printed = capfd.readouterr().out
        assert told in printed
        assert "short" not in printed or f"{100.0 * off:.3g} cm short" in printed


class TestLive:
    """Steps 3 and 4."""

    def test_the_rig_follows_targets_and_the_feet_stay(self, human):
        ends = ("hand.L", "hand.R", "head")
        for end in ends:
            assert bpy.ops.fabrik.add_effector(bone=end) == {"FINISHED"}
        before = feet(human)
        human.fabrik.live = True
        bpy.context.view_layer.update()
        for end, shift in zip(ends, [(0.0, -0.3, -0.2), (0.1, -0.3, 0.3), (0.0, -0.1, -0.15)], strict=True):
            bpy.data.objects[f"{end} target"].location += Vector(shift)
        bpy.context.view_layer.update()
        for end in ends:
            assert np.linalg.norm(world(human, end) - bpy.data.objects[f"{end} target"].location) < 1e-3
        assert np.abs(feet(human) - before).max() < 1e-3
