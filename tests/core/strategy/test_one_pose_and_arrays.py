"""A frame has the same pose if it is solved alone, with mathutils' single precision, or with others in arrays."""

import numpy as np
import pytest
from support.families import ball, hinge
from support.rigs import from_joints

from fabrik_addon.core import Effector, Options, Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix

pytest.importorskip("mathutils", reason="mathutils comes with Blender")
pytestmark = pytest.mark.one_pose

PROBLEMS, FRAMES = 60, 4
# Restarts are solved in arrays in both cases, and take most of the time.
RESTARTS = 4


def random_tree(rng):
    """A tree of 2 to 8 bones, about half of them limited."""
    joints, tails = [], []
    for bone in range(int(rng.integers(2, 9))):
        parent = -1 if bone == 0 else int(rng.integers(max(0, bone - 2), bone))
        head, direction = np.zeros(3) if parent < 0 else tails[parent], rng.normal(size=3)
        tails.append(head + direction / np.linalg.norm(direction) * rng.uniform(0.2, 1.0))
        joints.append((f"b{bone}", parent, tuple(head), tuple(tails[-1])))
    limits = {}
    for name, *_ in joints:
        kind = rng.integers(0, 5)
        if kind == 0:
            limits[name] = ball(rng.uniform(10, 120), tuple(np.sort(rng.uniform(-90, 90, 2))))
        elif kind == 1:
            limits[name] = hinge("XYZ"[rng.integers(3)], *np.sort(rng.uniform(-120, 120, 2)))
        elif kind == 2:
            limits[name] = ball(rng.uniform(10, 120, 4).tolist())
    return from_joints(joints), limits


def random_problem(seed):
    """A solver, targets (F, E, 3) of which many are out of reach, and target rotations for some effectors."""
    rng = np.random.default_rng(seed)
    skeleton, limits = random_tree(rng)
    leaves = [bone for bone in range(len(skeleton)) if bone not in skeleton.parents][:3]
    effectors = [Effector(skeleton.names[bone], rotation_weight=float(rng.choice([0, 0, 1.0]))) for bone in leaves]
    root = str(rng.choice(["FIXED", "FREE"]))
    poses = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, len(skeleton), 1))
    for name, limit in limits.items():
        poses[:, skeleton.index(name)] = limit.sample(rng.random((FRAMES, 3)))
    matrices = forward_kinematics(skeleton, poses)[:, leaves]
    targets = matrices[..., :3, 3] + matrices[..., :3, 1] * skeleton.lengths[leaves, None]
    targets += rng.normal(size=targets.shape) * 0.15 * (rng.random((FRAMES, 1, 1)) < 0.6)
    solver = Solver(skeleton, effectors, limits=limits, root=root, options=Options(restarts=RESTARTS))
    return solver, targets, quaternion_from_matrix(matrices[..., :3, :3])


@pytest.mark.one_blender
def test_status_and_pose_are_the_same():
    statuses, poses = 0, 0
    for seed in range(PROBLEMS):
        solver, targets, rotations = random_problem(seed)
        together = solver.solve(targets, target_rotations=rotations)
        for frame in range(FRAMES):
            alone = solver.solve(targets[frame], target_rotations=rotations[frame])
            statuses += bool(alone.status != together.status[frame])
            turned = angle_between(alone.rotations, together.rotations[frame]).max()
            poses += bool(turned > np.radians(1.0))
    assert statuses <= 0.01 * PROBLEMS * FRAMES
    assert poses <= 0.01 * PROBLEMS * FRAMES
