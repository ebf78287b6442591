"""The shape of the person: rounded parts, each belonging to a bone, blended into one body.

Only the left half and the middle are defined; the right half is the mirror image. Meters, armature space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import human
from .bones import FloatArray, Point, other_side

TRUNK_DEPTH = 0.70  # relative to its width
BLEND = 0.035  # distance around a joint in which two parts blend
_BONES = {bone.name: bone for bone in human.human_bones()}


@dataclass(frozen=True)
class Part:
    """A rounded part of the left half: its bone, its distance function, and the width of its blend into other parts."""

    bone: str
    distance: Callable[[FloatArray], FloatArray]
    blend: float = BLEND


def cone(start: Point, end: Point, start_radius: float, end_radius: float) -> Callable[[FloatArray], FloatArray]:
    """Two balls and the space between them."""
    a, b = np.array(start), np.array(end)
    axis = b - a
    length = float(np.linalg.norm(axis))
    slope = (start_radius - end_radius) / length
    rise = np.sqrt(1.0 - slope * slope)

    def distance(points: FloatArray) -> FloatArray:
        along = (points - a) @ axis / length
        across = np.linalg.norm(points - a - np.multiply.outer(along, axis / length), axis=-1)
        place = np.clip(along + across * slope / rise, 0.0, length)
        return np.hypot(across, along - place) - (start_radius + (end_radius - start_radius) * place / length)

    return distance


def ellipsoid(center: Point, radii: Point, axes: FloatArray | None = None) -> Callable[[FloatArray], FloatArray]:
    """An ellipsoid with three semi-axes, along the columns of `axes` (3, 3) or x, y, z; the distance is approximate."""
    middle, sizes, frame = np.array(center), np.array(radii), np.eye(3) if axes is None else axes

    def distance(points: FloatArray) -> FloatArray:
        local = (points - middle) @ frame
        near = np.linalg.norm(local / sizes, axis=-1)
        slope = np.linalg.norm(local / sizes**2, axis=-1)
        return np.where(slope > 1e-9, near * (near - 1.0) / np.maximum(slope, 1e-9), -np.min(sizes))

    return distance


def on_bone(name: str, along: float, x: float = 0.0, z: float = 0.0) -> Point:
    """A point next to a bone: at a fraction of its length, then offset by meters along its local X and Z."""
    bone = _BONES[name]
    place = np.array(bone.head) + bone.rotation @ (x, along * bone.length, z)
    return (float(place[0]), float(place[1]), float(place[2]))


def _limb(name: str, start: float, end: float, start_radius: float, end_radius: float, **beside: float) -> Part:
    """A cone along a bone, between two fractions of its length."""
    return Part(name, cone(on_bone(name, start, **beside), on_bone(name, end, **beside), start_radius, end_radius))


def _torso(bone: str, start: Point, end: Point, start_radius: float, end_radius: float) -> Part:
    """A cone for half of the trunk's width, wider than deep."""
    flat = np.array((1.0, 1.0 / TRUNK_DEPTH, 1.0))
    a, b = (tuple(np.array(point) * flat) for point in (start, end))
    distance = cone(a, b, start_radius, end_radius)
    return Part(bone, lambda points: TRUNK_DEPTH * distance(points * flat), 0.06)


def _trunk() -> list[Part]:
    return [
        _torso("hips", (0.0, 0.010, 0.950), (0.0, 0.008, 1.050), 0.148, 0.130),
        Part("hips", ellipsoid((0.066, 0.050, 0.905), (0.082, 0.070, 0.085)), 0.05),
        Part("hips", ellipsoid((0.0, 0.012, 0.868), (0.070, 0.066, 0.052)), 0.04),
        _torso("spine", (0.0, 0.008, 1.050), (0.0, 0.006, 1.165), 0.130, 0.126),
        _torso("chest", (0.0, 0.006, 1.165), (0.0, 0.006, 1.290), 0.126, 0.146),
        _torso("upper_chest", (0.0, 0.006, 1.290), (0.0, 0.014, 1.352), 0.146, 0.146),
        Part("upper_chest", ellipsoid((0.078, -0.048, 1.345), (0.095, 0.048, 0.066)), 0.06),
        Part("upper_chest", ellipsoid((0.085, 0.052, 1.355), (0.080, 0.052, 0.095)), 0.06),
        Part("shoulder.L", cone((0.040, 0.016, 1.456), (0.168, 0.016, 1.424), 0.042, 0.053), 0.06),
        Part("neck", cone((0.0, 0.024, 1.455), (0.0, 0.004, 1.570), 0.060, 0.054), 0.05),
    ]


def _head() -> list[Part]:
    return [
        Part("head", ellipsoid((0.0, 0.004, 1.660), (0.077, 0.095, 0.091))),
        Part("head", ellipsoid((0.0, -0.036, 1.592), (0.054, 0.058, 0.064)), 0.05),
        Part("head", cone((0.0, -0.092, 1.648), (0.0, -0.108, 1.618), 0.008, 0.013), 0.012),
        Part("head", ellipsoid((0.076, 0.012, 1.640), (0.010, 0.018, 0.030)), 0.012),
    ]


def _arm() -> list[Part]:
    hand = _BONES["hand.L"].rotation
    return [
        _limb("upper_arm.L", 0.0, 0.30, 0.056, 0.050),
        _limb("upper_arm.L", 0.25, 1.0, 0.049, 0.039),
        _limb("forearm.L", 0.0, 0.35, 0.039, 0.041),
        _limb("forearm.L", 0.25, 1.0, 0.041, 0.027),
        Part("hand.L", ellipsoid(on_bone("hand.L", 0.34), (0.021, 0.070, 0.043), hand), 0.03),
        Part("hand.L", ellipsoid(on_bone("hand.L", 0.70, x=0.004), (0.019, 0.062, 0.037), hand), 0.02),
        Part("hand.L", cone(on_bone("hand.L", 0.12, z=0.024), on_bone("hand.L", 0.50, z=0.062), 0.021, 0.016), 0.015),
    ]


def _leg() -> list[Part]:
    return [
        _limb("thigh.L", 0.05, 0.45, 0.084, 0.073, x=0.006),
        _limb("thigh.L", 0.40, 1.0, 0.074, 0.053, x=0.002),
        _limb("shin.L", 0.0, 0.28, 0.052, 0.053, z=0.006),
        Part("shin.L", ellipsoid(on_bone("shin.L", 0.28, z=0.020), (0.050, 0.115, 0.046), _BONES["shin.L"].rotation)),
        _limb("shin.L", 0.25, 1.0, 0.050, 0.037),
        Part("foot.L", cone((0.088, 0.036, 0.036), (0.096, -0.100, 0.030), 0.037, 0.038), 0.025),
        Part("foot.L", cone((0.088, 0.006, 0.062), (0.096, -0.090, 0.030), 0.038, 0.030), 0.025),
        Part("toe.L", ellipsoid((0.099, -0.140, 0.020), (0.046, 0.062, 0.026)), 0.02),
    ]


PARTS: tuple[Part, ...] = (*_trunk(), *_head(), *_arm(), *_leg())


def skin_distance(points: FloatArray) -> FloatArray:
    """(N,) distances of points (N, 3) from the skin, negative inside. All parts are blended, and the soles are flat."""
    folded = _to_the_left(points)
    result = PARTS[0].distance(folded)
    for part in PARTS[1:]:
        result = _melted(result, part.distance(folded), part.blend)
    return -_melted(-result, folded[:, 2], 0.012)


def _to_the_left(points: FloatArray) -> FloatArray:
    return np.stack([np.abs(points[:, 0]), points[:, 1], points[:, 2]], axis=1)


def _melted(a: FloatArray, b: FloatArray, blend: float) -> FloatArray:
    """The smaller of two distances, smoothed if they differ by less than `blend`."""
    overlap = np.maximum(blend - np.abs(a - b), 0.0) / blend
    return np.minimum(a, b) - 0.25 * blend * overlap * overlap


def nearest_bones(points: FloatArray) -> list[str]:
    """For each of the points (N, 3), the bone with the nearest part."""
    folded = _to_the_left(points)
    best = np.argmin([part.distance(folded) for part in PARTS], axis=0)
    left = [PARTS[i].bone for i in best]
    return [other_side(bone) if x < 0.0 else bone for bone, x in zip(left, points[:, 0], strict=True)]
