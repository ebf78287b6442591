"""Solving and baking a limited rig: an independent checker finds every pose in Blender inside its limits."""

from math import radians

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support import checker, limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.blender.limits.editing import CONSTRAINT_NAME
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.settings.limit_properties import read_limit
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

FRAMES = 12
LIMITS = {
    "spine": Ball((0.4, 0.6, 0.4, 0.3), (-0.4, 0.4)),
    "head": Polygon(((0.5, 0.2), (0.1, 0.8), (-0.4, 0.1), (-0.1, -0.6)), (-0.6, 0.6)),
    "upper_arm.L": Ball((1.2, 0.9, 0.5, 1.0), (-0.8, 0.8)),
    "forearm.L": Hinge("X", -0.1, 2.4),
    "forearm.R": Hinge("Z", 0.2, 2.0),
    "thigh.L": Ball((0.8, 1.2, 0.6, 0.5), (-0.5, 0.5)),
    "shin.L": Hinge("X", -2.2, 0.0),
    "shin.R": Fixed(),
}


@pytest.fixture
def rig(clean_scene):
    made = limited.make_mirrored_rig()
    for place, bone in enumerate(made.pose.bones):
        bone.rotation_mode = scenes.MODES[place % len(scenes.MODES)]
    for name, limit in LIMITS.items():
        write_limit(made.pose.bones[name], limit)
    return scenes.place(made)


def legal_motion(rig, frames, seed, most=0.7, travel=0.0):
    """A smooth motion with every limited bone inside its limit, found by brute force."""
    turns, moves = scenes.smooth_motion(rig, frames, seed, most, travel)
    for column, bone in enumerate(rig.pose.bones):
        if bone.name in LIMITS:
            inside = checker.clamped(LIMITS[bone.name], checker.matrices(turns[:, column]))
            turns[:, column] = [Matrix(turn).to_quaternion() for turn in inside]
    return turns, moves


def aimed(rig, positions):
    """The rig with an effector for each end, whose targets are markers that move along (F, M, 3)."""
    markers = scenes.import_positions(positions, scenes.ENDS)
    for bone in scenes.ENDS:
        scenes.aim(rig, bone, markers[bone])
    scenes.make_active(rig)
    return rig


def worst_break(rig):
    """The largest angle of a bone outside its limit in the current pose, in degrees."""
    turns = {name: checker.matrices(limited.quaternion_of(rig.pose.bones[name])[None]) for name in LIMITS}
    return max(np.degrees(checker.distances(LIMITS[name], turns[name])[0][0]) for name in LIMITS)


def worst_break_played(rig, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(int(frame))
        found.append(worst_break(rig))
    return max(found)


class TestSolve:
    """*Solve* on the current frame."""

    def solved(self, rig, targets, start):
        for bone, point in zip(scenes.ENDS, targets, strict=True):
            scenes.aim(rig, bone, scenes.empty_at(point, f"{bone} target"))
        scenes.make_active(rig)
        assert bpy.ops.fabrik.solve(start=start) == {"FINISHED"}

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("start", ["PRESENT", "REST"])
    def test_targets_inside_the_limits_are_met(self, rig, seed, start):
        targets = scenes.record(rig, scenes.tail_points(rig), *legal_motion(rig, 1, seed))[0]
        self.solved(rig, targets, start)
        assert worst_break(rig) < 0.01
        bpy.context.view_layer.update()
        ends = [rig.matrix_world @ rig.pose.bones[bone].tail for bone in scenes.ENDS]
        assert np.linalg.norm(np.array(ends) - targets, axis=1).max() < 2e-3 * scenes.HEIGHT

    @pytest.mark.parametrize("seed", range(4))
    def test_targets_anywhere_break_no_limit(self, rig, seed):
        rng = np.random.default_rng(seed)
        scenes.pose(rig, scenes.smooth_motion(rig, 1, seed, most=3.0)[0][0])
        targets = np.array([0.4, -1.3, 1.2]) + rng.normal(size=(len(scenes.ENDS), 3))
        self.solved(rig, targets, "PRESENT")
        assert worst_break(rig) < 0.01

    def test_bones_outside_the_chain_are_not_clamped(self, rig):
        limited.turn(rig.pose.bones["shin.L"], (0.8, 0.0, 0.6, 0.0))
        before = limited.quaternion_of(rig.pose.bones["shin.L"])
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.6, -1.2, 1.2)))
        solve_frame(bpy.context, rig)
        assert np.array_equal(limited.quaternion_of(rig.pose.bones["shin.L"]), before)

    def test_sliders_take_effect_at_once(self, rig):
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.5, -1.2, 1.3)))
        bone = rig.pose.bones["forearm.L"]
        for ends in ((0.5, 0.6), (1.5, 1.6)):
            bone["fabrik_hinge"] = ends
            solve_frame(bpy.context, rig)
            turns = checker.matrices(limited.quaternion_of(bone)[None])
            assert checker.distances(Hinge("X", *ends), turns)[0].max() < radians(0.01)

    def test_invalid_values_are_named_and_change_nothing(self, rig):
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.5, -1.2, 1.3)))
        scenes.make_active(rig)
        rig.pose.bones["spine"]["fabrik_cone"] = [1.0, 2.0, 3.0, 4.0]
        before = scenes.digest()
        for operator in (bpy.ops.fabrik.solve, bpy.ops.fabrik.bake):
            sentence = limited.refusal(operator)
            assert "'spine'" in sentence
            assert "'fabrik_cone'" in sentence
            assert scenes.digest() == before

    def test_invalid_values_on_other_bones_do_not_matter(self, rig):
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.5, -1.2, 1.3)))
        rig.pose.bones["shin.L"]["fabrik_limit"] = "BAL"
        solve_frame(bpy.context, rig)


class TestBake:
    """Bakes of a limited rig."""

    @pytest.mark.parametrize(("root", "travel"), [("FIXED", 0.0), ("FREE", 1.0)])
    def test_limits_are_kept_and_targets_met(self, rig, root, travel):
        positions = scenes.record(rig, scenes.tail_points(rig), *legal_motion(rig, FRAMES, 5, travel=travel))
        aimed(rig, positions).fabrik.root = root
        result = bake(bpy.context, rig, frame_start=1, frame_end=FRAMES)
        assert worst_break_played(rig, result.frames) < 0.01
        assert result.report.total.rms < 2e-3 * scenes.HEIGHT
        assert result.report.doubts == ()

    def test_targets_anywhere_break_no_limit(self, rig):
        positions = np.random.default_rng(6).normal(size=(FRAMES, len(scenes.ENDS), 3)) * 0.6 + [0.4, -1.3, 1.2]
        positions[3:7, 1] = np.nan
        positions[8] = np.nan
        result = bake(bpy.context, aimed(rig, positions), frame_start=1, frame_end=FRAMES)
        assert worst_break_played(rig, result.frames) < 0.01

    def test_a_wide_hinge_stays_inside_its_range_between_two_poses(self, rig):
        """The shortest path from one end of a wide hinge to the other goes through forbidden angles."""
        wide = Hinge("X", -2.8, 2.8)
        write_limit(rig.pose.bones["forearm.L"], wide)
        targets = []
        for angle in (-2.7, 2.7):
            scenes.reset(rig)
            limited.turn(rig.pose.bones["forearm.L"], (np.cos(angle / 2), np.sin(angle / 2), 0, 0))
            bpy.context.view_layer.update()
            targets.append(rig.matrix_world @ rig.pose.bones["forearm.L"].tail)
        scenes.reset(rig)
        positions = np.full((9, 1, 3), np.nan)
        positions[0, 0], positions[8, 0] = targets
        for name in ("hips", "spine", "upper_arm.L"):
            write_limit(rig.pose.bones[name], Fixed())
        scenes.aim(rig, "forearm.L", scenes.import_positions(positions, ["hand"])["hand"])
        bake(bpy.context, rig, frame_start=1, frame_end=9)
        for frame in range(1, 10):
            bpy.context.scene.frame_set(frame)
            turns = checker.matrices(limited.quaternion_of(rig.pose.bones["forearm.L"])[None])
            assert checker.distances(wide, turns)[0].max() < radians(0.01)

    def test_animated_limits_are_read_at_the_first_frame_with_a_warning(self, rig):
        bone = rig.pose.bones["forearm.L"]
        for frame, high in ((1, 2.0), (FRAMES, 0.2)):
            bone["fabrik_hinge"] = (0.0, high)
            bone.keyframe_insert('["fabrik_hinge"]', frame=frame)
        rig.pose.bones["shin.L"].keyframe_insert('["fabrik_hinge"]', frame=1)
        bpy.context.scene.frame_set(FRAMES)
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.5, -1.2, 1.3)))
        scenes.aim(rig, "shin.L", scenes.empty_at((0.5, -1.2, 0.1)))
        result = bake(bpy.context, rig, frame_start=1, frame_end=FRAMES)
        assert result.report.doubts == (
            "Bone 'forearm.L' has an animated limit (fabrik_hinge): its values on frame 1 were used",
        )
        assert result.trees[0].problem.limits["forearm.L"].high == pytest.approx(2.0)
        assert read_limit(bone).high == pytest.approx(0.2)

    def test_driven_limits_are_reported(self, rig):
        rig.pose.bones["forearm.L"].driver_add('["fabrik_hinge"]', 1).driver.expression = "2.0"
        positions = scenes.record(rig, scenes.tail_points(rig), *legal_motion(rig, 3, 8))
        result = bake(bpy.context, aimed(rig, positions), frame_start=1, frame_end=3)
        assert [warning.split(":")[0] for warning in result.report.doubts] == [
            "Bone 'forearm.L' has an animated limit (fabrik_hinge)"
        ]

    def test_constraints_made_from_limits_do_not_change_a_bake(self, rig):
        bpy.ops.fabrik.limits_to_constraints(bones=",".join(LIMITS))
        positions = scenes.record(rig, scenes.tail_points(rig), *legal_motion(rig, FRAMES, 9))
        result = bake(bpy.context, aimed(rig, positions), frame_start=1, frame_end=FRAMES)
        assert CONSTRAINT_NAME in rig.pose.bones["spine"].constraints
        assert result.report.doubts == ()
        names = result.trees[0].problem.tree.skeleton.names
        for row, frame in enumerate(result.frames):
            shown = scenes.evaluated_tails(rig, names, int(frame))
            assert np.abs(shown - result.trees[0].solution.tails[row]).max() < 2e-3 * scenes.HEIGHT
