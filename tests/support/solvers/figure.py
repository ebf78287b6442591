"""A rig for methods that rotate joints: bones rotate about their heads, and the bones below follow."""

import numpy as np

from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.rotations import matrix_from_quaternion, quaternion_from_matrix

try:  # the shipped solver clamps a single pose with mathutils if possible, and so do the methods compared with it
    from fabrik_addon.core.backend.scalar import one as numbers
except ImportError:
    numbers = many


class Figure:
    """A posed skeleton of B bones whose E end effectors are the tails of some of them.

    Attributes:
        heads: (B, 3) heads of the bones.
        frames: (B, 3, 3) orientations, in the skeleton's space.
        rides: (B, E) whether an effector moves when a bone rotates.
    """

    def __init__(self, skeleton, ends, *, limits=None, rotations=None, root=None):
        rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1))
        matrices = forward_kinematics(skeleton, rest if rotations is None else rotations, root)
        self.skeleton, self.limits = skeleton, dict(limits or {})
        self.heads, self.frames = matrices[:, :3, 3].copy(), matrices[:, :3, :3].copy()
        self._ends = np.array([skeleton.index(end) for end in ends])
        paths = [skeleton.path(bone) for bone in range(len(skeleton))]
        self._below = [np.array([b for b in range(len(skeleton)) if bone in paths[b]]) for bone in range(len(skeleton))]
        self.rides = np.array([[bone in paths[end] for end in self._ends] for bone in range(len(skeleton))])
        self.bones = np.flatnonzero(self.rides.any(axis=1))

    @property
    def tips(self):
        """(E, 3) positions of the end effectors."""
        return self.heads[self._ends] + self.frames[self._ends, :, 1] * self.skeleton.lengths[self._ends, None]

    @property
    def tails(self):
        """(B, 3) ends of the bones."""
        return self.heads + self.frames[:, :, 1] * self.skeleton.lengths[:, None]

    @property
    def points(self):
        """(2 B, 3) heads and tails."""
        return np.concatenate([self.heads, self.tails])

    def move_root(self, head):
        """Move the whole figure so that its root's head is at a position."""
        self.heads += head - self.heads[0]

    def turn(self, bone, rotation_vector):
        """Rotate a bone and all below it about its head, within its limit; radians about an axis (3,)."""
        turn = turn_by(rotation_vector)
        limit = self.limits.get(self.skeleton.names[bone])
        if limit is not None:
            turn = orthonormal(self._inside(limit, bone, turn @ self.frames[bone]) @ self.frames[bone].T)
        carried, head = self._below[bone], self.heads[bone]
        self.frames[carried] = turn @ self.frames[carried]
        self.heads[carried] = head + (self.heads[carried] - head) @ turn.T

    def _inside(self, limit, bone, frame):
        """The frame (3, 3), or the nearest one that the bone's limit allows."""
        parent, rest = self.skeleton.parents[bone], self.skeleton.rest[:, :3, :3]
        unturned = rest[bone] if parent < 0 else self.frames[parent] @ rest[parent].T @ rest[bone]
        local = numbers.quaternion(quaternion_from_matrix(unturned.T @ frame)[None])
        inside = numbers.stack([limit.clamp(numbers, local)], 1)[0, 0]
        return unturned @ matrix_from_quaternion(inside)


def orthonormal(turn):
    """A (3, 3) matrix that is nearly a rotation, orthonormalized: otherwise rounding errors would grow."""
    return turn @ (1.5 * np.eye(3) - 0.5 * turn.T @ turn)


def turn_by(rotation_vector):
    """(3, 3) the rotation about an axis (3,) by its length in radians: Rodrigues' formula."""
    angle = np.sqrt(rotation_vector @ rotation_vector)
    if angle == 0.0:
        return np.eye(3)
    x, y, z = rotation_vector / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
