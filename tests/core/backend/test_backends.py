"""The two backends agree, for each basic function and for whole solves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.families import FAMILIES
from support.rigs import person, points_of, random_rotations, straight_chain
from support.strategies import limits

from fabrik_addon.core import Effector, Options, Solver, Status, forward_kinematics, solve
from fabrik_addon.core.backend.array import many

one = pytest.importorskip("fabrik_addon.core.backend.scalar", reason="mathutils comes with Blender").one
pytestmark = pytest.mark.one_pose

# Smaller differences are lost in single precision, for example those of twists near the antipode.
coordinates = st.floats(-10, 10, allow_nan=False, allow_subnormal=False, width=32)
points = arrays(np.float64, (1, 3), elements=coordinates)
quaternions = arrays(np.float64, (1, 4), elements=coordinates).filter(lambda q: np.linalg.norm(q) > 0.1)


def both(name, *operands):
    """The results of a function on both backends, as arrays."""
    results = []
    for numbers in (one, many):
        values = [numbers.vector(item) if item.shape[1] == 3 else unit(numbers, item) for item in operands]
        results.append(as_array(numbers, name(numbers, *values)))
    return results


def unit(numbers, item):
    return numbers.quaternion(item / np.linalg.norm(item))


def as_array(numbers, value):
    return numbers.stack([value], 1)[0, 0] if hasattr(value, "x") else np.asarray(value).reshape(-1)


PRIMITIVES = {
    "sum": lambda n, a, b, q, p: a + b,
    "difference": lambda n, a, b, q, p: a - b,
    "scaled": lambda n, a, b, q, p: a * 0.5,
    "negated": lambda n, a, b, q, p: -a,
    "dot": lambda n, a, b, q, p: a.dot(b),
    "cross": lambda n, a, b, q, p: a.cross(b),
    "length": lambda n, a, b, q, p: a.length,
    "turned vector": lambda n, a, b, q, p: q @ a,
    "composed turns": lambda n, a, b, q, p: q @ p,
    "conjugate": lambda n, a, b, q, p: q.conjugated(),
    "rotation vector": lambda n, a, b, q, p: n.exp_map(a * 0.3) @ b,
    "clamp": lambda n, a, b, q, p: n.clamp(a.x, -1.0, 1.0),
    "select": lambda n, a, b, q, p: n.select(a.x > b.x, a, b),
    "angle": lambda n, a, b, q, p: n.atan2(a.x, 3.0 + abs(a.y)),
}


@pytest.mark.parametrize("name", PRIMITIVES)
@given(a=points, b=points, q=quaternions, p=quaternions)
@settings(max_examples=20, deadline=None)
def test_primitives_agree(name, a, b, q, p):
    first, second = both(PRIMITIVES[name], a, b, q, p)
    assert np.abs(first - second).max() < 1e-5 * (1 + np.abs(second).max())


@given(a=points, b=points)
@settings(max_examples=100, deadline=None)
def test_arcs_bring_one_direction_onto_the_other(a, b):
    length_a, length_b = np.linalg.norm(a), np.linalg.norm(b)
    if min(length_a, length_b) < 1e-2:
        return
    for numbers in (one, many):
        turned = numbers.rotation_between(numbers.vector(a), numbers.vector(b)) @ numbers.vector(a)
        assert np.abs(as_array(numbers, turned) / length_a - b[0] / length_b).max() < 2e-5


@pytest.mark.parametrize("numbers", [one, many], ids=["one", "many"])
def test_arcs_between_opposite_and_zero_directions(numbers):
    for direction in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, -1.0], [1.0, 2.0, 3.0]):
        a = numbers.vector(np.array([direction]))
        assert as_array(numbers, numbers.rotation_between(a, -a) @ a) == pytest.approx(-np.array(direction), abs=1e-5)
    nothing = numbers.vector(np.zeros((1, 3)))
    assert as_array(numbers, numbers.rotation_between(nothing, a)) == pytest.approx([1, 0, 0, 0])


def test_one_pose_and_many_poses_agree_on_whole_chains():
    skeleton = straight_chain(9)
    rng = np.random.default_rng(3)
    targets = rng.normal(size=(60, 1, 3)) * 0.4
    together = solve(skeleton, [Effector("b8")], targets)
    solver = Solver(skeleton, [Effector("b8")])
    for frame, target in enumerate(targets):
        alone = solver.solve(target)
        assert alone.status == together.status[frame]
        assert alone.errors[0] == pytest.approx(together.errors[frame, 0], abs=1e-5 * 0.9)


def test_one_pose_and_many_poses_agree_on_a_person():
    skeleton = person()
    effectors = [Effector(name) for name in ("head", "hand.L", "hand.R", "foot.L", "foot.R")]
    rng = np.random.default_rng(5)
    targets = points_of(skeleton, forward_kinematics(skeleton, random_rotations(rng, (30, 22), 0.6)), effectors)
    together = solve(skeleton, effectors, targets)
    solver = Solver(skeleton, effectors)
    assert (together.status == Status.SOLVED).all()
    for frame, target in enumerate(targets):
        alone = solver.solve(target)
        assert alone.status == Status.SOLVED
        assert np.abs(alone.errors - together.errors[frame]).max() < 1e-5 * 1.75


@given(limit=limits, rotation=quaternions)
@settings(max_examples=100, deadline=None)
def test_clamps_agree(limit, rotation):
    """Compared as rotations; if two points of the outline are equally near, either is correct."""
    found = [as_array(numbers, limit.clamp(numbers, unit(numbers, rotation))) for numbers in (one, many)]
    gaps = [away(turn, unit_array(rotation)) for turn in found]
    assert away(*found) < 1e-5 or abs(gaps[0] - gaps[1]) < 1e-5


def unit_array(rotation):
    return rotation[0] / np.linalg.norm(rotation)


def away(first, second):
    """The angle between two unit quaternions, whatever their signs."""
    return min(np.abs(first - second).max(), np.abs(first + second).max())


@pytest.mark.parametrize("name", ["arm", "leg, asymmetric", "finger", "alternating", "human, 5 goals", "hand, 5 goals"])
def test_one_pose_and_many_poses_agree_inside_limits(name):
    family = FAMILIES[name]
    targets = family.targets(np.random.default_rng(9), 12)
    solver = Solver(family.skeleton, family.effectors, limits=family.limits, options=Options(tolerance=1e-5))
    together = solver.solve(targets)
    for frame, target in enumerate(targets):
        alone = solver.solve(target)
        assert alone.status == together.status[frame]
        assert np.abs(alone.errors - together.errors[frame]).max() < 1e-5 * family.size
