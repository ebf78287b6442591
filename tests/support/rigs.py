"""Skeletons for the tests: the paper's models and random trees."""

import numpy as np

from fabrik_addon.core import Skeleton
from fabrik_addon.core.rotations import matrix_from_quaternion


def from_joints(bones):
    """A skeleton from (name, parent index, head, tail) rows; local X is as horizontal as possible."""
    rest = []
    for _, _, head, tail in bones:
        rest.append(frame_along(np.subtract(tail, head)))
        rest[-1][:3, 3] = head
    lengths = [np.linalg.norm(np.subtract(tail, head)) for _, _, head, tail in bones]
    return Skeleton([bone[0] for bone in bones], [bone[1] for bone in bones], rest, lengths)


def frame_along(direction):
    """A 4x4 frame whose Y points along a direction."""
    matrix = np.eye(4)
    length = np.linalg.norm(direction)
    y = np.asarray(direction, dtype=float) / length if length else np.array([0.0, 1.0, 0.0])
    helper = np.array([0.0, 0.0, 1.0]) if abs(y[2]) < 0.9 else np.array([0.0, -1.0, 0.0])
    x = np.cross(y, helper)
    x /= np.linalg.norm(x)
    matrix[:3, 0], matrix[:3, 1], matrix[:3, 2] = x, y, np.cross(x, y)
    return matrix


def straight_chain(bones, length=0.1):
    """A chain along +Y, every bone of one length."""
    return from_joints(
        [(f"b{i}", i - 1, (0, i * length, 0), (0, (i + 1) * length, 0)) for i in range(bones)],
    )


def random_rotations(rng, shape, most=np.pi):
    """Unit quaternions (*shape, 4) that rotate by up to `most` about random axes."""
    axes = rng.normal(size=(*shape, 3))
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    half = rng.uniform(-most, most, shape)[..., None] / 2
    return np.concatenate([np.cos(half), np.sin(half) * axes], axis=-1)


def random_tree(rng, bones, *, connected=0.5, inheriting=1.0):
    """A random tree: some bones start at their parent's tail, the others next to it; some do not inherit rotation."""
    parents, rest, lengths = [-1], [np.eye(4)], [rng.uniform(0.05, 0.4)]
    for _ in range(bones - 1):
        parent = int(rng.integers(0, len(parents)))
        offset = np.array([0.0, lengths[parent], 0.0])
        if rng.random() > connected:
            offset = offset + rng.normal(size=3) * 0.1
        matrix = np.eye(4)
        matrix[:3, :3] = matrix_from_quaternion(random_rotations(rng, ()))
        matrix[:3, 3] = rest[parent][:3, 3] + rest[parent][:3, :3] @ offset
        parents.append(parent)
        rest.append(matrix)
        lengths.append(rng.uniform(0.05, 0.4))
    flags = rng.random(bones) < inheriting
    return Skeleton([f"bone{i}" for i in range(bones)], parents, rest, lengths, flags)


def paper_y():
    """The paper's Y: a stem of four bones and two arms of three, thus 10 joints plus the tips."""
    stem = [(f"stem{i}", i - 1, (0, 0, 0.1 * i), (0, 0, 0.1 * (i + 1))) for i in range(4)]
    rows = list(stem)
    for name, side in (("left", 1), ("right", -1)):
        for i in range(3):
            parent = 3 if i == 0 else len(rows) - 1
            rows.append(
                (
                    f"{name}{i}",
                    parent,
                    (side * 0.08 * i, 0, 0.4 + 0.06 * i),
                    (side * 0.08 * (i + 1), 0, 0.46 + 0.06 * i),
                )
            )
    return from_joints(rows)


def person():
    """A person of 22 bones, Z up, facing -Y, in meters."""
    rows = [
        ("hips", -1, (0, 0, 0.95), (0, 0, 1.08)),
        ("spine", 0, (0, 0, 1.08), (0, 0.01, 1.2)),
        ("chest", 1, (0, 0.01, 1.2), (0, 0, 1.35)),
        ("upper_chest", 2, (0, 0, 1.35), (0, 0, 1.48)),
        ("neck", 3, (0, 0, 1.48), (0, -0.02, 1.58)),
        ("head", 4, (0, -0.02, 1.58), (0, -0.02, 1.75)),
    ]
    for side, x in (("L", 1), ("R", -1)):
        base = len(rows)
        rows += [
            (f"shoulder.{side}", 3, (0.02 * x, 0, 1.45), (0.17 * x, 0, 1.45)),
            (f"upper_arm.{side}", base, (0.17 * x, 0, 1.45), (0.37 * x, 0.01, 1.25)),
            (f"forearm.{side}", base + 1, (0.37 * x, 0.01, 1.25), (0.55 * x, -0.02, 1.07)),
            (f"hand.{side}", base + 2, (0.55 * x, -0.02, 1.07), (0.63 * x, -0.03, 1.0)),
        ]
        base = len(rows)
        rows += [
            (f"thigh.{side}", 0, (0.09 * x, 0, 0.92), (0.09 * x, -0.01, 0.5)),
            (f"shin.{side}", base, (0.09 * x, -0.01, 0.5), (0.09 * x, 0.01, 0.09)),
            (f"foot.{side}", base + 1, (0.09 * x, 0.01, 0.09), (0.09 * x, -0.13, 0.02)),
            (f"toe.{side}", base + 2, (0.09 * x, -0.13, 0.02), (0.09 * x, -0.19, 0.02)),
        ]
    return from_joints(rows)


def markers_on(skeleton, rng, per_bone, spread=0.06):
    """(bone name, offset) rows of markers scattered about every bone."""
    rows = []
    for name, length in zip(skeleton.names, skeleton.lengths, strict=True):
        rows += [(name, tuple(rng.normal(size=3) * spread + [0.0, length / 2, 0.0])) for _ in range(per_bone)]
    return rows


def points_of(skeleton, matrices, effectors):
    """([F,] E, 3) positions of effectors on bones with matrices ([F,] J, 4, 4)."""
    columns = []
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        offset = (0.0, skeleton.lengths[bone], 0.0) if effector.offset is None else effector.offset
        columns.append((matrices[..., bone, :, :] @ np.append(offset, 1.0))[..., :3])
    return np.stack(columns, axis=-2)
