"""A human's joint limits for a rig at rest: the table's ranges mapped to each bone's own axes.

Ranges are measured from the anatomical zero (standing, arms hanging, limbs straight), but limits from rest. So
the rotation at rest is subtracted. The local axis of flexion follows from the positions of joints, not from names of
axes or from bone roll. Every limit allows the rest pose. Plain Python.

A ball's four angles are along the bone's own X and Z axes. If flexion is between them, the nearer one is used, and the
bone is reported as rotated. The table has no ranges between these four directions: there, an ellipse is the limit. For
example, an arm that rests in a T or A pose swings back less far when it hangs than the table allows. Twist is measured
from rest along the shortest arc. The forearm is a pure hinge: its pronation is the hand's twist. If none of a bone's
axes is near that of its hinge, the limit is a narrow strip of swings instead.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from typing import Final, Literal

import numpy as np

from ..core import Ball, Fixed, Hinge, Polygon
from ..core.arrays import FloatArray
from ..core.limits import Limit
from .joints import JOINTS, BallJoint, HingeJoint, UnplacedError, perpendicular_unit
from .naming_schemes import TRUNK, Role
from .rest_body import ALONG, RestBody, RestBone, signed_angle

# A bone's axes may differ from those of its joint by this many degrees without a report. Thumbs are excluded, since
# their rest rotation differs from hand to hand.
_TURNED: Final = 20.0
# Degrees: half the width of the strip of swings that replaces a hinge.
_STRIP: Final = 1.0
# A rig with this many trunk bones, but without arms and legs, is that of an animal, such as a shark. The rig of a hand
# has no trunk.
_LONG_TRUNK: Final = 3
_WORDS: Final = (("Forward", "Back"), ("Left", "Right"), ("Up", "Down"))
_AXES: Final[tuple[Literal["X", "Y", "Z"], ...]] = ("X", "Y", "Z")


@dataclass(frozen=True)
class LimitPreset:
    """The limits that a preset gives a rig.

    Attributes:
        limits: by bone.
        turned: by bone, degrees between its X and Z axes and those of the joint, if the angle is large.
        unplaced: by bone, the reason why it cannot be limited although its name is known.
        free: hips, and other bones without a parent.
        unknown: bones with unknown names.
    """

    limits: dict[str, Limit]
    turned: dict[str, float]
    unplaced: dict[str, str]
    free: tuple[str, ...]
    unknown: tuple[str, ...]


def why_not_human(bones: Mapping[str, RestBone]) -> str:
    """The reason why an armature at rest is not a human's, as the last clause of a sentence; "" if it may be a human's.

    A human's trunk is above its legs, an animal's trunk lies across them. Part of a body, such as a hand, may be human.
    """
    body = RestBody(bones)
    trunk = [body.bones[name].head for name, role in body.roles.items() if role.part in TRUNK]
    thighs, shins = (
        [body.bones[name] for name in sorted(body.named(part), key=lambda name: (body.roles[name].side, name))]
        for part in ("thigh", "shin")
    )
    legs = [upper.head - lower.head for upper, lower in zip(thighs, shins, strict=False)]
    if not legs:
        few = body.named("upper_arm") or len(trunk) < _LONG_TRUNK
        return "" if few else "it has a trunk, but neither arms nor legs"
    ends = [body.bones[name].head for name, role in body.roles.items() if role.part in {"head", "neck"}]
    if not trunk or not ends:
        return ""
    up, leg = np.mean(ends, axis=0) - np.mean(trunk, axis=0), np.mean(legs, axis=0)
    # The cosine is 0.995 in Rigify's humans, 0.2 to 0.35 in its animals.
    upright = up @ leg >= ALONG * np.linalg.norm(up) * np.linalg.norm(leg)
    return "" if upright else "its trunk lies across its legs"


def swing_names(bones: Mapping[str, RestBone]) -> dict[str, tuple[str, ...]]:
    """The directions in which bone tails move when they swing toward +X, +Z, -X and -Z, in words.

    X and Z are named after the two different axes of the body that fit best. Only bones with human names are included,
    and only if the rig's forward, left and up are known.
    """
    body = RestBody(bones)
    if body.axes is None:
        return {}
    named: dict[str, tuple[str, ...]] = {}
    for name in body.roles:
        x, z = (body.axes.columns.T @ bones[name].axes)[:, [0, 2]].T
        first, second = max(permutations(range(3), 2), key=lambda pair: abs(x[pair[0]]) + abs(z[pair[1]]))
        of_x, of_z = _WORDS[first][:: 1 if x[first] > 0.0 else -1], _WORDS[second][:: 1 if z[second] > 0.0 else -1]
        named[name] = (of_x[0], of_z[0], of_x[1], of_z[1])
    return named


def human_limits(bones: Mapping[str, RestBone], names: Collection[str] | None = None) -> LimitPreset:
    """The limits of a human's joints for the named bones of an armature (None: all). Roots stay free."""
    body = RestBody(bones)
    wanted = set(bones if names is None else names)
    roles = {name: role for name, role in body.roles.items() if name in wanted}
    free = tuple(name for name, role in roles.items() if role.part == "hips" or not bones[name].parent)
    preset = LimitPreset({}, {}, {}, free, tuple(name for name in bones if name in wanted - roles.keys()))
    for name, role in roles.items():
        if name in free:
            continue
        try:
            limit, turned = _limit(body, name, role)
        except UnplacedError as reason:
            preset.unplaced[name] = str(reason)
            continue
        preset.limits[name] = limit
        if turned > _TURNED and role.finger != "thumb":
            preset.turned[name] = turned
    return preset


def bend_axes(body: RestBody) -> dict[str, FloatArray]:
    """By knee and elbow, (3,) the axis about which it bends, in the bone's rest frame.

    Joints below a thigh or an upper arm that is split into several bones are left out, since all these bones may bend.
    """
    found: dict[str, FloatArray] = {}
    for name in [*body.named("shin"), *body.named("forearm")]:
        role, parent = body.roles[name], body.roles.get(body.bones[name].parent)
        with suppress(UnplacedError):
            joint = JOINTS[role.part](body, name, role)
            if isinstance(joint, HingeJoint) and parent is not None and parent.part in {"thigh", "upper_arm"}:
                found[name] = joint.axis(body.direction(name)) @ body.bones[name].axes
    return found


def _limit(body: RestBody, name: str, role: Role) -> tuple[Limit, float]:
    """The limit of a bone, and the degrees between its own axes and those of the joint."""
    joint = JOINTS[role.part](body, name, role)
    if joint is None:
        return Fixed(), 0.0
    if isinstance(joint, HingeJoint):
        return _hinge(body.bones[name], body.direction(name), joint, role)
    return _ball(body.bones[name], body.direction(name), joint)


def _ball(bone: RestBone, along: FloatArray, joint: BallJoint) -> tuple[Ball, float]:
    x, y, z = bone.axes.T
    if y @ along < ALONG:
        raise UnplacedError("its Y axis does not point along the limb")
    angle = np.degrees(np.arctan2(joint.flexion @ z, joint.flexion @ x))
    quarter = int(np.round(angle / 90.0))
    ways = (x, z, -x, -z)
    swings, cone = joint.range, [0.0] * 4
    cone[quarter % 4], cone[(quarter + 2) % 4] = swings.flexion, swings.extension
    sideways = [swings.abduction, swings.adduction]
    if ways[(quarter + 1) % 4] @ joint.abduction < 0.0:
        sideways.reverse()
    cone[(quarter + 1) % 4], cone[(quarter + 3) % 4] = sideways
    low, high = (-swings.external, swings.internal) if joint.internal >= 0 else (-swings.internal, swings.external)
    return Ball([_radians(min(max(lean, 0.0), 180.0)) for lean in cone], _range(low, high)), abs(angle - 90.0 * quarter)


def _hinge(bone: RestBone, along: FloatArray, joint: HingeJoint, role: Role) -> tuple[Hinge | Polygon, float]:
    """A hinge limit about the bone's axis that is nearest to that of the joint.

    If that axis is far off, because the bone's roll is odd, it is a narrow strip of swings about the joint's own axis.
    """
    toward = perpendicular_unit(joint.flexion, along)
    ideal = joint.axis(along)
    shares = bone.axes.T @ ideal
    index = int(np.argmax(np.abs(shares)))
    off = float(np.degrees(np.arccos(min(abs(shares[index]), 1.0))))
    is_strip = off > _TURNED and role.finger != "thumb" and bone.axes[:, 1] @ along > ALONG
    axis = ideal if is_strip else np.sign(shares[index]) * bone.axes[:, index]
    bent = 0.0 if joint.straight is None else signed_angle(joint.straight, along, axis)
    low, high = min(-joint.range.extension - bent, 0.0), max(joint.range.flexion - bent, 0.0)
    if is_strip:
        x, z = bone.axes[:, [0, 2]].T @ toward / np.hypot(*bone.axes[:, [0, 2]].T @ toward)
        corners = ((min(low, -_STRIP), 1), (min(low, -_STRIP), -1), (high, -1), (high, 1))
        window = [(end * x - side * _STRIP * z, end * z + side * _STRIP * x) for end, side in corners]
        return Polygon([_range(*point) for point in window], (0.0, 0.0)), 0.0
    if shares[index] < 0.0:
        low, high = -high, -low
    return Hinge(_AXES[index], *_range(low, high)), off


def _range(low: float, high: float) -> tuple[float, float]:
    return _radians(low), _radians(high)


def _radians(degrees: float) -> float:
    # Tenths of a degree, since the last digits of a rest pose are rounding errors and differ between sides.
    return float(np.radians(round(degrees, 1))) + 0.0
