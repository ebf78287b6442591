"""Degrees of freedom that markers do not determine."""

import numpy as np
from support import walker
from support.families import limb

from fabrik_addon.core import Effector, Hinge, Solver, forward_kinematics
from fabrik_addon.core.rotations import product, quaternion_from_rotation_vector
from fabrik_addon.markers.calibrate.size import effector_points
from fabrik_addon.markers.solving.course import added_uncertainty, uncertainty


def chain(bones=4):
    """A chain of bones of 0.2 m, each on top of the one before."""
    return limb([0.2] * bones, *[None] * bones).skeleton


def marked(*bones):
    """Three markers on each of some bones."""
    points = [(0.05, 0.1, 0.0), (-0.05, 0.15, 0.05), (0.0, 0.05, -0.06)]
    return [Effector(bone, point) for bone in bones for point in points]


def solved(skeleton, effectors, limits=None):
    """A solver, and its solution for targets at the effectors' rest positions."""
    solver = Solver(skeleton, effectors, limits=limits, root="FREE")
    places = [skeleton.rest[skeleton.index(each.bone)] @ (*each.offset, 1.0) for each in effectors]
    return solver, solver.solve(np.tile(np.array(places)[:, :3], (4, 1, 1)))


def test_bones_between_marked_ones_are_uncertain():
    """The rotation of the next bone is uncertain too, since it is relative to its parent."""
    unsure = uncertainty(*solved(chain(), marked("b0", "b3")))
    assert unsure[0] < 0.3
    assert unsure[1:].min() > 0.5


def test_two_markers_and_a_joint_determine_a_bone():
    effectors = [*marked("b0"), Effector("b1", (0.08, 0.1, 0.0)), Effector("b1", (0.0, 0.15, 0.08))]
    assert uncertainty(*solved(chain(2), effectors)).max() < 0.3


def test_the_fixed_axes_of_a_hinge_are_certain():
    skeleton, effectors = chain(2), [*marked("b0"), Effector("b1", (0.0, 0.15, 0.0))]
    free = uncertainty(*solved(skeleton, effectors))[1]
    hinged = uncertainty(*solved(skeleton, effectors, {"b1": Hinge("X", -1.0, 1.0)}))[1]
    assert free > 0.9  # a marker on its axis does not determine its twist
    assert hinged < 0.3


def test_a_bone_without_effectors_has_no_uncertainty():
    solver, solution = solved(chain(3), marked("b0"))
    assert (uncertainty(solver, solution)[1:] == 0.0).all()


def test_certainty_is_lost_with_the_markers():
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE")
    solution = solver.solve(walker.true_positions()[:5])
    seen = np.ones(solution.errors.shape, dtype=bool)
    seen[2, walker.on_bones("upper_arm.L", "forearm.L", "hand.L")] = False
    lost, _ = added_uncertainty(solver, solution, seen, 30.0)
    assert (lost[[0, 1, 3, 4]] == 0.0).all()
    assert lost[2, walker.skeleton().index("forearm.L")] > 0.3
    assert lost[2, walker.skeleton().index("shin.R")] < 0.01


def test_lost_certainty_is_the_difference_of_the_covariances():
    """With few, many and all markers. The reference rotates each bone slightly and inverts the whole problem."""
    skeleton, effectors = chain(3), [*marked("b0"), *marked("b1"), *marked("b2")]
    solver, solution = solved(skeleton, effectors)
    seen = np.random.default_rng(5).random((4, len(effectors))) > np.array([[0.2], [0.4], [0.7], [1.0]])
    seen[0, 0], seen[3] = False, False
    lost, place = added_uncertainty(solver, solution.part(np.zeros(4, dtype=np.int64)), seen, 30.0)
    tiny, columns = 1e-6, []
    for bone, axis in np.ndindex(3, 3):
        turned = np.array(solution.rotations[0])
        turned[bone] = product(turned[bone], quaternion_from_rotation_vector(tiny * np.eye(3)[axis]))
        columns.append(points_of(skeleton, effectors, turned, solution.root_location[0]))
    for axis in range(3):
        shifted = solution.root_location[0] + tiny * skeleton.size * np.eye(3)[axis]
        columns.append(points_of(skeleton, effectors, solution.rotations[0], shifted))
    usual = points_of(skeleton, effectors, solution.rotations[0], solution.root_location[0])
    rows = (np.stack(columns, axis=-1) - usual[..., None]) / tiny / skeleton.size / 0.005
    for frame, visible in enumerate(seen):
        spreads = []
        for counted in (np.ones_like(visible), visible):
            flat = rows[counted].reshape(-1, rows.shape[-1])
            spreads.append(np.diag(np.linalg.inv(flat.T @ flat + np.eye(12))).reshape(4, 3).sum(axis=1))
        expected = np.sqrt(spreads[1] - spreads[0])
        np.testing.assert_allclose([*lost[frame], place[frame]], expected, rtol=1e-3, atol=1e-4)


def points_of(skeleton, effectors, rotations, root):
    """(E, 3) positions of effectors in a pose."""
    return effector_points(skeleton, effectors, forward_kinematics(skeleton, rotations[None], root[None]))[0]
