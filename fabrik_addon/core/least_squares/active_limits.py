"""The joint limits at which bodies stand, and what they leave open of a least-squares step."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, Quaternion, lengths
from ..model.bodies import Body, Pose, carried_frame
from ..model.residuals import rotation_vector
from .equations import Equations

# A joint stands at its limit within so many radians: half a hundredth of a degree, which nobody sees.
AT_LIMIT = 1e-4
# A limit is active from this cosine on between the residuals and a turn out of it; below it is rounding.
_PUSH = 1e-9
# A turn is cut short where a limit takes a tenth of it: less is the bend of the limit's own outline.
_CUT = 0.1
_TINY = 1e-12


class LimitConstraints:
    """The limit constraints at which B bodies stand on F frames, K or fewer to a body.

    Attributes:
        normals: (F, B, K, 3) unit, in armature space; turning along one leads out of the limit. Zero where there is
            none, or where the body does not stand at it.
    """

    def __init__(
        self, numbers: ModuleType, bodies: Sequence[Body], local: Sequence[Quaternion], pose: Pose, frames: int
    ) -> None:
        """Look at all limits from a pose of the bodies."""
        places, normals, gaps = [], [], []
        for index, body in enumerate(bodies):
            if body.limit is None:
                continue
            near = body.limit.walls(numbers, local[index], AT_LIMIT)
            carried = carried_frame(body, pose) if near else None
            for place, wall in enumerate(near):
                places.append((index, place))
                normals.append(carried @ wall.normal)
                gaps.append(wall.slack)
        most = max((place + 1 for _, place in places), default=0)
        self.normals = np.zeros((frames, len(bodies), most, 3))
        if places:
            body_of, place_of = np.array(places).T
            outward = numbers.stack(normals, frames)
            at = numbers.row(gaps, frames) <= AT_LIMIT
            self.normals[:, body_of, place_of] = outward * (at / np.maximum(lengths(outward), _TINY))[..., None]

    def projected(self, equations: Equations, frames: slice, cost: FloatArray) -> Equations:
        """The equations of N of the frames, whose cost is (N,), without what the active limits close."""
        if not self.normals.any():
            return equations
        push = equations.push()[:, : 3 * self.normals.shape[1]]
        least = _PUSH * np.sqrt(cost)
        return equations.projected(self.tangents(push.reshape(len(push), -1, 3), least, frames))

    def tangents(self, push: FloatArray, least: FloatArray, frames: slice) -> FloatArray:
        """(N, B, 3, 3) projectors of rotation vectors on what the limits leave open where (N, B, 3) pushes the joints.

        A push of no more than (N,) `least` is none.

        The limit that is pushed against most is active; then, of what it leaves of the push, the one that this is
        pushed against most, and so on. With two limits, at a corner, this is the nearest feasible direction.
        """
        normals = self.normals[frames]
        tangents = np.broadcast_to(np.eye(3), (*push.shape, 3)).copy()
        where = np.nonzero(normals.any(axis=(2, 3)))
        normals, left, open_ = normals[where], push[where], tangents[where]
        least = least[where[0]]
        for _ in range(normals.shape[1]):
            against = (normals @ left[..., None])[..., 0]
            most = against.argmax(axis=1)
            rows = np.arange(len(most))
            active = against[rows, most] > least
            if not active.any():
                break
            unit = (open_ @ normals[rows, most][..., None])[..., 0]
            unit *= (active / np.maximum(lengths(unit), _TINY))[:, None]
            open_ -= unit[:, :, None] * unit[:, None, :]
            left = (open_ @ left[..., None])[..., 0]
        tangents[where] = open_
        return tangents


def cut_short(
    numbers: ModuleType,
    bodies: Sequence[Body],
    pose: Pose,
    steps: tuple[Sequence[Quaternion], Sequence[Quaternion]],
    wanted: FloatArray,
    frames: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Where limits kept joints from turning as wanted, on N of F frames.

    Args:
        numbers: the number system.
        bodies: B of them.
        pose: theirs before.
        steps: their local rotations before and after.
        wanted: (F, B, 3) rotation vectors in armature space.
        frames: (N,) the frames to look at.

    Returns:
        (F, B, 3) unit axes about which they did, zero for all others, and (F, B) how far they let them.
    """
    axes, moved = np.zeros(wanted.shape), np.zeros(wanted.shape[:2])
    limited = [index for index, body in enumerate(bodies) if body.limit is not None]
    if not (limited and len(frames)):
        return axes, moved
    vectors = []
    for index in limited:
        turn = numbers.take(steps[1][index] @ steps[0][index].conjugated(), frames)
        vectors.append(numbers.take(carried_frame(bodies[index], pose), frames) @ rotation_vector(numbers, turn))
    where, turned = (frames[:, None], np.array(limited)), numbers.stack(vectors, len(frames))
    cut = wanted[where] - turned
    size = lengths(cut)
    axes[where] = cut * ((size > AT_LIMIT + _CUT * lengths(wanted[where])) / np.maximum(size, _TINY))[..., None]
    moved[where] = (axes[where] * turned).sum(axis=-1)
    return axes, moved


def binding(numbers: ModuleType, bodies: Sequence[Body], local: Sequence[Quaternion], frames: int) -> BoolArray:
    """(F, B) whether a body stands at a side of its limit; a fixed one always does."""
    result = np.zeros((frames, len(bodies)), dtype=bool)
    for index, (body, rotation) in enumerate(zip(bodies, local, strict=True)):
        if body.limit is None:
            continue
        if body.limit.freedom == 0:
            result[:, index] = True
        for wall in body.limit.walls(numbers, rotation, AT_LIMIT):
            result[:, index] |= np.asarray(wall.slack) <= AT_LIMIT
    return result
