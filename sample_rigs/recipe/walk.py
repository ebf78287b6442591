"""The sample walk: joint angles of a person who walks 1.3 m/s along -Y, the truth behind `walk.trc`.

Pelvis, spine and arms follow smooth curves of the gait cycle. Planted feet stay in place, and two-bone inverse
kinematics in closed form gives the legs. Everything repeats each cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from . import human, legs, trunk
from .bones import Bone, FloatArray
from .rotations import about, quaternions, turned

_SIDES = (("L", 1.0), ("R", -1.0))


@dataclass
class Motion:
    """The body over F frames, in armature space.

    Attributes:
        heads: by bone name, (F, 3) meters.
        turns: by bone name, (F, 3, 3) the bone's rotation since rest.
    """

    heads: dict[str, FloatArray] = field(default_factory=dict)
    turns: dict[str, FloatArray] = field(default_factory=dict)

    def add(self, name: str, turn: FloatArray) -> None:
        """Place a bone relative to its parent."""
        bone = bones()[name]
        offset = np.subtract(bone.head, bones()[bone.parent].head)
        self.heads[name] = self.heads[bone.parent] + turned(self.turns[bone.parent], offset)
        self.turns[name] = turn

    def point(self, name: str, offset: FloatArray) -> FloatArray:
        """(F, 3) a point fixed to a bone, from its offset (3,) in the bone's rest frame."""
        return self.heads[name] + turned(self.turns[name], bones()[name].rotation @ offset)


@cache
def bones() -> dict[str, Bone]:
    """The person's bones by name, parents first."""
    return {bone.name: bone for bone in human.human_bones()}


def walk_pose(time: float) -> tuple[dict[str, FloatArray], FloatArray]:
    """The true pose at `time` seconds: local rotations (w, x, y, z) by bone; the root's head (3,) in armature space."""
    local, root = walk_poses(np.array([time]))
    return {name: rotations[0] for name, rotations in local.items()}, root[0]


def walk_poses(times: FloatArray) -> tuple[dict[str, FloatArray], FloatArray]:
    """The true poses at F times in seconds: by bone, local rotations (F, 4) w x y z; and the root's heads (F, 3)."""
    motion = walk_motion(times)
    local = {}
    for name, bone in bones().items():
        turn = motion.turns[name]
        own = motion.turns[bone.parent].swapaxes(1, 2) @ turn if bone.parent else turn
        local[name] = quaternions(bone.rotation.T @ own @ bone.rotation)
    return local, motion.heads["hips"]


def walk_motion(times: FloatArray) -> Motion:
    """The positions and rotations of all bones at F times in seconds."""
    phase = trunk.FIRST_PHASE + np.asarray(times, dtype=float) / trunk.CYCLE
    motion = Motion()
    for name, turn in trunk.column(phase).items():
        if name == "hips":
            motion.heads[name], motion.turns[name] = trunk.pelvis_location(phase), turn
        else:
            motion.add(name, turn)
    for side, sign in _SIDES:
        own_phase = phase if side == "L" else phase + 0.5
        _add_leg(motion, own_phase, side, sign)
        _add_arm(motion, own_phase, side, sign)
    return motion


def hip_path(phase: FloatArray, side: str) -> FloatArray:
    """(F, 3) positions of a hip joint at phases of its own leg."""
    left_phase = phase if side == "L" else phase - 0.5
    offset = np.subtract(bones()[f"thigh.{side}"].head, bones()["hips"].head)
    return trunk.pelvis_location(left_phase) + turned(trunk.column(left_phase)["hips"], offset)


def _add_leg(motion: Motion, phase: FloatArray, side: str, sign: float) -> None:
    leg = legs.move_leg(phase, sign, lambda at: hip_path(at, side))
    motion.add(f"thigh.{side}", leg.thigh @ bones()[f"thigh.{side}"].rotation.T)
    motion.add(f"shin.{side}", leg.shin @ bones()[f"shin.{side}"].rotation.T)
    motion.add(f"foot.{side}", leg.foot_turn)
    motion.add(f"toe.{side}", leg.toe_turn)


def _add_arm(motion: Motion, phase: FloatArray, side: str, sign: float) -> None:
    shoulder = motion.turns["upper_chest"] @ trunk.shoulder_turn(phase, sign)
    upper_arm = shoulder @ trunk.upper_arm_turn(phase, sign)
    forearm = upper_arm @ _in_bone(f"forearm.{side}", about(0, trunk.elbow_bend(phase)))
    hand = forearm @ _in_bone(f"hand.{side}", about(0, trunk.wrist_bend(phase)))
    for name, turn in (("shoulder", shoulder), ("upper_arm", upper_arm), ("forearm", forearm), ("hand", hand)):
        motion.add(f"{name}.{side}", turn)


def _in_bone(name: str, turn: FloatArray) -> FloatArray:
    """A rotation about a bone's own axes, converted to armature axes."""
    rest = bones()[name].rotation
    return rest @ turn @ rest.T
