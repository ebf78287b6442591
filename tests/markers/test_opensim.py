"""The walk that OpenSim's own example solves: as good a fit as OpenSim's, on a rig whose bones do not stretch."""

import numpy as np
import pytest
from support.recordings import gait_model, gait_targets
from support.steps import solve_take

from fabrik_addon.core import Fixed, Hinge, Solver, Status
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.markers.report import Report
from fabrik_addon.markers.take import TakeSettings


@pytest.fixture(scope="module")
def model():
    return gait_model()


@pytest.fixture(scope="module")
def targets(model):
    return gait_targets(model)


@pytest.fixture(scope="module")
def reference(model, targets):
    """The coordinates that solve OpenSim's own problem."""
    return model.solve(targets)


@pytest.fixture(scope="module")
def rig(model, reference):
    return model.rig(reference)


@pytest.fixture(scope="module")
def solution(rig, targets):
    return Solver(rig.skeleton, rig.effectors, limits=rig.limits, root="FREE").solve(targets)


def frame_rms(errors, weights):
    """(F,) √(Σ w·e² / Σ w)."""
    return np.sqrt((weights * errors**2).sum(axis=1) / weights.sum())


def test_the_set_up_is_read_as_opensim_reads_it(model, targets, reference):
    """The published figures of OpenSim's answer, in mm."""
    errors = 1000.0 * np.linalg.norm(model.points(reference) - targets, axis=2)
    plain = frame_rms(errors, np.ones(errors.shape[1]))
    assert errors.shape == (73, 31)
    assert frame_rms(errors, model.weights).mean() == pytest.approx(11.53, abs=0.01)
    assert plain.mean() == pytest.approx(21.9, abs=0.1)
    assert plain.max() == pytest.approx(25.7, abs=0.1)
    assert errors.max() == pytest.approx(85.0, abs=0.5)


def test_the_fit_is_no_worse_than_opensims(model, solution):
    assert 1000.0 * frame_rms(solution.errors, model.weights).mean() <= 11.53
    assert (solution.status == Status.FITTED).all()


def test_joint_centers_agree_with_opensims(model, rig, reference, solution):
    placed = model.place(reference)
    theirs = np.stack([placed[name][1] for name in rig.skeleton.names], axis=1)
    distances = 1000.0 * np.linalg.norm(solution.heads - theirs, axis=2)
    assert (np.median(distances, axis=0) <= 5.0).all()


def test_no_bone_is_stretched(rig, solution):
    for bone, parent in enumerate(rig.skeleton.parents):
        if parent >= 0:
            lengths = np.linalg.norm(solution.heads[:, bone] - solution.heads[:, parent], axis=1)
            rest = np.linalg.norm(rig.skeleton.head_offsets[bone])
            assert lengths == pytest.approx(rest, abs=1e-9)


def test_every_joint_is_inside_its_limit(rig, solution):
    for name, limit in rig.limits.items():
        rotation = solution.rotations[:, rig.skeleton.index(name)]
        clamped = many.stack([limit.clamp(many, many.quaternion(rotation))], len(rotation))[:, 0]
        assert np.abs(np.sum(rotation * clamped, axis=1)) == pytest.approx(1.0, abs=1e-9), name
        if isinstance(limit, Fixed):
            assert rotation == pytest.approx(np.tile([1.0, 0, 0, 0], (len(rotation), 1)), abs=1e-9)


def test_nothing_pops(solution):
    """At 60 Hz no joint of someone walking moves 10 cm from one frame to the next."""
    steps = np.linalg.norm(np.diff(solution.heads, axis=0), axis=2)
    assert steps.max() < 0.1


def test_without_limits_a_take_neither_pops_nor_fits_worse(model, rig, targets):
    """If frames are solved one by one, a foot rotates by 113 degrees: without limits a leg may fold either way."""
    solver = Solver(rig.skeleton, rig.effectors, root="FREE")
    found = solve_take(solver, targets, TakeSettings(60.0)).solution
    turns = angle_between(found.rotations[1:], found.rotations[:-1])
    assert np.degrees(turns.max()) < 15.0
    assert 1000.0 * frame_rms(found.errors, model.weights).mean() <= 11.53


@pytest.mark.parametrize("endless", [False, True])
def test_a_take_keeps_what_the_solver_finds(model, rig, reference, targets, endless):
    """Hinges may rotate fully. Fixed: joints of the whole take were less accurate than those of single frames."""
    ends = {name: Hinge(limit.axis, -np.pi, np.pi) for name, limit in rig.limits.items() if isinstance(limit, Hinge)}
    solver = Solver(rig.skeleton, rig.effectors, limits={**rig.limits, **(ends if endless else {})}, root="FREE")
    placed = model.place(reference)
    theirs = np.stack([placed[name][1] for name in rig.skeleton.names], axis=1)
    frames, take = (solver.solve(targets), solve_take(solver, targets, TakeSettings(60.0)).solution)
    off = [np.percentile(1000.0 * np.linalg.norm(each.heads - theirs, axis=2), 95.0) for each in (frames, take)]
    assert off[1] < 1.05 * off[0]
    turns = np.degrees(angle_between(take.rotations[1:], take.rotations[:-1]))
    assert turns.max() < 15.0


def test_the_report_names_the_worst_marker(model, solution):
    names = [marker.name for marker in model.markers]
    status = [Status(value) for value in solution.status]
    report = Report(solution.errors, names, range(len(solution.errors)), status)
    assert report.total.worst_marker == "R.Acromium"
