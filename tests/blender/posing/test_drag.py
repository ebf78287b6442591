"""Dragging a bone without a window: which bones follow, which do not move, and which are restored."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector
from support import limited, scenes
from support.dragging import changed, channels, drag_by, farthest_outside, heads, person, world
from support.takes import active_human

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import DragSettings, DragSetup, begin_drag, pull_chain
from fabrik_addon.blender.rig.armature import RigError

FEET = ("foot.L", "foot.R")
DIRECTIONS = [(1, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (-0.6, -0.6, 0.5), (0.6, -0.6, 0.5)]

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def human():
    """The sample person, limits and all, in Pose mode."""
    return active_human()


@pytest.mark.one_blender
class TestHuman:
    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_a_hand_moves_30_cm_while_pinned_feet_stay_and_limits_hold(self, human, direction):
        pin_bones(human, FEET)
        before = [world(human, foot, end) for foot in FEET for end in ("head", "tail")]
        hand = world(human, "hand.L")
        shift = 0.3 * np.array(direction) / np.linalg.norm(direction)
        result = drag_by(human, "hand.L", shift)
        after = [world(human, foot, end) for foot in FEET for end in ("head", "tail")]
        assert np.linalg.norm(np.subtract(after, before), axis=1).max() < 1e-3
        assert np.linalg.norm(world(human, "hand.L") - hand - shift) < 1e-3
        assert result.error < 1e-3
        assert farthest_outside(human) < 1e-4

    def test_orientation_is_kept_only_if_asked_for(self, human):
        pin_bones(human, ("foot.R",))
        before = np.array(human.pose.bones["foot.L"].matrix.to_3x3())
        for keep in (True, False):
            drag = begin_drag(bpy.context, human, "foot.L", settings=DragSettings(keep_orientation=keep))
            drag.step(drag.start + np.array((0.0, 0.0, 0.3)), settled=True)
            bpy.context.view_layer.update()
            after = np.array(human.pose.bones["foot.L"].matrix.to_3x3())
            tilt = np.degrees(np.arccos((np.trace(before.T @ after) - 1.0) / 2.0))
            assert tilt < 20.0 if keep else tilt > 35.0
            drag.cancel()

    def test_orientation_can_be_released_and_kept_again_in_a_drag(self, human):
        """The result is the same as with that setting from the start, and a drag that returns ends where it began."""
        before = channels(human)
        pin_bones(human, ("foot.R",))
        drag, rise, feet = begin_drag(bpy.context, human, "foot.L"), np.array((0.0, 0.0, 0.3)), []
        for keep in (True, False, True):
            drag.keep_orientation(bpy.context, keep=keep)
            for share in np.linspace(0.1, 1.0, 10):
                drag.step(drag.start + share * rise)
            drag.step(drag.start + rise, settled=True)
            bpy.context.view_layer.update()
            feet.append(np.array(human.pose.bones["foot.L"].matrix.to_3x3()))
        flat, free, again = feet
        assert np.degrees(np.arccos((np.trace(flat.T @ free) - 1.0) / 2.0)) > 25.0
        assert again == pytest.approx(flat, abs=0.02)
        drag.step(drag.start)
        drag.finish(bpy.context)
        assert changed(human, before) == set()

    def test_hips_rotated_with_nothing_pinned_take_the_whole_body_along(self, human):
        bones = ("head", "hand.L", "foot.R")
        before = [np.array(human.pose.bones[name].matrix.to_3x3()) for name in ("hips", *bones)]
        drag = begin_drag(bpy.context, human, "hips", point="HEAD", settings=DragSettings(root="FREE"))
        for share in np.linspace(0.1, 1.0, 10):
            drag.step(drag.start, turn=(share * np.pi / 2.0, 0.0, 0.0))
        drag.finish(bpy.context)
        bpy.context.view_layer.update()
        after = [np.array(human.pose.bones[name].matrix.to_3x3()) for name in ("hips", *bones)]
        turned = after[0] @ before[0].T
        for old, new in zip(before[1:], after[1:], strict=True):
            assert np.abs(new - turned @ old).max() < 1e-3

    def test_targets_out_of_reach_move_no_pin(self, human):
        pin_bones(human, FEET)
        before = [world(human, foot, end) for foot in FEET for end in ("head", "tail")]
        result = drag_by(human, "hand.L", (0.0, -0.6, 1.5))
        after = [world(human, foot, end) for foot in FEET for end in ("head", "tail")]
        assert result.error > 0.3
        assert result.line.endswith("cm short: foot.R is pinned")
        assert np.linalg.norm(np.subtract(after, before), axis=1).max() < 1e-3
        assert farthest_outside(human) < 1e-4

    def test_the_missing_distance_is_reported_in_scene_units_with_its_reason(self, human):
        human.fabrik.use_floor = True
        pin_bones(human, ("foot.R",))
        drag = begin_drag(bpy.context, human, "foot.L")
        for system, meters, unit in (("METRIC", 0.01, " cm"), ("IMPERIAL", 0.0254, '"'), ("NONE", 1.0, "")):
            bpy.context.scene.unit_settings.system = system
            result = drag.step(drag.start - np.array((0.0, 0.0, 0.3)))
            assert result.error > 0.25
            assert result.line == f"{result.error / meters:.3g}{unit} short: toe.L is on the floor"

    def test_a_chain_without_feet_is_dragged_above_a_floor(self, human):
        """Fixed: the solver looked for the feet among the bones of the chain, and the drag was refused."""
        human.fabrik.use_floor = True
        before = channels(human)
        result = drag_by(human, "hand.L", (-0.1, -0.1, 0.1), reach="BONES", bones=3)
        assert result.error < 1e-3
        assert changed(human, before) <= {"upper_arm.L", "forearm.L", "hand.L"}

    @pytest.mark.parametrize("root", ["FIXED", "FREE", "FOLLOW"])
    def test_a_drag_back_to_its_start_restores_the_pose(self, human, root):
        rng = np.random.default_rng(3)
        scenes.pose(human, scenes.smooth_motion(human, 1, 5, most=0.2)[0][0])
        bpy.ops.fabrik.clamp_pose(bones=",".join(human.pose.bones.keys()))
        pin_bones(human, FEET, hold_rotation=False)
        before, matrices = channels(human), heads(human)
        drag = begin_drag(bpy.context, human, "hand.R", settings=DragSettings(root=root))
        for shift in rng.uniform(-0.8, 0.8, (5, 3)):
            drag.step(drag.start + shift)
        assert np.abs(heads(human) - matrices).max() > 0.05
        drag.step(drag.start + 1e-6)
        assert np.abs(heads(human) - matrices).max() < 1e-4
        drag.step(drag.start)
        drag.finish(bpy.context)
        assert changed(human, before) == set()

    def test_cancel_restores_every_bit(self, human):
        scenes.pose(human, scenes.smooth_motion(human, 1, 6)[0][0])
        before = scenes.digest()
        drag = begin_drag(bpy.context, human, "hand.L", settings=DragSettings(root="FREE"))
        drag.step(drag.start + np.array((0.4, -0.3, 0.2)))
        assert scenes.digest() != before
        drag.cancel()
        assert scenes.digest() == before


@pytest.mark.one_blender
class TestSpaces:
    """The same drag in the armature's own space for any placement of the armature, apart from the up direction."""

    def dragged(self, matrix, parent=None):
        rig = active_human()
        if parent is not None:
            rig.parent = scenes.empty_at((0, 0, 0), "Parent")
            rig.parent.matrix_world = parent
        rig.matrix_basis = matrix
        bpy.context.view_layer.update()
        pin_bones(rig, FEET)
        rig.fabrik.balance, rig.fabrik.free_limbs_hang = "OFF", False
        shift = np.array(rig.matrix_world.to_3x3()) @ (0.1, -0.25, 0.1)
        drag_by(rig, "hand.L", shift)
        return heads(rig)

    def test_scaled_rotated_and_parented(self):
        plain = self.dragged(Matrix.Identity(4))
        turned = Matrix.LocRotScale(Vector((3, -2, 1)), Matrix.Rotation(1.1, 3, (1, 2, 3)), None)
        for scale in (0.01, 100.0):
            own = turned @ Matrix.Scale(scale, 4)
            assert np.abs(self.dragged(own) - plain).max() < 1e-4
            assert np.abs(self.dragged(turned, parent=own) - plain).max() < 1e-4


class TestReach:
    ARM = frozenset({"upper_arm.L", "forearm.L"})

    def test_the_whole_rig_follows_except_unrelated_bones(self):
        rig = person(mode="MIXED")
        rig.fabrik.free_limbs_hang = False
        before = channels(rig)
        drag_by(rig, "forearm.L", (-0.1, -0.2, 0.1))
        assert changed(rig, before) == {"hips", "spine", *self.ARM}

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_a_number_of_bones_follows(self, count):
        rig = person(mode="MIXED")
        scenes.pose(rig, scenes.smooth_motion(rig, 1, 7)[0][0], move=(0.1, 0.2, 0.3))
        rig.data.bones["upper_arm.L"].use_inherit_rotation = False
        before, hand = channels(rig), world(rig, "forearm.L")
        shift = np.array((-0.02, -0.03, 0.02))
        result = drag_by(rig, "forearm.L", shift, reach="BONES", bones=count)
        assert changed(rig, before) == set(["forearm.L", "upper_arm.L", "spine"][:count])
        assert abs(np.linalg.norm(world(rig, "forearm.L") - hand - shift) - result.error) < 1e-4
        assert (result.error < 1e-3) == (count > 1)

    def test_a_bone_dragged_by_its_head_is_not_moved_itself(self):
        rig = person()
        before = channels(rig)
        drag_by(rig, "forearm.L", (0.0, -0.1, 0.0), point="HEAD", reach="BONES", bones=1)
        assert changed(rig, before) == {"upper_arm.L"}

    def test_up_to_the_nearest_pin(self):
        rig = person()
        before = channels(rig)
        pin_bones(rig, ["spine"])
        drag_by(rig, "forearm.L", (-0.1, -0.2, 0.1), reach="PIN")
        assert changed(rig, before) == self.ARM

    def test_pins_below_the_chain_hold(self):
        rig = person()
        before = channels(rig)
        pin_bones(rig, ["forearm.L", "shin.L"], hold_rotation=False)
        hand = world(rig, "forearm.L")
        drag_by(rig, "upper_arm.L", (0.0, -0.02, 0.05), reach="BONES", bones=2)
        assert np.linalg.norm(world(rig, "forearm.L") - hand) < 1e-3
        assert changed(rig, before) == {"spine", *self.ARM}


class TestRoot:
    def test_a_free_root_moves_if_the_rest_needs_it(self):
        rig = person()
        shift = np.array((0.0, -1.0, 0.3))
        hips = world(rig, "hips", "head")
        assert drag_by(rig, "forearm.L", shift, root="FREE").error < 1e-3
        assert np.linalg.norm(world(rig, "hips", "head") - hips) > 0.3

    def test_follow_pulls_like_a_rope(self):
        rig = person()
        hips, hand = world(rig, "hips", "head"), world(rig, "forearm.L")
        drag_by(rig, "forearm.L", (1.0, 0.0, 0.0), root="FOLLOW")
        moved = world(rig, "hips", "head") - hips
        assert np.linalg.norm(world(rig, "forearm.L") - hand - (1, 0, 0)) < 1e-3
        assert 0.3 < moved[0] < 1.0

    def test_a_rope_pulled_along_itself_moves_as_one(self):
        joints = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
        assert np.allclose(pull_chain(joints, np.array((3.0, 0, 0)), np.array((5.0, 0, 0))), (2, 0, 0))
        sideways = pull_chain(joints, np.array((3.0, 0, 0)), np.array((3.0, 0.5, 0)))
        assert np.linalg.norm(sideways) < 0.5

    def test_pins_take_precedence_over_following(self):
        rig = person()
        pin_bones(rig, ["shin.L", "shin.R"], hold_rotation=False)
        feet = [world(rig, "shin.L"), world(rig, "shin.R")]
        drag_by(rig, "forearm.L", (0.3, 0.0, 0.0), root="FOLLOW")
        assert np.linalg.norm(np.subtract([world(rig, "shin.L"), world(rig, "shin.R")], feet), axis=1).max() < 1e-3

    def test_a_locked_location_keeps_the_root_in_place(self):
        rig = person()
        rig.pose.bones["hips"].lock_location = (False, False, True)
        drag_by(rig, "forearm.L", (0.0, -1.0, 0.0), root="FREE")
        assert tuple(rig.pose.bones["hips"].location) == (0.0, 0.0, 0.0)


class TestTurning:
    def turned(self, rig, bone, vector, shift=(0.0, 0.0, 0.0)):
        """Radians between a bone's rotation after a drag and the wanted one."""
        before = rig.pose.bones[bone].matrix.to_quaternion()
        drag = begin_drag(bpy.context, rig, bone)
        drag.step(drag.start + np.array(shift), vector)
        drag.finish(bpy.context)
        bpy.context.view_layer.update()
        turn = rig.matrix_world.to_quaternion().inverted() @ Quaternion(vector, Vector(vector).length)
        wanted = turn @ rig.matrix_world.to_quaternion() @ before
        return (wanted.inverted() @ rig.pose.bones[bone].matrix.to_quaternion()).angle

    @pytest.mark.parametrize("vector", [(0.5, 0, 0), (0, -0.6, 0), (0, 0, 0.7), (0.3, 0.3, -0.4)])
    def test_a_bone_rotates_about_its_point(self, vector):
        rig = scenes.place(person(mode="MIXED"), scale=2.0)
        hand = world(rig, "forearm.L")
        off = self.turned(rig, "forearm.L", vector)
        assert min(off, 2 * np.pi - off) < 5e-3
        assert np.linalg.norm(world(rig, "forearm.L") - hand) < 2e-3

    def test_a_bone_moves_and_rotates(self):
        rig = person()
        hand, shift = world(rig, "forearm.L"), np.array((-0.05, -0.1, 0.05))
        off = self.turned(rig, "forearm.L", (0.0, 0.2, 0.3), shift)
        assert min(off, 2 * np.pi - off) < 5e-3
        assert np.linalg.norm(world(rig, "forearm.L") - hand - shift) < 2e-3

    def test_the_mirrored_bone_rotates_the_mirrored_way(self):
        rig = person()
        rig.pose.use_mirror_x = True
        drag = begin_drag(bpy.context, rig, "forearm.L")
        drag.step(drag.start + np.array((-0.02, -0.05, 0.05)), (0.1, 0.2, 0.3))
        left, right = world(rig, "forearm.L", "head"), world(rig, "forearm.R", "head")
        assert np.allclose(left * (-1, 1, 1), right, atol=2e-3)

    def test_without_a_rotation_nothing_changes(self):
        rig = person()
        before = channels(rig)
        drag = begin_drag(bpy.context, rig, "forearm.L")
        drag.step(drag.start, (0.4, 0.0, 0.0))
        drag.step(drag.start, (0.0, 0.0, 0.0))
        assert changed(rig, before) == set()


@pytest.mark.one_blender
class TestOthers:
    """Several bones that are dragged at once."""

    SHIFT = (0.05, -0.2, 0.15)

    def gone(self, rig, before):
        return {bone: world(rig, bone) - place for bone, place in before.items()}

    @pytest.mark.parametrize("pinned", [(), ("hand.R",)])
    def test_all_selected_bones_move_by_the_same_shift_except_pinned_ones(self, human, pinned):
        pin_bones(human, (*FEET, *pinned))
        limited.select(human, ["hand.L", "hand.R", *FEET], active="hand.L")
        before = {bone: world(human, bone) for bone in ("hand.L", "hand.R", *FEET)}
        assert bpy.ops.fabrik.drag(translation=self.SHIFT) == {"FINISHED"}
        held = {*pinned, *FEET}
        for bone, gone in self.gone(human, before).items():
            np.testing.assert_allclose(gone, np.zeros(3) if bone in held else self.SHIFT, atol=1e-3, err_msg=bone)

    def test_only_the_bone_that_a_script_names(self, human):
        limited.select(human, ["hand.L", "hand.R"], active="hand.L")
        pin_bones(human, FEET)
        before = {bone: world(human, bone) for bone in ("hand.L", "hand.R")}
        assert bpy.ops.fabrik.drag(bone="hand.R", translation=self.SHIFT) == {"FINISHED"}
        gone = self.gone(human, before)
        np.testing.assert_allclose(gone["hand.R"], self.SHIFT, atol=1e-3)
        assert np.linalg.norm(gone["hand.L"]) < 0.25 * np.linalg.norm(self.SHIFT), "it only sways with the trunk"

    @pytest.mark.parametrize(
        ("bone", "others", "dragged"),
        [
            ("hand.L", ("upper_arm.L", "forearm.L"), {"hand.L"}),
            ("hand.L", ("upper_arm.R", "forearm.R", "head"), {"hand.L", "forearm.R", "head"}),
            ("hips", ("hand.L", "hand.R"), {"hips"}),
        ],
    )
    def test_of_a_selected_limb_only_its_end_is_dragged(self, human, bone, others, dragged):
        assert DragSetup(human, bone, "TAIL", DragSettings(others=others)).dragged.keys() == dragged

    def test_the_mirrored_bone_keeps_going_the_mirrored_way(self, human):
        human.pose.use_mirror_x = True
        before = {bone: world(human, bone) for bone in ("hand.L", "hand.R")}
        drag_by(human, "hand.L", self.SHIFT, others=("hand.R",))
        gone = self.gone(human, before)
        np.testing.assert_allclose(gone["hand.R"], np.multiply(gone["hand.L"], (-1.0, 1.0, 1.0)), atol=1e-3)


@pytest.mark.one_blender
class TestMirror:
    def test_the_other_side_moves_the_mirrored_way(self, human):
        human.pose.use_mirror_x = True
        shift = np.array((-0.1, -0.2, 0.15))
        left, right = world(human, "hand.L"), world(human, "hand.R")
        drag_by(human, "hand.L", shift)
        assert np.linalg.norm(world(human, "hand.L") - left - shift) < 1e-3
        assert np.linalg.norm(world(human, "hand.R") - right - shift * (-1, 1, 1)) < 1e-3

    def test_both_arms_with_short_chains(self, human):
        human.pose.use_mirror_x = True
        before = channels(human)
        right = world(human, "hand.R")
        drag_by(human, "hand.L", (-0.05, -0.1, 0.05), reach="BONES", bones=3)
        arm = ("hand", "forearm", "upper_arm")
        assert changed(human, before) == {f"{bone}.{side}" for bone in arm for side in "LR"}
        assert np.linalg.norm(world(human, "hand.R") - right - (0.05, -0.1, 0.05)) < 1e-3


class TestLeftAlone:
    def drag(self, rig, bone="forearm.L"):
        drag = begin_drag(bpy.context, rig, bone)
        drag.step(drag.start + np.array((-0.05, -0.08, 0.05)))
        drag.finish(bpy.context)
        return drag.left_alone

    def test_no_bone_above_a_constrained_one_follows(self):
        rig = person()
        constraint = rig.pose.bones["spine"].constraints.new("COPY_ROTATION")
        constraint.target = scenes.empty_at((0, 0, 0))
        constraint.target.rotation_euler = (0.2, 0.1, 0.3)
        before, hand = channels(rig), world(rig, "forearm.L")
        drag = begin_drag(bpy.context, rig, "forearm.L")
        shift = np.array((-0.05, -0.08, 0.05))
        drag.step(drag.start + shift)
        assert drag.left_alone == ["Bone 'spine' was not changed: constraint 'Copy Rotation' moves it"]
        assert changed(rig, before) == {"upper_arm.L", "forearm.L"}
        assert np.linalg.norm(world(rig, "forearm.L") - hand - shift) < 1e-3

    def test_constrained_bones_are_not_dragged(self):
        rig = person()
        constraint = rig.pose.bones["shin.L"].constraints.new("IK")
        constraint.target, constraint.chain_count = scenes.empty_at((0.1, 0, 0.1)), 2
        bpy.context.view_layer.update()
        for bone in ("shin.L", "thigh.L"):
            with pytest.raises(RigError, match=f"Bone '{bone}' can't be dragged: constraint 'IK' moves it"):
                begin_drag(bpy.context, rig, bone)

    def test_muted_constraints_and_limits_do_not_move_bones(self):
        rig = person()
        rig.pose.bones["spine"].constraints.new("COPY_ROTATION").mute = True
        rig.pose.bones["spine"].constraints.new("LIMIT_ROTATION")
        assert self.drag(rig) == []

    def test_driven_hidden_and_unselectable_bones_follow_rigidly(self):
        rig = person()
        scenes.pose(rig, scenes.smooth_motion(rig, 1, 8)[0][0])
        spine = rig.pose.bones["spine"] if hasattr(rig.pose.bones["spine"], "hide") else rig.data.bones["spine"]
        spine.hide = True
        rig.data.bones["hips"].hide_select = True
        rig.pose.bones["upper_arm.L"].driver_add("rotation_quaternion", 1).driver.expression = "0.3"
        bpy.context.view_layer.update()
        before = channels(rig)
        assert sorted(self.drag(rig)) == [
            "Bone 'hips' was not changed: it can't be selected",
            "Bone 'spine' was not changed: it is hidden",
            "Bone 'upper_arm.L' was not changed: a driver rotates it",
        ]
        assert changed(rig, before) == {"forearm.L"}

    def test_bones_of_hidden_collections_follow_rigidly(self):
        rig = person()
        rig.fabrik.free_limbs_hang = False
        collection = rig.data.collections.new("Unseen")
        collection.assign(rig.data.bones["upper_arm.L"])
        collection.is_visible = False
        before, hand = channels(rig), world(rig, "forearm.L")
        assert self.drag(rig) == ["Bone 'upper_arm.L' was not changed: it is hidden"]
        assert changed(rig, before) == {"hips", "spine", "forearm.L"}
        assert np.linalg.norm(world(rig, "forearm.L") - hand - (-0.05, -0.08, 0.05)) < 1e-3

    def test_a_drag_without_movable_bones_is_refused(self):
        rig = person()
        for bone in rig.pose.bones:
            bone.lock_rotation = (True, True, True)
        before = scenes.digest()
        with pytest.raises(RigError, match=r"'forearm\.L' can't be dragged: its rotation is locked, and no parent"):
            begin_drag(bpy.context, rig, "forearm.L")
        assert scenes.digest() == before
