"""The pose that a person holds during calibration, and the deviations of people from it.

Real markers are about 15 mm from the positions that a mapping guesses. A fit without a prior turns these errors into
joint angles: with markers 10 mm off, arms of a body at rest rotated by 13–32°.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ...core import Skeleton, Solution
from ...core.arrays import FloatArray
from ...core.model.effector import PosePrior
from ...core.rotations import IDENTITY, angle_between, conjugate, product, quaternion_from_matrix, rotation_between
from ...human.naming_schemes import match
from ...human.rest_body import RestBody, bones_of, degrees_between

Kind = Literal["REST", "STANDING", "A_POSE", "T_POSE", "MOVING"]

# Degrees by which the arms are raised to the side in each calibration pose.
_RAISED: Final[dict[Kind, float]] = {"STANDING": 10.0, "A_POSE": 45.0, "T_POSE": 90.0}
# Degrees: a calibration pose is recognized if the arms are within this angle of it, and legs and trunk within this
# angle of rest.
_NEAR: Final = 25.0
# Deviations of people from a calibration pose, by part (degrees, standard deviation).
_STILL: Final = {"spine": 4.0, "chest": 4.0, "neck": 5.0, "head": 5.0, "shoulder": 4.0, "foot": 4.0, "toe": 4.0}
_STILL_LIMB: Final = 8.0
# Deviations of moving people from rest (degrees, standard deviation). With the chest's 15 for the lower spine too, the
# spine was at its limits twice as often.
_MOVING: Final = {"spine": 12.0, "chest": 15.0, "neck": 20.0, "head": 20.0, "shoulder": 12.0, "foot": 20.0, "toe": 15.0}
_MOVING_LIMB: Final = 60.0
# Radians: a deviation so large that the prior has only about 2 % of the weight of a marker 10 cm from the joint.
_ANY: Final = np.pi
_LIMBS: Final = frozenset({"upper_arm", "forearm", "hand", "thigh", "shin"})


@dataclass(frozen=True, eq=False)
class ExpectedPose:
    """A pose: its name, (J, 4) local rotations, and (J,) standard deviations of people from it, radians."""

    kind: Kind
    rotations: FloatArray
    spread: FloatArray

    def prior(self, noise: float) -> PosePrior:
        """This pose as a prior. noise: standard deviation of a marker of weight 1, the rig's units."""
        return PosePrior(self.rotations, (noise / self.spread) ** 2)


def any_pose(skeleton: Skeleton) -> ExpectedPose:
    """The expected pose if nothing is known: rest, with so little weight that it only affects undetermined joints."""
    return ExpectedPose("MOVING", np.tile(IDENTITY, (len(skeleton), 1)), np.full(len(skeleton), _ANY))


def moving_pose(skeleton: Skeleton) -> ExpectedPose:
    """The expected pose of a moving person: near rest, with free limbs."""
    return ExpectedPose("MOVING", np.tile(IDENTITY, (len(skeleton), 1)), _spread(skeleton, _MOVING, _MOVING_LIMB))


def given_pose(skeleton: Skeleton, solution: Solution) -> ExpectedPose:
    """The calibration pose that a person holds, recognized from a rough fit of F frames."""
    spread = _spread(skeleton, _STILL, _STILL_LIMB)
    rest = np.tile(IDENTITY, (len(skeleton), 1))
    parts = _parts(skeleton)
    limbs = [bone for bone, part in enumerate(parts) if part in _LIMBS]
    away = np.degrees(np.median(angle_between(solution.rotations, rest[None]), axis=0))
    if not limbs or max(away[bone] for bone in limbs if parts[bone] != "hand") < _NEAR:
        return ExpectedPose("REST", rest, spread)
    arms = [bone for bone, part in enumerate(parts) if part == "upper_arm"]
    straight = [bone for bone, part in enumerate(parts) if part in {"forearm", "thigh", "shin"}]
    body = RestBody(bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    if not arms or max(away[bone] for bone in straight) > _NEAR or body.axes is None:
        return moving_pose(skeleton)
    along = {bone: body.direction(skeleton.names[bone]) for bone in arms}
    # Degrees from the body's own down axis, in any orientation of the body.
    up = solution.matrices[:, 0, :3, :3] @ (skeleton.rest[0, :3, :3].T @ body.axes.up)
    raised = []
    for bone, direction in along.items():
        arm = solution.matrices[:, bone, :3, :3] @ (skeleton.rest[bone, :3, :3].T @ direction)
        raised.append(float(np.median(degrees_between(arm, -up))))
    kind = min(_RAISED, key=lambda kind: abs(_RAISED[kind] - np.mean(raised)))
    if max(abs(_RAISED[kind] - angle) for angle in raised) > _NEAR:
        return moving_pose(skeleton)
    angle = np.radians(_RAISED[kind])
    for bone, direction in along.items():
        # Swing the arm from rest, without twist, until it is raised to the side by this angle.
        outward = (np.sign(direction @ body.axes.left) or 1.0) * body.axes.left
        wanted = np.sin(angle) * outward - np.cos(angle) * body.axes.up
        turn = rotation_between(direction[None], wanted[None])
        own = quaternion_from_matrix(skeleton.rest[bone, :3, :3])
        rest[bone] = product(conjugate(own), product(turn, own))[0]
    return ExpectedPose(kind, rest, spread)


def _parts(skeleton: Skeleton) -> list[str]:
    """The body part of each bone; "" if its name does not show it."""
    roles = match(skeleton.names)
    return [roles[name].part if name in roles else "" for name in skeleton.names]


def _spread(skeleton: Skeleton, by_part: dict[str, float], limb: float) -> FloatArray:
    """(J,) standard deviations in radians; infinite for the root, large for unknown bones."""
    degrees = [limb if part in _LIMBS else by_part.get(part, _MOVING_LIMB) for part in _parts(skeleton)]
    spread = np.radians(degrees)
    spread[0] = np.inf
    return spread
