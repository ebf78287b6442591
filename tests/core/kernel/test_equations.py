"""The posture term's gradient and matrix, rows of goals and the curvature of forces, against plain differences."""

import numpy as np
import pytest

from fabrik_addon.core import Effector, Hinge, Skeleton
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.goals import Goals
from fabrik_addon.core.kernel.posture import Coupled, Masses, PostureTerm
from fabrik_addon.core.kernel.relaxed import SaggingArms
from fabrik_addon.core.model.effector import participants
from fabrik_addon.core.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_matrix,
)

STEP = 1e-5
PARENTS = [-1, 0, 1, 2, 1, 4, 0]


def make(seed, inherits=None, free_root=True):
    """A tree of seven bones in a random pose: one of them is a hinge, and one moves only with its parent."""
    random = np.random.default_rng(seed)
    rest = np.tile(np.eye(4), (7, 1, 1))
    rest[:, :3, :3] = matrix_from_quaternion(unit(random.normal(size=(7, 4))))
    rest[:, :3, 3] = random.normal(size=(7, 3))
    skeleton = Skeleton(list("abcdefg"), PARENTS, rest, random.uniform(0.2, 0.6, 7), inherits)
    effectors = [Effector("d", rotation_weight=0.7), Effector("f", (0.1, 0.2, -0.1), weight=2.0)]
    bones = participants(skeleton, effectors)
    axes = [np.array([Hinge("X").rotation_axis]) if bone == 2 else np.eye(3) for bone in bones]
    bodies = Bodies(skeleton, bones, axes, free_root)
    goals = Goals(bodies, effectors)
    shares = random.uniform(0.5, 1.0, 7)
    masses = Masses(shares / shares.sum(), np.full(7, 0.4), random.uniform(0.5, 2.0, 7))
    preferred = unit(np.array([1.0, 0, 0, 0]) + 0.2 * random.normal(size=(7, 4)))
    posture = PostureTerm(bodies, masses, preferred, random.normal(size=3))
    local = unit(np.array([1.0, 0, 0, 0]) + 0.2 * random.normal(size=(len(bones), 4)))
    wanted = goals.wanted(random.normal(size=(2, 3)), unit(random.normal(size=(2, 4))))
    return bodies, posture, (goals, wanted), bodies.pose(local, random.normal(size=3))


def unit(values):
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def moved(bodies, pose, step):
    return bodies.pose(*bodies.moved(pose, step))


def slopes(bodies, pose, function):
    """(D, ...) derivatives of a function by finite differences."""
    steps = STEP * np.eye(bodies.columns)
    pairs = [(function(moved(bodies, pose, step)), function(moved(bodies, pose, -step))) for step in steps]
    return np.array([(after - before) / (2.0 * STEP) for after, before in pairs])


def coupled_to(bodies, stiffer=1.0, slack=0.0):
    """A posture term with a hinge that is coupled with the joint above."""
    hinge = int(np.flatnonzero(bodies.counts == 1)[0])
    axis = -bodies.axes[bodies.first[hinge]]
    behind = bodies.rest_turns[hinge] @ axis
    coupled = [Coupled(hinge, int(bodies.parents[hinge]), axis, behind, 1.0, stiffer, slack)]
    random = np.random.default_rng(5)
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    preferred = unit(random.normal(size=(7, 4)))
    preferred[bodies.bones[hinge]] = quaternion_from_rotation_vector(0.3 * coupled[0].axis)
    return PostureTerm(bodies, masses, preferred, random.normal(size=3), coupled=coupled)


BROKEN = [True, True, True, False, True, True, True]


@pytest.mark.parametrize("inherits", [None, BROKEN])
@pytest.mark.parametrize("free_root", [True, False])
def test_the_gradient_agrees_with_differences(inherits, free_root):
    bodies, posture, _, pose = make(1, inherits, free_root)
    found = posture.equations(posture.away(pose), pose, bodies.motions(pose))[1]
    assert found == pytest.approx(slopes(bodies, pose, lambda other: posture.value(posture.away(other))), abs=1e-7)


@pytest.mark.parametrize(("stiffer", "slack"), [(1.0, 0.0), (9.0, 0.0), (9.0, -2.0), (9.0, 0.3)])
def test_the_gradient_is_the_slope_if_a_joint_follows_a_hinge(stiffer, slack):
    bodies, _, _, pose = make(7)
    posture, hinge = coupled_to(bodies, stiffer, slack), int(np.flatnonzero(bodies.counts == 1)[0])
    pose.local[hinge] = quaternion_from_rotation_vector(0.9 * bodies.axes[bodies.first[hinge]])
    pose = bodies.pose(pose.local, pose.root)
    found = posture.equations(posture.away(pose), pose, bodies.motions(pose))[1]
    assert found == pytest.approx(slopes(bodies, pose, lambda other: posture.value(posture.away(other))), abs=1e-7)


def test_a_joint_above_a_hinge_is_stiffer_if_it_flexes_beyond_what_the_hinge_explains():
    """From 1 radian on, plus 0.8 for each radian of the knee, the muscles behind them are stretched."""
    bodies, *_ = make(7)
    hinge = int(np.flatnonzero(bodies.counts == 1)[0])
    above, axis = int(bodies.parents[hinge]), bodies.axes[bodies.first[hinge]]
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    rest, behind = np.tile([1.0, 0.0, 0.0, 0.0], (7, 1)), bodies.rest_turns[hinge] @ axis
    coupled = [Coupled(hinge, above, axis, behind, 1.0)]

    posture = PostureTerm(bodies, masses, rest, np.zeros(3), coupled=coupled)
    for flexed, bent, beyond in [(0.9, 0.0, 0.0), (1.3, 0.0, 0.3), (1.3, 0.5, 0.0), (1.9, 0.5, 0.5)]:
        local = rest[bodies.bones]
        local[above] = quaternion_from_rotation_vector(-flexed * behind)
        local[hinge] = quaternion_from_rotation_vector(bent * axis)
        pose = bodies.pose(local, np.array((0.1, 0.2, 0.3)))
        away = posture.away(pose)
        assert away.stretched == pytest.approx([0.0, beyond])
        found = posture.equations(away, pose, bodies.motions(pose))[1]
        assert found == pytest.approx(slopes(bodies, pose, lambda other: posture.value(posture.away(other))), abs=1e-7)
    # A pose that starts with stretched muscles is at rest.
    rest[bodies.bones[above]] = quaternion_from_rotation_vector(-1.5 * behind)
    posture = PostureTerm(bodies, masses, rest, np.zeros(3), coupled=coupled)
    assert posture.value(posture.away(bodies.pose(rest[bodies.bones], np.zeros(3)))) < 1e-20


def test_the_gradient_is_the_slope_if_a_bone_bends_more_easily_about_one_axis():
    bodies, _, _, pose = make(3)
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    bent = [(int(np.flatnonzero(bodies.counts == 3)[-1]), np.array((0.6, 0.0, 0.8)))]
    posture = PostureTerm(bodies, masses, np.tile((1.0, 0.0, 0.0, 0.0), (7, 1)), np.zeros(3), side_bends=bent)
    found = posture.equations(posture.away(pose), pose, bodies.motions(pose))[1]
    assert found == pytest.approx(slopes(bodies, pose, lambda other: posture.value(posture.away(other))), abs=1e-7)


def test_a_joint_that_follows_a_hinge_prefers_a_share_of_its_angle():
    """A hip that flexes by 0.8 times the knee's angle costs nothing."""
    bodies, *_ = make(7)
    hinge = int(np.flatnonzero(bodies.counts == 1)[0])
    above, axis = int(bodies.parents[hinge]), bodies.axes[bodies.first[hinge]]
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    rest, location = np.tile([1.0, 0.0, 0.0, 0.0], (7, 1)), np.zeros(3)
    behind = bodies.rest_turns[hinge] @ axis
    posture = PostureTerm(bodies, masses, rest, location, coupled=[Coupled(hinge, above, axis, behind, 1.0)])
    local = rest[bodies.bones].copy()
    local[hinge] = quaternion_from_rotation_vector(0.8 * axis)
    local[above] = quaternion_from_rotation_vector(-0.64 * behind)
    turned = posture.away(bodies.pose(local, location)).turned
    assert np.abs(turned[above]).max() < 1e-12
    assert turned[hinge] == pytest.approx(0.8 * axis)


def test_a_joint_above_a_hinge_is_stiffer_if_it_extends_beyond_its_slack():
    """A bend against the hinge's direction flexes the joint and costs the same. The other way costs 9 times as much."""
    bodies, *_ = make(7)
    hinge = int(np.flatnonzero(bodies.counts == 1)[0])
    above, axis = int(bodies.parents[hinge]), bodies.axes[bodies.first[hinge]]
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    rest, location = np.tile([1.0, 0.0, 0.0, 0.0], (7, 1)), np.zeros(3)
    behind = bodies.rest_turns[hinge] @ axis

    def joints_cost(extended, stiffer, slack):
        posture = PostureTerm(
            bodies, masses, rest, location, coupled=[Coupled(hinge, above, axis, behind, 1.0, stiffer, slack)]
        )
        local = rest[bodies.bones].copy()
        local[above] = quaternion_from_rotation_vector(extended * behind)
        away = posture.away(bodies.pose(local, location))
        return posture.value(away) - 0.5 * float(posture.masses @ (away.moved**2).sum(axis=1)), posture.inertia[above]

    for extended in (-0.4, 0.4):
        plain, inertia = joints_cost(extended, 1.0, 0.0)
        assert plain == pytest.approx(0.5 * inertia * 0.16)
        assert joints_cost(extended, 9.0, 0.0)[0] == pytest.approx((9.0 if extended > 0.0 else 1.0) * plain)
        beyond = max(extended - 0.1, 0.0)
        assert joints_cost(extended, 9.0, 0.1)[0] == pytest.approx(plain + 0.5 * 8.0 * inertia * beyond**2)


@pytest.mark.parametrize("inherits", [None, BROKEN])
def test_the_rows_are_the_slopes_of_the_residual(inherits):
    bodies, _, (goals, wanted), pose = make(2, inherits)
    points = goals.rows(pose, bodies.motions(pose), wanted)[:2]
    expected = slopes(bodies, pose, lambda other: goals.residual(other, wanted))[:, :2]
    assert points == pytest.approx(-np.moveaxis(expected, 0, -1), abs=1e-6)


def test_rotations_near_their_goal_have_the_right_rows():
    bodies, _, (goals, _), pose = make(3)
    wanted = np.zeros((2, 4))
    wanted[:] = quaternion_from_matrix(pose.orientations[goals.on[:2]])
    asked = goals.wanted(np.zeros((2, 3)), wanted)
    rows = goals.rows(pose, bodies.motions(pose), asked)[2:]
    expected = slopes(bodies, pose, lambda other: goals.residual(other, asked))[:, 2:]
    assert rows == pytest.approx(-np.moveaxis(expected, 0, -1), abs=1e-5)


@pytest.mark.parametrize("inherits", [None, BROKEN])
def test_the_matrix_is_the_mass_matrix(inherits):
    """The matrix is Σ m JᵀJ over the masses, and each joint's inertia on the diagonal."""
    bodies, posture, _, pose = make(4, inherits)
    found = posture.equations(posture.away(pose), pose, bodies.motions(pose))[0]
    shifts = slopes(bodies, pose, lambda other: posture.away(other).centers)
    expected = np.einsum("j,aji,bji->ab", posture.masses, shifts, shifts)
    rest = found - expected
    assert np.abs(rest - np.diag(np.diagonal(rest))).max() < 1e-8
    assert (np.diagonal(rest)[: bodies.turning] > 1e-5).all()


def test_curvature_is_the_slope_of_the_work_of_forces():
    """It is f · ∂²p / ∂i ∂j of points on the bodies, and t · ∂²r / ∂i ∂j of their rotation vectors, as differences."""
    bodies, _, _, pose = make(5)
    random = np.random.default_rng(6)
    forces = random.normal(size=(3, 3))
    on, offsets = np.array([1, 3, 5]), random.normal(size=(3, 3))
    torques = random.normal(size=(3, 3))

    def points(pose):
        return pose.heads[on] + (pose.orientations[on] @ offsets[..., None])[..., 0]

    def work(step):
        other = moved(bodies, pose, step)
        turned = rotation_vector_from_matrix(other.orientations[on] @ np.swapaxes(pose.orientations[on], -1, -2))
        return float((forces * points(other)).sum() + (torques * turned).sum())

    size, count = 1e-3, bodies.columns
    expected = np.empty((count, count))
    for i, j in np.ndindex(count, count):
        one, two = size * np.eye(count)[i], size * np.eye(count)[j]
        expected[i, j] = (work(one + two) - work(one - two) - work(two - one) + work(-one - two)) / (4.0 * size**2)
    found = bodies.stiffness(pose, bodies.motions(pose), points(pose), on, forces, (on, torques))
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_hessian_of_sagging_arms_agree_with_differences(seed):
    bodies, _, _, pose = make(seed)
    place = {bodies.skeleton.names[bone]: body for body, bone in enumerate(bodies.bones)}
    masses = Masses(np.full(7, 1.0 / 7.0), np.full(7, 0.4), np.ones(7))
    term = SaggingArms(bodies, masses, [(place["e"], place["f"], 1)], np.array((0.0, 0.6, 0.8)))
    term.prefer(bodies.pose(np.tile([1.0, 0.0, 0.0, 0.0], (len(bodies.bones), 1)), pose.root))
    assert term.value(pose) == 0.0
    term.relax(np.array([0.0, 0.7]))
    assert abs(term.value(pose)) > 1e-4
    gradient, negative_hessian = term.equations(pose, bodies.motions(pose))
    assert gradient == pytest.approx(slopes(bodies, pose, term.value), abs=1e-7)
    forces = slopes(bodies, pose, lambda other: term.equations(other, bodies.motions(other))[0])
    assert -negative_hessian == pytest.approx(0.5 * (forces + forces.T), abs=1e-5)
