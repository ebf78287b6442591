"""The pose in which source and rig are compared: the source's rest, or the frame on which it stands most as the rig.

Some files' rest poses are none that a body can stand in, such as one with all limbs along one axis.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray
from ..human.rest_body import BodyAxes, RestBody, square
from .motion import Motion, RetargetError

# What is compared, the way that it goes as seen from the body: what keeps its shape when poses are carried over, and
# thighs. Arms are brought into line then: of 40 frames of which one stood, three of four rigs took that one where arms
# counted too, and all four so; and a rest pose with the arms up is as good as a T.
_KEPT: Final = ("spine", "chest", "neck", "thigh", "foot")
# A rest pose counts as one where these are, on average, no more than so many degrees from the rig's: those of one with
# all limbs along one axis are 77 off.
_LIKE: Final = 40.0
# So many frames are looked at.
_LOOKED_AT: Final = 100
# Where Blender's importers let people look whose files say nothing else.
_FORWARD: Final = np.array([0.0, -1.0, 0.0])


@dataclass(frozen=True, eq=False)
class Reference:
    """The source as it stands in the pose in which it is compared.

    axes: its world's up, and the forward that the rig's forward corresponds to.
    """

    body: RestBody
    axes: BodyAxes


def find_reference(motion: Motion, rest: RestBody, target: RestBody, frame: int | None) -> Reference:
    """The rest pose, where that is like the rig's, else the frame that is most like it.

    rest: the source's. frame: one that is to be taken instead, counted from 0. Raises RetargetError where the source
    has no body.
    """
    if frame is not None:
        return _on_frame(RestBody(motion.bones_at(frame), rest.roles), motion)
    if rest.axes is not None and _difference(rest, target) <= _LIKE:
        return Reference(rest, rest.axes)
    frames = np.unique(np.linspace(0, len(motion) - 1, _LOOKED_AT).astype(int))
    bodies = [RestBody(motion.bones_at(int(each)), rest.roles) for each in frames]
    return _on_frame(min(bodies, key=lambda body: _difference(body, target)), motion)


def _on_frame(body: RestBody, motion: Motion) -> Reference:
    """A body that stands upright in some frame of the take, and the axes of its world."""
    if body.axes is None:
        raise RetargetError(
            f"{motion.name!r}: without hips, a head and both sides there is no telling up and forward: "
            "say by a map which these are"
        )
    up, forward = along_axis(body.axes.up), _FORWARD
    if abs(up @ forward) > 0.0:
        forward = along_axis(square(body.axes.forward, up))
    return Reference(body, BodyAxes(up, forward, np.cross(up, forward), body.axes.middle))


def along_axis(direction: FloatArray) -> FloatArray:
    """(3,) the axis of space that is nearest to a direction."""
    axis = int(np.argmax(np.abs(direction)))
    return np.asarray(np.sign(direction[axis]) * np.eye(3)[axis])


def _difference(body: RestBody, target: RestBody) -> float:
    """Degrees between the ways that limbs of two bodies go, on average."""
    own, other = _directions(body), _directions(target)
    both = own.keys() & other.keys()
    if not both:
        return 180.0
    angles = [np.degrees(np.arccos(np.clip(own[key] @ other[key], -1.0, 1.0))) for key in both]
    return float(np.mean(angles))


def _directions(body: RestBody) -> dict[tuple[str, str], FloatArray]:
    """(3,) forward, left and up, of each limb as seen from the body."""
    if body.axes is None:
        return {}
    seen = np.stack([body.axes.forward, body.axes.left, body.axes.up])
    return {
        (role.part, role.side): seen @ body.direction(name) for name, role in body.roles.items() if role.part in _KEPT
    }
