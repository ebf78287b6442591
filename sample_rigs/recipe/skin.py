"""The person's mesh and the weights that bind it to the bones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import body
from .bones import FloatArray
from .human import human_bones
from .surface import IntArray, edges_of, graded, settled, spread, surface_net

_WEIGHT_ROUNDS = 14  # how often weights are averaged with their neighbors: joints bend over some 4 cm to either side
_INFLUENCES = 4
_LEAST_WEIGHT = 0.02
_POINT_STEP = 2.0**-14  # meters; coarse numbers compress well
_WEIGHT_STEPS = 256.0


@dataclass(frozen=True)
class Skin:
    """A mesh at rest.

    Attributes:
        points: (V, 3) meters, armature space.
        quads: (Q, 4) vertex numbers, facing outward.
        groups: bone names.
        weights: (V, groups), rows sum to one.
    """

    points: FloatArray
    quads: IntArray
    groups: tuple[str, ...]
    weights: FloatArray


def build_skin() -> Skin:
    """The mesh of the person, finer at head, hands and feet."""
    half = graded([(0.0, 0.016), (0.12, 0.021), (0.20, 0.027), (0.50, 0.025), (0.60, 0.0155), (0.80, 0.0155)])
    right_of_middle = half + (half[1] - half[0]) / 2.0  # a row of cells, and so of vertices, lies in the middle
    x = np.concatenate([-right_of_middle[::-1], right_of_middle])
    y = graded([(-0.25, 0.018), (-0.10, 0.015), (0.0, 0.020), (0.20, 0.024)])
    z = graded([(-0.03, 0.014), (0.06, 0.016), (0.20, 0.034), (0.88, 0.031), (0.94, 0.018), (1.12, 0.018),
                (1.20, 0.030), (1.42, 0.028), (1.55, 0.018), (1.80, 0.018)])  # fmt: skip
    points, quads = surface_net(body.skin_distance, (x, y, z))
    edges = edges_of(quads)
    points = settled(body.skin_distance, points, edges, rounds=8)
    groups = tuple(bone.name for bone in human_bones())
    points = np.round(points / _POINT_STEP) * _POINT_STEP
    return Skin(points, quads, groups, _weights(points, edges, groups))


def _weights(points: FloatArray, edges: IntArray, groups: tuple[str, ...]) -> FloatArray:
    """Give each vertex to its nearest bone, then average along the mesh, so that bones blend at the joints."""
    weights = np.zeros((len(points), len(groups)))
    weights[np.arange(len(points)), [groups.index(name) for name in body.nearest_bones(points)]] = 1.0
    for _ in range(_WEIGHT_ROUNDS):
        weights = 0.5 * (weights + spread(weights, edges))
    least_kept = np.sort(weights, axis=1)[:, -_INFLUENCES][:, None]
    weights[(weights < least_kept) | (weights < _LEAST_WEIGHT)] = 0.0
    weights = np.round(_WEIGHT_STEPS * weights / weights.sum(axis=1, keepdims=True))
    weights[np.arange(len(points)), np.argmax(weights, axis=1)] += _WEIGHT_STEPS - weights.sum(axis=1)
    return weights / _WEIGHT_STEPS
