"""Whole takes: exact markers reproduce the animation, hidden ones are compensated, wrong ones are ignored."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import walker
from support.steps import solve_take

from fabrik_addon.core import Effector, Hinge, Options, Solver, Status
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix
from fabrik_addon.markers.calibrate.size import points_on, with_factors
from fabrik_addon.markers.solving import recording
from fabrik_addon.markers.solving.course import GAPS
from fabrik_addon.markers.take import TakeSettings, solve_take_steps

ARM = walker.on_bones("upper_arm.L", "forearm.L", "hand.L")
LEG = walker.on_bones("thigh.R", "shin.R", "foot.R", "toe.R")
HIDDEN_ARM, HIDDEN_LEG = slice(120, 170), slice(220, 270)
MM = 1e-3


def make_solver():
    return Solver(walker.skeleton(), walker.effectors(), root="FREE", options=Options(restarts=0))


def taken(targets, **settings):
    """The walk's solved markers; other tests check undetermined bones."""
    return solve_take(make_solver(), targets, TakeSettings(walker.RATE, steady=False, **settings))


@pytest.fixture(scope="module")
def exact():
    return taken(walker.true_positions())


def with_hidden(seed, *, limbs=True, share=0.2):
    targets = np.array(walker.true_positions())
    targets[np.random.default_rng(seed).random(targets.shape[:2]) < share] = np.nan
    if limbs:
        targets[HIDDEN_ARM, ARM] = np.nan
        targets[HIDDEN_LEG, LEG] = np.nan
    return targets


@pytest.fixture(scope="module")
def hidden():
    targets = with_hidden(7)
    return targets, taken(targets)


class TestExactMarkers:
    def test_markers_and_joints_come_back(self, exact):
        rms = np.sqrt((walker.marker_errors(exact.solution) ** 2).mean(axis=1))
        assert rms.max() <= 1.0 * MM
        assert walker.joint_errors(exact.solution).max() <= 2.0 * MM

    def test_a_complete_take_has_no_warnings_or_filled_gaps(self, exact):
        assert not exact.outliers.any()
        assert exact.filled == ()
        assert exact.keyed.all()


class TestHiddenMarkers:
    def test_visible_markers_are_met(self, hidden):
        targets, take = hidden
        seen = ~np.isnan(targets).any(axis=2)
        assert walker.marker_errors(take.solution)[seen].max() <= 2.0 * MM
        assert (np.isnan(take.solution.errors) == ~seen).all()

    def test_hidden_joints_are_near(self, hidden):
        _, take = hidden
        assert walker.joint_errors(take.solution).max() <= 30.0 * MM

    @pytest.mark.parametrize("edge", [HIDDEN_ARM.start, HIDDEN_ARM.stop, HIDDEN_LEG.start, HIDDEN_LEG.stop])
    def test_no_jump_at_the_edges(self, hidden, edge):
        """Joints continue from frame to frame as in reality, to within some millimeters."""
        _, take = hidden
        part = slice(edge - 3, edge + 3)
        true = np.diff(walker.true_matrices()[part, :, :3, 3], axis=0)
        found = np.diff(take.solution.heads[part], axis=0)
        assert np.linalg.norm(found - true, axis=2).max() <= 8.0 * MM

    def test_the_hidden_limbs_are_reported(self, hidden):
        _, take = hidden
        arms = [span for span in take.filled if span.bone == "forearm.L" and span.count > 40]
        assert len(arms) == 1
        assert abs(arms[0].first - HIDDEN_ARM.start) <= 3
        assert abs(arms[0].last - (HIDDEN_ARM.stop - 1)) <= 3
        assert arms[0].how == "solved"

    def test_a_frame_without_markers(self):
        targets = np.array(walker.true_positions()[:60])
        targets[20:40] = np.nan
        take = taken(targets)
        assert (take.solution.status[20:40] == Status.UNSEEN).all()
        assert not (take.solution.status[:20] == Status.UNSEEN).any()
        away = np.linalg.norm(take.solution.heads - walker.true_matrices()[:60, :, :3, 3], axis=2)
        assert away.max() <= 80.0 * MM

    def test_no_marker_is_ever_seen(self):
        take = taken(np.full((5, len(walker.effectors()), 3), np.nan))
        assert (take.solution.status == Status.UNSEEN).all()
        assert np.isfinite(take.solution.rotations).all()

    @settings(max_examples=4)
    @given(seed=st.integers(0, 1000))
    @example(seed=160)
    def test_samples_hidden_at_random(self, seed):
        targets = with_hidden(seed, limbs=False)[:100]
        solution = taken(targets).solution
        seen = ~np.isnan(targets).any(axis=2)
        assert np.nanmax(solution.errors[seen]) <= 2.0 * MM
        away = np.linalg.norm(solution.heads - walker.true_matrices()[:100, :, :3, 3], axis=2)
        assert away.max() <= 30.0 * MM


class TestScatteredHoles:
    def test_bones_without_limits_do_not_jump_in_gaps(self):
        """Each marker is hidden for half a second, and one sample in ten is missing. No bone has a limit."""
        rng, targets = np.random.default_rng(0), np.array(walker.true_positions())
        targets[rng.random(targets.shape[:2]) < 0.1] = np.nan
        for marker in range(targets.shape[1]):
            first = int(rng.integers(1, len(targets) - 50))
            targets[first : first + 50, marker] = np.nan
        take = solve_take(make_solver(), targets, TakeSettings(walker.RATE))
        assert np.degrees(turns(take.solution.rotations)).max() <= 15.0
        assert walker.joint_errors(take.solution).mean() <= 0.5 * MM

    def test_a_hidden_limb_is_not_pulled_to_rest(self):
        """Keypoints 15 mm off pull the body toward rest, but not a bent elbow that is hidden."""
        skeleton, bone = walker.skeleton(), walker.skeleton().index("forearm.L")
        ends = [name for name in skeleton.names if not name.startswith(("toe", "hips", "spine", "chest"))]
        tails = [(0.0, skeleton.lengths[skeleton.index(name)], 0.0) for name in ends]
        places = points_on(walker.true_matrices(), [skeleton.index(name) for name in ends], np.array(tails))
        places += np.random.default_rng(1).normal(0.0, 0.015, places.shape[1:])
        places[HIDDEN_ARM, [ends.index(name) for name in ("upper_arm.L", "forearm.L", "hand.L")]] = np.nan
        solver = Solver(skeleton, [Effector(name) for name in ends], root="FREE", options=Options(restarts=0))
        rotations = solve_take(solver, places, TakeSettings(walker.RATE)).solution.rotations[:, bone]
        away = np.degrees(angle_between(rotations, walker.true_rotations()[:, bone]))
        assert away[HIDDEN_ARM].max() <= away[: HIDDEN_ARM.start].max() + 5.0


def test_hips_follow_their_course_through_a_gap_of_the_trunk():
    """Keypoints are 10 mm off, half are lost, and the trunk is hidden for 150 frames, on a rig without limits."""
    skeleton, rng = walker.skeleton(), np.random.default_rng(3)
    parts = {"hips", "neck", "head", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe"}
    keypoints = [Effector(name, (0.0, 0.0, 0.0)) for name in skeleton.names if name.partition(".")[0] in parts]
    bones = [skeleton.index(each.bone) for each in keypoints]
    targets = points_on(walker.true_matrices(), bones, np.zeros((len(bones), 3)))
    targets = targets + rng.normal(size=targets.shape) * 10.0 * MM
    seen = rng.random(targets.shape[:2]) > 0.5
    first = int(rng.integers(60, len(targets) - 210))
    trunk = [each.bone.partition(".")[0] in {"hips", "neck", "head", "upper_arm", "thigh"} for each in keypoints]
    seen[first : first + 150, trunk] = False
    targets[~seen] = np.nan
    found = solve_take(Solver(skeleton, keypoints, root="FREE"), targets, TakeSettings(walker.RATE)).solution
    off = np.degrees(angle_between(found.rotations[:, 0], walker.true_rotations()[:, 0]))
    assert off.max() < 40.0
    assert np.degrees(turns(found.rotations)).max() < 25.0


def turns(rotations):
    """(F - 1, J) radians by which bones rotate from frame to frame."""
    return angle_between(rotations[1:], rotations[:-1])


@pytest.fixture(scope="module")
def armless():
    targets = np.array(walker.true_positions())
    targets[HIDDEN_ARM, ARM] = np.nan
    return targets


class TestPolicies:
    @pytest.mark.parametrize("gaps", GAPS)
    def test_visible_bones_do_not_change(self, armless, gaps):
        take = taken(armless, gaps=gaps)
        legs = [walker.skeleton().index(name) for name in ("thigh.L", "shin.R", "foot.L")]
        assert walker.joint_errors(take.solution)[:, legs].max() <= 1.0 * MM
        assert {span.how for span in take.filled} <= {"solved", "held", "interpolated", "unkeyed"}

    def test_joints_without_markers_are_held(self, armless):
        take = taken(armless, gaps="HOLD")
        bone = walker.skeleton().index("forearm.L")
        part = take.solution.rotations[HIDDEN_ARM.start : HIDDEN_ARM.stop - 12, bone]
        assert part == pytest.approx(np.broadcast_to(part[0], part.shape), abs=1e-6)
        steps = np.linalg.norm(np.diff(take.solution.rotations[:, bone], axis=0), axis=1)
        assert steps.max() < 0.1

    def test_joints_without_markers_get_no_keys(self, armless):
        take = taken(armless, gaps="UNKEYED")
        bone = walker.skeleton().index("forearm.L")
        assert not take.keyed[HIDDEN_ARM, bone].any()
        assert take.keyed[: HIDDEN_ARM.start, bone].all()
        assert take.keyed[:, walker.skeleton().index("shin.L")].all()


class TestWrongMarkers:
    def test_swapped_markers_do_not_drag_the_body(self, exact):
        left, right = (walker.marker_names().index(name) for name in ("LANK", "RANK"))
        targets = np.array(walker.true_positions())
        targets[100:130, [left, right]] = targets[100:130, [right, left]]
        take = taken(targets)
        far = np.linalg.norm(targets - walker.true_positions(), axis=2) > 0.15
        assert take.outliers[far].all()
        assert walker.joint_errors(take.solution).max() <= 10.0 * MM
        assert (take.outliers == far).all()
        assert not take.outliers[:95].any()
        assert not take.outliers[135:].any()
        assert exact.solution.rotations[:95] == pytest.approx(take.solution.rotations[:95], abs=0.05)

    def test_a_fallen_marker_is_ignored(self):
        marker = walker.marker_names().index("LFRM")
        targets = np.array(walker.true_positions())
        targets[200:, marker] = [0.3, -2.0, 0.01]
        take = taken(targets)
        assert take.outliers[200:, marker].all()
        assert take.outliers.sum() == len(targets) - 200
        assert walker.joint_errors(take.solution).max() <= 10.0 * MM

    def test_a_wrong_sample_is_bridged_like_a_missing_one(self):
        marker = walker.marker_names().index("LFRM")
        targets = np.array(walker.true_positions()[:80])
        targets[40:43, marker] += [0.5, 0.0, 0.3]
        take = taken(targets)
        assert np.argwhere(take.outliers).tolist() == [[40, marker], [41, marker], [42, marker]]
        assert take.filled == ()
        away = np.linalg.norm(take.solution.heads - walker.true_matrices()[:80, :, :3, 3], axis=2)
        assert away.max() <= 2.0 * MM
        assert take.solution.errors[41, marker] == pytest.approx(np.hypot(0.5, 0.3), abs=5.0 * MM)

    def test_outliers_are_kept_if_robust_is_off(self):
        marker = walker.marker_names().index("LFRM")
        targets = np.array(walker.true_positions()[:60])
        targets[30:, marker] = [0.3, -2.0, 0.01]
        take = taken(targets, robust=False)
        assert not take.outliers.any()
        away = np.linalg.norm(take.solution.heads - walker.true_matrices()[:60, :, :3, 3], axis=2)
        assert away[30:].max() > 50.0 * MM


class TestProportions:
    """Rigs of another size than the recorded person."""

    @staticmethod
    def of_person(size, *, plant_feet):
        """A take of the true walk on a rig whose bones are longer than the person's by a factor."""
        factors = np.full(len(walker.skeleton()), 1.0 / size)
        rig = with_factors(walker.skeleton(), 1.0 / factors)
        solver = Solver(rig, walker.effectors(), root="FREE", options=Options(restarts=0))
        how = TakeSettings(walker.RATE, plant_feet=plant_feet)
        return solve_take(solver, walker.true_positions()[:150], how, factors=factors)

    @pytest.mark.parametrize("size", [1.2, 1.0, 1.0 / 1.2])
    def test_planting_feet_is_measured_on_the_person(self, size):
        """Planting moves feet by millimeters; the rig's own markers are some 20 cm from the person's."""
        free, planted = (self.of_person(size, plant_feet=plant).solution for plant in (False, True))
        assert free.errors.mean() < 1.0 * MM
        assert planted.errors.mean() < 2.0 * MM

    def test_planted_points_are_on_the_feet_of_the_rig(self):
        found, own = (self.of_person(size, plant_feet=True).stances for size in (1.2, 1.0))
        assert len(found) >= 4
        assert max(stance.drift_after for stance in found) < 3.0 * MM
        assert {stance.point.bone for stance in found} == {stance.point.bone for stance in own}
        for stance in found:
            assert any(np.allclose(stance.point.offset, 1.2 * np.array(each.point.offset)) for each in own)


@pytest.mark.parametrize("seed", [0, 1])
def test_free_hinges_are_no_worse_than_with_separate_frames(seed):
    """Knees and elbows that may rotate fully, markers with noise and gaps of up to 0.4 s."""
    rng, frames = np.random.default_rng(seed), slice(100, 260)
    targets = walker.true_positions()[frames] + rng.normal(0.0, 1.5 * MM, walker.true_positions()[frames].shape)
    for marker in range(targets.shape[1]):
        first = int(rng.integers(0, len(targets)))
        targets[first : first + int(rng.integers(2, 40)), marker] = np.nan
    names = walker.skeleton().names
    hinges = {name: Hinge("X", -np.pi, np.pi) for name in names if name.startswith(("shin", "forearm"))}
    solver = Solver(walker.skeleton(), walker.effectors(), limits=hinges, root="FREE", options=Options(restarts=0))
    alone, take = solver.solve(targets), solve_take(solver, targets, TakeSettings(walker.RATE)).solution
    heads = walker.true_matrices()[frames, :, :3, 3]
    off = [np.percentile(np.linalg.norm(found.heads - heads, axis=2), 95) for found in (alone, take)]
    assert off[1] <= 1.05 * off[0]
    turned = quaternion_from_matrix(take.matrices[..., :3, :3])
    true = quaternion_from_matrix(walker.true_matrices()[frames, :, :3, :3])
    beyond = angle_between(turned[1:], turned[:-1]) - angle_between(true[1:], true[:-1])
    assert np.degrees(beyond.max()) < 20.0


def test_a_take_is_solved_in_steps():
    shares = list(solve_take_steps(make_solver(), walker.true_positions()[:30], TakeSettings(walker.RATE)))
    assert shares == sorted(shares)
    assert all(0.0 < share <= 1.0 for share in shares)


def test_memory_grows_with_the_results_of_a_take_only(monkeypatch):
    """Frames are solved in blocks, here of 100. Without, each more frame would need 25 times as much for a while."""
    monkeypatch.setattr(recording, "_TOGETHER", 100)
    bones = [name for name in walker.skeleton().names if name in ("hips", "spine", "thigh.L", "shin.L", "foot.L")]
    skeleton = walker.skeleton().part([walker.skeleton().index(name) for name in bones])
    effectors = [effector for effector in walker.effectors() if effector.bone in bones]
    solver = Solver(skeleton, effectors, root="FREE", options=Options(restarts=0, chunk=100))
    walk, peaks = walker.true_positions()[:, walker.on_bones(*bones)].copy(), list[int]()
    walk[np.random.default_rng(1).random(walk.shape[:2]) < 0.02] = np.nan
    for frames in (250, 1000):
        targets = walk[np.abs((np.arange(frames) + 400) % 800 - 400)]
        tracemalloc.start()
        found = solve_take(solver, targets, TakeSettings(walker.RATE))
        results = tracemalloc.get_traced_memory()[0] / frames
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(found.solution.rotations) == frames
    assert (peaks[1] - peaks[0]) / 750 < 2.5 * (results + targets[0].nbytes)
