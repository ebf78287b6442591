"""Computes mechanism bones over many frames, from their parents and constraints."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

import numpy as np
from bpy.types import Object, PoseBone
from mathutils import Matrix

from ...core.arrays import ROUNDS, TINY, FloatArray, lengths, times
from ...core.rotations import IDENTITY, matrix_from_quaternion, quaternion_from_rotation_vector, rotation_between, slerp
from ..rig.armature import as_array, unscaled
from ..rig.pose_writer import moved_by
from ..settings.control import moves

# Radians: Blender's IK rotates by no more in one step, and ends, after ROUNDS or more steps, with a smaller one.
_MOST_TURN: Final = np.pi / 4.0
_STILL: Final = 1e-3
_KNOWN: Final = ("COPY_TRANSFORMS", "DAMPED_TRACK")


def by_channels(control: PoseBone, there: Matrix | None = None) -> Matrix:
    """A control's matrix in armature space if it had no constraints.

    With `there`, the opposite: the basis matrix that gives the matrix `there` in armature space.
    """
    bone, above = control.bone, control.parent
    parents = () if above is None else (above.matrix, above.bone.matrix_local)
    held = dict(zip(("parent_matrix", "parent_matrix_local"), parents, strict=False))
    convert: Any = bone.convert_local_to_pose
    return convert(there or control.matrix_basis, bone.matrix_local, **held, invert=there is not None)


class Mechanism:
    """Bones that follow others on F frames, with their current channels.

    Computes tracking, copied transforms, and IK without poles; bones with other constraints keep their current pose
    relative to their parent.

    Attributes:
        known: (F, 4, 4) matrices in armature space, by bone.
    """

    def __init__(self, rig: Object, known: dict[str, FloatArray]) -> None:
        self.rig, self.known, self._frames = rig, known, len(next(iter(known.values())))

    def matrices(self, bone: PoseBone) -> FloatArray:
        """(F, 4, 4) matrices of a bone."""
        if bone.name not in self.known:
            # Dependencies of constraints may be circular.
            self.known[bone.name] = np.tile(unscaled(as_array(bone.matrix)), (self._frames, 1, 1))
            every: Iterable[Any] = (bone, *bone.children_recursive)
            iks = ((each, ik) for each in every for ik in each.constraints if ik.type == "IK" and moves(ik))
            chain = next(((each, ik) for each, ik in iks if not ik.pole_subtarget and bone in moved_by(each, ik)), None)
            if chain is None:
                self.known[bone.name] = self._constrained(bone)
            else:
                self._solve(*chain)
        return self.known[bone.name]

    def motion(self, bone: PoseBone) -> FloatArray:
        """(F, 4, 4) motion of a bone from its current matrix."""
        return np.asarray(self.matrices(bone) @ np.linalg.inv(unscaled(as_array(bone.matrix))))

    def _fixed(self, bone: PoseBone, matrix: Matrix) -> FloatArray:
        """(F, 4, 4) matrices of a bone that is fixed to its parent where its matrix now is `matrix`."""
        own = unscaled(as_array(matrix))
        return np.tile(own, (self._frames, 1, 1)) if bone.parent is None else self.motion(bone.parent) @ own

    def _constrained(self, bone: PoseBone) -> FloatArray:
        constraints: Iterable[Any] = bone.constraints
        every = [each for each in constraints if each.type in _KNOWN and moves(each) and each.target == self.rig]
        found = self._fixed(bone, by_channels(bone) if every else bone.matrix)
        for each in every:
            there = self.matrices(self.rig.pose.bones[each.subtarget])
            if each.type == "COPY_TRANSFORMS":
                found = there
                continue
            swings = rotation_between(found[:, :3, 1], there[:, :3, 3] - found[:, :3, 3])
            swings = slerp(np.broadcast_to(IDENTITY, swings.shape), swings, np.full(len(swings), each.influence))
            found[:, :3, :3] = matrix_from_quaternion(swings) @ found[:, :3, :3]
        return found

    def _solve(self, lower: PoseBone, ik: Any) -> None:
        """Add the bones of a chain whose tail IK moves to its target, by the steps of Blender's solver."""
        chain = [*moved_by(lower, ik)][::-1]
        found = []
        for bone in chain:
            self.known[bone.name] = self._fixed(bone, by_channels(bone))
            found.append(self.known[bone.name])
        goal = self.matrices(self.rig.pose.bones[ik.subtarget])[:, :3, 3]
        # (B, F, 3, 3) rotations, relative to the bone above; (B, F, 3) vectors to the next bone, in the bone's frame.
        turned = np.stack([each[:, :3, :3] for each in found])
        back, heads = np.swapaxes(turned, -1, -2), np.stack([each[:, :3, 3] for each in found])
        root, own = heads[0], np.concatenate([turned[:1], back[:-1] @ turned[1:]])
        tail = heads[-1:] + lower.bone.length * turned[-1:, ..., 1]
        arms = times(back, np.diff(np.concatenate([heads, tail]), axis=0))
        free = ~np.array([(bone.lock_ik_x, bone.lock_ik_y, bone.lock_ik_z) for bone in chain])
        rows = np.arange(len(goal))
        for count in range(ik.iterations):
            turned = np.stack([*accumulate(own[:, rows], np.matmul)])
            spans = times(turned, arms[:, rows])
            places = root[rows] + np.cumsum(spans, axis=0)
            gaps = goal[rows] - places[-1]
            gaps *= np.minimum(1.0, 0.5 * lengths(spans).mean(axis=0) / np.maximum(lengths(gaps), TINY))[:, None]
            levers = (places[-1] - places + spans)[:, :, None]
            effects = np.cross(np.swapaxes(turned, -1, -2), levers) * free[:, None, :, None]
            steps = _damped(np.moveaxis(effects, 0, 1).reshape(len(rows), -1, 3), gaps)
            turns = quaternion_from_rotation_vector(np.moveaxis(steps.reshape(len(rows), -1, 3), 1, 0))
            own[:, rows] = own[:, rows] @ matrix_from_quaternion(turns)
            if count >= ROUNDS - 1:
                rows = rows[np.abs(steps).max(axis=1) >= _STILL]
            if not len(rows):
                break
        turned = np.stack([*accumulate(own, np.matmul)])
        places = root + np.cumsum(times(turned, arms), axis=0)
        for bone, turns, place in zip(chain, turned, [root, *places[:-1]], strict=True):
            self.known[bone.name] = posed = np.tile(np.eye(4), (self._frames, 1, 1))
            posed[:, :3, :3], posed[:, :3, 3] = turns, place


def _damped(effects: FloatArray, gaps: FloatArray) -> FloatArray:
    """(F, C) radians, in which C axes with effects (F, C, 3) should be rotated to close gaps (F, 3).

    Selectively damped least squares, as in Blender: Buss and Kim, Journal of Graphics Tools 10, 2005.
    """
    squared, axes = np.linalg.eigh(np.swapaxes(effects, 1, 2) @ effects)
    sizes = np.sqrt(np.maximum(squared, TINY))
    shares = effects @ axes / sizes[:, None]
    steps = shares * (np.sum(axes * gaps[:, :, None], axis=1) / sizes)[:, None]
    spread = np.sum(np.abs(shares) * lengths(effects)[:, :, None], axis=1) / sizes
    most = _MOST_TURN / np.maximum(spread, 1.0)
    steps *= (0.8 * np.minimum(1.0, most / np.maximum(np.abs(steps).max(axis=1), TINY)))[:, None]
    steps = steps.sum(axis=2)
    largest = np.abs(steps).max(axis=1, keepdims=True)
    return np.where(largest > _MOST_TURN, steps * _MOST_TURN / (_MOST_TURN + largest), steps)
