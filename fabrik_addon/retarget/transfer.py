"""Rotations carried over: each bone turns from its rest as its bones of the source do from theirs."""

from collections.abc import Sequence

import numpy as np

from ..core import Skeleton, forward_kinematics
from ..core.arrays import FloatArray, IntArray
from ..core.rotations import NO_TURN, conjugate, product, quaternion_from_matrix, slerp
from ..human.rest_body import RestBody
from .alignment import Alignment
from .motion import Motion
from .pairs import Pair


class Transfer:
    """Carries the rotations of a source over to a tree of bones, prepared once for many frames.

    hips: the bone of the skeleton whose place is the source's; (3,) `middle`, between the hips' joints, in its frame.
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
        places = {name: place for place, name in enumerate(motion.names)}
        rest = quaternion_from_matrix(skeleton.rest[:, :3, :3])
        rest_matrices = [skeleton.rest_turn(bone) for bone in range(len(skeleton))]
        self._from_carrier = conjugate(quaternion_from_matrix(np.stack(rest_matrices)))
        self._pairs: dict[int, list[tuple[int, FloatArray]]] = {}
        self._shares: dict[int, float] = {}
        for pair in pairs:
            bone = skeleton.index(pair.bone)
            own = product(alignment.corrections[pair.bone], rest[bone])
            names = [pair.before, pair.source] if pair.before else [pair.source]
            self._pairs[bone] = [(places[name], _before(alignment, source, name, own)) for name in names]
            self._shares[bone] = pair.share
        self.hips = skeleton.index(target.named("hips")[0])
        self.middle = _in_frame(skeleton, self.hips, _middle(target))
        self._joints: IntArray = np.array([places[name] for name in _middle_bones(source)])

    def poses(self, frames: slice) -> tuple[FloatArray, FloatArray]:
        """(F, J, 4) local rotations and (F, 3) the root's head, armature space, of some of the frames."""
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
                local[:, bone] = NO_TURN
            world.append(turned)
        return local, self._root(frames, local)

    def turned(self, bone: int, frames: slice) -> FloatArray:
        """(F, 4) a bone's frame in armature space."""
        rotations = self.motion.rotations
        turn = self.alignment.turn
        ends = [product(product(turn, rotations[frames, place]), after) for place, after in self._pairs[bone]]
        if len(ends) == 1:
            return ends[0]
        return slerp(ends[0], ends[1], np.full(len(ends[0]), self._shares[bone]))

    def _root(self, frames: slice, local: FloatArray) -> FloatArray:
        """(F, 3) where the root's head is, so that the hips' joints are where the source has them."""
        wanted = self.alignment.place(self.motion.heads[frames][:, self._joints].mean(axis=1))
        matrices = forward_kinematics(self.skeleton, local)[:, self.hips]
        reached = matrices[:, :3, 3] + matrices[:, :3, :3] @ self.middle
        return np.asarray(self.skeleton.rest[0, :3, 3] + wanted - reached)


def _before(alignment: Alignment, source: RestBody, name: str, own: FloatArray) -> FloatArray:
    """(4,) what a rig's bone has before the source's bone turns: its rest as seen from that bone's frame."""
    rest = quaternion_from_matrix(source.bones[name].axes)
    return product(product(conjugate(rest), conjugate(alignment.turn)), own)


def _middle_bones(body: RestBody) -> list[str]:
    """The bones between whose heads the hips' joints are."""
    return body.named("thigh") or body.named("hips")


def _middle(body: RestBody) -> FloatArray:
    return np.asarray(np.mean([body.bones[name].head for name in _middle_bones(body)], axis=0))


def _in_frame(skeleton: Skeleton, bone: int, point: FloatArray) -> FloatArray:
    """(3,) a point of armature space in the frame of a bone at rest."""
    rest = skeleton.rest[bone]
    return np.asarray(rest[:3, :3].T @ (point - rest[:3, 3]))
