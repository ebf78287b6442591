"""Quadratic programs satisfy their optimality conditions, and agree with a trial of all active sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fabrik_addon.core.optimize.qp import QuadraticProgram


def naive(matrix, slope, rows, wanted, compliance, constraints, gaps):
    """The step with the first set of active inequalities that fulfills all conditions."""
    count = len(wanted)
    for size in range(len(gaps) + 1):
        for active in map(list, combinations(range(len(gaps)), size)):
            both = np.concatenate([rows, constraints[active]])
            yielding = np.diag(np.concatenate([compliance, np.zeros(size)]))
            square = np.block([[matrix, -both.T], [both, yielding]])
            found = np.linalg.solve(square, np.concatenate([slope, wanted, gaps[active]]))
            step, multipliers = found[: len(slope)], found[len(slope) + count :]
            if (multipliers <= 1e-12).all() and (constraints @ step <= gaps + 1e-9).all():
                return step
    raise AssertionError("no active set fulfills the conditions")


def problem(rng, columns, count, sides, scale=1.0):
    root = rng.normal(size=(columns, columns))
    matrix = root @ root.T + 0.1 * np.eye(columns)
    slope = rng.normal(size=columns)
    rows, constraints = rng.normal(size=(count, columns)), rng.normal(size=(sides, columns))
    wanted, gaps = scale * rng.normal(size=count), 0.2 * scale * np.abs(rng.normal(size=sides))
    return matrix, scale * slope, rows, wanted, constraints, gaps


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.integers(0, 3),
    st.integers(0, 6),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
@example(223, 3, 2, 5, 1e3)
def test_the_solution_is_the_best_of_all_active_sets(seed, columns, count, sides, scale):
    rng = np.random.default_rng(seed)
    matrix, slope, rows, wanted, constraints, gaps = problem(rng, columns, count, sides, scale)
    compliance = rng.uniform(0.01, 1.0, size=wanted.shape)
    found = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, compliance)
    best = naive(matrix, slope, rows, wanted, compliance, constraints, gaps)
    assert np.abs(found.step - best).max() < 1e-5 * scale


def nearly_parallel(rng, joints, columns):
    """Nearly parallel constraints, as for outlines of cones: nine for each joint, a few degrees apart."""
    angles = np.radians([0.0, -3.0, 3.0, -9.0, 9.0, -20.0, 20.0, -45.0, 45.0])
    constraints = np.zeros((9 * joints, columns))
    for joint in range(joints):
        first = rng.uniform(0.0, 2.0 * np.pi) + angles
        own = slice(9 * joint, 9 * joint + 9)
        constraints[own, 3 * joint], constraints[own, 3 * joint + 2] = np.cos(first), np.sin(first)
    return constraints


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_conditions_hold_with_many_nearly_parallel_constraints(seed, is_doubled, is_guessed):
    rng = np.random.default_rng(seed)
    matrix, slope, rows, wanted, _, _ = problem(rng, 36, 9, 0)
    constraints = nearly_parallel(rng, 12, 36)
    if is_doubled:
        constraints = np.concatenate([constraints, constraints[::3]])
    gaps = 0.01 * np.abs(rng.normal(size=len(constraints)))
    gaps[::5] = 0.0
    compliance = np.full(wanted.shape, 1e-7)
    active = rng.random(gaps.shape) < 0.3 if is_guessed else None
    found = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, compliance, active=active)
    passed = constraints @ found.step - gaps
    size = np.abs(found.step).max()
    assert passed.max() < 1e-5 * size
    assert found.pushes.min() >= 0.0
    pushing = found.pushes > 1e-6 * max(found.pushes.max(), 1e-30)
    assert np.abs(passed[pushing]).max(initial=0.0) < 1e-5 * size
    assert np.abs(rows @ found.step + compliance * found.forces - wanted).max() < 1e-7
    forces = slope + found.forces @ rows - found.pushes @ constraints
    total = np.abs(forces).max() + np.abs(found.pushes).max(initial=0.0)
    assert np.abs(matrix @ found.step - forces).max() < 1e-9 * total


def test_infinite_gaps_and_rows_of_zeros_do_nothing():
    rng = np.random.default_rng(6)
    matrix, slope, rows, wanted, constraints, gaps = problem(rng, 10, 3, 4)
    compliance = np.full(wanted.shape, 1e-6)
    few = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, compliance)
    rows, wanted = np.concatenate([rows, 0.0 * rows]), np.concatenate([wanted, 0.0 * wanted])
    constraints = np.concatenate([constraints, 0.0 * constraints])
    gaps = np.concatenate([gaps, np.full(gaps.shape, np.inf)])
    more = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, np.tile(compliance, 2))
    assert np.abs(more.step - few.step).max() < 1e-9


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 10.0))
def test_forces_stay_below_their_caps_and_goals_below_them_are_exact(seed, cap):
    rng = np.random.default_rng(seed)
    matrix, slope, rows, wanted, constraints, gaps = problem(rng, 30, 9, 12)
    rows[3:6] = rows[:3]  # two goals that contradict each other
    caps = cap * np.array([1.0, 2.0, 5.0])
    least = np.full(wanted.shape, 1e-8)
    found = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, least, caps=caps)
    sizes = np.linalg.norm(found.forces.reshape(3, 3), axis=1)
    missed = np.linalg.norm((wanted - rows @ found.step).reshape(3, 3), axis=1)
    assert (sizes <= 1.02 * caps).all()
    assert (missed[sizes < 0.95 * caps] < 1e-5).all()


def test_a_singular_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        QuadraticProgram(np.zeros((2, 2)), np.zeros(2), np.zeros((0, 2)), np.zeros((0, 2)))


@settings(max_examples=100)
@example(36499, 3, 1, 1.0)
@example(123359, 2, 2, 2.0)
@example(27252929, 2, 2, 1.0)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 6), st.floats(0.0, 3.0))
def test_stiffness_in_the_matrix_changes_no_solution(seed, goals, sides, most):
    """A force includes the part that the matrix exerts, and caps hold for the whole."""
    rng = np.random.default_rng(seed)
    matrix, slope, rows, wanted, constraints, gaps = problem(rng, 9, 3 * goals, sides)
    compliance, caps = np.full(wanted.shape, 1e-6), rng.uniform(0.1, 5.0, size=goals)
    whole = QuadraticProgram(matrix, slope, rows, constraints).solve(wanted, gaps, compliance, caps=caps)
    # It is less than the smallest stiffness of a goal.
    stiffness = np.repeat(rng.uniform(0.0, most, size=goals), 3) * 0.3 / np.maximum(whole.compliance, 0.01)
    split = QuadraticProgram(
        matrix + rows.T * stiffness @ rows, slope + rows.T @ (stiffness * wanted), rows, constraints, stiffness
    ).solve(wanted, gaps, compliance, caps=caps)
    assert split.step == pytest.approx(whole.step, rel=1e-2, abs=1e-2)
    assert split.forces == pytest.approx(whole.forces, rel=1e-2, abs=1e-2)
