"""Landmarks of the human body at which markers are attached, and their positions on a rig.

A landmark is given relative to a joint, in percent of the body's height. The numbers are for an average adult and
include a marker's size; a calibration measures the real offsets. Sources: Winter, Biomechanics and Motor Control of
Human Movement, 2009, figure 4.1 (proportions); Bell, Pedersen and Brand 1989 (hip center relative to the pelvis).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from ...core.arrays import ROUNDING, FloatArray, lengths
from ...human.naming_schemes import ARM, FINGERS, LEG, MIDDLE, Role
from ...human.rest_body import RestBody, RestBone, square, unit
from ..signals import middle_of

End = Literal["HEAD", "TAIL"]

# Substitutes for parts that a rig does not have.
_STAND_INS: Final[Mapping[str, tuple[str, ...]]] = {
    "toe": ("foot",),
    "shoulder": ("chest", "spine", "hips"),
    "neck": ("chest", "spine", "hips"),
    "chest": ("spine", "hips"),
    "spine": ("chest", "hips"),
}
# Parts with their own front and outward directions. The others use those of the body.
_LIMBS: Final = frozenset({"upper_arm", "forearm", "hand", "finger", "thigh", "shin"})
# Thigh plus shin, and upper arm plus forearm, as fractions of the body's height.
_LEG_SHARE: Final = 0.485
_ARM_SHARE: Final = 0.332
# A point closer to the head or tail than this fraction of the bone's length counts as the head or tail.
_AT_END: Final = 1e-3


class BoneEnd(NamedTuple):
    """One end of the bone of a part."""

    part: str
    end: End = "HEAD"
    finger: str = ""
    number: int = 0

    def role(self, side: str) -> Role:
        """The role of the bone. The side is ignored for parts in the middle."""
        number = self.number or int(self.part == "toe")
        return Role(self.part, "" if self.part in MIDDLE else side, self.finger, number)


@dataclass(frozen=True)
class Landmark:
    """A landmark on the body.

    part: the part to which it is fixed. finger, number: the bone of a finger. front, out, up: offset from `joint`,
    percent of the body's height. On limbs and hands, "up" is along the limb and "out" away from the body, with arms
    hanging and thumbs forward. Elsewhere "out" is to the left. weight: of a marker at the landmark.
    """

    part: str
    joint: str
    front: float = 0.0
    out: float = 0.0
    up: float = 0.0
    weight: float = 1.0
    finger: str = ""
    number: int = 0


class Spot(NamedTuple):
    """The position of a landmark on a bone: its head or tail, or an offset in the bone's frame, armature units."""

    end: End | None
    offset: tuple[float, float, float] | None


# For each joint, the bone ends that can be at it; the first one that a rig has is used.
_JOINTS: Final[Mapping[str, tuple[BoneEnd, ...]]] = (
    {
        "hip": (BoneEnd("thigh"), BoneEnd("hips")),
        "knee": (BoneEnd("shin"), BoneEnd("thigh", "TAIL")),
        "ankle": (BoneEnd("foot"), BoneEnd("shin", "TAIL")),
        "ball": (BoneEnd("toe"), BoneEnd("foot", "TAIL")),
        "toe tip": (BoneEnd("toe", "TAIL"), BoneEnd("foot", "TAIL")),
        "shoulder": (BoneEnd("upper_arm"), BoneEnd("shoulder", "TAIL")),
        "elbow": (BoneEnd("forearm"), BoneEnd("upper_arm", "TAIL")),
        "wrist": (BoneEnd("hand"), BoneEnd("forearm", "TAIL")),
        "neck": (BoneEnd("neck"), BoneEnd("chest", "TAIL"), BoneEnd("spine", "TAIL"), BoneEnd("head")),
        "skull": (BoneEnd("head"), BoneEnd("neck", "TAIL")),
    }
    | {f"{finger} {number}": (BoneEnd("finger", "HEAD", finger, number),) for finger in FINGERS for number in (1, 2, 3)}
    | {f"{finger} tip": (BoneEnd("finger", "TAIL", finger, 3),) for finger in FINGERS}
)
# Joints midway between the left and the right joint of a pair.
_PAIRS: Final[Mapping[str, str]] = {"mid hip": "hip", "mid shoulder": "shoulder"}

ON_THE_BODY: Final[Mapping[str, Landmark]] = {
    # pelvis
    "asis": Landmark("hips", "hip", front=4.3, out=2.3, up=5.0),
    "psis": Landmark("hips", "hip", front=-5.5, out=-2.3, up=5.0),
    "back of waist": Landmark("hips", "hip", front=-5.0, up=6.0),
    "sacrum": Landmark("hips", "mid hip", front=-5.8, up=5.0),
    "front of waist": Landmark("hips", "mid hip", front=6.0, up=6.0, weight=0.5),
    "iliac crest": Landmark("hips", "hip", out=3.0, up=8.0, weight=0.5),
    "hip": Landmark("hips", "hip"),
    "middle of hips": Landmark("hips", "mid hip"),
    # trunk
    "c7": Landmark("chest", "neck", front=-3.5, up=2.0),
    "lumbar spine": Landmark("spine", "mid hip", front=-6.0, up=11.0, weight=0.5),
    "t2": Landmark("chest", "neck", front=-5.0, up=-2.5),
    "t8": Landmark("chest", "neck", front=-6.0, up=-10.5),
    "t10": Landmark("chest", "neck", front=-6.0, up=-13.0),
    "back": Landmark("chest", "neck", front=-6.0, out=4.5, up=-8.0, weight=0.5),
    "jugular notch": Landmark("chest", "neck", front=4.5, up=-2.0),
    "sternum": Landmark("chest", "neck", front=5.5, up=-6.0),
    "xiphoid": Landmark("chest", "neck", front=6.0, up=-12.0),
    "middle of shoulders": Landmark("chest", "mid shoulder"),
    "acromion": Landmark("shoulder", "shoulder", up=3.0),
    "front of shoulder": Landmark("shoulder", "shoulder", front=3.0, up=0.5, weight=0.5),
    "back of shoulder": Landmark("shoulder", "shoulder", front=-3.5, weight=0.5),
    "shoulder": Landmark("shoulder", "shoulder"),
    # head
    "forehead": Landmark("head", "skull", front=5.5, up=6.0),
    "front of head": Landmark("head", "skull", front=4.5, out=4.0, up=6.0),
    "back of head": Landmark("head", "skull", front=-5.5, out=4.0, up=6.0),
    "rear of head": Landmark("head", "skull", front=-6.0, up=6.0),
    "temple": Landmark("head", "skull", front=3.0, out=4.2, up=5.5),
    "crown": Landmark("head", "skull", up=11.0),
    "base of skull": Landmark("head", "skull", weight=0.5),
    "middle of head": Landmark("head", "skull", up=5.0, weight=0.5),
    "nose": Landmark("head", "skull", front=6.5, up=3.5, weight=0.5),
    "eye": Landmark("head", "skull", front=5.0, out=1.8, up=5.5, weight=0.3),
    "inner eye": Landmark("head", "skull", front=5.2, out=1.0, up=5.5, weight=0.2),
    "outer eye": Landmark("head", "skull", front=4.7, out=2.6, up=5.5, weight=0.2),
    "ear": Landmark("head", "skull", front=0.5, out=4.2, up=4.0, weight=0.5),
    "mouth": Landmark("head", "skull", front=5.5, out=1.4, up=1.5, weight=0.2),
    # arms
    "upper arm": Landmark("upper_arm", "elbow", out=2.2, up=9.0, weight=0.5),
    "biceps": Landmark("upper_arm", "elbow", front=2.5, up=9.0, weight=0.3),
    "outer elbow": Landmark("upper_arm", "elbow", out=2.0),
    "inner elbow": Landmark("upper_arm", "elbow", out=-2.0),
    "elbow": Landmark("upper_arm", "elbow"),
    "olecranon": Landmark("forearm", "elbow", front=-2.0, weight=0.3),
    "forearm": Landmark("forearm", "wrist", out=1.8, up=7.0, weight=0.5),
    "thumb side of wrist": Landmark("forearm", "wrist", front=1.9),
    "little finger side of wrist": Landmark("forearm", "wrist", front=-1.9),
    "back of wrist": Landmark("forearm", "wrist", out=1.5),
    "wrist": Landmark("forearm", "wrist"),
    "knuckles": Landmark("hand", "wrist", out=1.3, up=-5.0),
    "middle of hand": Landmark("hand", "wrist", up=-5.0, weight=0.5),
    "index knuckle": Landmark("hand", "wrist", front=1.6, up=-5.2, weight=0.5),
    "little knuckle": Landmark("hand", "wrist", front=-1.6, up=-4.7, weight=0.5),
    "thumb": Landmark("hand", "wrist", front=2.5, up=-3.5, weight=0.3),
    # legs
    "trochanter": Landmark("thigh", "hip", out=4.5),
    "thigh": Landmark("thigh", "knee", out=4.2, up=10.0, weight=0.5),
    "upper thigh": Landmark("thigh", "hip", front=2.0, out=4.5, up=-11.0, weight=0.5),
    "front of thigh": Landmark("thigh", "hip", front=5.3, up=-15.0, weight=0.5),
    "rear of thigh": Landmark("thigh", "hip", front=1.3, out=4.0, up=-18.0, weight=0.5),
    "outer knee": Landmark("thigh", "knee", out=3.2),
    "inner knee": Landmark("thigh", "knee", out=-3.2),
    "kneecap": Landmark("thigh", "knee", front=3.3, weight=0.5),
    "knee": Landmark("thigh", "knee"),
    "shank": Landmark("shin", "ankle", out=3.0, up=10.0, weight=0.5),
    "upper shank": Landmark("shin", "knee", front=-0.5, out=3.5, up=-4.0, weight=0.5),
    "front of shank": Landmark("shin", "knee", front=3.0, up=-6.0, weight=0.5),
    "rear of shank": Landmark("shin", "knee", front=-0.5, out=3.7, up=-8.5, weight=0.5),
    "tibial tuberosity": Landmark("shin", "knee", front=2.8, up=-3.5, weight=0.5),
    "outer ankle": Landmark("shin", "ankle", out=2.7),
    "inner ankle": Landmark("shin", "ankle", out=-2.0),
    "ankle": Landmark("shin", "ankle"),
    "heel": Landmark("foot", "ankle", front=-3.7, up=-2.2),
    "outer heel": Landmark("foot", "ankle", front=-2.0, out=1.7, up=-3.0),
    "inner heel": Landmark("foot", "ankle", front=-2.0, out=-1.7, up=-3.0),
    "top of foot": Landmark("foot", "ankle", front=4.0, up=-1.0),
    "outer side of foot": Landmark("foot", "ankle", front=3.5, out=3.0, up=-2.7),
    "second toe's ball": Landmark("foot", "ball", up=1.0),
    "big toe's ball": Landmark("foot", "ball", front=1.0, out=-2.0),
    "little toe's ball": Landmark("foot", "ball", out=3.2),
    "little toe": Landmark("foot", "ball", front=1.0, out=2.5, weight=0.5),
    "big toe": Landmark("toe", "toe tip", out=-1.0, weight=0.5),
    "tip of toes": Landmark("toe", "toe tip", up=0.5, weight=0.5),
}


def _finger_landmarks() -> dict[str, Landmark]:
    places = {f"{finger} 1": Landmark("hand", f"{finger} 1") for finger in FINGERS}
    for finger in FINGERS:
        for number, end in enumerate(("2", "3", "tip"), start=1):
            name = f"{finger} {end}"
            places[name] = Landmark("finger", name, weight=0.5, finger=finger, number=number)
    return places


LANDMARKS: Final[Mapping[str, Landmark]] = {**ON_THE_BODY, **_finger_landmarks()}
# The first joints of fingers on a hand without finger bones.
_KNUCKLES: Final[Mapping[str, Landmark]] = {
    "thumb 1": Landmark("hand", "wrist", front=1.4, up=-1.4),
    "index 1": ON_THE_BODY["index knuckle"],
    "middle 1": Landmark("hand", "wrist", front=0.5, up=-5.2),
    "ring 1": Landmark("hand", "wrist", front=-0.6, up=-5.0),
    "pinky 1": ON_THE_BODY["little knuckle"],
}

# The lines from right to left landmarks of these parts show the direction of a body's left.
_BROAD: Final = frozenset({"hips", "shoulder", "thigh"})
# Percent of the body's height: the distances of these joints in front of the ankle.
_LONG: Final[Mapping[str, float]] = {"ankle": 0.0, "ball": 7.0, "toe tip": 12.0}
# The joints at both ends of a bone. The distance between their markers hardly changes with the pose.
_LIMB_ENDS: Final = (("knee", "ankle"), ("hip", "knee"), ("elbow", "wrist"))
# Percent of the body's height: a part can vote on the front if its foremost and rearmost landmarks are this far apart.
_DEEP: Final = 4.0
# Limbs are swapped if the cosine between their right-to-left line and that of hips or shoulders is less than minus
# _OPPOSITE on at least this percentage of the frames. In recordings it is at least 0.04 on every frame.
_OPPOSITE: Final = 0.3
_SWAPPED: Final = 20.0
# Axes have different scales if the lengths of limbs vary by more than the fraction _CHANGED (standard deviation), and
# by more than _STEADIER times as much as with other scales. With markers, the first is at most 0.8 %; with keypoints,
# the second is at most 1.2. If one axis is stretched by 1.2, they are about 3 %, and 4 to 17.
_CHANGED: Final = 0.012
_STEADIER: Final = 2.0


def is_mirrored(landmarks: Mapping[tuple[str, str], FloatArray]) -> bool:
    """Whether a body looks mirrored, because sides or axes are swapped.

    Left and up determine where the front should be. The feet, the pelvis, the trunk and the head vote on where it is.
    False if left, up or front is unknown. landmarks: (F, 3) positions by side and name, NaN where not seen.
    """
    parts: dict[str, dict[float, list[FloatArray]]] = {}
    for (_side, name), place in landmarks.items():
        landmark = LANDMARKS[name]
        part = {"toe": "foot", "spine": "chest"}.get(landmark.part, landmark.part)
        # A marker far above the ankle, such as one of a cluster on the shank, does not show the heel.
        part = "foot" if landmark.joint == "ankle" and abs(landmark.up) < _DEEP else part
        front = landmark.front + _LONG.get(landmark.joint, 0.0)
        parts.setdefault(part, {}).setdefault(front, []).append(place)
    wide = _across(landmarks, _BROAD)
    ends = [
        [place for groups in (parts.get(part, {}) for part in own) for places in groups.values() for place in places]
        for own in (("hips", "thigh"), ("chest", "shoulder", "head"))
    ]
    if not wide or not all(ends):
        return False
    ahead = np.cross(middle_of(wide), middle_of(ends[1]) - middle_of(ends[0]))
    votes = []
    for part in ("hips", "chest", "head", "foot"):
        fronts = sorted(parts.get(part, {}))
        if not fronts or fronts[-1] - fronts[0] < _DEEP:
            continue
        agrees = ((middle_of(parts[part][fronts[-1]]) - middle_of(parts[part][fronts[0]])) * ahead).sum(axis=1)
        agrees = agrees[np.isfinite(agrees)]
        votes.append(float(np.sign(np.median(agrees))) if len(agrees) else 0.0)
    return sum(votes) < 0.0


def limbs_on_other_sides(landmarks: Mapping[tuple[str, str], FloatArray]) -> Iterator[str]:
    """The limbs, "legs" or "arms", whose left and right sides are opposite to those of the trunk on many frames.

    People may cross forearms or shins for long, but not whole limbs, so knees or elbows must be on the other side too.
    landmarks: as in `is_mirrored`.
    """
    hips, shoulders = (_across(landmarks, {part}) for part in ("hips", "shoulder"))

    def cosines(own: Sequence[FloatArray], trunk: Sequence[FloatArray]) -> FloatArray:
        one, other = middle_of(own), middle_of(trunk)
        return np.asarray((one * other).sum(axis=1) / np.maximum(lengths(one) * lengths(other), ROUNDING))

    for limbs, parts, joint, trunk in (
        ("legs", LEG, "knee", hips or shoulders),
        ("arms", ARM, "elbow", shoulders or hips),
    ):
        whole = _across(landmarks, parts)
        middle = [each for each in _across(landmarks, parts, joint) if np.isfinite(each).any()]
        if trunk and whole:
            found = np.maximum(cosines(whole, trunk), cosines(middle or whole, trunk))
            if np.isfinite(found).any() and np.nanpercentile(found, _SWAPPED) < -_OPPOSITE:
                yield limbs


def limb_vectors(landmarks: Mapping[tuple[str, str], FloatArray]) -> Iterator[FloatArray]:
    """(n, 3) vectors along each shin, thigh and forearm on the n frames on which both its ends are seen.

    landmarks: as in `is_mirrored`.
    """
    for side, joints in product("LR", _LIMB_ENDS):
        ends = [
            [place for (own, name), place in landmarks.items() if own == side and name.endswith(joint)]
            for joint in joints
        ]
        if all(ends):
            along = middle_of(ends[0]) - middle_of(ends[1])
            yield along[np.isfinite(along).all(axis=1)]


def is_stretched(limbs: Iterable[FloatArray]) -> bool:
    """Whether limbs (n, 3) change their lengths with their directions, as if the axes had different scales.

    With each limb's squares q (n, 3) of its coordinates, and weights g of the axes, its squared lengths are q g. The
    generalized eigenvector of their variances and their squared means gives the weights with which they change the
    least. Most limbs then have to change less, since a single wrong marker changes the lengths of one or two.
    """
    squares = [limb**2 / (limb**2).sum(axis=1).mean() for limb in limbs]
    if not squares:
        return False
    changes = np.array([np.cov(each.T, bias=True) for each in squares])
    means = np.array([each.mean(axis=0) for each in squares])
    values, vectors = np.linalg.eig(np.linalg.solve(changes.sum(axis=0) + ROUNDING * np.eye(3), means.T @ means))
    weights = vectors[:, values.real.argmax()].real
    # A length changes by half as much as its square.
    now, best = (
        0.5 * np.sqrt(np.maximum(g @ changes @ g, 0.0)) / np.maximum(np.abs(means @ g), ROUNDING)
        for g in (np.ones(3), weights)
    )
    return bool(np.median(now) > _CHANGED and np.median(now / np.maximum(best, ROUNDING)) > _STEADIER)


def _across(landmarks: Mapping[tuple[str, str], FloatArray], parts: Collection[str], end: str = "") -> list[FloatArray]:
    """(F, 3) vectors from right to left, for each pair of landmarks on these parts whose name ends with `end`."""
    return [
        landmarks["L", name] - landmarks["R", name]
        for side, name in landmarks
        if side == "L" and ("R", name) in landmarks and LANDMARKS[name].part in parts and name.endswith(end)
    ]


def carrier(landmark: Landmark, side: str, parts: Mapping[Role, str]) -> str | None:
    """The bone to which a landmark is fixed; None if the rig has no such bone."""
    for part in (landmark.part, *_STAND_INS.get(landmark.part, ())):
        role = BoneEnd(part, finger=landmark.finger, number=landmark.number).role(side)
        if role in parts:
            return parts[role]
    return None


class RigBody:
    """The positions of landmarks on a human rig at rest.

    parts: the bone of each role. rest: the bones at rest.
    """

    def __init__(self, parts: Mapping[Role, str], rest: Mapping[str, RestBone]) -> None:
        self._names = {role: name for role, name in parts.items() if name in rest}
        self._body = RestBody(rest, {name: role for role, name in self._names.items()})
        self._directions = self._body_directions()
        self._height = self._body_height()

    def spot(self, landmark: Landmark, side: str, bone: str) -> Spot | None:
        """The position of a landmark on a bone; None if the rig lacks the joint or its directions are unknown."""
        place, carrying = self._place(landmark, side), self._body.bones.get(bone)
        if place is None or carrying is None:
            return None
        offset = carrying.axes.T @ (place - carrying.head)
        for end, along in (("HEAD", 0.0), ("TAIL", carrying.length)):
            if np.linalg.norm(offset - (0.0, along, 0.0)) < _AT_END * carrying.length:
                return Spot("HEAD" if end == "HEAD" else "TAIL", None)
        x, y, z = (float(value) for value in offset)
        return Spot(None, (x, y, z))

    def _place(self, landmark: Landmark, side: str) -> FloatArray | None:
        """(3,) position of a landmark, armature space; None if the joint or the directions are unknown."""
        joint, directions = self._joint(landmark.joint, side), self._frame(landmark, side)
        if joint is None or directions is None or not self._height:
            return None
        shift = 0.01 * self._height * np.array([landmark.front, landmark.out, landmark.up])
        return np.asarray(joint + shift @ directions)

    def _joint(self, name: str, side: str) -> FloatArray | None:
        """(3,) position of a joint, armature space; None if the rig has none."""
        if name in _PAIRS:
            both = [self._joint(_PAIRS[name], one) for one in "LR"]
            there = [joint for joint in both if joint is not None]
            return np.mean(there, axis=0) if len(there) == 2 else None
        for bone_end in _JOINTS[name]:
            if (name_of_bone := self._names.get(bone_end.role(side))) is not None:
                bone = self._body.bones[name_of_bone]
                return bone.head if bone_end.end == "HEAD" else bone.tail
        return self._place(_KNUCKLES[name], side) if name in _KNUCKLES else None

    def _frame(self, landmark: Landmark, side: str) -> FloatArray | None:
        """(3, 3) the directions front, out and up as rows."""
        sign = -1.0 if side == "R" else 1.0
        bone = self._names.get(BoneEnd(landmark.part, finger=landmark.finger, number=landmark.number).role(side))
        if self._directions is None:
            return None
        forward, left, up = self._directions
        if landmark.part not in _LIMBS or bone is None:
            return np.array([forward, sign * left, up])
        along = self._body.direction(bone)
        front = square(forward, along)
        # If a limb points forward, its front side is the upper one.
        front = unit(front if np.linalg.norm(front) > 0.5 else square(up, along))
        return np.array([front, sign * np.cross(front, along), -along])

    def _body_directions(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Unit vectors (3,) forward, left and up, armature space; None if the rig has too few joints."""
        low, high = self._body.first_of("thigh", "hips"), self._body.first_of("upper_arm", "neck", "head")
        left = self._body.across("thigh") + self._body.across("upper_arm")
        if low is None or high is None or np.linalg.norm(left) < ROUNDING:
            return None
        left = unit(left)
        up = square(high - low, left)
        return None if np.linalg.norm(up) < ROUNDING else (np.cross(left, unit(up)), left, unit(up))

    def _body_height(self) -> float:
        """The body's height in armature units, estimated from the legs, else from the arms; 0 without either."""
        for joints, share in ((("hip", "knee", "ankle"), _LEG_SHARE), (("shoulder", "elbow", "wrist"), _ARM_SHARE)):
            for side in "LR":
                start, middle, end = (self._joint(joint, side) for joint in joints)
                if start is not None and middle is not None and end is not None:
                    return float(np.linalg.norm(middle - start) + np.linalg.norm(end - middle)) / share
        return 0.0


def simple_end(landmark: Landmark) -> End:
    """The end of its bone that is nearest to a landmark, for rigs of unknown shape."""
    own = any(end.part == landmark.part and end.end == "HEAD" for end in _JOINTS.get(landmark.joint, ()))
    return "HEAD" if own or landmark.joint in {"mid hip", "skull"} else "TAIL"
