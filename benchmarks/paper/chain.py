"""The paper's chain of 10 joints and 900 mm, its start poses and targets, and the methods that it compares. In mm."""

from functools import partial

import numpy as np
from support.rigs import random_rotations, straight_chain
from support.solvers import chains, jacobian
from support.solvers.ccd import ccd
from support.solvers.figure import Figure
from support.solvers.loop import Turning

from fabrik_addon.core import Effector, Options, Solver, forward_kinematics

LINKS, LINK = 9, 100.0
REACH = LINKS * LINK
AWAY = 600.0
TOLERANCE = 1e-3
DAMPING = 1.1
LONGEST_STEP = 0.5

SKELETON = straight_chain(LINKS, LINK)
END = SKELETON.names[-1]

RULES = {
    "Jacobian transpose": jacobian.transpose,
    "Jacobian DLS": partial(jacobian.damped, damping=DAMPING),
    "Jacobian SVD-DLS": partial(jacobian.damped_by_svd, damping=DAMPING),
}
POINT_METHODS = {
    "FABRIK, Algorithm 1": chains.fabrik,
    "Follow-the-Leader": chains.follow_the_leader,
    "Triangulation": chains.triangulation,
}
METHODS = ("FABRIK, Algorithm 1", "CCD", *RULES, "Follow-the-Leader", "Triangulation")


def slightly_bent():
    """(J, 4) the chain laid on a slight arc: 0.1 rad from its chord at either end."""
    angles = np.full(LINKS, -0.2 / (LINKS - 1))
    angles[0] = 0.1
    return np.stack([np.cos(angles / 2), np.sin(angles / 2), 0 * angles, 0 * angles], axis=-1)


def crumpled(rng):
    """(J, 4) every joint rotated by up to 60° about a random axis."""
    return random_rotations(rng, (LINKS,), np.pi / 3)


def joints(rotations):
    """(10, 3) the joints of a pose, root first."""
    matrices = forward_kinematics(SKELETON, rotations)
    return np.vstack([matrices[:, :3, 3], matrices[-1, :3, 3] + LINK * matrices[-1, :3, 1]])


def targets_away(rng, tip, count, low, high):
    """(count, 3) random points 600 mm from the tip, between these fractions of the reach from the root."""
    found = []
    while len(found) < count:
        direction = rng.normal(size=3)
        target = tip + AWAY * direction / np.linalg.norm(direction)
        if low <= np.linalg.norm(target) / REACH <= high:
            found.append(target)
    return np.array(found)


def start_method(name, rotations, target):
    """A comparison method that starts from a pose (J, 4) for a target (3,)."""
    if name in POINT_METHODS:
        return chains.PointChain(POINT_METHODS[name], joints(rotations), target)
    figure = Figure(SKELETON, [END], rotations=rotations)
    if name == "CCD":
        return Turning(ccd, figure, [target])
    rule = partial(jacobian.step, rule=RULES[name], unit=LINK, longest=LONGEST_STEP)
    return Turning(rule, figure, [target])


def shipped(**options):
    """The extension's solver on this chain, with a tolerance of 1e-3 mm."""
    return Solver(SKELETON, [Effector(END)], options=Options(tolerance=TOLERANCE / REACH, **options))
