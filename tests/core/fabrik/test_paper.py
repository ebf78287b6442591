"""Other examples of the paper and its introductions: planes, pulled chains, effectors anywhere, a root target."""

import numpy as np
import pytest
from support import checker
from support.families import ball, limb
from support.rigs import from_joints, paper_y, person, points_of, random_rotations, straight_chain

from fabrik_addon.core import Effector, Hinge, Options, Status, forward_kinematics, solve

CHAIN = straight_chain(10, 0.09)
TIP = [Effector("b9")]


def flat_tree():
    """A Y in the plane x = 0 whose joints are hinges about X, most of them limited."""
    rows = [(f"stem{i}", i - 1, (0, 0, 0.1 * i), (0, 0, 0.1 * (i + 1))) for i in range(4)]
    for name, side in (("left", 1), ("right", -1)):
        for i in range(3):
            parent = 3 if i == 0 else len(rows) - 1
            rows.append((f"{name}{i}", parent, (0, side * 0.08 * i, 0.4), (0, side * 0.08 * (i + 1), 0.4)))
    skeleton = from_joints(rows)
    return skeleton, {name: Hinge("X", -2.0, 2.0) if place else Hinge("X") for place, name in enumerate(skeleton.names)}


@pytest.mark.parametrize("plain", [False, True])
def test_hinges_on_parallel_axes_stay_exactly_in_their_plane(plain):
    skeleton, limits = flat_tree()
    effectors = [Effector("left2"), Effector("right2")]
    rng = np.random.default_rng(1)
    pose = np.stack([checker.random_rotations_inside(Hinge("X", -0.8, 0.8), rng, len(skeleton)) for _ in range(40)])
    targets = points_of(skeleton, forward_kinematics(skeleton, pose), effectors)
    targets[20:, :, 0] += 0.05  # off the plane
    solution = solve(skeleton, effectors, targets, limits=limits, options=Options(plain=plain, max_sweeps=100))
    assert np.abs(solution.heads[..., 0]).max() < 1e-12
    assert np.abs(solution.tails[..., 0]).max() < 1e-12
    assert np.abs(solution.rotations[..., 2:]).max() == 0.0
    if not plain:
        assert (solution.status[:20] == Status.SOLVED).all()
        assert solution.errors[20:] == pytest.approx(0.05, abs=2e-3)


@pytest.mark.one_pose
def test_the_six_joint_snake_of_the_plane_follows_a_dragged_point():
    skeleton = straight_chain(6)
    limits = dict.fromkeys(skeleton.names, Hinge("X"))
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    targets = np.stack([0 * angle, 0.3 + 0.15 * np.cos(angle), 0.25 * np.sin(angle)], axis=1)[:, None]
    rotations, poses = np.tile([1.0, 0.0, 0.0, 0.0], (6, 1)), []
    for target in targets:
        solution = solve(skeleton, [Effector("b5")], target, limits=limits, start=rotations)
        assert solution.status == Status.SOLVED
        assert np.abs(solution.heads[:, 0]).max() < 1e-6
        rotations = solution.rotations
        poses.append(solution.heads)
    moved = np.linalg.norm(np.diff(poses, axis=0), axis=2).max(axis=1)
    assert moved[1:].max() < 8 * np.linalg.norm(np.diff(targets[:, 0], axis=0), axis=1).max()


@pytest.mark.one_pose
def test_a_chain_without_a_base_is_pulled_along_by_its_head():
    """As in the introductions: each bone slides along the line to the one before it, and keeps its length."""
    points = np.concatenate([CHAIN.rest[:, :3, 3], [[0.0, 0.9, 0.0]]])
    rotations, root = np.tile([1.0, 0.0, 0.0, 0.0], (10, 1)), points[0]
    for step in range(60):
        target = np.array([0.3 * np.sin(step / 10), 0.9 + 0.02 * step, 0.2 * np.cos(step / 7) - 0.2])
        points[-1] = target
        for index in range(9, -1, -1):
            away = points[index] - points[index + 1]
            points[index] = points[index + 1] + away * 0.09 / np.linalg.norm(away)
        solution = solve(CHAIN, TIP, target[None], start=rotations, start_location=root, root="FREE")
        rotations, root = solution.rotations, solution.root_location
        assert solution.status == Status.SOLVED
        assert solution.heads == pytest.approx(points[:-1], abs=1e-4)
        assert solution.root_location == pytest.approx(points[0], abs=1e-4)


@pytest.mark.one_pose
def test_a_pulled_chain_with_limits_follows_inside_them():
    family = limb((0.1,) * 6, *[ball(30, (-20, 20))] * 6)
    rotations, root = np.tile([1.0, 0.0, 0.0, 0.0], (6, 1)), np.zeros(3)
    for step in range(1, 20):
        target = np.array([[0.03 * step, 0.6, 0.02 * step]])
        solution = solve(
            family.skeleton,
            family.effectors,
            target,
            limits=family.limits,
            start=rotations,
            start_location=root,
            root="FREE",
        )
        rotations, root = solution.rotations, solution.root_location
        assert solution.status == Status.SOLVED
        turns = checker.matrices(rotations)
        for bone, limit in enumerate(family.limits.values()):
            assert np.degrees(checker.distances(limit, turns[bone])[0]) < 0.01


def test_bones_beyond_an_effector_amid_a_chain_follow_rigidly():
    rotations = random_rotations(np.random.default_rng(2), (20, 10), 0.5)
    middle = [Effector("b5")]
    targets = points_of(CHAIN, forward_kinematics(CHAIN, rotations), middle)
    solution = solve(CHAIN, middle, targets, start=rotations[0])
    assert (solution.status == Status.SOLVED).all()
    assert np.abs(solution.rotations[:, 6:] - rotations[0, 6:]).max() < 1e-12


@pytest.mark.parametrize("options", [Options(), Options(finish=False, tolerance=1e-3)])
def test_three_effectors_along_one_chain(options):
    effectors = [Effector("b2"), Effector("b5", (0.02, 0.03, 0.0)), Effector("b9")]
    rotations = random_rotations(np.random.default_rng(3), (40, 10), 0.5)
    targets = points_of(CHAIN, forward_kinematics(CHAIN, rotations), effectors)
    solution = solve(CHAIN, effectors, targets, options=options)
    assert (solution.status == Status.SOLVED).mean() >= (1.0 if options.finish else 0.6)


def tree_of_sub_bases(depth=3):
    """A stem that forks, and forks again: each branch has two bones, and there are 2 ** depth ends."""
    rows, ends = [("stem0", -1, (0, 0, 0), (0, 0, 0.2)), ("stem1", 0, (0, 0, 0.2), (0, 0, 0.4))], []

    def fork(parent, place, level):
        if level == depth:
            ends.append(rows[parent][0])
            return
        for side in (1, -1):
            step = np.array([side * 0.16 / (level + 1), 0.06 * side, 0.1])
            first = len(rows)
            rows.append((f"{rows[parent][0]}{'lr'[side < 0]}", parent, tuple(place), tuple(place + step)))
            rows.append((rows[first][0] + "x", first, tuple(place + step), tuple(place + 2 * step)))
            fork(first + 1, place + 2 * step, level + 1)

    fork(1, np.array([0.0, 0.0, 0.4]), 0)
    return from_joints(rows), [Effector(end) for end in ends]


@pytest.mark.parametrize("options", [Options(), Options(finish=False, tolerance=1e-3)])
def test_nested_sub_bases(options):
    skeleton, effectors = tree_of_sub_bases()
    assert len(effectors) == 8
    rotations = random_rotations(np.random.default_rng(4), (30, len(skeleton)), 0.3)
    targets = points_of(skeleton, forward_kinematics(skeleton, rotations), effectors)
    solution = solve(skeleton, effectors, targets, options=options)
    assert (solution.status == Status.SOLVED).mean() >= (1.0 if options.finish else 0.8)


@pytest.mark.parametrize("options", [Options(), Options(finish=False, tolerance=1e-3)])
def test_a_target_for_the_root_is_met(options):
    """The paper's backward pass, with the desired root in place of the initial one."""
    skeleton = paper_y()
    effectors = [Effector("stem0", (0.0, 0.0, 0.0)), Effector("left2"), Effector("right2")]
    rng = np.random.default_rng(5)
    matrices = forward_kinematics(skeleton, random_rotations(rng, (30, 10), 0.4), rng.normal(size=(30, 3)) * 0.3)
    targets = points_of(skeleton, matrices, effectors)
    solution = solve(skeleton, effectors, targets, root="FREE", options=options)
    assert (solution.status == Status.SOLVED).mean() >= (1.0 if options.finish else 0.8)
    assert np.abs(solution.root_location - targets[:, 0]).max() < 5e-3


@pytest.mark.one_pose
def test_hips_of_a_person_meet_their_target_and_feet_stay():
    skeleton = person()
    effectors = [Effector("hips", (0.0, 0.0, 0.0)), Effector("foot.L"), Effector("foot.R")]
    targets = points_of(skeleton, skeleton.rest, effectors)
    targets[0] += [0.05, -0.1, -0.25]
    solution = solve(skeleton, effectors, targets, root="FREE")
    assert solution.status == Status.SOLVED
    assert solution.root_location == pytest.approx(targets[0], abs=1e-4)


@pytest.mark.one_pose
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_a_straight_chain_bends_for_a_target_on_its_own_line(limited, share):
    """The collinear singularity, and targets inside a bone: plain FABRIK never leaves the line."""
    limits = {name: ball(100) for name in CHAIN.names} if limited else {}
    target = np.array([[0.0, 0.9 * share, 0.0]])
    plain = solve(CHAIN, TIP, target, limits=limits, options=Options(plain=True, max_sweeps=100))
    solution = solve(CHAIN, TIP, target, limits=limits)
    assert solution.status == Status.SOLVED
    assert solution.errors[0] <= 1e-4
    assert plain.errors[0] >= 0.0
    again = solve(CHAIN, TIP, target, limits=limits)
    assert (again.rotations == solution.rotations).all()


@pytest.mark.one_pose
@pytest.mark.parametrize("limited", [False, True])
def test_a_target_behind_the_root_is_met(limited):
    limits = {name: ball(90) for name in CHAIN.names} if limited else {}
    for target in ([0.0, -0.45, 0.0], [0.0, -0.6, 0.01], [1e-6, -0.2, 0.0], [0.0, 0.0, 0.0]):
        solution = solve(CHAIN, TIP, np.array([target]), limits=limits)
        assert solution.status == Status.SOLVED, target


@pytest.mark.one_pose
@pytest.mark.parametrize("limited", [False, True])
def test_out_of_reach_the_chain_points_at_the_target_without_jitter(limited):
    """From pose to pose, and each separately: for a resting target nothing moves, a circling one rotates the chain."""
    family = limb((0.09,) * 10, ball(80), *[ball(40, (-40, 40))] * 9)
    limits = family.limits if limited else {}
    angle = np.linspace(0.0, 1.0, 25)
    path = 1.5 * np.stack([np.sin(angle), np.cos(angle), 0.2 * np.sin(7 * angle)], axis=1)[:, None]
    by_itself = solve(family.skeleton, TIP, path, limits=limits)
    assert (by_itself.status == Status.UNREACHABLE).all()
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (10, 1))
    for frame, target in enumerate(path):
        dragged = solve(family.skeleton, TIP, target, limits=limits, start=rotations)
        again = solve(family.skeleton, TIP, target, limits=limits, start=dragged.rotations)
        assert np.abs(again.tails - dragged.tails).max() < 2e-3
        rotations = dragged.rotations
        for solution in (dragged.tails[-1], by_itself.tails[frame, -1]):
            toward = target[0] / np.linalg.norm(target[0])
            assert solution @ toward > 0.9 * (1 - 1e-3)
    steps = np.linalg.norm(np.diff(by_itself.tails, axis=0), axis=2).max()
    assert steps < 1.5 * np.linalg.norm(np.diff(path[:, 0], axis=0), axis=1).max()
