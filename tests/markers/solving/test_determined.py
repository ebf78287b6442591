"""What markers leave undecided."""

import numpy as np
from support import walker
from support.families import limb

from fabrik_addon.core import Effector, Hinge, Solver
from fabrik_addon.markers.solving.determined import lost_certainty, uncertainty


def chain(bones=4):
    """Bones of 0.2 m, one upon the other."""
    return limb([0.2] * bones, *[None] * bones).skeleton


def marked(*bones):
    """Three markers on each of some bones."""
    points = [(0.05, 0.1, 0.0), (-0.05, 0.15, 0.05), (0.0, 0.05, -0.06)]
    return [Effector(bone, point) for bone in bones for point in points]


def solved(skeleton, effectors, limits=None):
    """A solver, and its solution of targets that are where the effectors are at rest."""
    solver = Solver(skeleton, effectors, limits=limits, root="FREE")
    places = [skeleton.rest[skeleton.index(each.bone)] @ (*each.offset, 1.0) for each in effectors]
    return solver, solver.solve(np.tile(np.array(places)[:, :3], (4, 1, 1)))


def test_bones_between_marked_ones_are_unsure():
    """And so is the turn of the bone after them, which is to the one that carries it."""
    unsure = uncertainty(*solved(chain(), marked("b0", "b3")))
    assert unsure[0] < 0.3
    assert unsure[1:].min() > 0.5


def test_two_markers_and_a_joint_decide_a_bone():
    effectors = [*marked("b0"), Effector("b1", (0.08, 0.1, 0.0)), Effector("b1", (0.0, 0.15, 0.08))]
    assert uncertainty(*solved(chain(2), effectors)).max() < 0.3


def test_what_a_hinge_cannot_do_is_not_unsure():
    skeleton, effectors = chain(2), [*marked("b0"), Effector("b1", (0.0, 0.15, 0.0))]
    free = uncertainty(*solved(skeleton, effectors))[1]
    hinged = uncertainty(*solved(skeleton, effectors, {"b1": Hinge("X", -1.0, 1.0)}))[1]
    assert free > 0.9  # a marker on its axis says nothing of its twist
    assert hinged < 0.3


def test_a_bone_without_effectors_below_it_counts_for_nothing():
    solver, solution = solved(chain(3), marked("b0"))
    assert (uncertainty(solver, solution)[1:] == 0.0).all()


def test_certainty_is_lost_with_the_markers():
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE")
    solution = solver.solve(walker.true_positions()[:5])
    seen = np.ones(solution.errors.shape, dtype=bool)
    seen[2, walker.on_bones("upper_arm.L", "forearm.L", "hand.L")] = False
    lost, _ = lost_certainty(solver, solution, seen)
    assert (lost[[0, 1, 3, 4]] == 0.0).all()
    assert lost[2, walker.skeleton().index("forearm.L")] > 0.3
    assert lost[2, walker.skeleton().index("shin.R")] < 0.01
