"""Bones that markers leave undecided: they stop trembling, and the markers are met as well as before."""

import numpy as np
import pytest

from fabrik_addon.core import Effector, Skeleton, Solver, forward_kinematics
from fabrik_addon.markers.solving.regularise import regularise_steps, usual_rotations

FRAMES, RATE = 60, 50.0


def chain(bones=4):
    """Bones of 0.2 m, one upon the other."""
    rest = np.tile(np.eye(4), (bones, 1, 1))
    # Upward: local Y along Z.
    rest[:, :3, :3] = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    rest[:, 2, 3] = 0.2 * np.arange(bones)
    names = [f"b{place}" for place in range(bones)]
    return Skeleton(names, [-1, *range(bones - 1)], rest, np.full(bones, 0.2))


def about_x(angles):
    """(F, 4) quaternions."""
    return np.stack([np.cos(angles / 2), np.sin(angles / 2), 0 * angles, 0 * angles], axis=1)


def swaying():
    """(F, J, 4) a smooth sway of all four bones."""
    phase = np.linspace(0, 2 * np.pi, FRAMES)
    angles = [0.3 * np.sin(phase), 0.2 * np.sin(phase + 1), 0.2 * np.cos(phase), 0.2 * np.sin(phase)]
    return np.stack([about_x(angle) for angle in angles], axis=1)


def finished(steps):
    """What a generator returns, and the shares that it yields."""
    shares = []
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as end:
            return end.value, shares


def marked(skeleton):
    """Three markers on the first and on the last bone; between them nothing."""
    points = [(0.05, 0.1, 0.0), (-0.05, 0.15, 0.05), (0.0, 0.05, -0.06)]
    return [Effector(bone, point) for bone in ("b0", "b3") for point in points]


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_it_is_never_rougher_and_meets_the_markers_as_well(noise):
    skeleton = chain()
    solver = Solver(skeleton, marked(skeleton), root="FREE")
    poses = forward_kinematics(skeleton, swaying())
    targets = np.stack(
        [(poses[:, skeleton.index(each.bone)] @ (*each.offset, 1.0))[:, :3] for each in solver.effectors], axis=1
    )
    targets += np.random.default_rng(1).normal(size=targets.shape) * noise
    first = solver.solve(targets)
    steady, shares = finished(regularise_steps(solver, first, targets, np.ones(targets.shape[:2]), RATE))
    rough = [(np.diff(each.tails, 2, axis=0) ** 2).mean() for each in (first, steady)]
    assert rough[1] <= rough[0]
    rms = [np.sqrt((each.errors**2).mean()) for each in (first, steady)]
    assert rms[1] <= 1.01 * rms[0] + 1e-5
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_errors_are_missing_only_where_markers_are():
    skeleton = chain()
    solver = Solver(skeleton, marked(skeleton), root="FREE")
    targets = np.tile(
        np.array([(skeleton.rest[skeleton.index(e.bone)] @ (*e.offset, 1.0))[:3] for e in marked(skeleton)]), (8, 1, 1)
    )
    targets[3, 4] += 0.5
    targets[5, 1] = np.nan
    weights = np.ones((8, 6))
    weights[3, 4] = 0.0
    steady, _ = finished(regularise_steps(solver, solver.solve(targets, weights=weights), targets, weights, RATE))
    assert np.isnan(steady.errors[5, 1])
    assert np.isnan(steady.errors).sum() == 1


def test_bones_with_markers_enough_are_left_alone():
    skeleton = chain(1)
    solver = Solver(
        skeleton, [Effector("b0", (0.1 * (k == 0), 0.1 * k, 0.1 * (k == 2))) for k in range(3)], root="FREE"
    )
    solution = solver.solve(np.zeros((4, 3, 3)) + np.eye(3))
    assert finished(regularise_steps(solver, solution, np.zeros((4, 3, 3)), np.ones((4, 3)), RATE))[0] is solution


def test_usual_rotations_leave_out_the_odd_one_and_keep_rest():
    skeleton = chain()
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (20, 4, 1))
    assert np.allclose(usual_rotations(rotations, 3.0), rotations)
    odd = rotations.copy()
    odd[9, 2] = (0.0, 1.0, 0.0, 0.0)
    odd[::2] *= -1.0
    usual = usual_rotations(odd, 3.0)
    assert np.allclose(np.abs(usual[..., 0]), 1.0, atol=1e-6)
    assert len(skeleton) == 4
