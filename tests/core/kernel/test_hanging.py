"""Limbs without goals hang: they keep their tilt while the trunk tilts a little, and fall when it tilts far."""

import numpy as np
import pytest

from fabrik_addon.core import Ball, Effector, forward_kinematics
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.bounds import Floor
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.kernel.relaxed import HangFrom, HangingTerm
from fabrik_addon.core.rotations import angle_between, product, quaternion_from_rotation_vector

from ..test_drag import LIMITS, WEIGHTS, skeleton

UP = np.array([0.0, 0.0, 1.0])
ARMS = ("upper_arm.L", "forearm.L", "upper_arm.R", "forearm.R")
LEGS = ("thigh.L", "shin.L", "thigh.R", "shin.R")
REST = np.tile([1.0, 0.0, 0.0, 0.0], (10, 1))
LOCATION = skeleton().rest[0, :3, 3]


def directions(rotations, names, location=LOCATION):
    """(n, 3) the directions of bones."""
    bones = skeleton()
    return forward_kinematics(bones, rotations, location)[[bones.index(name) for name in names], :3, 1]


def arms(rotations):
    """(2,) the elevation of each arm, from the shoulder to the wrist."""
    along = directions(rotations, ARMS) * skeleton().lengths[[skeleton().index(name) for name in ARMS], None]
    chords = along.reshape(2, 2, 3).sum(axis=1)
    return chords[:, 2] / np.linalg.norm(chords, axis=1)


def turned_trunk(vector, start=REST):
    """The pose in which a trunk of two bones is rotated by a vector (3,) in world space, and limbs hang.

    start: (10, 4) local rotations at the start of the drag, with the trunk at rest.
    """
    bones = skeleton()
    shares = np.array([float(name in ARMS) for name in bones.names])
    masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(10, 0.5), np.ones(10), hanging=shares)
    effectors = [Effector("hips", (0.0, 0.0, 0.0), rotation_weight=1.0), Effector("spine", rotation_weight=1.0)]
    solver = DragSolver(bones, effectors, masses, root="FREE", still=LEGS, hang_from=HangFrom(start, LOCATION, UP))
    solver.prefer(start, LOCATION)
    solver.begin(start, LOCATION)
    turn = quaternion_from_rotation_vector(np.array(vector, dtype=float))
    rest = forward_kinematics(bones, REST, LOCATION)
    frames = [product(turn, quaternion_of(rest[bone, :3, :3])) for bone in (0, 1)]
    tip = rest[1, :3, 3] + bones.lengths[1] * rest[1, :3, 1]
    where = LOCATION + rotated(turn, tip - LOCATION)
    found = solver.solve([LOCATION, where], frames, settled=True)
    assert found.errors.max() < 1e-4
    return found.rotations


def quaternion_of(matrix):
    """(4,) of a rotation (3, 3)."""
    values, vectors = np.linalg.eigh(_quadratic(matrix))
    return vectors[:, values.argmax()]


def _quadratic(m):
    """(4, 4) the matrix whose first eigenvector is the quaternion of a rotation (Bar-Itzhack, 2000)."""
    return np.array([
        [m[0, 0] + m[1, 1] + m[2, 2], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
        [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1]],
        [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1]],
    ])  # fmt: skip


def rotated(turn, vector):
    """(3,) a vector after a rotation."""
    w, axis = turn[0], turn[1:]
    return vector + 2.0 * np.cross(axis, np.cross(axis, vector) + w * vector)


def term(share=1.0, *, led=False):
    """The term of the arms on a trunk of two bones, or of the forearms on upper arms that are led, and its bodies."""
    bones = skeleton()
    bodies = Bodies(bones, list(range(6)), [np.eye(3)] * 6, True)
    limbs, carriers = ([[3], [5]], [2, 4]) if led else ([[2, 3], [4, 5]], [1, 1])
    start = HangFrom(REST, LOCATION, UP)
    return HangingTerm(bodies, limbs, carriers, [share] * 2, [0.05] * 2, start, carriers if led else ()), bodies


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_gradient_and_matrix_are_those_of_the_residual(share):
    found, bodies = term(share)
    local = quaternion_from_rotation_vector(0.5 * np.random.default_rng(2).normal(size=(6, 3)))
    pose, step = bodies.pose(local, LOCATION), 1e-5
    slopes = []
    for change in step * np.eye(bodies.columns):
        ahead, behind = (bodies.pose(*bodies.moved(pose, sign * change)) for sign in (1.0, -1.0))
        slopes.append((found.residual(ahead) - found.residual(behind)).ravel() / (2.0 * step))
    rows, residual = np.array(slopes).T, found.residual(pose)
    matrix, gradient, _ = found.equations(residual, pose, bodies.motions(pose))
    np.testing.assert_allclose(matrix, rows.T @ rows, atol=1e-6)
    np.testing.assert_allclose(gradient, rows.T @ residual.ravel(), atol=1e-6)


@pytest.mark.parametrize("led", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_hessian_is_that_of_the_energy(led, seed):
    """The Gauss-Newton matrix alone is off by as much as the Hessian is large."""
    found, bodies = term(led=led)
    local = quaternion_from_rotation_vector(0.5 * np.random.default_rng(seed).normal(size=(6, 3)))
    pose, steps = bodies.pose(local, LOCATION), 1e-3 * np.eye(bodies.columns)

    def energy(step):
        return 0.5 * (found.residual(bodies.pose(*bodies.moved(pose, step))) ** 2).sum()

    exact = np.zeros((len(steps), len(steps)))
    for row, column in zip(*np.triu_indices(len(steps)), strict=True):
        a, b = steps[[row, column]]
        slope = energy(a + b) - energy(a - b) - energy(b - a) + energy(-a - b)
        exact[row, column] = exact[column, row] = slope / (4.0 * 1e-3**2)
    matrix, _, curvature = found.equations(found.residual(pose), pose, bodies.motions(pose))
    assert np.linalg.norm(matrix - curvature - exact) < 0.45 * np.linalg.norm(matrix - exact)


def test_nothing_is_pulled_at_the_start_or_if_the_trunk_rotates_about_the_vertical():
    found, bodies = term()
    for angle in (0.0, 0.7, -2.5):
        local = REST[:6].copy()
        local[0] = quaternion_from_rotation_vector(skeleton().rest[0, :3, :3].T @ (angle * UP))
        np.testing.assert_allclose(found.residual(bodies.pose(local, LOCATION)), 0.0, atol=1e-9)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.6, -0.8, 0.0)])
def test_arms_hang_farther_down_the_farther_the_trunk_tilts(axis):
    start = arms(REST)
    heights = [arms(turned_trunk(angle * np.array(axis))) for angle in (0.2, 0.6, 1.2)]
    assert np.all(heights[0] < start + 0.02), "they keep their tilt, or fall"
    assert np.all(np.diff(heights, axis=0) < 0.0)
    assert heights[-1].max() < -0.8, "within some 35 degrees of the vertical"


def test_arms_that_were_raised_before_keep_their_tilt():
    raised = REST.copy()
    for name in ("upper_arm.L", "upper_arm.R"):
        bone = skeleton().index(name)
        along = skeleton().rest[bone, :3, 1]
        axis = np.cross(along, UP) / np.linalg.norm(np.cross(along, UP))
        elevation = np.arcsin(along @ UP)
        raised[bone] = quaternion_from_rotation_vector(skeleton().rest[bone, :3, :3].T @ ((0.1 - elevation) * axis))
    before, rest = arms(raised), arms(REST)
    found = arms(turned_trunk((0.6, 0.0, 0.0), raised))
    assert np.all(before > max(0.0, rest.max() + 0.5)), "they were raised above level"
    np.testing.assert_allclose(np.degrees(np.arcsin(found)), np.degrees(np.arcsin(before)), atol=6.0)


def test_arms_follow_a_trunk_that_rotates_about_the_vertical():
    found = turned_trunk((0.0, 0.0, 1.3))
    np.testing.assert_allclose(angle_between(found[2:], REST[2:]), 0.0, atol=1e-3)


def test_upside_down_arms_follow_the_trunk_and_nothing_spins():
    found = [turned_trunk((angle, 0.0, 0.0)) for angle in np.radians([160.0, 170.0, 179.0])]
    assert max(np.degrees(angle_between(a, b)).max() for a, b in zip(found[1:], found[:-1], strict=True)) < 40.0


def knee_up(limits, floor=None):
    """The pose in which the left knee is raised by 30 cm and the right foot is held."""
    bones = skeleton()
    masses = Masses(
        np.array(WEIGHTS) / sum(WEIGHTS), np.full(10, 0.5), np.ones(10), hanging=np.array([0.0] * 7 + [1.0, 0.0, 1.0])
    )
    effectors = [Effector("thigh.L", priority=1), Effector("shin.R")]
    start = HangFrom(REST, LOCATION, UP)
    solver = DragSolver(bones, effectors, masses, limits=limits, root="FREE", floor=floor, hang_from=start)
    points = solver.points(REST, LOCATION)
    targets = points + np.array([(0.0, -0.3, 0.3), (0.0, 0.0, 0.0)])
    found = solver.solve(targets, settled=True)
    assert found.errors.max() < 1e-4
    return found


def test_a_shin_below_a_raised_knee_hangs():
    found = knee_up(LIMITS)
    assert directions(found.rotations, ["thigh.L"], found.root_location)[0, 2] > -0.6
    assert directions(found.rotations, ["shin.L"], found.root_location)[0, 2] < -0.97


def test_a_limb_hangs_inside_its_limit():
    found = knee_up({**LIMITS, "shin.L": Ball(0.2)})
    shin = skeleton().index("shin.L")
    assert angle_between(found.rotations[shin], REST[shin]) == pytest.approx(0.2, abs=1e-3)


def test_a_leg_without_a_goal_does_not_go_through_the_floor():
    """Nothing holds the feet, and the hips are lowered."""
    bones = skeleton()
    masses = Masses(np.array(WEIGHTS) / sum(WEIGHTS), np.full(10, 0.5), np.ones(10))
    tips = {name: (0.0, float(bones.lengths[bones.index(name)]), 0.0) for name in ("shin.L", "shin.R")}
    solver = DragSolver(
        bones, [Effector("hips")], masses, limits=LIMITS, root="FREE", floor=Floor(tuple(tips.items()), tuple(UP), 0.08)
    )
    points = solver.points(REST, LOCATION)
    for drop in np.arange(0.01, 0.31, 0.01):
        found = solver.solve(points - (0.0, 0.0, drop))
        posed = forward_kinematics(bones, found.rotations, found.root_location)
        lowest = [posed[bones.index(name), :3] @ (*tip, 1.0) for name, tip in tips.items()]
        assert min(point[2] for point in lowest) > 0.0795
    assert found.errors[0] < 1e-4
