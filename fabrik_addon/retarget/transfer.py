"""Transfers rotations: each bone gets the rotation of its source bones, both relative to rest."""

from collections.abc import Sequence

import numpy as np

from ..core import Skeleton, forward_kinematics
from ..core.arrays import FloatArray, IntArray
from ..core.rotations import IDENTITY, conjugate, product, quaternion_from_matrix, slerp
from ..human.rest_body import RestBody
from .alignment import Alignment
from .motion import Motion
from .pairs import Pair


class Transfer:
    """Transfers the rotations of a source to a tree of bones; prepared once for many frames.

    hips: the bone of the skeleton that follows the source's location, which is the midpoint of its hip joints.
    """

    def __init__(
        self,
        motion: Motion,
        source: RestBody,
        skeleton: Skeleton,
        target: RestBody,
        pairs: Sequence[Pair],
        alignment: Alignment,
    ) -> None:
        self.skeleton, self.alignment, self.motion = skeleton, alignment, motion
        indices = {name: index for index, name in enumerate(motion.names)}
        rest = quaternion_from_matrix(skeleton.rest[:, :3, :3])
        from_carrier = [skeleton.rest_turn(bone) for bone in range(len(skeleton))]
        self._from_carrier = conjugate(quaternion_from_matrix(np.stack(from_carrier)))
        # For each bone: its source bones, each with the rotation of the rig's bone at rest in the source bone's frame.
        self._pairs: dict[int, list[tuple[int, FloatArray]]] = {}
        self._shares: dict[int, float] = {}
        for pair in pairs:
            bone = skeleton.index(pair.bone)
            own = product(alignment.corrections[pair.bone], rest[bone])
            self._shares[bone], self._pairs[bone] = pair.share, []
            for name in [pair.before, pair.source] if pair.before else [pair.source]:
                theirs = product(alignment.turn, quaternion_from_matrix(source.bones[name].axes))
                self._pairs[bone].append((indices[name], product(conjugate(theirs), own)))
        self.hips = skeleton.index(target.named("hips")[0])
        own_joints, joints = (body.named("thigh") or body.named("hips") for body in (target, source))
        hips = skeleton.rest[self.hips]
        middle = np.mean([target.bones[name].head for name in own_joints], axis=0)
        self._middle = hips[:3, :3].T @ (middle - hips[:3, 3])
        self._joints: IntArray = np.array([indices[name] for name in joints])

    def poses(self, frames: slice) -> tuple[FloatArray, FloatArray]:
        """(F, J, 4) local rotations and (F, 3) the root's head, armature space, on some frames."""
        motion, skeleton = self.motion, self.skeleton
        count = len(motion.heads[frames])
        world: list[FloatArray] = []
        local = np.empty((count, len(skeleton), 4))
        for bone, parent in enumerate(skeleton.parents):
            carried = world[parent] if parent >= 0 and skeleton.inherits_rotation[bone] else None
            if bone in self._pairs:
                turned = self.turned(bone, frames)
                within = turned if carried is None else product(conjugate(carried), turned)
                local[:, bone] = product(self._from_carrier[bone], within)
            else:
                own = np.broadcast_to(conjugate(self._from_carrier[bone]), (count, 4))
                turned = own if carried is None else product(carried, own)
                local[:, bone] = IDENTITY
            world.append(turned)
        # The root is placed so that the hip joints coincide with those of the source.
        wanted = self.alignment.to_rig(motion.heads[frames][:, self._joints].mean(axis=1))
        path = skeleton.path(self.hips)
        matrices = forward_kinematics(skeleton.part(path), local[:, path])[:, -1]
        reached = matrices[:, :3, 3] + matrices[:, :3, :3] @ self._middle
        return local, np.asarray(skeleton.rest[0, :3, 3] + wanted - reached)

    def turned(self, bone: int, frames: slice) -> FloatArray:
        """(F, 4) a bone's transferred rotation in armature space."""
        rotations, turn = self.motion.rotations, self.alignment.turn
        ends = [product(product(turn, rotations[frames, index]), own) for index, own in self._pairs[bone]]
        return ends[0] if len(ends) == 1 else slerp(ends[0], ends[1], np.full(len(ends[0]), self._shares[bone]))
