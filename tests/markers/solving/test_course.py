"""Bones that markers do not determine: they do not jitter or fold differently, and markers are met equally well."""

import numpy as np
import pytest
from support import walker
from support.steps import solve_take

from fabrik_addon.core import Effector, Skeleton, Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.markers.solving.course import interpolate_gaps, usual_rotations
from fabrik_addon.markers.take import TakeSettings

FRAMES, RATE = 60, 50.0


def chain(bones=4):
    """A chain of bones of 0.2 m, each on top of the one before."""
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


def marked(skeleton):
    """Three markers on the first and on the last bone, and none between them."""
    points = [(0.05, 0.1, 0.0), (-0.05, 0.15, 0.05), (0.0, 0.05, -0.06)]
    return [Effector(bone, point) for bone in ("b0", "b3") for point in points]


def recorded(skeleton, rotations, noise):
    """(F, E, 3) positions of the markers of `marked` in a pose, with noise; and their solver."""
    solver = Solver(skeleton, marked(skeleton), root="FREE")
    poses = forward_kinematics(skeleton, rotations)
    places = [(poses[:, skeleton.index(each.bone)] @ (*each.offset, 1.0))[:, :3] for each in solver.effectors]
    targets = np.stack(places, axis=1)
    return solver, targets + np.random.default_rng(1).normal(size=targets.shape) * noise


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_undetermined_bones_do_not_jitter_and_markers_are_met_equally_well(noise):
    """Rotations are compared, because opposite twists of two bones do not move the ends of bones."""
    skeleton = chain()
    solver, targets = recorded(skeleton, swaying(), noise)
    rough, steady = (
        solve_take(solver, targets, TakeSettings(RATE, steady=steady, robust=False)).solution
        for steady in (False, True)
    )
    turns = [angle_between(each.rotations[1:], each.rotations[:-1]) for each in (rough, steady)]
    trembling = [np.abs(np.diff(each, axis=0)).mean() for each in turns]
    assert trembling[1] <= trembling[0]
    rms = [np.sqrt((each.errors**2).mean()) for each in (rough, steady)]
    assert rms[1] <= 1.02 * rms[0] + 3e-4


def test_collars_whose_markers_are_missing_move_less_than_arms():
    """A collar could rotate instead of the arm with the same error at the elbow; people rotate the arm."""
    kept = [place for place, name in enumerate(walker.marker_names()) if name[1:] not in {"SHO", "UPA"}]
    skeleton, effectors = walker.skeleton(), [walker.effectors()[place] for place in kept]
    targets, true = walker.true_positions()[:120:2, kept], walker.true_rotations()[:120:2]
    found = solve_take(Solver(skeleton, effectors, root="FREE"), targets, TakeSettings(walker.RATE / 2.0)).solution
    off = np.degrees(angle_between(found.rotations, true)).mean(axis=0)
    assert max(off[skeleton.index(f"shoulder.{side}")] for side in "LR") < 4.0
    assert np.nanmean(found.errors) < 2e-4


def test_errors_are_missing_only_where_markers_are():
    skeleton = chain()
    solver, targets = recorded(skeleton, swaying()[:12], 0.0)
    targets[5, 1] = np.nan
    solution = solve_take(solver, targets, TakeSettings(RATE)).solution
    assert np.isnan(solution.errors[5, 1])
    assert np.isnan(solution.errors).sum() == 1


def test_a_rig_without_limits_keeps_its_folds():
    """Each bone of a chain with one marker at its end may twist and fold freely; no frame has its own fold."""
    skeleton = chain(3)
    angles = np.linspace(0.2, 1.2, FRAMES)
    rotations = np.stack([about_x(angles), about_x(-1.3 * angles), about_x(0.5 * angles)], axis=1)
    effectors = [Effector(name) for name in ("b0", "b1", "b2")]
    targets = forward_kinematics(skeleton, rotations)
    tips = (targets @ np.array([0.0, 0.2, 0.0, 1.0]))[..., :3]
    tips += np.random.default_rng(2).normal(size=tips.shape) * 0.002
    take = solve_take(Solver(skeleton, effectors), tips, TakeSettings(RATE), root_heads=np.zeros((FRAMES, 3)))
    assert angle_between(take.solution.rotations[1:], take.solution.rotations[:-1]).max() < 0.15


def test_smoothed_rotations_leave_out_an_outlier_and_keep_rest():
    skeleton = chain()
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (20, 4, 1))
    assert np.allclose(usual_rotations(rotations, 3.0), rotations)
    odd = rotations.copy()
    odd[9, 2] = (0.0, 1.0, 0.0, 0.0)
    odd[::2] *= -1.0
    usual = usual_rotations(odd, 3.0)
    assert np.allclose(np.abs(usual[..., 0]), 1.0, atol=1e-6)
    assert len(skeleton) == 4


def test_knots_over_a_gap_stay_between_those_next_to_it():
    """A roll that jitters by 60 degrees next to a gap of twelve knots shows no speed to extrapolate."""
    known = np.r_[False, np.ones(6, dtype=bool), np.zeros(12, dtype=bool), np.ones(6, dtype=bool), False]
    angles = np.where(np.arange(len(known)) % 2, 0.5, -0.5) + np.linspace(0.0, 1.0, len(known)) ** 2
    over = interpolate_gaps(np.where(known[:, None], about_x(angles), np.nan)[:, None], known, unit=True)[:, 0]
    assert angle_between(over[known], about_x(angles)[known]) == pytest.approx(0.0, abs=1e-7)
    found = 2.0 * np.arctan2(over[:, 1], over[:, 0])
    assert found[0] == pytest.approx(angles[1])
    assert found[-1] == pytest.approx(angles[-2])
    assert (np.abs(found[7:19] - 0.5 * (angles[6] + angles[19])) < 0.9).all()
