"""Limits from IK settings and constraints, checked by Blender's own result, and limits from an action."""

from math import degrees, pi, radians

import bpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Euler, Matrix, Quaternion, Vector
from support import checker, limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.settings.limit_properties import read_limit, read_limits
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon
from fabrik_addon.core.limits import fitted_limit

pytestmark = pytest.mark.usefixtures("clean_scene")

AXES = "xyz"


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


@pytest.fixture
def bone(rig):
    return rig.pose.bones["upper_arm.L"]


def limit_ik(bone, **ranges):
    """Set IK limits in degrees, such as x=(-20, 70); None locks the axis."""
    for axis, ends in ranges.items():
        setattr(bone, f"lock_ik_{axis}", ends is None)
        if ends is not None:
            setattr(bone, f"use_ik_limit_{axis}", True)
            setattr(bone, f"ik_min_{axis}", radians(ends[0]))
            setattr(bone, f"ik_max_{axis}", radians(ends[1]))


def constrain(bone, space="LOCAL", **ranges):
    """A Limit Rotation constraint with ranges in degrees."""
    constraint = bone.constraints.new("LIMIT_ROTATION")
    constraint.owner_space = space
    constraint.use_legacy_behavior = False
    for axis, ends in ranges.items():
        setattr(constraint, f"use_limit_{axis}", True)
        setattr(constraint, f"min_{axis}", radians(ends[0]))
        setattr(constraint, f"max_{axis}", radians(ends[1]))
    return constraint


def shown(bone):
    """(4,) the local rotation of a bone with its constraints."""
    graph = bpy.context.evaluated_depsgraph_get()
    evaluated = bone.id_data.evaluated_get(graph).pose.bones[bone.name]
    space = {"parent_matrix": evaluated.parent.matrix, "parent_matrix_local": bone.bone.parent.matrix_local}
    local = bone.bone.convert_local_to_pose(evaluated.matrix, bone.bone.matrix_local, invert=True, **space)
    return np.array(local.to_quaternion())


def degrees_of(limit):
    """The numbers of a limit in whole degrees."""
    if isinstance(limit, Hinge):
        return limit.axis, round(degrees(limit.low)), round(degrees(limit.high))
    return tuple(round(degrees(angle)) for angle in (*limit.angles, *limit.twist))


class TestBlenderIK:
    """Blender's own IK reaches exactly as far as the limit made from its settings."""

    def reached(self, bone, directions):
        """(N, 3, 3) the rotations that Blender's IK finds when it aims the bone in directions of its rest frame."""
        target = scenes.empty_at((0, 0, 0))
        constraint = bone.constraints.new("IK")
        constraint.target, constraint.chain_count, constraint.iterations = target, 1, 200
        found = []
        for direction in directions:
            target.location = bone.bone.matrix_local @ (Vector(direction).normalized() * 2.0 * bone.length)
            bpy.context.view_layer.update()
            found.append(shown(bone))
        bone.constraints.remove(constraint)
        return checker.matrices(np.array(found))

    @pytest.mark.parametrize("axis", ["X", "Z"])
    def test_hinge(self, bone, axis):
        other = {"X": "z", "Z": "x"}[axis]
        limit_ik(bone, **{axis.lower(): (-20, 70), "y": None, other: None})
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        limit = read_limit(bone)
        assert degrees_of(limit) == (axis, -20, 70)
        turns = [Matrix.Rotation(angle, 3, axis) for angle in np.linspace(-2.5, 2.5, 26)]
        turned = self.reached(bone, [turn @ Vector((0, 1, 0)) for turn in turns])
        assert checker.distances(limit, turned)[0].max() < radians(0.2)
        place = checker.AXES[axis]
        i, j = (place + 1) % 3, (place + 2) % 3
        angles = np.degrees(np.arctan2(turned[:, j, i], turned[:, i, i]))
        assert (angles.min(), angles.max()) == pytest.approx((-20, 70), abs=0.5)

    def test_ball(self, bone):
        limit_ik(bone, x=(-30, 50), y=None, z=(-10, 70))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        limit = read_limit(bone)
        assert degrees_of(limit) == (10, 50, 70, 30, 0, 0)
        ways = [(1, 0.1, 0), (0, 0.1, 1), (-1, 0.1, 0), (0, 0.1, -1)]
        leans = checker.lean_and_twist(self.reached(bone, ways))[0]
        assert [lean @ np.array(way)[[0, 2]] for lean, way in zip(leans, ways, strict=True)] == pytest.approx(
            limit.angles, abs=radians(1.0)
        )
        rng = np.random.default_rng(1)
        turned = self.reached(bone, rng.normal(size=(60, 3)))
        assert checker.distances(limit, turned)[0].max() < radians(2.0)

    def test_only_twist_is_limited(self, bone):
        limit_ik(bone, y=(-40, 25))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert degrees_of(read_limit(bone)) == (180, 180, 180, 180, -40, 25)

    def test_locks(self, rig):
        limit_ik(rig.pose.bones["head"], x=None, y=None, z=None)
        limit_ik(rig.pose.bones["spine"], x=None, z=None)
        limit_ik(rig.pose.bones["thigh.L"], z=None)
        bpy.ops.fabrik.limits_from_ik(bones="head,spine,thigh.L,hips")
        found = read_limits(rig)
        assert found.keys() == {"head", "spine", "thigh.L"}
        assert found["head"] == Fixed()
        assert degrees_of(found["spine"]) == ("Y", -180, 180)
        assert degrees_of(found["thigh.L"]) == (0, 180, 0, 180, -180, 180)


class TestConstraints:
    """Limit Rotation constraints in local space; others are named and left."""

    def test_a_hinge_range_without_rest(self, bone):
        constrain(bone, x=(20, 150), y=(0, 0), z=(0, 0))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert degrees_of(read_limit(bone)) == ("X", 20, 150)

    def test_ball(self, bone):
        constrain(bone, x=(-30, 50), y=(-20, 25), z=(-10, 70))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert degrees_of(read_limit(bone)) == (10, 50, 70, 30, -20, 25)

    def test_a_box_without_rest_becomes_a_polygon(self, bone):
        constrain(bone, x=(20, 60), y=(-20, 25), z=(-10, 30))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        limit = read_limit(bone)
        assert isinstance(limit, Polygon)
        corners = {tuple(round(degrees(part)) for part in corner) for corner in limit.window}
        assert corners == {(-30, 20), (10, 20), (10, 60), (-30, 60)}

    def test_an_unlimited_axis_and_a_range_without_rest_become_a_polygon(self, bone):
        constrain(bone, x=(20, 60))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert isinstance(read_limit(bone), Polygon)

    @pytest.mark.parametrize(
        "ranges", [{"x": (-30, 50), "y": (-20, 25), "z": (-10, 30)}, {"x": (20, 60), "z": (-10, 30)}]
    )
    def test_rotations_that_the_constraint_allows_are_nearly_inside(self, bone, ranges):
        constrain(bone, **ranges)
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        limit = read_limit(bone)
        rng = np.random.default_rng(2)
        for axis, (low, high) in ranges.items():
            # Along one axis at a time, box and limit are the same.
            boxes = [ranges.get(each, (0, 0)) for each in AXES]
            middle = [0.0 if ends[0] <= 0 <= ends[1] else sum(ends) / 2 for ends in boxes]
            for angle in rng.uniform(low, high, 10):
                angles = list(middle)
                angles[AXES.index(axis)] = angle
                turned = np.array(Euler([radians(angle) for angle in angles], "XYZ").to_quaternion())
                assert checker.distances(limit, checker.matrices(turned[None]))[0] < radians(4.0)

    def test_ik_limits_and_constraints_are_combined(self, bone):
        limit_ik(bone, x=(-30, 90), y=None, z=None)
        constrain(bone, x=(-60, 45))
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert degrees_of(read_limit(bone)) == ("X", -30, 45)

    def test_constraints_in_other_spaces_are_named_and_ignored(self, rig, bone, capfd):
        constrain(bone, space="WORLD", x=(0, 10)).name = "in the world"
        constrain(bone, x=(-30, 50), y=(0, 0), z=(0, 0))
        constrain(bone, x=(0, 1)).mute = True
        weak = constrain(bone, x=(0, 2))
        weak.influence, weak.name = 0.5, "weak"
        bpy.ops.fabrik.limits_from_ik(bones=bone.name)
        assert degrees_of(read_limit(bone)) == ("X", -30, 50)
        printed = "".join(capfd.readouterr())
        assert "'in the world' of bone 'upper_arm.L' was skipped: it is not in local space" in printed
        assert "'weak' of bone 'upper_arm.L' was skipped: its influence is not 1" in printed

    def test_a_constraint_in_another_space_is_refused(self, rig, bone):
        constrain(bone, space="POSE", x=(0, 10))
        sentence = limited.refusal(bpy.ops.fabrik.limits_from_ik, bones=bone.name)
        assert "it is not in local space" in sentence
        assert read_limits(rig) == {}

    def test_contradicting_arguments_are_named(self, rig, bone):
        constrain(bone, x=(20, 30))
        constrain(bone, x=(-30, 10))
        assert "no allowed angle" in limited.refusal(bpy.ops.fabrik.limits_from_ik, bones=bone.name)
        assert read_limits(rig) == {}

    def test_our_own_constraint_is_not_a_source(self, rig, bone):
        write_limit(bone, Ball((0.25, 0.5, 0.25, 0.5), (-0.5, 0.5)))
        bpy.ops.fabrik.limits_to_constraints(bones=bone.name)
        assert "None of these bones" in limited.refusal(bpy.ops.fabrik.limits_from_ik, bones=bone.name)


def quaternions(*turns):
    """(N, 4) rotations of (axis, angle) pairs, one after the other in the list."""
    return np.array([Quaternion(axis, angle) for axis, angle in turns])


def assert_holds(limit, rotations, margin=0.0):
    outside, slack = checker.distances(limit, checker.matrices(rotations))
    assert outside.max() < 2e-4
    assert slack.min() > margin - 2e-4


class TestFitting:
    """The limit made from rotations contains them all, with the margin, and is no wider than that at its ends."""

    @given(st.data())
    def test_every_rotation_is_inside(self, data):
        seed, margin = data.draw(st.integers(0, 10_000)), data.draw(limited.angles(0.0, 0.2))
        rng = np.random.default_rng(seed)
        source = data.draw(limited.balls)
        rotations = checker.random_rotations_inside(source, rng, 50)
        limit = fitted_limit(rotations, margin)
        if max(np.linalg.norm(checker.lean_and_twist(checker.matrices(rotations))[0], axis=-1)) < 3.0:
            assert checker.distances(limit, checker.matrices(rotations))[0].max() < 2e-4

    def test_if_the_narrowest_cone_would_exceed_180_degrees_it_is_wider_on_the_other_axis(self):
        source = Ball((3.0, 2.0, 0.0, 1.5), (0.0, 0.0))
        rotations = checker.random_rotations_inside(source, np.random.default_rng(2265), 50)
        limit = fitted_limit(rotations)
        assert max(limit.angles) == pytest.approx(np.pi)
        assert_holds(limit, rotations, margin=-1e-9)

    @pytest.mark.parametrize("axis", ["X", "Y", "Z"])
    @pytest.mark.parametrize(("low", "high"), [(0.2, 2.0), (-2.5, -0.1), (-1.0, 2.9), (2.0, 4.5), (-0.5, 3.9)])
    def test_hinge(self, axis, low, high):
        unit = np.eye(3)["XYZ".index(axis)]
        rotations = quaternions(*[(unit, angle) for angle in np.linspace(low, high, 40)])
        found = fitted_limit(rotations, 0.1)
        assert found.axis == axis
        turns = round((found.low - low + 0.1) / (2 * pi)) * 2 * pi
        assert (found.low, found.high) == pytest.approx((low - 0.1 + turns, high + 0.1 + turns), abs=1e-6)
        assert_holds(found, rotations, 0.1)

    def test_a_hinge_with_a_wobble(self):
        wobbly = np.array(
            [
                Quaternion((1, 0, 0), angle) @ Quaternion((0, 0, 1), radians(2.0) * np.sin(5 * angle))
                for angle in np.linspace(0.2, 2.0, 60)
            ]
        )
        assert isinstance(fitted_limit(wobbly, 0.1, radians(3.0)), Hinge)
        assert isinstance(fitted_limit(wobbly, 0.1, radians(1.0)), Ball)

    def test_more_than_a_turn_is_free(self):
        found = fitted_limit(quaternions(*[((0, 1, 0), angle) for angle in np.linspace(-5, 5, 90)]))
        assert found.axis == "Y"
        assert not found.bounded

    def test_a_bone_that_does_not_move(self):
        assert fitted_limit(quaternions(((1, 0, 0), 0.0), ((1, 0, 0), 1e-6)), 0.1) == Fixed()

    def test_a_bone_that_never_reaches_rest(self):
        found = fitted_limit(quaternions(*[((0, 0, 1), 0.5)] * 3), 0.1)
        assert (found.axis, found.low, found.high) == ("Z", pytest.approx(0.4), pytest.approx(0.6))

    @pytest.mark.parametrize("cone", [(0.5, 1.0, 0.25, 0.75), (0.0, 1.0, 0.5, 0.0), (1.2, 0.1, 0.1, 1.2)])
    def test_a_full_cone_is_recovered(self, cone):
        source = Ball(cone, (-0.5, 1.0))
        azimuth = np.linspace(0, 2 * pi, 72, endpoint=False)
        x = np.cos(azimuth) * np.where(np.cos(azimuth) >= 0, cone[0], cone[2])
        z = np.sin(azimuth) * np.where(np.sin(azimuth) >= 0, cone[1], cone[3])
        swings = [Quaternion((b, 0, -a), np.hypot(a, b)) if a or b else Quaternion() for a, b in zip(x, z, strict=True)]
        twists = np.linspace(-0.5, 1.0, 72)
        rotations = np.array(
            [swing @ Quaternion((0, 1, 0), twist) for swing, twist in zip(swings, twists, strict=True)]
        )
        found = fitted_limit(rotations, 0.0)
        assert found.angles == pytest.approx(source.angles, abs=1e-5)
        assert found.twist == pytest.approx(source.twist, abs=1e-5)

    def test_a_wobble_does_not_widen_the_swing(self):
        """Swings of 60 degrees toward Z, with 1 degree to the sides at the end."""
        leans = [(radians(1.0) * np.sin(7 * share), radians(60.0) * share) for share in np.linspace(0.0, 1.0, 50)]
        rotations = np.array([Quaternion((z, 0, -x), np.hypot(x, z)) if z else Quaternion() for x, z in leans])
        found = fitted_limit(rotations)
        assert_holds(found, rotations)
        assert found.angles[1] < radians(63.0)
        assert max(found.angles[0], found.angles[2]) < radians(10.0)
        assert found.angles[3] == 0.0


class TestAction:
    """Limits from the current action, in every rotation mode."""

    def key(self, bone, rotations, step=1):
        """Key quaternions every few frames."""
        for row, rotation in enumerate(rotations):
            limited.turn(bone, rotation)
            name = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
            bone.keyframe_insert(name.get(bone.rotation_mode, "rotation_euler"), frame=1 + row * step)

    @pytest.mark.parametrize("mode", scenes.MODES)
    def test_hinge_and_ball(self, rig, mode):
        rng = np.random.default_rng(3)
        source = Ball((0.5, 1.0, 0.25, 0.75), (-0.5, 0.5))
        poses = {
            "forearm.L": quaternions(*[((1, 0, 0), angle) for angle in np.linspace(0.3, 1.9, 12)]),
            "upper_arm.L": checker.random_rotations_inside(source, rng, 12),
        }
        for name, rotations in poses.items():
            rig.pose.bones[name].rotation_mode = mode
            self.key(rig.pose.bones[name], rotations)
        bpy.ops.fabrik.limits_from_action(bones="forearm.L,upper_arm.L", margin=0.05)
        found = read_limits(rig)
        assert (found["forearm.L"].low, found["forearm.L"].high) == pytest.approx((0.25, 1.95), abs=1e-4)
        assert isinstance(found["upper_arm.L"], Ball)
        assert_holds(found["upper_arm.L"], poses["upper_arm.L"])

    def test_rotations_between_keys_are_included(self, rig):
        bone = rig.pose.bones["forearm.L"]
        bone.rotation_mode = "XYZ"
        self.key(bone, quaternions(((1, 0, 0), 0.0), ((1, 0, 0), 1.0), ((1, 0, 0), 1.0), ((1, 0, 0), 0.0)), step=10)
        for curve in scenes.keyframes.curves(rig):
            for key in curve.keyframe_points:
                key.interpolation, key.handle_left_type, key.handle_right_type = "BEZIER", "FREE", "FREE"
            if curve.array_index == 0:
                curve.keyframe_points[1].handle_right = (14.0, 2.0)
                curve.keyframe_points[2].handle_left = (18.0, 2.0)
            curve.update()
        bpy.ops.fabrik.limits_from_action(bones="forearm.L", margin=0.0)
        bpy.context.scene.frame_set(16)
        assert read_limit(bone).high >= bone.rotation_euler.x - 1e-6 > 1.5

    def test_bones_that_the_action_does_not_rotate_are_named_and_left(self, rig, capfd):
        self.key(rig.pose.bones["forearm.L"], quaternions(((1, 0, 0), 0.3), ((1, 0, 0), 1.0)))
        bpy.ops.fabrik.limits_from_action(bones="forearm.L,head")
        assert read_limits(rig).keys() == {"forearm.L"}
        note = f"These bones are not rotated by action {rig.animation_data.action.name!r}: 'head'"
        assert note in "".join(capfd.readouterr())

    def test_bones_without_rotation_keys_are_refused(self, rig):
        self.key(rig.pose.bones["forearm.L"], quaternions(((1, 0, 0), 0.3)))
        assert "None of the bones ('head') is rotated by action" in limited.refusal(
            bpy.ops.fabrik.limits_from_action, bones="head"
        )

    def test_the_pose_and_the_frame_do_not_change(self, rig):
        self.key(rig.pose.bones["forearm.L"], quaternions(((1, 0, 0), 0.3), ((1, 0, 0), 1.0)))
        limited.turn(rig.pose.bones["head"], Quaternion((1, 0, 0), 0.5))
        before = scenes.digest()
        bpy.ops.fabrik.limits_from_action(bones="forearm.L")
        assert scenes.digest() == before
