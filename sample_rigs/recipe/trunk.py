"""The movement of pelvis, spine, head and arms with the phase of the left leg's gait cycle (0: heel strike)."""

from __future__ import annotations

import numpy as np

from .bones import FloatArray
from .rotations import about

SPEED = 1.3  # m/s
CYCLE = 1.06  # seconds from one left heel strike to the next
STRIDE = SPEED * CYCLE
DURATION = 4.0  # seconds
FIRST_PHASE = 0.30  # at time 0 the person stands on the left leg
START = SPEED * DURATION / 2.0  # y of the pelvis at time 0: the walk is centerd on the origin

PELVIS_HEIGHT = 0.925
BOB, SWAY, SURGE = 0.016, 0.020, 0.006

# Fractions of the rotation from pelvis to chest that each bone has, and of that from chest to a still head.
_CHEST_SHARE = {"hips": 0.0, "spine": 0.35, "chest": 0.7, "upper_chest": 1.0}
_HEAD_SHARE = {"neck": 0.5, "head": 1.0}


def pelvis_location(phase: FloatArray) -> FloatArray:
    """(F, 3) the root's head, meters: low on two legs, high on one, swaying over the planted leg."""
    turn = 2.0 * np.pi * phase
    x = SWAY * np.sin(turn - 0.35)
    y = START - STRIDE * (phase - FIRST_PHASE) - SURGE * np.sin(2.0 * turn - 0.6)
    z = PELVIS_HEIGHT - BOB * np.cos(2.0 * turn)
    return np.stack([x, y, z], axis=-1)


def _pelvis_deg(phase: FloatArray) -> FloatArray:
    """(F, 3) degrees of tilt forward, tilt to the left and rotation to the left.

    A side goes forward with its leg, and drops while the leg swings.
    """
    turn = 2.0 * np.pi * phase
    lean = 1.0 + 1.0 * np.cos(2.0 * turn - 0.6)
    lists = -3.5 * np.sin(turn + 0.45)
    return np.stack([lean, lists, -5.0 * np.cos(turn)], axis=-1)


def _chest_deg(phase: FloatArray) -> FloatArray:
    """(F, 3) the same angles of the chest, which rotates against the pelvis and tilts slightly over the planted leg."""
    turn = 2.0 * np.pi * phase
    lean = 3.0 + 0.8 * np.cos(2.0 * turn - 1.2)
    return np.stack([lean, 1.2 * np.sin(turn - 0.2), 5.0 * np.cos(turn - 0.15)], axis=-1)


def _head_deg(phase: FloatArray) -> FloatArray:
    """(F, 3) the same angles of the head, which hardly moves."""
    turn = 2.0 * np.pi * phase
    return np.stack([1.5 + 0.8 * np.cos(2.0 * turn + 1.5), 0.4 * np.sin(turn), 0.8 * np.cos(turn)], axis=-1)


def column(phase: FloatArray) -> dict[str, FloatArray]:
    """(F, 3, 3) rotations of each bone from the hips to the head since rest, in armature space."""
    pelvis, chest, head = _pelvis_deg(phase), _chest_deg(phase), _head_deg(phase)
    degrees = {name: pelvis + share * (chest - pelvis) for name, share in _CHEST_SHARE.items()}
    degrees |= {name: chest + share * (head - chest) for name, share in _HEAD_SHARE.items()}
    return {name: _upright(np.radians(angles)) for name, angles in degrees.items()}


def _upright(angles: FloatArray) -> FloatArray:
    return about(2, angles[:, 2]) @ about(1, angles[:, 1]) @ about(0, angles[:, 0])


def shoulder_turn(phase: FloatArray, sign: float) -> FloatArray:
    """(F, 3, 3) the collar bone's rotation in its parent's frame with the armature's axes; phase: that side's leg."""
    forward = np.radians(-1.0 - 3.0 * np.cos(2.0 * np.pi * (phase - 0.53)))
    return about(2, sign * forward) @ about(1, np.full_like(phase, sign * np.radians(2.0)))


def upper_arm_turn(phase: FloatArray, sign: float) -> FloatArray:
    """(F, 3, 3) the rotation from rest down to the side of the body, then forward and back against the leg.

    phase: that side's leg.
    """
    flexion = np.radians(-4.0 + 18.0 * np.cos(2.0 * np.pi * (phase - 0.53)))
    down = np.full_like(phase, sign * np.radians(41.0))
    inward = np.full_like(phase, -sign * np.radians(12.0))
    return about(0, -flexion) @ about(2, inward) @ about(1, down)


def elbow_bend(phase: FloatArray) -> FloatArray:
    """(F,) the elbow's rotation about its hinge, radians from rest; phase: that side's leg."""
    return np.radians(15.0 + 12.0 * np.cos(2.0 * np.pi * (phase - 0.58)))


def wrist_bend(phase: FloatArray) -> FloatArray:
    """(F,) the hand's rotation toward the thumb, radians, which lags behind the arm."""
    return np.radians(4.0 + 5.0 * np.cos(2.0 * np.pi * (phase - 0.70)))
