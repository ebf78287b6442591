"""Samples that cannot be right are found and left out."""

import numpy as np
import pytest
from support import walker
from support.steps import solve_take

from fabrik_addon.core import Effector, Options, Solver
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.markers.signals import bridge
from fabrik_addon.markers.solving.course import solve_every_frame
from fabrik_addon.markers.solving.outliers import implausible_samples, reject_outliers
from fabrik_addon.markers.solving.recording import Recording
from fabrik_addon.markers.steps import finish
from fabrik_addon.markers.take import TakeSettings

FRAMES = slice(100, 160)


def test_poses_stay_on_frames_without_outliers():
    """A marker is farther off than usual, but not enough to be left out: its frames do not change."""
    targets = np.array(walker.true_positions()[FRAMES])
    targets[20:30, walker.marker_names().index("LASI")] += [0.0, 0.0, 0.065]
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE", options=Options(restarts=0))
    recording = Recording(solver, targets, None, walker.RATE)
    finish(solve_every_frame(recording, steady=True))
    rotations, expected = np.array(recording.solution.rotations), np.array(recording.expected)
    assert np.nanmax(recording.errors(solved=False)) > 0.015 * walker.skeleton().size
    reject_outliers(recording)
    assert not recording.outliers.any()
    assert (recording.solution.rotations == rotations).all()
    assert (recording.expected == expected).all()


def test_gaps_are_bridged_in_parts_as_in_one(monkeypatch):
    """Bridged samples, and the frames on which they change, do not depend on how a take is divided."""
    monkeypatch.setattr("fabrik_addon.markers.solving.recording._TOGETHER", 7)
    rng, targets = np.random.default_rng(8), np.array(walker.true_positions()[FRAMES])
    targets[rng.random(targets.shape[:2]) < 0.3] = np.nan
    recording = Recording(Solver(walker.skeleton(), walker.effectors(), root="FREE"), targets, None, walker.RATE)
    frames, before = np.arange(len(targets)), bridge(targets, walker.RATE, round(0.1 * walker.RATE))
    assert np.array_equal(recording.bridged(frames), before, equal_nan=True)
    outliers = rng.random(targets.shape[:2]) < 0.02
    inliers = np.where(outliers[..., None], np.nan, targets)
    after = bridge(inliers, walker.RATE, round(0.1 * walker.RATE))
    differs = [not np.array_equal(*pair, equal_nan=True) for pair in zip(before, after, strict=True)]
    assert recording.reject(outliers).tolist() == np.flatnonzero(differs).tolist()
    odd = frames[::-2]
    assert np.array_equal(recording.bridged(odd), after[odd], equal_nan=True)
    assert (recording.close == (np.isnan(inliers) & ~np.isnan(after)).any(axis=2)).all()


def test_keypoints_that_jump_away_for_a_moment():
    """The wrong wrist of an arm with only joint markers is left out, not the elbow that it displaces."""
    skeleton, rng = walker.skeleton(), np.random.default_rng(4)
    bones = [bone for bone in skeleton.names if not bone.startswith(("spine", "chest", "neck", "toe"))]
    heads = walker.true_matrices()[FRAMES, :, :3, 3][:, [skeleton.index(bone) for bone in bones]]
    targets = heads + rng.normal(0.0, 0.006, heads.shape)
    away = np.zeros(targets.shape[:2], dtype=bool)
    for frame in range(4, 58, 6):
        away[frame, rng.choice([place for place, bone in enumerate(bones) if bone.startswith(("forearm", "hand"))])] = (
            True
        )
    targets[away] += rng.normal(0.0, 0.25, (away.sum(), 3))
    far = away & (np.linalg.norm(targets - heads, axis=2) > 0.15)
    solver = Solver(skeleton, [Effector(bone, (0.0, 0.0, 0.0)) for bone in bones], root="FREE")
    take = solve_take(solver, targets, TakeSettings(rate=walker.RATE))
    assert take.outliers[far].all()
    assert not take.outliers[~away].any()
    assert np.degrees(angle_between(take.solution.rotations[1:], take.solution.rotations[:-1])).max() < 15.0


class TestFlung:
    def test_fast_or_swapped_samples_are_not_outliers(self):
        """A hand that hits at 15 m/s and stops within 40 ms; two markers that stay swapped."""
        times = np.arange(60) / 100.0
        hand = np.stack((np.clip(15.0 * (times - 0.3), 0.0, 0.9), 0.4 * np.sin(30.0 * times), 0.0 * times), axis=1)
        swapped = np.where(times[:, None] < 0.3, (0.0, 0.0, 0.0), (0.4, 0.0, 0.0))
        assert not implausible_samples(np.stack((hand, swapped), axis=1), 100.0, 2.4).any()

    @pytest.mark.parametrize("hidden", [[20, 22, 23, 24], [17, 18, 19, 21], [18, 19, 22, 23]])
    def test_a_fast_foot_beside_a_gap_is_not_an_outlier(self, hidden):
        """The median of the visible samples is two frames behind or ahead of the foot."""
        positions = np.linspace(0.0, 2.5, 41)[:, None, None] * (1.0, 0.2, 0.1)
        positions[hidden] = np.nan
        assert not implausible_samples(positions, 100.0, 1.8).any()
        positions[[10, 30], 0, 2] += 0.2
        assert np.flatnonzero(implausible_samples(positions, 100.0, 1.8)).tolist() == [10, 30]

    def test_next_to_gaps_and_for_up_to_three_frames(self):
        positions = np.zeros((40, 2, 3))
        positions[:10, 0], positions[[20, 21, 22, 30], 1, 2] = np.nan, 0.3
        positions[28, 1] = np.nan
        expected = np.zeros((40, 2), dtype=bool)
        expected[[20, 21, 22, 30], 1] = True
        assert (implausible_samples(positions, 100.0, 2.4) == expected).all()
        assert not implausible_samples(positions[:1], 100.0, 2.4).any()
