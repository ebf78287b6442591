"""Properties that all kinds of limits share, checked by brute force. `test_limit_kinds` tests each kind."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from support import checker
from support.strategies import limits, rotations

from fabrik_addon.core import Ball, Fixed, Hinge, Polygon, Skeleton
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.joint_limits import JointLimits, at_limit

ROUNDING = 1e-7
HALF_TURN = np.pi - 1e-3


def clamp(limit, quaternions):
    """(N, 4) rotations clamped by the array backend."""
    return many.stack([limit.clamp(many, many.quaternion(quaternions))], len(quaternions))[:, 0]


def apart(a, b):
    """(N,) radians between rotations."""
    return checker.size_of_turn(np.swapaxes(checker.matrices(a), -1, -2) @ checker.matrices(b))


def has_a_twist(quaternions):
    """Whether swing and twist are distinct: the swing is less than 180°."""
    lean, _ = checker.lean_and_twist(checker.matrices(quaternions))
    return np.linalg.norm(lean, axis=-1) < HALF_TURN


def inside(limit, seed=0, count=50):
    return checker.random_rotations_inside(limit, np.random.default_rng(seed), count)


@given(limit=limits, turns=rotations())
def test_clamped_rotations_are_inside(limit, turns):
    clamped = clamp(limit, turns)
    assert np.abs(np.linalg.norm(clamped, axis=1) - 1).max() < 1e-12
    told_apart = has_a_twist(clamped)
    outside, _ = checker.distances(limit, checker.matrices(clamped))
    assert outside[told_apart].max(initial=0.0) < ROUNDING


@given(limit=limits, turns=rotations())
def test_clamping_twice_is_clamping_once(limit, turns):
    once = clamp(limit, turns)
    told_apart = has_a_twist(once)
    assert apart(clamp(limit, once), once)[told_apart].max(initial=0.0) < ROUNDING


@given(limit=limits)
def test_rotations_inside_do_not_change(limit):
    turns = inside(limit)
    told_apart = has_a_twist(turns)
    assert apart(clamp(limit, turns), turns)[told_apart].max(initial=0.0) < ROUNDING


@given(limit=limits, turns=rotations())
@settings(max_examples=80)
def test_rotations_outside_go_to_the_nearest_point_of_the_chart(limit, turns):
    turns = turns[has_a_twist(turns)]
    if not len(turns) or isinstance(limit, Fixed):
        return
    clamped = checker.matrices(clamp(limit, turns))
    expected = checker.clamped(limit, checker.matrices(turns))
    if isinstance(limit, Hinge):
        assert_as_near(
            hinge_angle(limit, clamped), hinge_angle(limit, expected), hinge_angle(limit, checker.matrices(turns))
        )
        return
    lean, twist = checker.lean_and_twist(checker.matrices(turns))
    clamped_lean, clamped_twist = checker.lean_and_twist(clamped)
    expected_lean, expected_twist = checker.lean_and_twist(expected)
    far = np.linalg.norm(expected_lean, axis=1) > HALF_TURN  # where the chart's rim meets itself
    moved, needed = np.linalg.norm(clamped_lean - lean, axis=1), np.linalg.norm(expected_lean - lean, axis=1)
    assert (moved - needed)[~far].max(initial=0.0) < ROUNDING
    assert_as_near(clamped_twist[~far], expected_twist[~far], twist[~far])


def assert_as_near(found, expected, start):
    """Found angles are as close to the start, on the circle, as the expected ones."""
    assert (round_the_circle(found - start) - round_the_circle(expected - start)).max(initial=0.0) < 1e-6


def round_the_circle(angle):
    return np.abs(np.mod(angle + np.pi, 2 * np.pi) - np.pi)


def hinge_angle(limit, turns):
    axis = "XYZ".index(limit.axis)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    return np.arctan2(turns[:, j, i] - turns[:, i, j], turns[:, i, i] + turns[:, j, j])


@given(limit=limits)
def test_samples_are_inside_and_reach_the_corners(limit):
    corners = np.stack(np.meshgrid(*[[0.0, 0.25, 0.5, 1.0]] * 3), axis=-1).reshape(-1, 3)
    samples = limit.sample(corners)
    outside, _ = checker.distances(limit, checker.matrices(samples))
    assert outside[has_a_twist(samples)].max(initial=0.0) < ROUNDING


@given(limit=limits)
@settings(max_examples=80)
def test_a_bone_is_at_its_limit_near_the_outline(limit):
    turns = clamp(limit, rough(inside(limit), 0.02))
    turns = turns[has_a_twist(turns)]
    if not len(turns) or isinstance(limit, Fixed):
        return
    binds = at_limit(limit, turns, 1e-4)
    _, true = checker.distances(limit, checker.matrices(turns))
    assert not (binds & (true > 1.1e-4)).any()
    assert not (~binds & (true < 0.9e-4)).any()


@given(limit=limits)
# Near the corner (0.1032, -0.0836), the gap to an edge was the distance from the corner.
@example(
    Polygon(
        [
            (0.32161510229781126, 0.023723755190032423),
            (0.1436310649285175, 0.14363106492851746),
            (-0.09900504583609304, 0.34140303619850193),
            (-0.10393370153781817, 0.06944627912745027),
            (-0.15432865167134205, -0.019034623682504463),
            (-0.11353332026331106, -0.14921941961416565),
            (-1.8369701987210297e-17, -0.1),
            (0.1031804993472262, -0.08362382860588874),
        ],
        (1.5707963267948966, 1.9477494517948966),
    )
)
# The gap to so flat an ellipse had a slope that was 11 % off, because its line did not touch at the nearest point.
@example(Ball((2.7401669, np.radians(2.0), 0.0, 0.0)))
@settings(max_examples=60)
def test_a_small_rotation_changes_a_gap_along_the_normal(limit):
    turns = clamp(limit, rough(inside(limit), 0.02))
    turns = turns[has_a_twist(turns)]
    if not len(turns) or isinstance(limit, Fixed):
        return
    step, alone = 1e-6, joint(limit)
    frames, _, normals, gaps, _ = alone.sides(turns[:, None], 1e-3)
    for axis in np.eye(3):
        turned = many.stack([many.exp_map(many.vector_of(axis * step)) @ many.quaternion(turns)], len(turns))
        ahead = alone.sides(turned, 2e-3)
        for frame, normal, gap in zip(frames, normals, gaps, strict=True):
            same = (ahead.frames == frame) & (np.linalg.norm(ahead.normals - normal, axis=1) < 1e-3)
            if same.any() and gap > 5e-6:
                slopes = (gap - ahead.gaps[same]) / step
                assert np.abs(slopes - normal @ axis).min() < 0.1


def joint(limit):
    """The limits of one joint."""
    skeleton = Skeleton(["bone"], [-1], np.eye(4)[None], [1.0])
    axes = np.eye(3) if limit.rotation_axis is None else np.array([limit.rotation_axis])
    return JointLimits(Bodies(skeleton, [0], [axes], free_root=False), [limit])


def rough(turns, size):
    """Rotations with small errors, so that some of them are clamped onto the outline and others are close to it."""
    rng = np.random.default_rng(1)
    noise = np.concatenate([np.ones((len(turns), 1)), rng.normal(size=(len(turns), 3)) * size], axis=1)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return many.stack([many.quaternion(turns) @ many.quaternion(noise)], len(turns))[:, 0]


@pytest.mark.parametrize("seed", range(3))
def test_the_checker_composes_rotations_that_it_decomposes(seed):
    rng = np.random.default_rng(seed)
    lean = rng.uniform(-2, 2, (200, 2))
    twist = rng.uniform(-3.1, 3.1, 200)
    again_lean, again_twist = checker.lean_and_twist(checker.composed(lean, twist))
    assert np.abs(again_lean - lean).max() < 1e-9
    assert np.abs(again_twist - twist).max() < 1e-9
