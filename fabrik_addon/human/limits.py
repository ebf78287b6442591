"""A human's joint limits for a rig at rest: the table's ranges put onto each bone's own axes.

The ranges count from the anatomical zero (standing, arms hanging, limbs straight), a limit counts from rest; so what
a joint is bent by at rest is taken off. Which local axis means flexion follows from where the joints are, never from
names of axes or from rolls. Every limit lets the bone be at rest. Plain Python.

A ball's four angles lie along the bone's own X and Z. Where flexion runs between them it goes to the nearer one, and
the bone is named as turned. Between the axes the limit is an ellipse, so a movement that is none of the table's four
has what the ellipse leaves it: an arm at rest in a T or A pose, for one, swings back less far when it hangs than the
table says.
Twist counts from rest along the shortest arc. The forearm is a pure hinge: its pronation is the hand's twist.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

import numpy as np

from ..core import Ball, Fixed, Hinge
from ..core.arrays import FloatArray
from ..core.limits.kinds import Limit
from . import ranges as table
from .body_parts import Role
from .ranges import BallRange, HingeRange
from .rest_body import BodyAxes, Palm, RestBody, RestBone, length, signed_angle, square, unit

# A bend at rest of fewer degrees says nothing of a hinge's axis.
_VISIBLE_BEND: Final = 3.0
# A bone's own axes may be off those of its joint by so many degrees before it is worth saying. Thumbs don't count: how
# they face at rest differs from hand to hand.
_TURNED: Final = 20.0
# Cosine of how far a bone's Y may be off the limb that it stands for.
_ALONG: Final = 0.7
# Sine of how far a bone must be off the way that it bends.
_SQUARE: Final = 0.2
_PRONATED_MOST: Final = 80.0
_AXES: Final[tuple[Literal["X", "Y", "Z"], ...]] = ("X", "Y", "Z")

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Preset:
    """What a preset makes of a rig.

    Attributes:
        limits: by bone.
        turned: bones whose own X and Z axes are far off their joint's, with the degrees.
        unplaced: bones that are known but can't be limited, with the reason.
        free: hips, and other bones without a parent.
        unknown: bones whose names say nothing.
    """

    limits: dict[str, Limit]
    turned: dict[str, float]
    unplaced: dict[str, str]
    free: tuple[str, ...]
    unknown: tuple[str, ...]

    def only(self, names: Collection[str]) -> "Preset":
        """What it makes of some of the bones."""

        def named(values: dict[str, _Value]) -> dict[str, _Value]:
            return {name: value for name, value in values.items() if name in names}

        free, unknown = (tuple(name for name in kept if name in names) for kept in (self.free, self.unknown))
        return Preset(named(self.limits), named(self.turned), named(self.unplaced), free, unknown)


class _Unplaced(Exception):  # noqa: N818
    """Why a bone can't be limited."""


@dataclass(frozen=True, eq=False)
class _Bend:
    """A ball as the anatomy has it.

    range: from rest. flexion, abduction: the ways its tail goes. internal: 1 where that is a positive turn about Y.
    """

    range: BallRange
    flexion: FloatArray
    abduction: FloatArray
    internal: int = 1


@dataclass(frozen=True, eq=False)
class _Fold:
    """A hinge as the anatomy has it.

    range: from straight. flexion: the way its tail goes. straight: what it is straight with; itself at rest when None.
    """

    range: HingeRange
    flexion: FloatArray
    straight: FloatArray | None = None


def human_limits(bones: Mapping[str, RestBone]) -> Preset:
    """The limits of a human's joints for the bones of one armature. Hips, and roots of any name, stay free."""
    body = RestBody(bones)
    free = tuple(name for name, role in body.roles.items() if role.part == "hips" or not bones[name].parent)
    preset = Preset({}, {}, {}, free, tuple(name for name in bones if name not in body.roles))
    for name, role in body.roles.items():
        if name in free:
            continue
        try:
            limit, turned = _limit(body, name, role)
        except _Unplaced as reason:
            preset.unplaced[name] = str(reason)
            continue
        preset.limits[name] = limit
        if turned > _TURNED and role.finger != "thumb":
            preset.turned[name] = turned
    return preset


def _limit(body: RestBody, name: str, role: Role) -> tuple[Limit, float]:
    """The limit of a bone, and how many degrees its own axes are off those of the joint."""
    joint = _JOINTS[role.part](body, name, role)
    if joint is None:
        return Fixed(), 0.0
    if isinstance(joint, _Fold):
        return _hinge(body.bones[name], body.direction(name), joint)
    return _ball(body.bones[name], body.direction(name), joint)


def _ball(bone: RestBone, along: FloatArray, joint: _Bend) -> tuple[Ball, float]:
    """A ball on the bone's own axes."""
    x, y, z = bone.axes.T
    if y @ along < _ALONG:
        raise _Unplaced("its Y axis does not run along the limb")
    angle = np.degrees(np.arctan2(joint.flexion @ z, joint.flexion @ x))
    quarter = int(np.round(angle / 90.0))
    ways = (x, z, -x, -z)
    leans, cone = joint.range, [0.0] * 4
    cone[quarter % 4], cone[(quarter + 2) % 4] = leans.flexion, leans.extension
    sideways = [leans.abduction, leans.adduction]
    if ways[(quarter + 1) % 4] @ joint.abduction < 0.0:
        sideways.reverse()
    cone[(quarter + 1) % 4], cone[(quarter + 3) % 4] = sideways
    low, high = (-leans.external, leans.internal) if joint.internal >= 0 else (-leans.internal, leans.external)
    return Ball([_radians(min(max(lean, 0.0), 180.0)) for lean in cone], _range(low, high)), abs(angle - 90.0 * quarter)


def _hinge(bone: RestBone, along: FloatArray, joint: _Fold) -> tuple[Hinge, float]:
    """A hinge about the one of the bone's own axes that comes nearest to the joint's."""
    ideal = np.cross(along, _aside(joint.flexion, along))
    shares = bone.axes.T @ ideal
    place = int(np.argmax(np.abs(shares)))
    axis = np.sign(shares[place]) * bone.axes[:, place]
    bent = 0.0 if joint.straight is None else signed_angle(joint.straight, along, axis)
    low, high = min(-joint.range.extension - bent, 0.0), max(joint.range.flexion - bent, 0.0)
    if shares[place] < 0.0:
        low, high = -high, -low
    off = float(np.degrees(np.arccos(min(abs(shares[place]), 1.0))))
    return Hinge(_AXES[place], *_range(low, high)), off


def _aside(way: FloatArray, along: FloatArray) -> FloatArray:
    """A way to bend, made square to the bone."""
    aside = square(way, along)
    if length(aside) < _SQUARE * length(way):
        raise _Unplaced("it lies along the way that it should bend")
    return unit(aside)


def _range(low: float, high: float) -> tuple[float, float]:
    return _radians(low), _radians(high)


def _radians(degrees: float) -> float:
    # Tenths of a degree: single precision makes the last digits of a rest pose, and they differ from side to side.
    return float(np.radians(round(degrees, 1))) + 0.0


def _axes(body: RestBody) -> BodyAxes:
    if body.axes is None:
        raise _Unplaced("without hips, a head and both sides there is no telling up and forward")
    return body.axes


def _side(body: RestBody, name: str) -> int:
    sign = body.side_sign(name)
    if not sign:
        raise _Unplaced("there is no telling left from right")
    return sign


def _palm(body: RestBody, role: Role) -> Palm:
    palm = body.palm(role.side)
    if palm is None:
        raise _Unplaced("there is no telling where the palm faces")
    return palm


def _trunk(body: RestBody, _name: str, _role: Role) -> _Bend:
    axes = _axes(body)
    count = len([*body.named("spine"), *body.named("chest")])
    return _Bend(table.TRUNK.shared(count), axes.forward, axes.left)


def _neck(body: RestBody, _name: str, _role: Role) -> _Bend:
    axes = _axes(body)
    count = len([*body.named("neck"), *body.named("head")])
    return _Bend(table.NECK.shared(count), axes.forward, axes.left)


def _collar(body: RestBody, name: str, role: Role) -> _Bend:
    axes = _axes(body)
    count = len(body.named("shoulder", role.side))
    return _Bend(table.COLLAR.shared(count), axes.forward, axes.up, _side(body, name))


def _upper_arm(body: RestBody, name: str, role: Role) -> _Bend:
    """The two views of the shoulder, mixed by how far the arm is raised at rest. A collar bone does its part."""
    axes, along = _axes(body), body.direction(name)
    side = _side(body, name)
    outward = side * axes.left
    raised = float(np.degrees(np.arctan2(max(float(along @ outward), 0.0), -along @ axes.up)))
    ahead = float(np.degrees(np.arcsin(np.clip(along @ axes.forward, -1.0, 1.0))))
    level = min(raised / 90.0, 1.0)
    hanging, raised_arm = table.SHOULDER_HANGING, table.SHOULDER_LEVEL
    flexion = hanging.flexion + level * (raised_arm.flexion - hanging.flexion)
    extension = hanging.extension + level * (raised_arm.extension - hanging.extension)
    collar = table.COLLAR.abduction if body.named("shoulder", role.side) else 0.0
    range_ = replace(
        hanging,
        flexion=flexion - ahead,
        extension=extension + ahead,
        abduction=hanging.abduction - collar - raised,
        adduction=hanging.adduction + raised,
    )
    # The way in which the arm rises to the side: out where it hangs, up where it is level.
    rising = outward * -(along @ axes.up) + axes.up * (along @ outward)
    return _Bend(range_, axes.forward, rising, side)


def _forearm(body: RestBody, name: str, role: Role) -> _Fold:
    axes, along = _axes(body), body.direction(name)
    ahead = axes.forward if abs(axes.forward @ along) < _ALONG else axes.up
    return _limb_fold(body, name, table.ELBOW, body.named("upper_arm", role.side), ahead)


def _shin(body: RestBody, name: str, role: Role) -> _Fold:
    return _limb_fold(body, name, table.KNEE, body.named("thigh", role.side), -_axes(body).forward)


def _limb_fold(body: RestBody, name: str, range_: HingeRange, before: list[str], way: FloatArray) -> _Fold:
    """A hinge that bends about the given way; just as it is bent at rest, where that is seen and not far from it."""
    along = body.direction(name)
    way = _aside(way, along)
    if not before:
        return _Fold(range_, way)
    straight = body.direction(before[0])
    bend = square(along, straight)
    if length(bend) > np.sin(np.radians(_VISIBLE_BEND)):
        seen = (straight @ along) * unit(bend) - length(bend) * straight
        way = seen if seen @ way > 0.5 else way
    return _Fold(range_, way, straight)


def _hand(body: RestBody, name: str, role: Role) -> _Bend:
    palm, before = _palm(body, role), body.named("forearm", role.side)
    range_ = table.WRIST
    side = body.side_sign(name)
    if before:
        straight = body.direction(before[0])
        flexed = signed_angle(straight, palm.along, np.cross(palm.along, palm.normal))
        aside = signed_angle(straight, palm.along, np.cross(palm.along, palm.thumb))
        range_ = _from_rest(range_, flexed, aside)
        if palm.seen and side and body.axes is not None:
            range_ = _from_pronation(range_, _pronation(_forearm(body, before[0], role), palm, side))
    return _Bend(range_, palm.normal, palm.thumb, side)


def _pronation(elbow: _Fold, palm: Palm, side: int) -> float:
    """Degrees of pronation at rest: none where the palm is square to the way the elbow bends."""
    turned = signed_angle(unit(square(elbow.flexion, palm.along)), palm.normal, side * palm.along)
    return float(np.clip(turned - 90.0, -_PRONATED_MOST, _PRONATED_MOST))


def _from_rest(range_: BallRange, flexed: float, abducted: float) -> BallRange:
    """A range that counts from zero, counted from a rest pose that is bent by so many degrees."""
    return replace(
        range_,
        flexion=range_.flexion - flexed,
        extension=range_.extension + flexed,
        abduction=range_.abduction - abducted,
        adduction=range_.adduction + abducted,
    )


def _from_pronation(range_: BallRange, pronated: float) -> BallRange:
    return replace(range_, internal=range_.internal - pronated, external=range_.external + pronated)


def _palm_bone(body: RestBody, _name: str, role: Role) -> _Bend | None:
    if role.finger not in table.CUPPING_PALMS:
        return None
    palm = _palm(body, role)
    return _Bend(table.PALM, palm.normal, palm.thumb)


def _finger(body: RestBody, name: str, role: Role) -> _Bend | _Fold:
    palm = _palm(body, role)
    if role.finger == "thumb":
        return _thumb(body, name, role, palm)
    if role.number == 1:
        along = body.direction(name)
        bent = signed_angle(palm.along, unit(square(along, palm.thumb)), np.cross(palm.along, palm.normal))
        return _Bend(_from_rest(table.KNUCKLE, bent, 0.0), palm.normal, palm.thumb)
    range_ = table.FINGER_MIDDLE if role.number == 2 else table.FINGER_END
    return _limb_fold(body, name, range_, _before(body, role), palm.normal)


def _thumb(body: RestBody, name: str, role: Role, palm: Palm) -> _Bend | _Fold:
    """The thumb's root flexes across the palm and abducts away from it; the rest folds toward the little finger."""
    if role.number == 1:
        return _Bend(table.THUMB_ROOT, -palm.thumb, palm.normal)
    range_ = table.THUMB_MIDDLE if role.number == 2 else table.THUMB_END
    return _limb_fold(body, name, range_, _before(body, role), palm.normal - palm.thumb)


def _before(body: RestBody, role: Role) -> list[str]:
    return body.named(role.part, role.side, role.finger, role.number - 1)


def _thigh(body: RestBody, name: str, _role: Role) -> _Bend:
    axes, along = _axes(body), body.direction(name)
    side = _side(body, name)
    outward = side * axes.left
    flexed = float(np.degrees(np.arctan2(along @ axes.forward, -along @ axes.up)))
    aside = float(np.degrees(np.arctan2(along @ outward, -along @ axes.up)))
    return _Bend(_from_rest(table.HIP, flexed, aside), axes.forward, outward, side)


def _foot(body: RestBody, name: str, _role: Role) -> _Bend:
    """Standing flat is zero, however the foot's bone slopes."""
    axes, side = _axes(body), _side(body, name)
    return _Bend(table.ANKLE, axes.up, side * axes.left, side)


def _toe(body: RestBody, _name: str, role: Role) -> _Fold:
    return _Fold(table.TOE_ROOT if role.number == 1 else table.TOE, -_axes(body).up)


def _rigid(_body: RestBody, _name: str, _role: Role) -> None:
    return None


_JOINTS: Final[Mapping[str, Callable[[RestBody, str, Role], _Bend | _Fold | None]]] = {
    "spine": _trunk,
    "chest": _trunk,
    "neck": _neck,
    "head": _neck,
    "shoulder": _collar,
    "upper_arm": _upper_arm,
    "forearm": _forearm,
    "hand": _hand,
    "palm": _palm_bone,
    "finger": _finger,
    "thigh": _thigh,
    "shin": _shin,
    "foot": _foot,
    "toe": _toe,
    "rigid": _rigid,
}
