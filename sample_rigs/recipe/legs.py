"""Rotations of thigh, shin, foot and toe from planted feet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import feet, human
from .bones import FloatArray
from .curves import bridge
from .rotations import about, turned, unit
from .trunk import FIRST_PHASE, START, STRIDE

CROSSING = 0.235  # share of the cycle after heel strike at which the pelvis passes over the foot's ankle
ANKLE_X = 0.060  # distance from the line of walking
TOE_OUT = np.radians(6.0)
STRIKE_SPEED = 0.1  # of the foot, as a share of the free leg's speed
CLEARANCE = 0.010  # meters that the heel stays above the ground before it strikes
_TICK = 1e-4  # share of a cycle, for speeds by finite differences

HipPath = Callable[[FloatArray], FloatArray]


class Leg(NamedTuple):
    """One leg: (F, 3, 3) axes of thigh and shin as columns, and the rotations of foot and toe from rest."""

    thigh: FloatArray
    shin: FloatArray
    foot_turn: FloatArray
    toe_turn: FloatArray


def move_leg(phase: FloatArray, sign: float, hip: HipPath) -> Leg:
    """One leg over F frames.

    Args:
        phase: (F,) of this leg, which keeps growing from cycle to cycle.
        sign: +1 left, -1 right.
        hip: the function from a phase to (F, 3) positions of the hip joint.
    """
    ankle = ankle_path(phase, sign, hip)
    share = np.mod(phase, 1.0)
    heading = about(2, np.full_like(phase, sign * TOE_OUT))
    foot = heading @ about(0, -feet.foot_pitch(share))
    toe = heading @ about(0, -feet.toe_pitch(share))
    facing = np.broadcast_to([np.sin(sign * TOE_OUT / 2.0), -np.cos(TOE_OUT / 2.0), 0.0], ankle.shape)
    thigh, shin = two_bones(hip(phase), ankle, facing)
    return Leg(thigh, shin, foot, toe)


def two_bones(hip: FloatArray, ankle: FloatArray, facing: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(F, 3, 3) thigh and shin that reach from hip to ankle (F, 3), with the knee bent toward `facing` (F, 3).

    X is the knee's hinge, perpendicular to the plane of the leg.
    """
    along = unit(ankle - hip)
    span = np.linalg.norm(ankle - hip, axis=1)
    hinge = unit(np.cross(facing, along))
    at_hip = _corner(human.THIGH, span, human.SHIN)
    at_ankle = _corner(human.SHIN, span, human.THIGH)
    sideways = np.cross(hinge, along)
    thigh = np.cos(at_hip)[:, None] * along - np.sin(at_hip)[:, None] * sideways
    shin = np.cos(at_ankle)[:, None] * along + np.sin(at_ankle)[:, None] * sideways
    return _axes(hinge, thigh), _axes(hinge, shin)


def _corner(near: float, span: FloatArray, far: float) -> FloatArray:
    """The angle of a triangle between the sides `near` and `span`, opposite `far`."""
    return np.arccos(np.clip((near**2 + span**2 - far**2) / (2.0 * near * span), -1.0, 1.0))


def _axes(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def ankle_path(phase: FloatArray, sign: float, hip: HipPath) -> FloatArray:
    """(F, 3) positions of the ankle, above its footprint or on the path to the next one."""
    cycle = np.floor(phase)
    u = np.clip((phase - cycle - feet.TOE_OFF) / (1.0 - feet.TOE_OFF), 0.0, 1.0)
    start, start_speed = _stray(cycle + feet.TOE_OFF - _TICK, cycle, sign, hip)
    end, end_speed = _stray(cycle + 1.0, cycle + 1.0, sign, hip)
    swing = bridge(u[:, None], start, end, start_speed, STRIKE_SPEED * end_speed) + _free_ankle(phase, sign, hip)
    swing[:, 2] += CLEARANCE * u**3 * (1.0 - u) * 256.0 / 27.0  # the maximum is at three quarters of the swing
    standing = _standing_ankle(phase, cycle, sign)
    return np.where((phase - cycle < feet.TOE_OFF)[:, None], standing, swing)


def _stray(phase: FloatArray, cycle: FloatArray, sign: float, hip: HipPath) -> tuple[FloatArray, FloatArray]:
    """(F, 3) offsets of the planted ankle from normal gait, and their growth during a swing."""
    now = _standing_ankle(phase, cycle, sign) - _free_ankle(phase, sign, hip)
    later = _standing_ankle(phase + _TICK, cycle, sign) - _free_ankle(phase + _TICK, sign, hip)
    return now, (later - now) / _TICK * (1.0 - feet.TOE_OFF)


def _standing_ankle(phase: FloatArray, cycle: FloatArray, sign: float) -> FloatArray:
    """(F, 3) positions of the ankle of the foot that touched the ground at the start of `cycle`."""
    lag = 0.0 if sign > 0.0 else 0.5
    y = START - STRIDE * (cycle + CROSSING - lag - FIRST_PHASE)
    place = np.stack([np.full_like(y, sign * ANKLE_X), y, np.zeros_like(y)], axis=-1)
    return place + turned(about(2, np.full_like(y, sign * TOE_OUT)), feet.standing_ankle(phase - cycle))


def _free_ankle(phase: FloatArray, sign: float, hip: HipPath) -> FloatArray:
    """(F, 3) positions of the ankle with the leg angles of normal gait, above the line along which the foot walks."""
    ankle = hip(phase) + feet.normal_leg(np.mod(phase, 1.0))
    ankle[:, 0] = sign * ANKLE_X
    return ankle
