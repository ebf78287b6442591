"""The limits of all joints together give the same results as each limit by itself."""

import numpy as np
import pytest

from fabrik_addon.core import Ball, Effector, Hinge, Polygon, Skeleton
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.joint_limits import JointLimits
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.limits import swing_of, twist_of
from fabrik_addon.core.rotations import angle_between, product, quaternion_from_rotation_vector

LIMITS = (
    Ball((0.8, 0.3, 1.2, 0.5), (-0.4, 0.6)),
    Ball(1.0),
    Ball((0.9, 0.0, 0.4, 0.0), (0.1, 0.2)),
    Ball((np.pi, 2.0, np.pi, 0.7), (2.0, 4.0)),
    Hinge("X", -0.2, 2.5),
    Polygon([(-0.5, -0.5), (0.6, -0.2), (0.1, 0.7)], (-0.3, 0.3)),
)


def joints():
    """The limits of a chain, a bone for each of them."""
    return JointLimits(limits_bodies(), LIMITS)


def limits_bodies():
    """A chain with a bone for each limit."""
    count = len(LIMITS)
    rest = np.tile(np.eye(4), (count, 1, 1))
    rest[:, 1, 3] = np.arange(count)
    skeleton = Skeleton([f"b{bone}" for bone in range(count)], range(-1, count - 1), rest, [1.0] * count)
    axes = [np.eye(3) if limit.rotation_axis is None else np.array([limit.rotation_axis]) for limit in LIMITS]
    return Bodies(skeleton, range(count), axes, free_root=False)


@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_each_joint_is_clamped_by_its_own_limit(spread):
    random, limits = np.random.default_rng(4), joints()
    for _ in range(20):
        local = np.array([1.0, 0.0, 0.0, 0.0]) + spread * random.normal(size=(len(LIMITS), 4))
        local /= np.linalg.norm(local, axis=1)[:, None]
        alone = [
            many.stack([limit.clamp(many, many.quaternion(rotation[None]))], 1)[0, 0]
            for limit, rotation in zip(LIMITS, local, strict=True)
        ]
        assert angle_between(limits.clamped(local), np.array(alone)).max() < 1e-9


def test_rotations_inside_their_limits_stay():
    limits = joints()
    inside = limits.clamped(np.tile([1.0, 0.0, 0.0, 0.0], (len(LIMITS), 1)))
    assert angle_between(limits.clamped(inside), inside).max() < 1e-9


def some_rotations(frames, spread=0.7):
    """(F, B, 4) rotations near rest."""
    local = np.array([1.0, 0.0, 0.0, 0.0]) + spread * np.random.default_rng(5).normal(size=(frames, len(LIMITS), 4))
    return local / np.linalg.norm(local, axis=-1)[..., None]


def test_frames_are_clamped_like_single_poses():
    limits, local = joints(), some_rotations(30)
    assert limits.clamped(local) == pytest.approx(np.array([limits.clamped(each) for each in local]), abs=1e-12)


def test_a_polygon_has_the_same_sides_in_one_pose_as_among_frames():
    skeleton, within = Skeleton(["bone"], [-1], np.eye(4)[None], [1.0]), 0.1
    alone = JointLimits(Bodies(skeleton, [0], [np.eye(3)], free_root=False), LIMITS[-1:])
    local = alone.clamped(some_rotations(30)[:, -1:])
    sides = alone.sides(local, within)
    for frame, pose in enumerate(local):
        expected = np.sort(sides.gaps[sides.frames == frame])
        assert np.sort(alone.rows(pose, within)[0].gaps) == pytest.approx(expected, abs=1e-12)


def test_the_sides_of_frames_are_those_of_each_limit():
    limits, within = joints(), 1e-4
    local = limits.clamped(some_rotations(30))
    sides = limits.sides(local, within)
    assert len(sides.gaps) > 100
    for body, limit in enumerate(LIMITS):
        skeleton = Skeleton(["bone"], [-1], np.eye(4)[None], [1.0])
        alone = JointLimits(Bodies(skeleton, [0], [np.eye(3)], free_root=False), [limit])
        expected, own = alone.sides(local[:, body : body + 1], within), sides.bodies == body
        assert (np.sort(sides.frames[own]) == np.sort(expected.frames)).all()
        for frame, normal in zip(sides.frames[own], sides.normals[own], strict=True):
            assert np.linalg.norm(normal - expected.normals[expected.frames == frame], axis=1).min() < 1e-6


def test_a_step_up_to_a_side_stays_inside_and_a_longer_one_does_not():
    limits = joints()
    local = limits.clamped(some_rotations(200, 0.3))
    sides = limits.sides(local, 2e-3)
    assert len(sides.gaps) > 100
    for share, beyond, is_outside in ((0.5, 0.0, False), (1.0, 5e-3, True)):
        for frame, body, normal, gap, _ in zip(*sides, strict=True):
            turn = normal / (normal @ normal) * (gap * share + beyond)
            moved = product(quaternion_from_rotation_vector(turn), local[frame, body])
            pose = local[frame].copy()
            pose[body] = moved
            away = angle_between(limits.clamped(pose)[body], moved)
            assert (away > 1e-3) == is_outside


def test_rows_of_frames_are_their_sides_in_the_columns():
    limits = joints()
    local = limits.clamped(some_rotations(5))
    sides, bodies = limits.sides(local, 0.5), limits_bodies()
    rows, gaps = sides.rows(bodies, 5)
    for frame in range(5):
        own = sides.frames == frame
        near = np.isfinite(gaps[frame])
        assert near.sum() == own.sum()
        assert np.sort(gaps[frame][near]) == pytest.approx(np.sort(sides.gaps[own]))
        step = np.random.default_rng(frame).normal(size=bodies.columns)
        told = [
            normal @ bodies.vectors(step)[body]
            for body, normal in zip(sides.bodies[own], sides.normals[own], strict=True)
        ]
        assert np.sort(rows[frame, near] @ step) == pytest.approx(np.sort(told))


@pytest.mark.parametrize("limit", [Ball((0.9, 0.5, 1.2, 0.7), (-3.1, 3.1)), Ball(3.1, (-0.1, 0.2))])
@pytest.mark.parametrize("seed", range(4))
def test_the_curvature_of_sides_is_that_of_the_clamped_rotations(limit, seed):
    """A small rotation of a bone at its limit exceeds it by what row and curvature predict, in swing or twist."""
    random = np.random.default_rng(seed)
    skeleton = Skeleton(["bone"], [-1], np.eye(4)[None], [1.0])
    limits = JointLimits(Bodies(skeleton, [0], [np.eye(3)], free_root=False), [limit])
    edge = limits.clamped(quaternion_from_rotation_vector(np.array([[1.2, 0.9, -1.0]]) + 0.3 * random.normal(size=3)))
    sides, outlines = limits.rows(edge, 1e-6)
    side = int(sides.gaps.argmin())
    turn = 1e-4 * random.normal(size=3)
    turn *= np.sign(sides.rows[side] @ turn)
    moved = product(quaternion_from_rotation_vector(turn[None]), edge)
    curvature = limits.curvature(outlines, np.eye(len(sides.gaps))[side])
    told = sides.rows[side] @ turn + 0.5 * turn @ curvature @ turn
    assert sides.gaps[side] < 1e-6
    assert how_far_apart(moved, limits.clamped(moved)) == pytest.approx(told, abs=3e-10)


def how_far_apart(*rotations):
    """The difference of two rotations (1, 4) in swing and twist, radians."""
    leans = [swing_of(many, many.quaternion(each)) for each in rotations]
    twists = [twist_of(many, many.quaternion(each), 0.0) for each in rotations]
    own, other = (np.array([lean.x[0], lean.z[0], twist[0]]) for lean, twist in zip(leans, twists, strict=True))
    return np.linalg.norm(own - other)


def test_a_bone_at_its_limit_settles():
    """Pulled to the side, it slides along the outline to one position and stays there."""
    skeleton = Skeleton(["bone"], [-1], np.eye(4)[None], [1.0])
    masses = Masses(np.ones(1), np.full(1, 0.5), np.ones(1))
    solver = DragSolver(skeleton, [Effector("bone")], masses, limits={"bone": Ball(0.3, (-0.1, 0.1))})
    rotations, turned = np.array([[1.0, 0.0, 0.0, 0.0]]), []
    for way in (*np.linspace(0.0, 1.0, 30), 1.0, 1.0, 1.0):
        found = solver.solve([[2.0 - way, 0.5, 0.5 + way]])
        turned.append(float(angle_between(rotations, found.rotations)[0]))
        rotations = found.rotations
    assert max(turned[1:]) < 0.01
    assert turned[-1] < 1e-4
    lean = swing_of(many, many.quaternion(rotations))
    assert [lean.x[0], lean.z[0]] == pytest.approx(0.3 * np.array([1.0, 1.5]) / np.hypot(1.0, 1.5), abs=2e-3)
