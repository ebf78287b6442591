"""Planted feet: found from noisy points, and held without a change of the rest of the body."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import walker

from fabrik_addon.core import Ball, Effector, Hinge, Solution, Solver
from fabrik_addon.core.backend.array import many
from fabrik_addon.markers.feet import (
    StandingSettings,
    find_stances,
    ground_velocity,
    lift_off_floor,
    plant_feet,
)

RATE = 100.0
MM = 1e-3
FEET = [Effector(bone) for bone in ("foot.L", "foot.R", "toe.L", "toe.R")]


def stepping(first, end, *, frames=100, speed=1.0, lift=0.1, noise=0.0, seed=0):
    """A point (F, 3) that moves along Y except from frame first to end."""
    moving = np.ones(frames)
    moving[first:end] = 0.0
    way = np.cumsum(moving) * speed / RATE
    height = np.where(moving > 0, lift, 0.0)
    points = np.stack([np.zeros(frames), way, height], axis=1)
    return points + np.random.default_rng(seed).normal(size=points.shape) * noise


class TestFinding:
    @given(first=st.integers(5, 40), length=st.integers(15, 50), scale=st.sampled_from([0.01, 1.0, 100.0]))
    def test_contacts_of_a_foot(self, first, length, scale):
        settings = StandingSettings(speed=0.12 * scale, height=0.05 * scale)
        points = stepping(first, first + length) * scale
        [(found, end)] = find_stances(points, RATE, settings=settings)
        assert abs(found - first) <= 3
        assert abs(end - first - length) <= 3

    def test_noise_does_not_split_a_contact(self):
        points = stepping(20, 70, noise=0.001)
        assert len(find_stances(points, RATE)) == 1

    def test_up_may_be_any_axis(self):
        points = stepping(20, 70)
        assert find_stances(points[:, [0, 2, 1]], RATE, up=1) == find_stances(points, RATE)

    def test_a_foot_that_glides_high_is_not_in_contact(self):
        points = stepping(20, 70)
        points[30:60, 2] = 0.3
        assert all(end <= 31 or first >= 59 for first, end in find_stances(points, RATE))

    @pytest.mark.parametrize("points", [np.empty((0, 3)), np.zeros((1, 3))])
    def test_too_few_frames_for_a_contact(self, points):
        assert find_stances(points, RATE) == []


@pytest.fixture(scope="module")
def skating():
    """The true walk with sliding feet: thighs and shins wobble."""
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE")
    targets = np.array(walker.true_positions()[:150])
    wobble = 0.012 * np.sin(np.arange(150) / 9.0)[:, None]
    targets[:, walker.on_bones("foot.L", "foot.R", "toe.L", "toe.R"), 1] += wobble
    return solver.solve(targets)


class TestPlanting:
    def test_planted_feet_stay(self, skating):
        _, stances = plant_feet(skating, FEET, RATE)
        assert len(stances) >= 4
        assert max(stance.drift_before for stance in stances) > 5.0 * MM
        assert max(stance.drift_after for stance in stances) < 3.0 * MM

    def test_hips_and_arms_stay_as_they_are(self, skating):
        planted, _ = plant_feet(skating, FEET, RATE)
        others = [i for i, name in enumerate(planted.skeleton.names) if not name.startswith(("shin", "foot", "toe"))]
        assert np.linalg.norm(planted.heads - skating.heads, axis=2)[:, others].max() < 0.1 * MM

    def test_changes_are_blended_around_contacts(self, skating):
        before = np.linalg.norm(np.diff(skating.heads, n=2, axis=0), axis=2).max()
        planted, _ = plant_feet(skating, FEET, RATE)
        assert np.linalg.norm(np.diff(planted.heads, n=2, axis=0), axis=2).max() < before + 6.0 * MM

    def test_limits_hold(self, skating):
        limits = {f"shin.{side}": Hinge("X", 0.0, 2.4) for side in "LR"}
        limits |= {f"thigh.{side}": Ball(1.2, (-0.5, 0.5)) for side in "LR"}
        planted, _ = plant_feet(skating, FEET, RATE, limits=limits)
        for name, limit in limits.items():
            rotation = planted.rotations[:, planted.skeleton.index(name)]
            inside = many.stack([limit.clamp(many, many.quaternion(rotation))], len(rotation))[:, 0]
            changed = (rotation != skating.rotations[:, planted.skeleton.index(name)]).any(axis=1)
            assert np.abs(np.sum(rotation * inside, axis=1))[changed] == pytest.approx(1.0, abs=1e-9)

    def test_planted_feet_move_with_a_treadmill(self, skating):
        """The same walk on a belt that moves back as fast as the person walks."""
        belt = np.array([0.0, 1.3, 0.0])
        roots = skating.root_location + (np.arange(150) / RATE)[:, None] * belt
        running = replace(skating, root_location=roots)
        _, stances = plant_feet(running, FEET, RATE)
        assert len(stances) >= 4
        assert max(stance.drift_after for stance in stances) < 3.5 * MM

    @pytest.mark.parametrize("belt", [0.0, 1.2, -0.8])
    def test_the_motion_of_the_ground_is_found(self, belt):
        points = np.stack([stepping(10, 60), stepping(50, 95)], axis=1)
        points[..., 1] += belt * (np.arange(100) / RATE)[:, None]
        assert ground_velocity(points, RATE) == pytest.approx([0.0, belt, 0.0], abs=0.02)

    def test_without_contacts_nothing_changes(self, skating):
        planted, stances = plant_feet(skating, FEET[:1], RATE, settings=StandingSettings(speed=1e-6))
        assert stances == ()
        assert isinstance(planted, Solution)
        assert planted.rotations == pytest.approx(skating.rotations)


class TestFloor:
    """The distance of the feet of a take from the floor of the rig at rest."""

    @staticmethod
    def walked(height):
        """The walker's true poses, higher up than they were recorded."""
        solution = Solver(walker.skeleton(), walker.effectors(), root="FREE").solve(walker.true_positions()[:100])
        return replace(solution, root_location=solution.root_location + np.array([0.0, 0.0, height]))

    @pytest.mark.parametrize("height", [0.0, 0.07, -0.3])
    def test_walking_feet_are_lowered_to_the_floor(self, height):
        assert lift_off_floor(self.walked(height)) == pytest.approx([0.0, 0.0, -height], abs=20.0 * MM)

    @pytest.mark.parametrize("way", [1, -1])
    def test_up_or_down_stairs_the_lowest_step_counts(self, way):
        """Each step is 18 cm higher than the one before."""
        walked = self.walked(0.0)
        climbed = np.repeat(0.18 * np.arange(5), 20)[::way]
        climbing = replace(walked, root_location=walked.root_location + climbed[:, None] * (0.0, 0.0, 1.0))
        assert lift_off_floor(climbing) == pytest.approx(np.zeros(3), abs=20.0 * MM)

    def test_at_rest_the_feet_are_on_the_floor(self):
        rest = Solution.empty(walker.skeleton(), 3, 0)
        rest.rotations[:] = (1.0, 0.0, 0.0, 0.0)
        rest.root_location[:] = walker.skeleton().rest[0, :3, 3]
        lifted = replace(rest, root_location=rest.root_location + np.array([0.0, 0.0, 0.1]))
        assert lift_off_floor(rest) == pytest.approx(np.zeros(3), abs=1e-12)
        assert lift_off_floor(lifted) == pytest.approx([0.0, 0.0, -0.1], abs=1e-12)
