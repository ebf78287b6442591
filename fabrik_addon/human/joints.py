"""The joints of a human at rest: the directions in which each bends, and how far. Plain Python.

The direction of flexion follows from the positions of joints, not from names of axes or from bone roll.

The ranges are in one table, in degrees from the anatomical zero, with the sources. AAOS: American Academy of
Orthopaedic Surgeons, *Joint Motion: Method of Measuring and Recording* (1965) and *The Clinical Measurement of Joint
Motion* (1994). AMA: American Medical Association, *Guides to the Evaluation of Permanent Impairment*. Both are
tabulated in Norkin and White, *Measurement of Joint Motion*, and in Reese and Bandy, *Joint Range of Motion and Muscle
Length Testing*. Figures without a norm are marked "chosen".

Figures are larger than the norm if recorded people exceeded it (`make bench`, part "natural-hidden": a wave, a dab and
a dance). With the norm, the 95th percentile of their poses was outside by 12.5 degrees at the trunk, 9.2 at the head,
1.3 at the upper arm and 39 at the thigh. With the larger ranges it is outside by 3.4, 0.1, 0 and 0.9 degrees. Elbows
and knees are outside by 5.6 and 6.2 degrees only because the rest pose is slightly bent, so their ranges still end at
straight.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from ..core.arrays import FloatArray
from .naming_schemes import Role
from .rest_body import ALONG, BodyAxes, Palm, RestBody, length, signed_angle, square, unit


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
TRUNK: Final = BallRange(80, 25, 35, 35, 45, 45)  # AAOS
# Higher bones of the trunk twist farther: lumbar vertebrae by 1...3 degrees each, thoracic ones by 4...9 (White and
# Panjabi, *Clinical Biomechanics of the Spine*, 1990). Divided evenly, people twisted 20 degrees too far at the top.
NECK: Final = BallRange(50, 60, 45, 45, 80, 80)  # AMA; AAOS has 45 forward, back and sideways, and a twist of 60

# Sternoclavicular joint: up 45, down 5…10, forward and back 15; the acromioclavicular joint adds about 10. Twist:
# chosen; the real bone rolls back much farther when the arm is raised.
COLLAR: Final = BallRange(25, 25, 45, 10, 10, 10)

# AAOS, the whole shoulder; inward twist from AMA (AAOS: 70). Adduction is chosen between an arm at the side of the
# trunk (0) and one in front of it (up to 75).
SHOULDER_HANGING: Final = BallRange(180, 60, 180, 30, 90, 90)
# The same joint with the arm held level to the side: horizontal flexion 135 and extension 45 (AAOS).
SHOULDER_LEVEL: Final = replace(SHOULDER_HANGING, flexion=135, extension=45)

# AAOS has 45 to the side and 45 outward, but a dancer's legs reach 61 and 110 to the side and are rotated out by 75.
# With 60 to the side, the markers of that dance are missed by 9.8 mm RMS; with 90, by 5.8.
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
    range_ = TRUNK.shared(len(bones))
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
