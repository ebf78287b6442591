"""Motions of a humanoid whose inner joints are hidden: a synthetic dance, the sample walk, a recording.

In mm. A person's joints become a rig of rigid bones. Shoulders and hips are fixed to the torso; other bones have the
median of their lengths.
"""

from dataclasses import dataclass

import numpy as np
from support.checker import composed
from support.families import ball, hinge
from support.rigs import from_joints

from benchmarks.paper.tracking import skeleton_of
from fabrik_addon.core import Hinge, Skeleton, forward_kinematics
from fabrik_addon.core.rotations import quaternion_from_matrix
from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.signals import resample
from sample_rigs.recipe.paper_models import humanoid_bones
from sample_rigs.recipe.walk import walk_motion

ENDS = ("head", "forearm.L", "forearm.R", "shin.L", "shin.R")
LIMITS = {
    "head": ball(40, (-40, 40)),
    "upper_arm": ball((80, 60, 40, 60), (-45, 45)),
    "forearm": hinge("X", 0, 145),
    "thigh": ball((50, 70, 40, 25), (-30, 30)),
    "shin": hinge("X", -140, 0),
}


@dataclass(frozen=True)
class Motion:
    """A skeleton and its true joint positions.

    Attributes:
        joints: bone name -> (F, 3) true position of its tail; "pelvis" is the root's head.
        limits: bone name -> limit, if the motion is known to keep them.
        start: (J, 4) local rotations of the pose from which the first frame starts.
    """

    name: str
    skeleton: Skeleton
    joints: dict
    limits: dict
    start: np.ndarray

    @property
    def root(self):
        return self.joints["pelvis"]

    @property
    def targets(self):
        """(F, 5, 3) head, wrists and ankles."""
        return np.stack([self.joints[end] for end in ENDS], axis=1)

    @property
    def hidden(self):
        """Names of the bones whose tails no solver gets."""
        return [name for name in self.joints if name not in {*ENDS, "pelvis"}]


def dance(rate, seconds):
    """13 joints that swing throughout their limits, on a root that sways and rotates."""
    skeleton = skeleton_of(humanoid_bones())
    limits = {name: LIMITS[name.partition(".")[0]] for name in skeleton.names[1:]}
    time = np.arange(int(rate * seconds)) / rate
    rng = np.random.default_rng(12)
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), len(skeleton), 1))
    for name, limit in limits.items():
        turns[:, skeleton.index(name)] = _swing_inside(limit, time, rng)
    turns[:, 0] = quaternion_from_matrix(
        composed(0.35 * np.stack(_waves(rng, time, 2), -1), 1.2 * _waves(rng, time, 1)[0])
    )
    root = skeleton.rest[0, :3, 3] + np.stack(_waves(rng, time, 3), -1) * [400.0, 400.0, 80.0]
    moved = forward_kinematics(skeleton, turns, root)
    tails = moved[..., :3, 3] + moved[..., :3, 1] * skeleton.lengths[:, None]
    joints = {"pelvis": root, **{name: tails[:, bone] for bone, name in enumerate(skeleton.names)}}
    rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1))
    return Motion("dance", skeleton, joints, limits, rest)


def _waves(rng, time, count):
    """Smooth curves (F,) between −1 and 1, of two sinusoids each of 0.2 to 0.9 Hz."""
    return [
        sum(0.5 * np.sin(2 * np.pi * rng.uniform(0.2, 0.9) * time + rng.uniform(0, 2 * np.pi)) for _ in range(2))
        for _ in range(count)
    ]


def _swing_inside(limit, time, rng):
    """(F, 4) rotations that wander about inside a limit."""
    if isinstance(limit, Hinge):
        half = (0.5 * (limit.low + limit.high) + 0.5 * (limit.high - limit.low) * _waves(rng, time, 1)[0]) / 2
        return np.stack([np.cos(half), np.sin(half), 0 * half, 0 * half], axis=-1)
    x, z, twist = _waves(rng, time, 3)
    right, front, left, back = limit.angles
    lean = np.stack([np.where(x > 0, right, left) * x, np.where(z > 0, front, back) * z], axis=-1) / np.sqrt(2.0)
    return quaternion_from_matrix(composed(lean, 0.5 * sum(limit.twist) + 0.5 * np.ptp(limit.twist) * twist))


# The positions of a person's joints in the sample walk (bone, its head) and in a recording of keypoints.
WALK_HEADS = {
    "pelvis": "hips", "torso": "neck", "head": "head",
    "shoulder.L": "upper_arm.L", "upper_arm.L": "forearm.L", "forearm.L": "hand.L",
    "hip.L": "thigh.L", "thigh.L": "shin.L", "shin.L": "foot.L",
}  # fmt: skip
KEYPOINTS = {
    "torso": "Neck", "head": "Head", "shoulder.L": "LShoulder", "upper_arm.L": "LElbow", "forearm.L": "LWrist",
    "hip.L": "LHip", "thigh.L": "LKnee", "shin.L": "LAnkle",
}  # fmt: skip


def walk(rate, seconds):
    """15 joints of the sample walk."""
    motion = walk_motion(np.arange(int(rate * seconds)) / rate)
    heads = WALK_HEADS | {joint.replace(".L", ".R"): bone.replace(".L", ".R") for joint, bone in WALK_HEADS.items()}
    return _from_joints("walk", {joint: 1000.0 * motion.heads[bone] for joint, bone in heads.items()})


def recording(path, rate, seconds):
    """15 joints of a recording of keypoints, unfiltered."""
    clip = to_z_up(resample(read_markers(path), rate))
    names = KEYPOINTS | {joint.replace(".L", ".R"): f"R{key[1:]}" for joint, key in KEYPOINTS.items() if ".L" in joint}
    places = {
        joint: 1000.0 * clip.positions[: int(rate * seconds), clip.names.index(key)] for joint, key in names.items()
    }
    places["pelvis"] = 0.5 * (places["hip.L"] + places["hip.R"])
    return _from_joints("recording", places)


def _from_joints(name, places):
    """A motion of a rig that is made from joints (F, 3): posed as on the first frame."""
    parents = {"torso": "", "head": "torso"}
    heads = {"torso": "pelvis", "head": "torso"}
    for side in "LR":
        parents |= {f"upper_arm.{side}": "torso", f"forearm.{side}": f"upper_arm.{side}"}
        parents |= {f"thigh.{side}": "torso", f"shin.{side}": f"thigh.{side}"}
        heads |= {f"upper_arm.{side}": f"shoulder.{side}", f"forearm.{side}": f"upper_arm.{side}"}
        heads |= {f"thigh.{side}": f"hip.{side}", f"shin.{side}": f"thigh.{side}"}
    points, rows, order = {joint: place[0] for joint, place in places.items()}, [], list(parents)
    for bone in order:
        length = np.median(np.linalg.norm(places[bone] - places[heads[bone]], axis=1))
        direction = places[bone][0] - places[heads[bone]][0]
        points[bone] = points[heads[bone]] + direction * (length / np.linalg.norm(direction))
        rows.append((bone, order.index(parents[bone]) if parents[bone] else -1, points[heads[bone]], points[bone]))
    joints = {"pelvis": places["pelvis"], **{bone: places[bone] for bone in order}}
    skeleton = from_joints(rows)
    return Motion(name, skeleton, joints, {}, np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1)))
