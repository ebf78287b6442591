"""What pose someone has who stands to be calibrated: told from the markers, and how far people are from it.

Placed markers are some 15 mm off where a mapping guesses them. A pose that fits guesses best takes these for joint
angles (arms 13–32° turned, measured on a body exactly at rest with markers 10 mm off); one that is expected does not.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ...core import Skeleton, Solution
from ...core.model.targets import PosePrior
from ...core.rotations import NO_TURN, angle_between, quaternion_from_matrix
from ...human.naming_schemes import match
from ...human.rest_body import BodyAxes, RestBody, bones_of
from ..clip import FloatArray

Kind = Literal["REST", "STANDING", "A_POSE", "T_POSE", "MOVING"]

# Degrees that the arms are raised to the side in each of the poses that people are asked for.
_RAISED: Final[dict[Kind, float]] = {"STANDING": 10.0, "A_POSE": 45.0, "T_POSE": 90.0}
# A pose is one of these where its arms are nearer than this, and its legs and trunk that near to rest (degrees).
_NEAR: Final = 25.0
# Degrees that people who were asked to stand like that are off, by part (one standard deviation).
_STILL: Final = {"spine": 4.0, "chest": 4.0, "neck": 5.0, "head": 5.0, "shoulder": 4.0, "foot": 4.0, "toe": 4.0}
_STILL_LIMB: Final = 8.0
# Degrees that moving people are, by part: limbs go anywhere; trunk, collars, head and feet stay about rest. The loins
# turn less than the chest: with 15 for both, keypoints had them at their limits on 60 % of the frames, now on 28.
_MOVING: Final = {"spine": 12.0, "chest": 15.0, "neck": 20.0, "head": 20.0, "shoulder": 12.0, "foot": 20.0, "toe": 15.0}
_MOVING_LIMB: Final = 60.0
# Radians: as good as nothing beside a marker, some 2 % of what one at 10 cm from a joint says.
_ANY: Final = np.pi
_LIMBS: Final = frozenset({"upper_arm", "forearm", "hand", "thigh", "shin"})


@dataclass(frozen=True, eq=False)
class ExpectedPose:
    """A pose, (J, 4) local rotations, how far people are off it, (J,) radians, and what it is called."""

    kind: Kind
    rotations: FloatArray
    spread: FloatArray

    def prior(self, noise: float) -> PosePrior:
        """What it counts beside markers of weight 1 that are `noise` off (one standard deviation, the rig's units)."""
        return PosePrior(self.rotations, (noise / self.spread) ** 2)


def any_pose(skeleton: Skeleton) -> ExpectedPose:
    """Of someone of whom nothing is known: rest decides only what markers say nothing about at all."""
    return ExpectedPose("MOVING", np.tile(NO_TURN, (len(skeleton), 1)), np.full(len(skeleton), _ANY))


def moving_pose(skeleton: Skeleton) -> ExpectedPose:
    """Of someone who moves: about rest, limbs anywhere."""
    return ExpectedPose("MOVING", np.tile(NO_TURN, (len(skeleton), 1)), _spread(skeleton, _MOVING, _MOVING_LIMB))


def told_pose(skeleton: Skeleton, solution: Solution) -> ExpectedPose:
    """Of someone who, as a rough fit of F frames shows, holds one of the poses that people are asked for."""
    spread = _spread(skeleton, _STILL, _STILL_LIMB)
    rest = np.tile(NO_TURN, (len(skeleton), 1))
    parts = _parts(skeleton)
    limbs = [bone for bone, part in enumerate(parts) if part in _LIMBS]
    away = np.degrees(np.median(angle_between(solution.rotations, rest[None]), axis=0))
    if not limbs or max(away[bone] for bone in limbs if parts[bone] != "hand") < _NEAR:
        return ExpectedPose("REST", rest, spread)
    arms = [bone for bone, part in enumerate(parts) if part == "upper_arm"]
    straight = [bone for bone, part in enumerate(parts) if part in {"forearm", "thigh", "shin"}]
    if not arms or max(away[bone] for bone in straight) > _NEAR:
        return moving_pose(skeleton)
    body = RestBody(bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    if body.axes is None:
        return moving_pose(skeleton)
    along = {bone: body.direction(skeleton.names[bone]) for bone in arms}
    raised = [_raised(skeleton, solution, bone, way, body.axes.up) for bone, way in along.items()]
    kind = min(_RAISED, key=lambda kind: abs(_RAISED[kind] - np.mean(raised)))
    if max(abs(_RAISED[kind] - angle) for angle in raised) > _NEAR:
        return moving_pose(skeleton)
    for bone, way in along.items():
        rest[bone] = _arm_at(skeleton, bone, _RAISED[kind], way, body.axes)
    return ExpectedPose(kind, rest, spread)


def _parts(skeleton: Skeleton) -> list[str]:
    """What each bone is; "" where its name does not say."""
    roles = match(skeleton.names)
    return [roles[name].part if name in roles else "" for name in skeleton.names]


def _spread(skeleton: Skeleton, by_part: dict[str, float], limb: float) -> FloatArray:
    """(J,) radians; the root, and bones of which nothing is known, may be anything."""
    degrees = [limb if part in _LIMBS else by_part.get(part, _MOVING_LIMB) for part in _parts(skeleton)]
    spread = np.radians(degrees)
    spread[0] = np.inf
    return spread


def _raised(skeleton: Skeleton, solution: Solution, bone: int, along: FloatArray, up: FloatArray) -> float:
    """Degrees, the median, that an arm is raised from where the body's feet are, however the body itself lies.

    along, up: (3,) the arm's direction and the body's own up at rest.
    """
    arm, root = (
        solution.matrices[:, each, :3, :3] @ (skeleton.rest[each, :3, :3].T @ way)
        for each, way in ((bone, along), (0, up))
    )
    return float(np.degrees(np.median(np.arccos(np.clip(-np.sum(arm * root, axis=1), -1.0, 1.0)))))


def _arm_at(skeleton: Skeleton, bone: int, degrees: float, along: FloatArray, axes: BodyAxes) -> FloatArray:
    """(4,) the local rotation with which an arm is raised to its side by so much, turned the shortest way from rest."""
    outward = (np.sign(along @ axes.left) or 1.0) * axes.left
    angle = np.radians(degrees)
    wanted = np.sin(angle) * outward - np.cos(angle) * axes.up
    axis, cosine = np.cross(along, wanted), float(along @ wanted)
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    turn = np.eye(3) + cross + cross @ cross / (1.0 + max(cosine, -0.999))
    own = skeleton.rest[bone, :3, :3]
    return np.asarray(quaternion_from_matrix(own.T @ turn @ own))
