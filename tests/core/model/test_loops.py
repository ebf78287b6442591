"""Closed loops: effectors whose target is a point on another bone, and chains closed on themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import checker
from support.families import FAMILIES
from support.rigs import paper_y, person, points_of, random_rotations, random_tree, straight_chain

from fabrik_addon.core import Effector, Options, Status, forward_kinematics, solve

NOWHERE = [np.nan] * 3
STANDING = ("foot.L", "foot.R", "head")


def gaps(skeleton, effectors, solution):
    """(F, E) distances from effectors to the points on their target bones, by forward kinematics.

    NaN if there is none.
    """
    matrices = forward_kinematics(skeleton, solution.rotations, solution.root_location)
    ends = points_of(skeleton, matrices, effectors)
    partners = [Effector(one.target_bone or one.bone, one.target_offset) for one in effectors]
    away = np.linalg.norm(ends - points_of(skeleton, matrices, partners), axis=-1)
    return np.where([one.target_bone is not None for one in effectors], away, np.nan)


def standing(skeleton, count):
    """(count, 3, 3) targets of the feet, slightly raised, and of the head, slightly lowered."""
    rest = points_of(skeleton, skeleton.rest, [Effector(name) for name in STANDING])
    moves = np.random.default_rng(1).uniform(-0.03, 0.03, (count, 3, 3))
    return rest + moves + np.array([[0.0, 0.0, 0.08]] * 2 + [[0.0, 0.0, -0.08]])


@pytest.mark.one_pose
@pytest.mark.parametrize("root", ["FIXED", "FREE"])
@pytest.mark.parametrize("limited", [False, True])
def test_clasped_hands(root, limited):
    skeleton = person()
    limits = FAMILIES["human, 5 goals"].limits if limited else {}
    effectors = [Effector("hand.L", target_bone="hand.R"), *[Effector(name) for name in STANDING]]
    targets = np.concatenate([np.full((10, 1, 3), np.nan), standing(skeleton, 10)], axis=1)
    solution = solve(skeleton, effectors, targets, limits=limits, root=root)
    assert (solution.status == Status.SOLVED).all()
    assert gaps(skeleton, effectors, solution)[:, 0] == pytest.approx(solution.errors[:, 0], abs=1e-9)
    assert solution.errors[:, 0].max() < 2e-4
    verdict = checker.judge(skeleton, limits, effectors, solution)
    assert verdict.break_deg.max() < 0.01
    assert verdict.stretch < 1e-6
    one = solve(skeleton, effectors, targets[0], limits=limits, root=root)
    assert one.status == Status.SOLVED
    assert np.abs(one.heads - solution.heads[0]).max() < 5e-3


def test_both_sides_of_a_loop_move():
    """The paper's Y: two equal arms move symmetrically."""
    skeleton = paper_y()
    effectors = [Effector("left2", target_bone="right2"), Effector("stem3")]
    targets = np.array([[NOWHERE, [0.0, 0.0, 0.4]]])
    solution = solve(skeleton, effectors, targets)
    assert solution.status[0] == Status.SOLVED
    left, right = (solution.tails[0, skeleton.index(name)] for name in ("left2", "right2"))
    assert left == pytest.approx(right, abs=1e-4)
    assert abs(left[0]) < 0.01
    mirrored = solution.heads[0, 7:] * [-1.0, 1.0, 1.0]
    assert solution.heads[0, 4:7] == pytest.approx(mirrored, abs=0.02)


@pytest.mark.one_pose
def test_two_hands_on_one_stick_with_a_target():
    """The stick is a bone of the right hand; the left hand moves to its point on the stick."""
    skeleton = person()
    stick = (0.0, 0.4, 0.0)
    effectors = [Effector("hand.L", target_bone="hand.R", target_offset=stick), Effector("hand.R", rotation_weight=1.0)]
    target = [NOWHERE, [-0.25, -0.35, 1.15]]
    along_x = [np.sqrt(0.5), 0.0, 0.0, -np.sqrt(0.5)]
    rotations = [[np.nan] * 4, along_x]
    solution = solve(skeleton, effectors, target, target_rotations=rotations)
    assert solution.status == Status.SOLVED
    assert gaps(skeleton, effectors, solution)[0] < 2e-4


@pytest.mark.one_pose
@pytest.mark.parametrize("options", [Options(), Options(finish=False, tolerance=1e-3)])
@pytest.mark.parametrize("root", ["FIXED", "FREE"])
def test_a_chain_closed_on_itself(options, root):
    skeleton = straight_chain(10)
    effectors = [Effector("b9", target_bone="b0", target_offset=(0.0, 0.0, 0.0))]
    solution = solve(skeleton, effectors, [NOWHERE], options=options, root=root)
    assert solution.status == Status.SOLVED
    assert np.linalg.norm(solution.tails[9] - solution.heads[0]) <= options.tolerance
    assert np.linalg.norm(solution.tails - solution.heads, axis=1) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.one_pose
def test_a_closed_chain_with_a_target_for_a_corner():
    skeleton = straight_chain(10)
    effectors = [Effector("b9", target_bone="b0", target_offset=(0.0, 0.0, 0.0)), Effector("b4")]
    solution = solve(skeleton, effectors, [[5.0, 5.0, 5.0], [0.2, 0.3, 0.1]])  # the first entry does not count
    assert solution.status == Status.SOLVED
    assert solution.tails[4] == pytest.approx([0.2, 0.3, 0.1], abs=1e-3)


def test_a_loop_too_wide_to_close_comes_as_near_as_it_can():
    skeleton = straight_chain(3)
    effectors = [Effector("b2", target_bone="b0", target_offset=(0.0, -0.5, 0.0))]
    solution = solve(skeleton, effectors, np.array([[NOWHERE]]))
    assert solution.status[0] != Status.SOLVED
    assert solution.errors[0, 0] == pytest.approx(0.4, abs=1e-3)  # 0.6 behind the first tail, two bones of 0.1


@given(seed=st.integers(0, 2**32 - 1), bones=st.integers(2, 9), free=st.booleans())
@settings(max_examples=25)
def test_loops_on_any_tree_that_are_closed_in_some_pose_come_together(seed, bones, free):
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, bones, inheriting=0.8)
    one, other = rng.permutation(bones)[:2]
    pose = forward_kinematics(skeleton, random_rotations(rng, (bones,), 1.0))
    point = points_of(skeleton, pose, [Effector(f"bone{one}")])[0]
    inside = np.linalg.inv(pose[other]) @ [*point, 1.0]
    effectors = [Effector(f"bone{one}", target_bone=f"bone{other}", target_offset=tuple(inside[:3]))]
    effectors.append(Effector(f"bone{rng.integers(bones)}", weight=rng.uniform(0.5, 2.0)))
    targets = np.array([[NOWHERE, points_of(skeleton, pose, effectors[1:])[0]]])
    start = random_rotations(rng, (bones,), 0.5)
    solution = solve(skeleton, effectors, targets, start=start, root="FREE" if free else "FIXED")
    assert gaps(skeleton, effectors, solution)[0, 0] == pytest.approx(solution.errors[0, 0], abs=1e-9)
    before = np.nansum(errors_of(skeleton, effectors, start, targets[0]) ** 2 * [1.0, effectors[1].weight])
    after = np.nansum(solution.errors[0] ** 2 * [1.0, effectors[1].weight])
    assert after <= before * (1 + 1e-6) + 1e-12


def errors_of(skeleton, effectors, rotations, targets):
    """(2,) the errors of a loop and an effector in a pose."""
    matrices = forward_kinematics(skeleton, rotations)
    loop, aim = effectors
    ends = points_of(skeleton, matrices, [loop, Effector(loop.target_bone, loop.target_offset), aim])
    return np.linalg.norm([ends[0] - ends[1], ends[2] - targets[1]], axis=1)
