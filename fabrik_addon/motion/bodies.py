"""A body of rigid bones on many frames at once: where everything is, and how it moves when its joints turn.

Columns and bodies are those of `Bodies`; every array has the F frames in front.
"""

import numpy as np

from ..core.arrays import FloatArray, IntArray
from ..core.posture.body import Bodies, Motions, Stance, cross
from ..core.rotations import matrix_from_quaternion, product, quaternion_from_rotation_vector


class FrameBodies(Bodies):
    """`Bodies` whose stances are those of F frames: local (F, B, 4), root (F, 3), heads (F, B, 3) and so on."""

    def stand(self, local: FloatArray, root: FloatArray) -> Stance:
        """Where the bodies are with (F, B, 4) local rotations and the root's head at (F, 3)."""
        frames = self.rest_turns @ matrix_from_quaternion(local)
        heads = np.empty((*local.shape[:2], 3))
        carried = np.broadcast_to(self.rest_turns, frames.shape).copy()
        for body, parent in enumerate(self.parents):
            if parent < 0:
                heads[:, body] = root
                continue
            above = frames[:, parent]
            heads[:, body] = heads[:, parent] + above @ self._offsets[body, :3, 3]
            if self.inherits[body]:
                carried[:, body] = above @ self.rest_turns[body]
                frames[:, body] = above @ frames[:, body]
        return Stance(local, root, heads, frames, carried)

    def vectors(self, step: FloatArray) -> FloatArray:
        """(F, B, 3) rotation vectors, in the frames that carry the bodies, of steps (F, D)."""
        vectors = np.zeros((len(self.bones), len(step), 3))
        np.add.at(vectors, self._turning_body, np.swapaxes(step[:, : self.turning, None] * self.axes, 0, 1))
        return np.swapaxes(vectors, 0, 1)

    def moved(self, stance: Stance, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, B, 4) local rotations and (F, 3) roots after steps (F, D), limits not looked at."""
        root = stance.root + step[:, self.turning :] if self.free_root else stance.root
        local = product(quaternion_from_rotation_vector(self.vectors(step)), stance.local)
        return local / np.sqrt((local * local).sum(axis=-1, keepdims=True)), root

    def motions(self, stance: Stance) -> Motions:
        """(F, D, 3) the axis of each column and (F, D, 3) the speed of what it moves at the armature's origin."""
        axes, speeds = (np.zeros((len(stance.root), self.columns, 3)) for _ in range(2))
        axes[:, : self.turning] = (stance.carried[:, self._turning_body] @ self.axes[..., None])[..., 0]
        speeds[:, : self.turning] = cross(stance.heads[:, self._turning_body], axes[:, : self.turning])
        if self.free_root:
            speeds[:, self.turning :] = np.eye(3)
        return axes, speeds

    def shifts(self, stance: Stance, motions: Motions, points: FloatArray, on: IntArray) -> FloatArray:
        """(F, n, 3, D) how points (F, n, 3) of bodies (n,) move with the columns."""
        axes, speeds = motions
        moves = self.above[self.body_of][:, on].T
        arms = points[:, :, None]
        if self.broken:
            ends = self.ends[self.body_of][:, on].T
            arms = np.where((ends >= 0)[..., None], stance.heads[:, ends], arms)
        shifts = (cross(axes[:, None], arms) + speeds[:, None]) * moves[..., None]
        return np.swapaxes(shifts, 2, 3)

    def turns(self, motions: Motions, on: IntArray) -> FloatArray:
        """(F, n, 3, D) how bodies (n,) turn with the columns."""
        moves = self.above[self.body_of][:, on].T & (self.ends[self.body_of][:, on].T < 0)
        return np.swapaxes(motions[0][:, None] * moves[..., None], 2, 3)
