"""Motions of the people of `humans`, as sources for retargeting."""

import numpy as np

from fabrik_addon.core import Skeleton, forward_kinematics
from fabrik_addon.core.rotations import matrix_from_quaternion, quaternion_from_matrix, quaternion_from_rotation_vector
from fabrik_addon.retarget.motion import Motion

RATE = 30.0


def skeleton_of(rows, scale=1.0, turn=None):
    """The bones of rows, scaled by a factor and rotated by a matrix (3, 3)."""
    turn = np.eye(3) if turn is None else turn
    names = [row.name for row in rows]
    rest = np.tile(np.eye(4), (len(rows), 1, 1))
    rest[:, :3, :3] = [turn @ row.axes for row in rows]
    rest[:, :3, 3] = [scale * turn @ row.head for row in rows]
    parents = [names.index(row.parent) if row.parent else -1 for row in rows]
    order = sorted(range(len(rows)), key=lambda row: _depth(parents, row))
    places = {row: place for place, row in enumerate(order)}
    above = [places[parents[row]] if parents[row] >= 0 else -1 for row in order]
    lengths = [scale * float(np.linalg.norm(rows[row].tail - rows[row].head)) for row in order]
    return Skeleton([names[row] for row in order], above, rest[order], lengths)


def _depth(parents, row):
    return 0 if parents[row] < 0 else 1 + _depth(parents, parents[row])


def swaying(skeleton, frames=40, size=0.5, seed=0):
    """(F, J, 4) local rotations and (F, 3) the root's head: every bone sways by up to about `size` radians."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0.0, 2.0 * np.pi, frames)[:, None, None]
    ways, starts = rng.normal(size=(len(skeleton), 3)), rng.uniform(0.0, 2.0 * np.pi, (len(skeleton), 1))
    rotations = quaternion_from_rotation_vector(0.5 * size * ways * np.sin(phase + starts))
    way = 0.3 * skeleton.size * np.concatenate([np.sin(phase), np.cos(phase), 0.1 * np.sin(2.0 * phase)], axis=2)[:, 0]
    return rotations, skeleton.rest[0, :3, 3] + way


def motion_of(skeleton, rotations, roots, name="source"):
    """The motion of a skeleton, as a source."""
    matrices = forward_kinematics(skeleton, rotations, roots)
    return Motion(
        name,
        skeleton.names,
        skeleton.parents,
        skeleton.lengths,
        skeleton.rest,
        quaternion_from_matrix(matrices[..., :3, :3]),
        matrices[..., :3, 3],
        np.zeros(3),
        RATE,
    )


def in_other_rest(skeleton, rotations, roots, rows, names, scale, turn, *, across):
    """The same motion as a source whose rest pose is that of other rows, in other units, axes and names.

    across: its bones' own axes are the world's at rest, as those of a .bvh file are.
    """
    matrices = forward_kinematics(skeleton, rotations, roots)
    other = skeleton_of(rows)
    own = other.rest[:, :3, :3]
    axes = np.tile(np.eye(3), (len(own), 1, 1)) if across else own
    rest = np.tile(np.eye(4), (len(own), 1, 1))
    rest[:, :3, :3], rest[:, :3, 3] = turn @ axes, scale * other.rest[:, :3, 3] @ turn.T
    turned = quaternion_from_matrix(turn @ matrices[..., :3, :3] @ np.swapaxes(own, 1, 2) @ axes)
    names, heads = tuple(map(names, skeleton.names)), scale * matrices[..., :3, 3] @ turn.T
    return Motion("other", names, skeleton.parents, scale * skeleton.lengths, rest, turned, heads, np.zeros(3), RATE)


def in_no_rest(skeleton, rotations, roots):
    """The same motion, from a source whose rest pose has all limbs along one axis, as in some files."""
    matrices = forward_kinematics(skeleton, rotations, roots)
    turned, heads = matrices[..., :3, [1, 2, 0]], matrices[..., :3, 3]
    rest = np.tile(np.eye(4), (len(skeleton), 1, 1))
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            offset = heads[0, bone] - heads[0, parent]
            rest[bone, :3, 3] = rest[parent, :3, 3] + turned[0, parent].T @ offset
    names, lengths = skeleton.names, skeleton.lengths
    turned = quaternion_from_matrix(turned)
    return Motion("axis", names, skeleton.parents, lengths, rest, turned, heads, np.zeros(3), RATE)


def turned_by(skeleton, rotations, roots=None):
    """(F, J, 3, 3) rotations of bones from rest in armature space, and (F, J, 3) their heads."""
    matrices = forward_kinematics(skeleton, rotations, roots)
    return matrices[..., :3, :3] @ np.swapaxes(skeleton.rest[:, :3, :3], 1, 2), matrices[..., :3, 3]


def degrees_between(matrices, others):
    """(...) degrees between rotation matrices."""
    # Exact for small angles too: the chord between two rotations is √8 times the sine of half the angle.
    chord = np.linalg.norm(matrices - others, axis=(-2, -1)) / np.sqrt(8.0)
    return np.degrees(2.0 * np.arcsin(np.clip(chord, 0.0, 1.0)))


def about_z(degrees):
    """(3, 3) a rotation about Z."""
    half = np.radians(0.5 * degrees)
    return matrix_from_quaternion(np.array([np.cos(half), 0.0, 0.0, np.sin(half)]))
