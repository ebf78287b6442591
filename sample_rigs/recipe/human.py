"""The person of `human.blend`: 1.75 m, 22 bones, Z up, facing -Y, the left side at +X.

Segment lengths are the usual fractions of stature (Drillis and Contini): shank and thigh about a quarter each,
upper arm 0.17, forearm 0.15, foot 0.15, biacromial breadth 0.23. The arms are 40 degrees below level. Elbows and knees
are bent by 5 degrees in their natural direction, so that an IK solver bends them this way.

Local axes:

* Y is along the bone.
* X is the hinge axis of elbows and knees: a positive rotation about X bends them. Both bones of a hinge have the same X
  at rest, so a pure bend is a rotation about X only.
* Spine, neck and head have X to the person's left: a positive rotation about X bends forward.
* The right side mirrors the left as Blender's Symmetrize does (`Bone.mirrored`): a rotation about X is the same
  movement on both sides, a rotation about Y or Z the opposite one.
"""

from __future__ import annotations

import math

from .bones import Bone, Point, chain, with_mirror

STATURE = 1.75
REST_BEND = math.radians(5.0)
ARM_DROP = math.radians(40.0)

SHOULDER: Point = (0.180, 0.018, 1.425)
HIP: Point = (0.088, 0.005, 0.930)
UPPER_ARM, FOREARM, HAND = 0.290, 0.250, 0.180
THIGH, SHIN = 0.428, 0.420

BALL: Point = (0.098, -0.118, 0.026)
TOE_TIP: Point = (0.100, -0.190, 0.018)

_LEFTWARD: Point = (1.0, 0.0, 0.0)


def _stepped(start: Point, direction: Point, length: float) -> Point:
    x, y, z = (a + length * b for a, b in zip(start, direction, strict=True))
    return (x, y, z)


def _arm() -> list[Bone]:
    """Shoulder, arm and hand, bent forward in the plane of the arm and the facing direction."""
    along: Point = (math.cos(ARM_DROP), 0.0, -math.sin(ARM_DROP))

    def bent(angle: float) -> Point:
        return (along[0] * math.cos(angle), -math.sin(angle), along[2] * math.cos(angle))

    elbow = _stepped(SHOULDER, bent(-REST_BEND / 2), UPPER_ARM)
    wrist = _stepped(elbow, bent(REST_BEND / 2), FOREARM)
    tip = _stepped(wrist, bent(REST_BEND / 2), HAND)
    hinge: Point = (along[2], 0.0, -along[0])
    collar = Bone("shoulder.L", "upper_chest", (0.022, -0.032, 1.425), SHOULDER, (0.0, 0.0, -1.0))
    return [collar, *chain(["upper_arm.L", "forearm.L", "hand.L"], [SHOULDER, elbow, wrist, tip], "shoulder.L", hinge)]


def _leg() -> list[Bone]:
    """Thigh to toe. The knee bends backward in the plane x = constant."""

    def down(angle: float) -> Point:
        return (0.0, math.sin(angle), -math.cos(angle))

    knee = _stepped(HIP, down(-REST_BEND / 2), THIGH)
    ankle = _stepped(knee, down(REST_BEND / 2), SHIN)
    points = [HIP, knee, ankle, BALL, TOE_TIP]
    return chain(["thigh.L", "shin.L", "foot.L", "toe.L"], points, "hips", _LEFTWARD)


def human_bones() -> tuple[Bone, ...]:
    """The 22 bones, parents first."""
    names = ["hips", "spine", "chest", "upper_chest", "neck", "head"]
    points: list[Point] = [
        (0.0, 0.012, 0.955),
        (0.0, 0.016, 1.055),
        (0.0, 0.020, 1.165),
        (0.0, 0.030, 1.295),
        (0.0, 0.026, 1.455),
        (0.0, 0.002, 1.555),
        (0.0, -0.010, 1.750),
    ]
    return with_mirror([*chain(names, points, "", _LEFTWARD), *_arm(), *_leg()])
