"""Calibration: size, offsets and pose found from guesses, on the sample person and on a recording of someone else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import walker
from support.steps import calibrate, refined

from fabrik_addon.core import Ball, Skeleton, forward_kinematics
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix, quaternion_from_rotation_vector
from fabrik_addon.markers.calibrate.size import CalibrationError, height_factor, points_on, with_factors
from fabrik_addon.markers.clip import Clip
from fabrik_addon.markers.doubts import calibration_doubts
from fabrik_addon.markers.mapping.marker_map import MappedMarker
from sample_rigs.recipe import markers

MM = 1e-3
SOME = slice(0, 400, 10)


def guesses(error=0.0, seed=0):
    """The true map, with each offset off by a given amount."""
    rng = np.random.default_rng(seed)
    return [
        MappedMarker(m.name, m.bone, "OFFSET", tuple((np.array(m.offset) + error * rng.normal(size=3)).tolist()))
        for m in markers.markers()
    ]


def recorded(scale=1.0, noise=0.0, part=SOME):
    """The walk of someone who is 1/scale as large as the rig."""
    positions = walker.true_positions()[part] / scale
    positions = positions + np.random.default_rng(5).normal(size=positions.shape) * noise
    return Clip(tuple(walker.marker_names()), walker.RATE, positions, "Z")


def true_offsets():
    return np.array([marker.offset for marker in markers.markers()])


class TestFromAReference:
    @settings(max_examples=3)
    @given(scale=st.floats(0.01, 100.0), frame=st.integers(0, 39))
    def test_right_guesses_give_the_size_and_the_pose(self, scale, frame):
        found = calibrate(walker.skeleton(), guesses(), recorded(scale), (frame, frame))
        assert found.scale == pytest.approx(scale, rel=2e-3)
        heads = forward_kinematics(walker.skeleton(), found.poses.rotations[0], found.poses.root_location[0])[:, :3, 3]
        true = walker.true_matrices()[SOME][frame, :, :3, 3]
        assert np.linalg.norm(heads - true, axis=1).max() < 15 * MM
        assert np.nanmax(found.residuals) < 0.1 * MM

    def test_a_pose_that_is_not_rest_gives_the_offsets(self):
        """The size follows only from the chain of joints, so part of each guess's error of 1 cm remains."""
        found = calibrate(walker.skeleton(), guesses(0.01), recorded(), (30, 30), scale=1.0)
        away = np.linalg.norm(found.offsets - true_offsets(), axis=1)
        assert np.median(away) < 15 * MM
        solution = found.solver().solve(found.targets(recorded()))
        assert np.sqrt(np.nanmean(solution.errors**2)) < 4 * MM

    def test_the_rig_itself_stays_by_default(self):
        found = calibrate(walker.skeleton(), guesses(), recorded(2.0), (0, 0))
        assert found.skeleton is walker.skeleton()
        assert (found.bone_factors == 1.0).all()

    def test_a_known_scale_is_used(self):
        assert calibrate(walker.skeleton(), guesses(), recorded(2.0), (0, 0), scale=2.0).scale == 2.0

    def test_markers_on_heads_and_tails_are_enough(self):
        """Joint centers, as from markerless systems: two or three points on each bone, none of them an offset."""
        skeleton = walker.skeleton()
        names = [name for name in skeleton.names if not name.startswith("toe")]
        mapping = [MappedMarker(f"{name} joint", name, "HEAD") for name in names]
        mapping += [
            MappedMarker(f"{name} end", name, "TAIL") for name in ("head", "hand.L", "hand.R", "foot.L", "foot.R")
        ]
        bones = [skeleton.index(entry.bone) for entry in mapping]
        ends = np.array(
            [[0.0, skeleton.lengths[b] * (e.point == "TAIL"), 0.0] for b, e in zip(bones, mapping, strict=True)]
        )
        points = points_on(walker.true_matrices()[SOME], bones, ends)
        clip = Clip(tuple(entry.marker for entry in mapping), 20.0, points / 1.5, "Z")
        found = calibrate(skeleton, mapping, clip)
        assert found.scale == pytest.approx(1.5, rel=1e-3)
        assert found.offsets == pytest.approx(ends, abs=2 * MM)

    def test_limits_hold_at_the_reference(self):
        limits = {"upper_arm.L": Ball(0.3, (-0.2, 0.2))}
        found = calibrate(walker.skeleton(), guesses(), recorded(), (0, 0), limits=limits, scale=1.0)
        rotation = found.poses.rotations[0, walker.skeleton().index("upper_arm.L")]
        lean = np.arccos(1.0 - 2.0 * (rotation[1] ** 2 + rotation[3] ** 2))
        assert lean <= 0.3 + 1e-6

    def test_markers_without_weight_and_unseen_ones(self):
        mapping = guesses()
        mapping[0] = replace(mapping[0], weight=0.0)
        clip = recorded()
        positions = np.array(clip.positions)
        positions[:, 5] = np.nan
        found = calibrate(walker.skeleton(), mapping, replace(clip, positions=positions), (10, 12), scale=1.0)
        assert mapping[0].marker not in [entry.marker for entry in found.markers]
        assert np.isnan(found.residuals[4])
        assert found.offsets[4] == pytest.approx(true_offsets()[5])

    def test_the_stillest_frame_is_chosen(self):
        clip = recorded(part=slice(0, 40))
        positions = np.array(clip.positions)
        positions[20:25] = positions[20]
        positions[0:15, 3] = np.nan
        found = calibrate(walker.skeleton(), guesses(), replace(clip, positions=positions), scale=1.0)
        middle = len(found.poses.rotations) // 2
        rotations, root = found.poses.rotations[middle], found.poses.root_location[middle]
        heads = forward_kinematics(walker.skeleton(), rotations, root)[0, :3, 3]
        assert heads == pytest.approx(walker.true_matrices()[20, 0, :3, 3], abs=3 * MM)

    def test_still_frames_with_an_upright_person_are_preferred(self):
        """A person stands still only in the crouch before a jump."""
        skeleton = walker.skeleton()
        local, roots = np.array(walker.true_rotations()[SOME]), np.array(walker.true_matrices()[SOME, 0, :3, 3])
        crouch = {"thigh": 85.0, "shin": -110.0, "spine": -40.0, "chest": -25.0}
        for name in skeleton.names:
            if (degrees := crouch.get(name.partition(".")[0])) is not None:
                local[:15, skeleton.index(name)] = quaternion_from_rotation_vector(np.radians([-degrees, 0.0, 0.0]))
        local[:15], roots[:15] = local[0], roots[0] - (0.0, 0.0, 0.35)
        matrices = forward_kinematics(skeleton, local, roots)
        bones = [skeleton.index(marker.bone) for marker in markers.markers()]
        clip = replace(recorded(), positions=points_on(matrices, bones, true_offsets()))
        found = calibrate(skeleton, guesses(0.01), clip)
        assert found.stature > 0.93
        crouching = calibrate(skeleton, guesses(0.01), clip, (0, 10))
        assert crouching.stature < 0.8
        (doubt,) = calibration_doubts(crouching.stature, None)
        assert doubt.startswith("The person crouches on the frames of the calibration (")
        assert not list(calibration_doubts(found.stature, None))


class TestOverATake:
    def test_offsets_become_right_as_far_as_motion_determines_them(self):
        clip = recorded(1.1, noise=0.5 * MM)
        before = calibrate(walker.skeleton(), guesses(0.015), clip, (0, 0))
        after = refined(before, clip)
        rms = [np.sqrt(np.nanmean(c.solver().solve(c.targets(clip)).errors ** 2)) for c in (before, after)]
        assert rms[1] < 1.5 * MM
        assert rms[1] < 0.6 * rms[0]
        assert after.scale == pytest.approx(1.1, rel=0.02)

    def test_outliers_are_ignored(self):
        clip = recorded(noise=0.5 * MM)
        positions = np.array(clip.positions)
        positions[5:15, 8] += [0.4, 0.0, 0.3]
        before = calibrate(walker.skeleton(), guesses(), clip, (0, 0), scale=1.0)
        spoilt = refined(before, replace(clip, positions=positions))
        assert np.linalg.norm(spoilt.offsets - true_offsets(), axis=1)[8] < 5 * MM

    def test_swapped_knees_on_one_frame_of_the_reference_are_ignored(self):
        clip, knees = recorded(noise=0.5 * MM), [walker.marker_names().index(name) for name in ("LKNE", "RKNE")]
        positions = np.array(clip.positions)
        positions[22, knees] = positions[22, knees[::-1]]
        found = calibrate(walker.skeleton(), guesses(), replace(clip, positions=positions), (20, 24))
        assert np.linalg.norm(found.offsets - true_offsets(), axis=1).max() < 6 * MM

    def test_a_static_recording_calibrates_another(self):
        static = recorded(part=slice(50, 52))
        before = calibrate(walker.skeleton(), guesses(0.01), static, scale=1.0)
        after = refined(before, recorded(), resize=False)
        assert after.scale == before.scale
        assert np.nanmean(after.residuals) < 1.5 * MM


@pytest.fixture(scope="module")
def other():
    """Someone with longer legs and shorter arms, walking."""
    skeleton = walker.skeleton()
    factors = np.ones(len(skeleton))
    for part, factor in (("thigh", 1.12), ("shin", 1.12), ("upper_arm", 0.9), ("forearm", 0.9)):
        for side in "LR":
            factors[skeleton.index(f"{part}.{side}")] = factor
    person = with_factors(skeleton, factors)
    root = walker.true_matrices()[SOME, 0, :3, 3] * [1.12, 1.12, 1.08]
    matrices = forward_kinematics(person, walker.true_rotations()[SOME], root)
    bones = [skeleton.index(marker.bone) for marker in markers.markers()]
    points = points_on(matrices, bones, true_offsets() * factors[bones, None])
    return factors, Clip(tuple(walker.marker_names()), 10.0, points, "Z")


def test_markers_that_move_on_their_bones_keep_their_guesses():
    """Two or three keypoints on each bone stray slowly by 15 mm. When they counted as exact, offsets were 27 mm off."""
    ends = {"FHD", "ASI", "SHO", "ELB", "WRA", "KNE", "ANK", "HEE", "TOE", "MT5", "HLX"}
    kept = [place for place, name in enumerate(walker.marker_names()) if name[1:] in ends]
    rng, clip = np.random.default_rng(0), recorded()
    sizes, phases = rng.normal(size=(3, len(kept), 3)), rng.uniform(0.0, 2.0 * np.pi, (3, len(kept), 3))
    times = np.linspace(0.0, 2.0 * np.pi, len(clip.positions))[:, None, None]
    stray = sum(
        size * np.sin((k + 1) * times + phase) for k, (size, phase) in enumerate(zip(sizes, phases, strict=True))
    )
    names = tuple(clip.names[place] for place in kept)
    keypoints = replace(clip, names=names, positions=clip.positions[:, kept] + 15 * MM / np.sqrt(1.5) * stray)
    mapping = [guesses()[place] for place in kept]
    found = calibrate(walker.skeleton(), mapping, keypoints, (0, 39), scale=1.0)
    found = refined(found, keypoints, resize=False)
    assert np.linalg.norm(found.offsets - found.guesses, axis=1).mean() < 20 * MM


@pytest.fixture(scope="module")
def limbs(other):
    """The calibration to that person."""
    return refined(calibrate(walker.skeleton(), guesses(), other[1], (0, 39), scale="limbs"), other[1])


class TestLimbs:
    def test_lengths_are_found(self, other, limbs):
        (factors, clip), found = other, limbs
        legs = [walker.skeleton().index(f"{part}.{side}") for part in ("thigh", "shin") for side in "LR"]
        relative = found.bone_factors / found.scale
        assert relative[legs] == pytest.approx(factors[legs], abs=0.06)
        solution = found.solver().solve(found.targets(clip))
        assert np.sqrt((solution.errors**2).mean()) < 3 * MM

    def test_joints_bend_like_the_persons_and_better_than_with_one_scale(self, other, limbs):
        """The default of a bake. With a single scale, other proportions become errors of joint angles."""
        (_, clip), off = other, []
        for found in (limbs, refined(calibrate(walker.skeleton(), guesses(), clip, (0, 39)), clip)):
            solution = found.solver().solve(found.targets(clip))
            off.append(np.degrees(angle_between(solution.rotations, walker.true_rotations()[SOME]))[:, 1:])
        assert np.median(off[0]) < 0.7 * np.median(off[1])

    def test_rotations_are_those_of_the_rig(self, other, limbs):
        (_, clip), found = other, limbs
        solution = found.solver().solve(found.targets(clip))
        thigh = walker.skeleton().index("shin.L")
        apart = np.abs(np.sum(solution.rotations[:, thigh] * walker.true_rotations()[SOME][:, thigh], axis=1))
        assert np.degrees(2 * np.arccos(np.clip(apart, 0, 1))).max() < 12.0

    def test_head_offsets_scale_with_the_parent_s_length(self):
        skeleton = walker.skeleton()
        rng = np.random.default_rng(2)
        factors = rng.uniform(0.7, 1.4, len(skeleton))
        other = with_factors(skeleton, factors)
        assert isinstance(other, Skeleton)
        assert other.lengths == pytest.approx(skeleton.lengths * factors)
        for bone in range(1, len(skeleton)):
            offset = skeleton.head_offsets[bone] * factors[skeleton.parents[bone]]
            assert other.head_offsets[bone] == pytest.approx(offset, abs=1e-12)
            same = quaternion_from_matrix(skeleton.rest[bone, :3, :3].T @ other.rest[bone, :3, :3])
            assert same == pytest.approx([1, 0, 0, 0], abs=1e-9)
        assert height_factor(skeleton, np.full(len(skeleton), 1.3)) == pytest.approx(1.3)


class TestInvalidInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"frames": (0, 500)}, "from 0 to 39"),
            ({"frames": (-1, 3)}, "from 0 to 39"),
            ({"frames": (5, 3)}, "from 0 to 39"),
            ({"scale": 0.0}, "more than 0"),
            ({"scale": float("nan")}, "more than 0"),
            ({"scale": "cubic"}, "cubic"),
            ({"mapping": []}, "match markers to bones"),
            ({"mapping": [MappedMarker("nobody", "head")]}, "nobody"),
        ],
    )
    def test_invalid_values_are_reported(self, arguments, message):
        given_ = {"mapping": guesses(), "frames": (0, 0), **arguments}
        mapping, frames = given_.pop("mapping"), given_.pop("frames")
        with pytest.raises(CalibrationError, match=message):
            calibrate(walker.skeleton(), mapping, recorded(), frames, **given_)

    def test_a_reference_without_markers(self):
        clip = recorded()
        positions = np.array(clip.positions)
        positions[3:6] = np.nan
        with pytest.raises(CalibrationError, match="None of the matched markers"):
            calibrate(walker.skeleton(), guesses(), replace(clip, positions=positions), (3, 5))
