"""The motion of one foot in a walking cycle: planted, rolling, swinging. The person faces -Y.

A cycle starts when the heel touches the ground. The foot then rolls over three fixed points: the heel until the sole
is flat, the ball joint until the toes rise, and the tip of the toes until it leaves the ground. Phases are fractions of
the cycle. Pitch is positive if the toes point up, in radians.
"""

from __future__ import annotations

import numpy as np

from . import human
from .bones import FloatArray
from .curves import bridge, monotone_cycle, smooth_cycle
from .rotations import about, turned

FLAT = (0.11, 0.32)  # the sole is flat on the ground
TOE_RISE = 0.53  # the toes start to roll over their tip
TOE_OFF = 0.62
TOES_RELAXED = 0.74
TOE_ROLL = np.radians(30.0)

# Points of a flat foot, in meters from the point on the ground below its ankle.
_BONES = {bone.name: bone for bone in human.human_bones()}
_UNDER_ANKLE = np.array(_BONES["foot.L"].head) * (1.0, 1.0, 0.0)
ANKLE = np.array(_BONES["foot.L"].head) - _UNDER_ANKLE
BALL = np.array(_BONES["toe.L"].head) - _UNDER_ANKLE
TIP = (np.array(_BONES["toe.L"].tail) - _UNDER_ANKLE) * (1.0, 1.0, 0.0)
HEEL = np.array([0.0, 0.040, 0.0])

_FOOT_PITCH_DEG = {0.0: 18.0, 0.05: 8.0, FLAT[0]: 0.0, FLAT[1]: 0.0, 0.42: -5.0, 0.50: -17.0, 0.56: -34.0,
                   TOE_OFF: -57.0, 0.66: -68.0, 0.72: -48.0, 0.80: -8.0, 0.89: 5.0, 0.96: 15.0}  # fmt: skip

# Normal gait at every tenth of a cycle, degrees: the thigh forward from upright, and the bend of the knee.
_THIGH_DEG = (24.0, 20.0, 12.0, 2.0, -8.0, -15.0, -9.0, 10.0, 24.0, 28.0)
_KNEE_DEG = (11.0, 17.0, 15.0, 8.0, 6.0, 15.0, 42.0, 66.0, 56.0, 29.0)


def foot_pitch(phase: FloatArray) -> FloatArray:
    """(F,) pitch of the foot."""
    return np.radians(monotone_cycle(_FOOT_PITCH_DEG, phase))


def toe_pitch(phase: FloatArray) -> FloatArray:
    """(F,) pitch of the toes. They are lifted by the heel, lie flat, roll over their tip, then align with the foot."""
    roll = np.clip((phase - TOE_RISE) / (TOE_OFF - TOE_RISE), 0.0, 1.0) ** 2
    standing = np.maximum(foot_pitch(phase), 0.0) - TOE_ROLL * roll
    bend_at_toe_off = -TOE_ROLL - foot_pitch(np.array(TOE_OFF))
    u = np.clip((phase - TOE_OFF) / (TOES_RELAXED - TOE_OFF), 0.0, 1.0)
    bend = bridge(u, bend_at_toe_off, np.zeros(1), np.zeros(1), np.zeros(1))
    return np.where(phase < TOE_OFF, standing, foot_pitch(phase) + bend)


def standing_ankle(phase: FloatArray) -> FloatArray:
    """(F, 3) the ankle of a planted foot, in meters from the point on the ground below it when the sole is flat."""
    pitch, toes = foot_pitch(phase), toe_pitch(phase)
    over_heel = HEEL + turned(about(0, -pitch), ANKLE - HEEL)
    ball = TIP + turned(about(0, -toes), BALL - TIP)
    over_ball = ball + turned(about(0, -pitch), ANKLE - BALL)
    return np.where((pitch > 0.0)[:, None], over_heel, over_ball)


def normal_leg(phase: FloatArray) -> FloatArray:
    """(F, 3) vectors from hip to ankle in normal gait, meters."""
    thigh = np.radians(smooth_cycle(_THIGH_DEG, phase))
    shin = thigh - np.radians(smooth_cycle(_KNEE_DEG, phase))
    forward = human.THIGH * np.sin(thigh) + human.SHIN * np.sin(shin)
    down = human.THIGH * np.cos(thigh) + human.SHIN * np.cos(shin)
    return np.stack([np.zeros_like(forward), -forward, -down], axis=-1)
