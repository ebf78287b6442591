"""Goals other than positions: rotations, poles, pins and priorities, solved on a frame, live and baked."""

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector
from support import scenes

from fabrik_addon.blender.goals.places import current_targets
from fabrik_addon.blender.goals.problem import find_problems

pytestmark = pytest.mark.usefixtures("clean_scene")

NEAR = 1e-3 * scenes.HEIGHT
HAND = "hand.L"
BONES = (*scenes.PERSON, ("hand.L", "forearm.L", (0.70, 0.0, 1.40), (0.80, 0.0, 1.40)))


@pytest.fixture
def rig(clean_scene):
    """A person with a hand, moved and rotated in the world, who reaches for a target with the hand."""
    made = scenes.place(scenes.make_rig(BONES, mode="MIXED"), scale=1.5)
    scenes.aim(made, HAND, scenes.empty_at(world(made, (0.5, -0.35, 1.3))))
    scenes.make_active(made)
    return made


def world(rig, place):
    return rig.matrix_world @ Vector(place)


def update():
    bpy.context.view_layer.update()


def gap(rig):
    update()
    effector = rig.fabrik.effectors[0]
    end = world(rig, rig.pose.bones[effector.bone].tail)
    return (end - effector.target.matrix_world.translation).length


def turned_apart(rig, bone=HAND):
    """Radians between the hand and its target, as Blender shows them."""
    update()
    shown = (rig.matrix_world @ rig.pose.bones[bone].matrix).to_quaternion()
    wanted = rig.fabrik.effectors[0].target.matrix_world.to_quaternion()
    return shown.rotation_difference(wanted).angle


def elbow_side(rig, pole):
    """Cosine of the angle between the elbow and a world point, about the line from shoulder to wrist."""
    update()
    bones = rig.pose.bones
    base, middle, end = (world(rig, bones[name].head) for name in ("upper_arm.L", "forearm.L", HAND))
    axis = (end - base).normalized()
    sides = [(point - base) - axis * (point - base).dot(axis) for point in (middle, Vector(pole))]
    return sides[0].normalized().dot(sides[1].normalized())


class TestRotations:
    @pytest.mark.parametrize("turn", [(0.2, 0.1, -0.3), (0.9, -0.4, 0.6)])
    def test_the_bone_is_rotated_like_its_target(self, rig, turn):
        effector = rig.fabrik.effectors[0]
        shown = (rig.matrix_world @ rig.pose.bones[HAND].matrix).to_euler()
        effector.target.rotation_euler = (Euler(turn).to_matrix() @ shown.to_matrix()).to_euler()
        bpy.ops.fabrik.solve()
        assert turned_apart(rig) > 0.1
        effector.hold_rotation = True
        bpy.ops.fabrik.solve()
        assert gap(rig) < NEAR
        assert turned_apart(rig) < 0.01

    def test_a_new_target_has_the_rotation_of_its_bone(self, rig):
        scenes.pose(rig, scenes.smooth_motion(rig, 1, 3)[0][0])
        rig.fabrik.effectors.clear()
        bpy.ops.fabrik.add_effector(bone=HAND)
        before = [bone.matrix.copy() for bone in rig.pose.bones]
        rig.fabrik.effectors[0].hold_rotation = True
        bpy.ops.fabrik.solve()
        update()
        for bone, matrix in zip(rig.pose.bones, before, strict=True):
            assert np.array(bone.matrix) == pytest.approx(np.array(matrix), abs=1e-3)

    def test_live_rotates_with_the_target(self, rig):
        effector = rig.fabrik.effectors[0]
        effector.target.rotation_euler = (rig.matrix_world @ rig.pose.bones[HAND].matrix).to_euler()
        effector.hold_rotation = True
        rig.fabrik.live = True
        update()
        assert turned_apart(rig) < 0.01
        effector.target.rotation_euler.x += 0.3
        assert turned_apart(rig) < 0.01
        rig.fabrik.live = False

    def test_a_bake_rotates_with_the_target(self, rig):
        ball = rig.fabrik.effectors[0].target
        turn = (rig.matrix_world @ rig.pose.bones[HAND].matrix).to_euler()
        for frame, more in ((1, 0.0), (5, 0.4), (9, -0.2)):
            ball.rotation_euler = (turn.x + more, turn.y, turn.z - more)
            ball.keyframe_insert("rotation_euler", frame=frame)
        rig.fabrik.effectors[0].hold_rotation = True
        bpy.ops.fabrik.bake(frame_start=1, frame_end=9)
        for frame in (1, 3, 5, 9):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR
            assert turned_apart(rig) < 0.01


class TestPoles:
    @pytest.fixture(autouse=True)
    def _trunk(self, rig):
        """The head is fixed, so that the arm is a limb of its own."""
        scenes.aim(rig, "head", scenes.empty_at(world(rig, rig.pose.bones["head"].tail), "Head target"))

    POLES = ((0.4, -3.0, 0.5), (0.6, 2.0, 1.3), (0.3, 0.2, -2.0))

    @pytest.mark.parametrize("pole", POLES)
    def test_the_limb_bends_toward_its_pole_target(self, rig, pole):
        effector = rig.fabrik.effectors[0]
        effector.bone = "forearm.L"
        effector.bend_target = scenes.empty_at(world(rig, pole), "Pole")
        bpy.ops.fabrik.solve()
        assert gap(rig) < NEAR
        bones = rig.pose.bones
        base, end = world(rig, bones["upper_arm.L"].head), world(rig, bones["forearm.L"].tail)
        middle, axis = world(rig, bones["forearm.L"].head), (end - base).normalized()
        sides = [point - base - axis * (point - base).dot(axis) for point in (middle, world(rig, pole))]
        assert sides[0].normalized().dot(sides[1].normalized()) > 0.999

    def test_a_bake_bends_toward_a_moving_pole_target(self, rig):
        effector = rig.fabrik.effectors[0]
        pole = scenes.empty_at(world(rig, self.POLES[0]), "Pole")
        for frame, place in ((1, self.POLES[0]), (9, (0.6, -2.0, 2.5))):
            pole.location = world(rig, place)
            pole.keyframe_insert("location", frame=frame)
        effector.hold_rotation, effector.bend_target = True, pole
        effector.target.rotation_euler = (rig.matrix_world @ rig.pose.bones[HAND].matrix).to_euler()
        bpy.ops.fabrik.bake(frame_start=1, frame_end=9)
        for frame in (1, 5, 9):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR
            assert elbow_side(rig, pole.matrix_world.translation) > 0.99


class TestPins:
    @pytest.fixture
    def pinned(self, rig):
        """A foot pinned in its current position and rotation."""
        pin = scenes.aim(rig, "shin.L", None, hold_rotation=True)
        update()
        pin.pin_location = rig.pose.bones["shin.L"].tail
        pin.pin_rotation = rig.pose.bones["shin.L"].matrix.to_quaternion()
        rig.fabrik.root = "FREE"
        return rig

    def held(self, rig):
        """The errors of a pin: of its point in armature units, and of its rotation in radians."""
        update()
        pin, bone = rig.fabrik.effectors[1], rig.pose.bones["shin.L"]
        turn = bone.matrix.to_quaternion().rotation_difference(Quaternion(pin.pin_rotation)).angle
        return (bone.tail - Vector(pin.pin_location)).length, turn

    def test_pins_hold_while_another_bone_reaches(self, pinned):
        bpy.ops.fabrik.solve()
        off, turn = self.held(pinned)
        assert off < NEAR
        assert turn < 0.01
        assert gap(pinned) < NEAR

    def test_a_bake_follows_targets_of_a_moving_armature(self, pinned):
        for frame, x in ((1, 0.0), (9, 2.0)):
            pinned.location.x = x
            pinned.keyframe_insert("location", frame=frame)
        pinned.fabrik.effectors[0].target.parent = pinned
        pinned.fabrik.effectors[0].target.location = (0.5, -0.35, 1.3)
        bpy.ops.fabrik.bake(frame_start=1, frame_end=9)
        for frame in (1, 5, 9):
            bpy.context.scene.frame_set(frame)
            off, turn = self.held(pinned)
            assert off < NEAR
            assert turn < 0.01


def test_targets_are_in_armature_space_for_any_object_transform(rig):
    """The solver's input does not depend on the location of the armature."""
    ball, pole = rig.fabrik.effectors[0].target, scenes.empty_at((0, 0, 0), "Pole")
    effector = rig.fabrik.effectors[0]
    effector.hold_rotation, effector.bend_target = True, pole
    ball.parent = pole.parent = rig
    ball.location, ball.rotation_euler, pole.location = (0.5, -0.3, 1.3), (0.3, 0.2, 0.1), (0.1, 2.0, 1.0)
    for scale in (0.01, 1.0, 100.0):
        scenes.place(rig, location=(scale, -2.0, 3.0), scale=scale)
        (goals,) = find_problems(rig)
        graph = bpy.context.evaluated_depsgraph_get()
        places = current_targets(graph, bpy.context.scene, rig, goals)
        assert places.points[0] == pytest.approx((0.5, -0.3, 1.3), abs=1e-4)
        assert places.bends[0] == pytest.approx((0.1, 2.0, 1.0), abs=1e-4)
        assert abs(places.rotations[0] @ np.array(Euler((0.3, 0.2, 0.1)).to_quaternion())) == pytest.approx(
            1.0, abs=1e-6
        )


def test_a_target_out_of_reach_moves_no_other_effector(rig):
    """A foot stays at its target while a hand is pulled meters out of reach, in either order."""
    effector = rig.fabrik.effectors[0]
    rig.fabrik.root = "FREE"
    foot = scenes.aim(rig, "shin.L", scenes.empty_at(world(rig, (0.1, 0.0, 0.08)), "Foot target"))
    effector.target.location = world(rig, (0.4, -4.0, 1.3))
    for priority in (0, 1):
        effector.priority = priority
        bpy.ops.fabrik.solve()
        update()
        assert (world(rig, rig.pose.bones[effector.bone].tail) - effector.target.location).length > 0.5
        assert (world(rig, rig.pose.bones["shin.L"].tail) - foot.target.location).length < 1e-3
