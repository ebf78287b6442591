"""Trees: several effectors, several attachments of a bone, weights, a free root, hidden targets."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.rigs import markers_on, paper_y, person, points_of, random_rotations, random_tree, straight_chain

from fabrik_addon.core import Effector, Options, Status, forward_kinematics, solve
from fabrik_addon.core.rotations import matrix_from_quaternion

GOALS = [Effector(name) for name in ("head", "hand.L", "hand.R", "foot.L", "foot.R")]


def reachable(skeleton, effectors, rng, frames, most=0.8):
    """Targets made by forward kinematics from random poses."""
    rotations = random_rotations(rng, (frames, len(skeleton)), most)
    return points_of(skeleton, forward_kinematics(skeleton, rotations), effectors)


def assert_kept(skeleton, solution, effectors):
    """Unit rotations, exact lengths, and errors that agree with forward kinematics."""
    assert np.abs(np.linalg.norm(solution.rotations, axis=-1) - 1).max() < 1e-9
    lengths = np.linalg.norm(solution.tails - solution.heads, axis=-1)
    assert np.abs(lengths - skeleton.lengths).max() < 1e-9
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            gap = np.linalg.norm(solution.heads[..., bone, :] - solution.heads[..., parent, :], axis=-1)
            assert np.abs(gap - np.linalg.norm(skeleton.head_offsets[bone])).max() < 1e-9
    return points_of(skeleton, solution.matrices, effectors)


@pytest.mark.parametrize("most", [0.5, 1.5])
def test_a_person_meets_five_goals(most):
    skeleton = person()
    targets = reachable(skeleton, GOALS, np.random.default_rng(1), 200, most)
    solution = solve(skeleton, GOALS, targets)
    assert (solution.status == Status.SOLVED).all()
    points = assert_kept(skeleton, solution, GOALS)
    assert np.abs(np.linalg.norm(points - targets, axis=2) - solution.errors).max() < 1e-9
    assert np.abs(solution.heads[:, 0] - skeleton.rest[0, :3, 3]).max() == 0


def test_the_paper_y_meets_both_ends_by_sweeps_alone():
    skeleton = paper_y()
    ends = [Effector("left2"), Effector("right2")]
    targets = reachable(skeleton, ends, np.random.default_rng(2), 100, 0.5)
    solution = solve(skeleton, ends, targets, options=Options(finish=False, tolerance=1e-3))
    assert (solution.status == Status.SOLVED).mean() > 0.95
    assert_kept(skeleton, solution, ends)


def test_an_effector_in_the_middle_and_one_at_the_end():
    skeleton = straight_chain(8)
    effectors = [Effector("b3"), Effector("b7")]
    targets = reachable(skeleton, effectors, np.random.default_rng(3), 100)
    solution = solve(skeleton, effectors, targets)
    assert (solution.status == Status.SOLVED).all()


def test_exact_markers_on_every_bone_give_the_pose_back():
    skeleton = person()
    rng = np.random.default_rng(4)
    effectors = [Effector(bone, offset) for bone, offset in markers_on(skeleton, rng, 3)]
    rotations = random_rotations(rng, (50, 22), 0.5)
    truth = forward_kinematics(skeleton, rotations)
    solution = solve(
        skeleton, effectors, points_of(skeleton, truth, effectors), root="FREE", options=Options(tolerance=1e-7)
    )
    assert (solution.status == Status.SOLVED).all()
    assert np.abs(solution.matrices - truth).max() < 1e-4


@pytest.mark.parametrize("turn", [0.0, 1.0, np.pi])
def test_a_free_root_is_rotated_and_moved_as_a_whole(turn):
    skeleton = person()
    effectors = [Effector(bone, offset) for bone, offset in markers_on(skeleton, np.random.default_rng(5), 1)]
    rest = points_of(skeleton, skeleton.rest, effectors)
    about = matrix_from_quaternion(np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2)]))
    targets = rest @ about.T + [4.0, -2.0, 0.5]
    solution = solve(skeleton, effectors, targets[None], root="FREE")
    assert solution.status[0] == Status.SOLVED
    assert solution.root_location[0] == pytest.approx(about @ skeleton.rest[0, :3, 3] + [4.0, -2.0, 0.5], abs=1e-3)
    half = np.abs(solution.rotations[0, 1:, 0])
    assert half.min() > np.cos(0.01)


def test_weights_decide_which_targets_are_missed():
    skeleton = straight_chain(3)
    targets = np.array([[[0.0, 0.3, 0.1], [0.0, 0.3, -0.1]]])
    for heavy in (0, 1):
        weights = [100.0 if index == heavy else 1.0 for index in (0, 1)]
        effectors = [Effector("b2", weight=weights[0]), Effector("b2", weight=weights[1])]
        solution = solve(skeleton, effectors, targets)
        assert solution.status[0] in {Status.FITTED, Status.UNREACHABLE}
        assert solution.errors[0, heavy] < 0.1 * solution.errors[0, 1 - heavy]


def test_noisy_markers_are_fitted_no_worse_than_the_truth_fits_them():
    skeleton = person()
    rng = np.random.default_rng(6)
    effectors = [Effector(bone, offset) for bone, offset in markers_on(skeleton, rng, 3)]
    exact = reachable(skeleton, effectors, rng, 60, 0.4)
    noisy = exact + rng.normal(size=exact.shape) * 0.005
    solution = solve(skeleton, effectors, noisy, root="FREE")
    truth = np.sqrt((np.linalg.norm(noisy - exact, axis=2) ** 2).mean(axis=1))
    fitted = np.sqrt((solution.errors**2).mean(axis=1))
    assert (solution.status == Status.FITTED).all()
    assert (fitted < truth).all()


def test_targets_that_are_not_seen_have_no_effect():
    skeleton = person()
    rng = np.random.default_rng(7)
    targets = reachable(skeleton, GOALS, rng, 40, 0.5)
    without_hand = [effector for effector in GOALS if effector.bone != "hand.L"]
    hidden = targets.copy()
    hidden[:, 1] = np.nan
    solution = solve(skeleton, GOALS, hidden)
    expected = solve(skeleton, without_hand, targets[:, [0, 2, 3, 4]])
    assert (solution.status == Status.SOLVED).all()
    assert np.isnan(solution.errors[:, 1]).all()
    bones = [bone for name in ("head", "hand.R", "foot.L", "foot.R") for bone in skeleton.path(skeleton.index(name))]
    assert np.abs(solution.tails[:, bones] - expected.tails[:, bones]).max() < 2e-3
    left = [skeleton.index(name) for name in ("upper_arm.L", "forearm.L", "hand.L")]
    assert np.abs(solution.rotations[:, left] - [1, 0, 0, 0]).max() < 1e-9


def test_without_visible_targets_the_start_pose_stays():
    skeleton = person()
    start = random_rotations(np.random.default_rng(8), (22,), 0.3)
    targets = np.full((3, 5, 3), np.nan)
    solution = solve(skeleton, GOALS, targets, start=start, start_location=(1.0, 2.0, 3.0))
    assert (solution.status == Status.UNSEEN).all()
    assert np.abs(solution.rotations - start).max() < 1e-12
    assert (solution.root_location == [1.0, 2.0, 3.0]).all()


def test_a_start_that_meets_the_targets_is_left_alone():
    skeleton = person()
    start = random_rotations(np.random.default_rng(9), (22,), 0.3)
    targets = points_of(skeleton, forward_kinematics(skeleton, start), GOALS)
    solution = solve(skeleton, GOALS, targets[None], start=start)
    assert solution.iterations[0] == 0
    assert np.abs(solution.rotations[0] - start).max() < 1e-12


def test_bones_off_the_paths_keep_their_local_rotation():
    skeleton = person()
    start = random_rotations(np.random.default_rng(10), (22,), 0.2)
    solution = solve(skeleton, [Effector("hand.L")], np.array([[[0.4, -0.4, 1.3]]]), start=start)
    on_path = skeleton.path(skeleton.index("hand.L"))
    others = [bone for bone in range(22) if bone not in on_path]
    assert np.abs(solution.rotations[0, others] - start[others]).max() < 1e-12


def test_unreachable_targets_of_a_tree_are_reported():
    skeleton = person()
    targets = points_of(skeleton, skeleton.rest, GOALS)[None].copy()
    targets[0, 1] += [3.0, 0.0, 0.0]
    assert solve(skeleton, GOALS, targets).status[0] == Status.UNREACHABLE


def test_frames_do_not_depend_on_each_other():
    skeleton = person()
    targets = reachable(skeleton, GOALS, np.random.default_rng(11), 50)
    together = solve(skeleton, GOALS, targets)
    shuffled = solve(skeleton, GOALS, targets[::-1], options=Options(chunk=7))
    assert np.abs(together.rotations - shuffled.rotations[::-1]).max() < 1e-9


@given(seed=st.integers(0, 2**32 - 1), bones=st.integers(1, 12), count=st.integers(1, 6), free=st.booleans())
@example(seed=42864744, bones=4, count=5, free=True)  # more freedom than targets, and a damping that fell to zero
@settings(max_examples=60, deadline=None)
def test_any_tree_any_targets(seed, bones, count, free):
    """For any input: lengths hold, errors are correct, nothing is worse than the start, and the status fits."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, bones, inheriting=0.8)
    effectors = [
        Effector(
            f"bone{rng.integers(bones)}",
            None if rng.random() < 0.5 else tuple(rng.normal(size=3) * 0.2),
            rng.uniform(0.1, 3),
        )
        for _ in range(count)
    ]
    targets = rng.normal(size=(5, count, 3)) * rng.uniform(0.1, 2.0)
    targets[rng.random((5, count)) < 0.2] = np.nan
    start = random_rotations(rng, (5, bones), 2.0)
    solution = solve(skeleton, effectors, targets, start=start, root="FREE" if free else "FIXED")
    points = assert_kept(skeleton, solution, effectors)
    errors = np.linalg.norm(points - targets, axis=2)
    assert np.nanmax(np.abs(errors - solution.errors), initial=0.0) < 1e-9
    weights = np.array([effector.weight for effector in effectors])
    before = points_of(skeleton, forward_kinematics(skeleton, start), effectors)
    assert (
        np.nansum(weights * errors**2, axis=1)
        <= np.nansum(weights * np.linalg.norm(before - targets, axis=2) ** 2, axis=1) * (1 + 1e-9) + 1e-15
    ).all()
    seen = ~np.isnan(errors).all(axis=1)
    assert ((solution.status == Status.UNSEEN) == ~seen).all()
    tolerance = np.array([path_length(skeleton, effector) for effector in effectors]) * 1e-4
    met = ~(errors > np.maximum(tolerance, 1e-12) * (1 + 1e-6)).any(axis=1)
    assert ((solution.status == Status.SOLVED) == (met & seen)).all()


def path_length(skeleton, effector):
    """The length of which the tolerance is a fraction: from joint to joint, from the root's head to the effector."""
    path = skeleton.path(skeleton.index(effector.bone))
    offset = (0, skeleton.lengths[path[-1]], 0) if effector.offset is None else effector.offset
    links = [np.linalg.norm(skeleton.head_offsets[bone]) for bone in path[1:]] + [np.linalg.norm(offset)]
    return max(sum(links), skeleton.lengths[0])
