"""Limits of all joints at once, against each limit by itself."""

import numpy as np
import pytest

from fabrik_addon.core import Ball, Hinge, Polygon, Skeleton
from fabrik_addon.core.backend import array as many
from fabrik_addon.core.posture.body import Bodies
from fabrik_addon.core.posture.joint_limits import JointLimits
from fabrik_addon.core.rotations import angle_between

LIMITS = (
    Ball((0.8, 0.3, 1.2, 0.5), (-0.4, 0.6)),
    Ball(1.0),
    Ball((0.9, 0.0, 0.4, 0.0), (0.1, 0.2)),
    Ball((np.pi, 2.0, np.pi, 0.7), (2.0, 4.0)),
    Hinge("X", -0.2, 2.5),
    Polygon([(-0.5, -0.5), (0.6, -0.2), (0.1, 0.7)], (-0.3, 0.3)),
)


def joints():
    """The limits of a chain, a bone for each of them."""
    count = len(LIMITS)
    rest = np.tile(np.eye(4), (count, 1, 1))
    rest[:, 1, 3] = np.arange(count)
    skeleton = Skeleton([f"b{bone}" for bone in range(count)], range(-1, count - 1), rest, [1.0] * count)
    axes = [np.eye(3) if limit.turn_axis is None else np.array([limit.turn_axis]) for limit in LIMITS]
    return JointLimits(Bodies(skeleton, range(count), axes, free_root=False), LIMITS)


@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_each_joint_is_clamped_as_by_its_own_limit(spread):
    random, limits = np.random.default_rng(4), joints()
    for _ in range(20):
        local = np.array([1.0, 0.0, 0.0, 0.0]) + spread * random.normal(size=(len(LIMITS), 4))
        local /= np.linalg.norm(local, axis=1)[:, None]
        alone = [
            many.stack([limit.clamp(many, many.quaternion(rotation[None]))], 1)[0, 0]
            for limit, rotation in zip(LIMITS, local, strict=True)
        ]
        assert angle_between(limits.clamped(local), np.array(alone)).max() < 1e-9


def test_what_is_inside_stays():
    limits = joints()
    inside = limits.clamped(np.tile([1.0, 0.0, 0.0, 0.0], (len(LIMITS), 1)))
    assert angle_between(limits.clamped(inside), inside).max() < 1e-9
