"""Families of limited rigs, and reachable targets."""

from dataclasses import dataclass

import numpy as np
from support.checker import effector_points, matrices, placed, random_rotations_inside
from support.rigs import from_joints, person

from fabrik_addon.core import Ball, Effector, Fixed, Hinge, Polygon, Skeleton

FULL = (-180, 180)


@dataclass(frozen=True)
class Family:
    """A limited rig and the bones whose tails are to reach targets."""

    skeleton: Skeleton
    limits: dict
    ends: tuple[str, ...]

    @property
    def effectors(self):
        return [Effector(name) for name in self.ends]

    @property
    def size(self):
        """The sum of the bones' lengths."""
        return float(self.skeleton.lengths.sum())

    def poses(self, rng, frames):
        """(F, J, 4) rotations spread over the limits; bones without limits stay at rest."""
        rotations = np.tile([1.0, 0.0, 0.0, 0.0], (frames, len(self.skeleton), 1))
        for name, limit in self.limits.items():
            rotations[:, self.skeleton.index(name)] = random_rotations_inside(limit, rng, frames)
        return rotations

    def points(self, rotations):
        """(F, E, 3) positions of the effectors in poses (F, J, 4)."""
        frames, heads = placed(self.skeleton, matrices(rotations), self.skeleton.rest[0, :3, 3])
        return effector_points(self.skeleton, self.effectors, frames, heads)

    def targets(self, rng, frames):
        """(F, E, 3) targets that the limits allow: the positions of the effectors in random poses inside them."""
        return self.points(self.poses(rng, frames))


def ball(cone, twist=FULL):
    """A ball limit from angles in degrees."""
    return Ball(np.radians(cone).tolist(), tuple(np.radians(twist).tolist()))


def hinge(axis, low, high):
    """A hinge limit from angles in degrees."""
    return Hinge(axis, np.radians(low), np.radians(high))


def window(corners, twist=FULL):
    """A polygon limit from angles in degrees."""
    return Polygon([tuple(corner) for corner in np.radians(corners).tolist()], tuple(np.radians(twist).tolist()))


def chain(lengths):
    """A straight chain along +Y with bones b0, b1 and so on."""
    heads = np.concatenate([[0.0], np.cumsum(lengths)])
    return from_joints([(f"b{i}", i - 1, (0, heads[i], 0), (0, heads[i + 1], 0)) for i in range(len(lengths))])


def limb(lengths, *limits):
    """A chain with a limit for each of its bones; its tail has to reach the target."""
    names = [f"b{i}" for i in range(len(lengths))]
    return Family(chain(lengths), dict(zip(names, limits, strict=True)), (names[-1],))


def links(count, *limits):
    """A limb of `count` equal bones. The given limits are repeated along it."""
    return limb([0.1] * count, *(limits[i % len(limits)] for i in range(count)))


def hand(palm, knuckle, middle, tip):
    """A wrist and five fingers of three bones, each with its goal."""
    rows, limits, reach = [("wrist", -1, (0, 0, 0), (0, 0.02, 0))], {"wrist": palm}, (0.09, 0.135, 0.165, 0.187)
    for finger, x in enumerate((-0.03, -0.01, 0.01, 0.03, 0.05)):
        for bone, limit in enumerate((knuckle, middle, tip)):
            parent = 0 if bone == 0 else len(rows) - 1
            rows.append((f"f{finger}{bone}", parent, (x, reach[bone], 0), (x, reach[bone + 1], 0)))
            limits[rows[-1][0]] = limit
    return Family(from_joints(rows), limits, tuple(f"f{finger}2" for finger in range(5)))


HUMAN = {
    "spine": ball(30, (-20, 20)),
    "chest": ball(20, (-20, 20)),
    "upper_chest": ball(20, (-20, 20)),
    "neck": ball(40, (-50, 50)),
    "head": ball(30, (-40, 40)),
    "shoulder": ball(20, (-10, 10)),
    "upper_arm": ball(100, (-90, 90)),
    "forearm": hinge("X", 0, 150),
    "hand": ball((30, 70, 30, 70), (-80, 80)),
    "thigh": ball((50, 110, 40, 20), (-40, 40)),
    "shin": hinge("X", -150, 0),
    "foot": ball((20, 40, 20, 20), (-20, 20)),
    "toe": hinge("X", -40, 40),
}


def human(*ends):
    """A person with limits everywhere but at the hips."""
    skeleton = person()
    limits = {name: HUMAN[name.split(".")[0]] for name in skeleton.names[1:]}
    return Family(skeleton, limits, ends)


ARM, LEG, FINGER = (0.3, 0.25, 0.1), (0.45, 0.42, 0.15), (0.045, 0.03, 0.022)
SKEWED = ball((10, 50, 25, 40), (-20, 35))
ASIDE = window([(10, 5), (45, 10), (30, 40), (25, 20)], (-30, 30))  # concave, with rest outside

FAMILIES = {
    "arm": limb(ARM, ball(100), hinge("X", 0, 150), ball(60)),
    "arm, asymmetric": limb(
        ARM, ball((90, 120, 30, 60), (-90, 60)), hinge("X", 20, 150), ball((20, 70, 30, 60), (-30, 30))
    ),
    "arm, forearm turning": limb(
        (0.3, 0.15, 0.1, 0.04, 0.06),
        ball(100, (-80, 80)),
        hinge("X", 5, 145),
        hinge("Y", -80, 80),
        hinge("Z", -20, 35),
        hinge("X", -70, 60),
    ),
    "arm in a window": limb(
        ARM, window([(-60, -40), (80, -30), (100, 60), (10, 30), (-50, 90)], (-90, 90)), hinge("X", 0, 150), ball(60)
    ),
    "leg": limb(LEG, ball(60), hinge("X", -150, 0), ball(40)),
    "leg, asymmetric": limb(
        LEG, ball((50, 110, 40, 20), (-40, 40)), hinge("X", -150, -5), ball((20, 40, 20, 20), (-20, 20))
    ),
    "finger": limb(FINGER, ball(40), hinge("X", 0, 100), hinge("X", 0, 80)),
    "finger, never straight": limb(FINGER, ball((15, 80, 15, 20), (0, 0)), hinge("X", 10, 100), hinge("X", 5, 80)),
    "elbow alone": limb((0.3, 0.25), Fixed(), hinge("X", 20, 150)),
    "elbow and a hinge": limb((0.3, 0.25), hinge("X", -30, 90), hinge("X", 20, 150)),
    "8 balls of 60°": links(8, ball(60)),
    "10 balls of 30°": links(10, ball(30)),
    "10 balls of 15°": links(10, ball(15)),
    "20 balls of 45°": links(20, ball(45)),
    "30 balls of 25°": links(30, ball(25)),
    "10 skewed balls": links(10, SKEWED),
    "8 windows beside rest": links(8, ASIDE, ball(30, (-20, 20))),
    "10 hinges": links(10, hinge("X", -60, 60)),
    "8 hinges never straight": links(8, hinge("X", 15, 70), hinge("X", -70, -15)),
    "6 crossed hinges": links(6, hinge("X", -60, 60), hinge("Z", -60, 60)),
    "8 crossed one-sided hinges": links(8, hinge("X", 0, 90), hinge("Z", 10, 80)),
    "alternating": links(10, ball(45), hinge("X", -10, 90)),
    "alternating, asymmetric": links(10, SKEWED, hinge("X", 10, 90)),
    "human, 5 goals": human("head", "hand.L", "hand.R", "toe.L", "toe.R"),
    "human, ankles": human("head", "hand.L", "hand.R", "foot.L", "foot.R"),
    "hand, 5 goals": hand(ball(60, (-80, 80)), ball((15, 80, 15, 20), (0, 0)), hinge("X", 0, 100), hinge("X", 0, 80)),
    "hand, never flat": hand(
        ball((30, 70, 20, 60), (-80, 80)), ball((20, 85, 10, 30), (-5, 5)), hinge("X", 10, 100), hinge("X", 5, 80)
    ),
}
