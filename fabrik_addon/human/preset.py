"""A human's joint limits for a rig at rest: the table's ranges mapped to each bone's own axes.

Ranges are measured from the anatomical zero (standing, arms hanging, limbs straight), but limits from rest. So the
rotation at rest is subtracted. The local axis of flexion follows from the positions of joints, not from names of axes
or from bone roll. Every limit allows the rest pose.

A ball's four angles are along the bone's own X and Z axes. If flexion is between them, the nearer one is used, and the
bone is reported as rotated. The table has no ranges between these four directions: there, an ellipse is the limit.
Twist is measured from rest along the shortest arc. The forearm is a pure hinge: its pronation is the hand's twist. If
none of a bone's axes is near that of its hinge, the limit is a narrow strip of swings instead.

The ranges are in one table, in degrees from the anatomical zero, with the sources. AAOS: American Academy of
Orthopaedic Surgeons, *Joint Motion: Method of Measuring and Recording* (1965) and *The Clinical Measurement of Joint
Motion* (1994). AMA: American Medical Association, *Guides to the Evaluation of Permanent Impairment*. Both are
tabulated in Norkin and White, *Measurement of Joint Motion*. Figures without a norm are marked "chosen".

Figures are larger than the norm if recorded people exceeded it (`make bench`, part "natural-hidden": a wave, a dab and
a dance). With the norm, the 95th percentile of their poses is outside by 12.5 degrees at the trunk and 39 at the thigh;
with these figures, by 3.4 and 0.9. Elbows and knees are outside by 6 degrees because the rest pose is slightly bent.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Final, Literal, TypeAlias

import numpy as np

from ..core import Ball, Fixed, Hinge, Polygon
from ..core.arrays import FloatArray
from ..core.limits import Limit
from .naming_schemes import TRUNK, Role
from .rest_body import ALONG, BodyAxes, Palm, RestBody, RestBone, length, signed_angle, square, unit


@dataclass(frozen=True)
class BallRange:
    """The range of a ball joint, degrees.

    Attributes:
        flexion, extension: forward and back; for the hand toward the palm and away from it, for the foot up and down,
            for the collar bone forward and back.
        abduction, adduction: away from the body and toward it; up and down for the collar bone, to the thumb's side and
            the little finger's for the hand.
        internal, external: twist about the bone; pronation and supination for the hand, eversion and inversion for the
            foot.
    """

    flexion: float
    extension: float
    abduction: float
    adduction: float
    internal: float = 0.0
    external: float = 0.0

    def shared(self, bones: int) -> "BallRange":
        """The range of each of several bones that together form one joint of the table."""
        return BallRange(*(value / bones for value in vars(self).values()))

    def from_rest(self, flexed: float, abducted: float = 0.0, pronated: float = 0.0) -> "BallRange":
        """This range relative to a rest pose that is rotated by these degrees from the anatomical zero."""
        return BallRange(
            self.flexion - flexed,
            self.extension + flexed,
            self.abduction - abducted,
            self.adduction + abducted,
            self.internal - pronated,
            self.external + pronated,
        )


@dataclass(frozen=True)
class HingeRange:
    """The range of a hinge joint in degrees: how far it bends, and how far it extends past straight."""

    flexion: float
    extension: float


Range: TypeAlias = BallRange | HingeRange

# The whole lumbar and thoracic spine, and the whole neck with the head. Rigs divide these among several bones.
SPINE: Final = BallRange(80, 25, 35, 35, 45, 45)  # AAOS
# Higher bones of the trunk twist farther: lumbar vertebrae by 1...3 degrees each, thoracic ones by 4...9 (White and
# Panjabi, *Clinical Biomechanics of the Spine*, 1990).
NECK: Final = BallRange(50, 60, 45, 45, 80, 80)  # AMA; AAOS has 45 forward, back and sideways, and a twist of 60

# Sternoclavicular joint: up 45, down 5…10, forward and back 15; the acromioclavicular joint adds about 10. Twist:
# chosen; the real bone rolls back much farther when the arm is raised.
COLLAR: Final = BallRange(25, 25, 45, 10, 10, 10)

# AAOS, the whole shoulder; inward twist from AMA (AAOS: 70). Adduction is chosen between an arm at the side of the
# trunk (0) and one in front of it (up to 75).
SHOULDER_HANGING: Final = BallRange(180, 60, 180, 30, 90, 90)
# The same joint with the arm held level to the side: horizontal flexion 135 and extension 45 (AAOS).
SHOULDER_LEVEL: Final = replace(SHOULDER_HANGING, flexion=135, extension=45)

# AAOS has 45 to the side and 45 outward, but a dancer's legs reach 110 to the side and are rotated out by 75.
HIP: Final = BallRange(120, 30, 90, 30, 45, 60)
WRIST: Final = BallRange(80, 70, 20, 30, 80, 80)  # AAOS; the twist is the forearm's pronation and supination
# AAOS, with the subtalar joint's eversion and inversion. Up: 20 (AAOS) without load, 30…40 under the body's weight, as
# in a squat. Sideways: chosen.
ANKLE: Final = BallRange(35, 50, 10, 20, 15, 35)
KNUCKLE: Final = BallRange(90, 45, 20, 20)  # AAOS; sideways 10…40, which differs from finger to finger
# Carpometacarpal: across the palm 15…45 and back 20 (AAOS: 15 and 20), and away from the palm 70, measured from the
# side of the hand. Rigs rest with the thumb about 30 degrees out.
THUMB_ROOT: Final = BallRange(40, 20, 40, 30)
# The ring and little finger's metacarpals cup the palm by 10…25; the index and middle finger's hardly move.
PALM: Final = BallRange(15, 0, 5, 5)
CUPPING_PALMS: Final = ("ring", "pinky")

ELBOW: Final = HingeRange(150, 0)  # AAOS
KNEE: Final = HingeRange(150, 0)  # AMA; with the 135 of AAOS, nobody could squat
TOE_ROOT: Final = HingeRange(45, 70)  # AAOS, the big toe
TOE: Final = HingeRange(60, 0)  # AAOS 35…60
FINGER_MIDDLE: Final = HingeRange(100, 0)  # AAOS
FINGER_END: Final = HingeRange(90, 0)  # AAOS
THUMB_MIDDLE: Final = HingeRange(50, 0)  # AAOS
THUMB_END: Final = HingeRange(80, 20)  # AAOS


# If a hinge is bent by fewer degrees at rest, the bend does not show its axis.
_VISIBLE_BEND: Final = 3.0
# The smallest sine (12 degrees) between a bone and the direction of its bend; below it, that direction is undefined.
_SQUARE: Final = 0.2
# Degrees: the forearm's largest pronation (AAOS). If it is larger at rest, the palm was not recognized.
_MAX_PRONATION: Final = 80.0


class UnplacedError(Exception):
    """The directions of a bone's joint are unknown, so it cannot be limited; the message is the reason."""


@dataclass(frozen=True, eq=False)
class BallJoint:
    """A ball joint in anatomical terms.

    range: from rest. flexion, abduction: (3,) directions of the tail's movement, armature space. internal: 1 if
    internal rotation is positive about Y, else -1.
    """

    range: BallRange
    flexion: FloatArray
    abduction: FloatArray
    internal: int = 1


@dataclass(frozen=True, eq=False)
class HingeJoint:
    """A hinge joint in anatomical terms.

    range: from straight. flexion: (3,) direction of the tail's movement, armature space. straight: (3,) direction of
    the bone when straight; None: as at rest.
    """

    range: HingeRange
    flexion: FloatArray
    straight: FloatArray | None = None

    def axis(self, along: FloatArray) -> FloatArray:
        """(3,) the axis, armature space, about which a bone along the unit vector `along` (3,) bends."""
        return np.cross(along, perpendicular_unit(self.flexion, along))


def perpendicular_unit(toward: FloatArray, along: FloatArray) -> FloatArray:
    """A bend direction (3,) projected onto the plane perpendicular to the unit vector `along` (3,)."""
    aside = square(toward, along)
    if length(aside) < _SQUARE * length(toward):
        raise UnplacedError("it points in the direction in which it should bend")
    return unit(aside)


def _axes(body: RestBody) -> BodyAxes:
    if body.axes is None:
        raise UnplacedError("the rig's hips, head, or left and right bones are not known")
    return body.axes


def _side(body: RestBody, name: str) -> int:
    sign = body.side_sign(name)
    if not sign:
        raise UnplacedError("left and right cannot be distinguished")
    return sign


def _palm(body: RestBody, role: Role) -> Palm:
    palm = body.palm(role.side)
    if palm is None:
        raise UnplacedError("the direction of the palm is unknown")
    return palm


def _trunk(body: RestBody, name: str, _role: Role) -> BallJoint:
    axes = _axes(body)
    bones = [*body.named("spine"), *body.named("chest")]
    range_ = SPINE.shared(len(bones))
    # The twist of each bone is proportional to the height of its middle: 1, 3, 5 … parts.
    twist = (2 * bones.index(name) + 1) / len(bones)
    range_ = replace(range_, internal=range_.internal * twist, external=range_.external * twist)
    return BallJoint(range_, axes.forward, axes.left)


def _neck(body: RestBody, _name: str, _role: Role) -> BallJoint:
    axes = _axes(body)
    count = len([*body.named("neck"), *body.named("head")])
    return BallJoint(NECK.shared(count), axes.forward, axes.left)


def _collar(body: RestBody, name: str, role: Role) -> BallJoint:
    axes = _axes(body)
    count = len(body.named("shoulder", role.side))
    return BallJoint(COLLAR.shared(count), axes.forward, axes.up, _side(body, name))


def _upper_arm(body: RestBody, name: str, role: Role) -> BallJoint:
    """Blend the ranges of a hanging and of a raised arm by how far the arm is raised at rest.

    The collar bone's part of the movement is subtracted.
    """
    axes, along = _axes(body), body.direction(name)
    side = _side(body, name)
    outward = side * axes.left
    raised = float(np.degrees(np.arctan2(max(float(along @ outward), 0.0), -along @ axes.up)))
    ahead = float(np.degrees(np.arcsin(np.clip(along @ axes.forward, -1.0, 1.0))))
    level = min(raised / 90.0, 1.0)
    hanging, raised_arm = SHOULDER_HANGING, SHOULDER_LEVEL
    collar = COLLAR.abduction if body.named("shoulder", role.side) else 0.0
    range_ = replace(
        hanging,
        flexion=hanging.flexion + level * (raised_arm.flexion - hanging.flexion),
        extension=hanging.extension + level * (raised_arm.extension - hanging.extension),
        abduction=hanging.abduction - collar,
    )
    # The direction in which the arm rises to the side: outward if it hangs, up if it is level.
    rising = outward * -(along @ axes.up) + axes.up * (along @ outward)
    return BallJoint(range_.from_rest(ahead, raised), axes.forward, rising, side)


def _forearm(body: RestBody, name: str, role: Role) -> HingeJoint:
    axes, along = _axes(body), body.direction(name)
    ahead = axes.forward if abs(axes.forward @ along) < ALONG else axes.up
    return _limb_fold(body, name, ELBOW, body.named("upper_arm", role.side), ahead)


def _limb_fold(body: RestBody, name: str, range_: HingeRange, before: list[str], toward: FloatArray) -> HingeJoint:
    """A hinge that bends in the given direction, or as it is bent at rest if that bend is visible and similar."""
    along = body.direction(name)
    toward = perpendicular_unit(toward, along)
    if not before:
        return HingeJoint(range_, toward)
    straight = body.direction(before[0])
    bend = square(along, straight)
    if length(bend) > np.sin(np.radians(_VISIBLE_BEND)):
        seen = (straight @ along) * unit(bend) - length(bend) * straight
        toward = seen if seen @ toward > 0.5 else toward
    return HingeJoint(range_, toward, straight)


def _hand(body: RestBody, name: str, role: Role) -> BallJoint:
    palm, before = _palm(body, role), body.named("forearm", role.side)
    range_ = WRIST
    side = body.side_sign(name)
    if before:
        straight = body.direction(before[0])
        flexed = signed_angle(straight, palm.along, np.cross(palm.along, palm.normal))
        aside = signed_angle(straight, palm.along, np.cross(palm.along, palm.thumb))
        known = palm.seen and side and body.axes is not None
        pronated = _pronation(_forearm(body, before[0], role), palm, side) if known else 0.0
        range_ = range_.from_rest(flexed, aside, pronated)
    return BallJoint(range_, palm.normal, palm.thumb, side)


def _pronation(elbow: HingeJoint, palm: Palm, side: int) -> float:
    """Degrees of pronation at rest; zero if the palm's normal is parallel to the elbow's axis."""
    turned = signed_angle(unit(square(elbow.flexion, palm.along)), palm.normal, side * palm.along)
    return float(np.clip(turned - 90.0, -_MAX_PRONATION, _MAX_PRONATION))


def _palm_bone(body: RestBody, _name: str, role: Role) -> BallJoint | None:
    if role.finger not in CUPPING_PALMS:
        return None
    palm = _palm(body, role)
    return BallJoint(PALM, palm.normal, palm.thumb)


def _finger(body: RestBody, name: str, role: Role) -> BallJoint | HingeJoint:
    """A finger's joint: the thumb's root flexes across the palm, its other joints toward the little finger."""
    palm, is_thumb = _palm(body, role), role.finger == "thumb"
    if role.number == 1 and is_thumb:
        return BallJoint(THUMB_ROOT, -palm.thumb, palm.normal)
    if role.number == 1:
        along = body.direction(name)
        bent = signed_angle(palm.along, unit(square(along, palm.thumb)), np.cross(palm.along, palm.normal))
        return BallJoint(KNUCKLE.from_rest(bent), palm.normal, palm.thumb)
    ranges = (THUMB_MIDDLE, THUMB_END) if is_thumb else (FINGER_MIDDLE, FINGER_END)
    before = body.named(role.part, role.side, role.finger, role.number - 1)
    toward = palm.normal - palm.thumb if is_thumb else palm.normal
    return _limb_fold(body, name, ranges[role.number > 2], before, toward)


def _thigh(body: RestBody, name: str, _role: Role) -> BallJoint:
    axes, along = _axes(body), body.direction(name)
    side = _side(body, name)
    outward = side * axes.left
    flexed = float(np.degrees(np.arctan2(along @ axes.forward, -along @ axes.up)))
    aside = float(np.degrees(np.arctan2(along @ outward, -along @ axes.up)))
    return BallJoint(HIP.from_rest(flexed, aside), axes.forward, outward, side)


def _foot(body: RestBody, name: str, _role: Role) -> BallJoint:
    """The joint of a foot. Its zero is a foot flat on the floor, even if its bone slopes."""
    axes, side = _axes(body), _side(body, name)
    return BallJoint(ANKLE, axes.up, side * axes.left, side)


JOINTS: Final[Mapping[str, Callable[[RestBody, str, Role], BallJoint | HingeJoint | None]]] = {
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
    "shin": lambda body, name, role: _limb_fold(body, name, KNEE, body.named("thigh", role.side), -_axes(body).forward),
    "foot": _foot,
    "toe": lambda body, _name, role: HingeJoint(TOE_ROOT if role.number == 1 else TOE, -_axes(body).up),
    "rigid": lambda _body, _name, _role: None,
}


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
