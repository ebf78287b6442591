"""Masses of a body's bones: a human's segments by name, any other rig's bones by their size.

The segments are those of de Leva, *Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters*, Journal of
Biomechanics 29 (1996), table 4, the mean of women and men: fractions of the body's mass, and the position of the center
of mass along the segment. If several bones form one segment, such as head and neck, its mass is divided in proportion
to their lengths.
"""

from collections.abc import Mapping
from math import radians
from typing import Final, NamedTuple

from .naming_schemes import Role, match


class BoneMass(NamedTuple):
    """The mass of a bone.

    share: of the body's mass. center: its center of mass, as a fraction of the distance from head to tail. keeps:
    factor on its mass in the posture term. bends: factor on its joint's inertia. hangs: for a limb without targets, 0
    if the bone tilts with the trunk, and 1 if it keeps its own tilt. eased: the smallest bend of its joint in a relaxed
    limb, in radians; for an upper arm, its angle below level.
    """

    share: float
    center: float
    keeps: float = 1.0
    bends: float = 1.0
    hangs: float = 0.0
    eased: float = 0.0


class _Segment(NamedTuple):
    """Percentage of the body's mass, center of mass, parts, and the segment that gets the mass if it has no bones."""

    percent: float
    center: float
    parts: tuple[str, ...]
    else_on: str


# Segments with two sides are listed once. A hand's center is between wrist and finger tips, as rigs have fingers.
_SEGMENTS: Final = {
    "head": _Segment(6.81, 0.50, ("head", "neck"), "chest"),
    "chest": _Segment(15.705, 0.50, ("chest", "shoulder"), "spine"),
    "spine": _Segment(15.49, 0.50, ("spine",), "hips"),
    "hips": _Segment(11.82, 0.50, ("hips",), ""),
    "upper_arm": _Segment(2.63, 0.576, ("upper_arm",), "chest"),
    "forearm": _Segment(1.50, 0.457, ("forearm",), "upper_arm"),
    "hand": _Segment(0.585, 0.50, ("hand", "palm", "finger"), "forearm"),
    "thigh": _Segment(14.47, 0.385, ("thigh",), "hips"),
    "shin": _Segment(4.57, 0.444, ("shin",), "thigh"),
    "foot": _Segment(1.33, 0.421, ("foot", "toe"), "shin"),
}
_SIDED: Final = ("upper_arm", "forearm", "hand", "thigh", "shin", "foot")
# Factor on the pelvis's mass in the posture term: people reach with the arm, then with the trunk, and hardly move the
# pelvis.
_PELVIS_KEEPS: Final = 8.0
# Joint stiffness as a multiple of that from the bone's inertia. Spine and thigh: people who bend forward bend at the
# hips too. Here the pelvis takes 45 to 65 % of the trunk's tilt; Esola et al. (*Spine* 21, 1996) measured 35 to 70 %.
# Shoulder: the collar takes a third of the arm's elevation (Inman, Saunders and Abbott, *J. Bone Joint Surg.* 26,
# 1944). Hand: with 1, wrists bend to their limits while elbows stay straight; if both hands are moved to the head, the
# trunk folds by 82 degrees.
_BENDS: Final = {
    "hips": 0.45,
    "thigh": 0.25,
    "spine": 24.0,
    "chest": 24.0,
    "neck": 4.0,
    "head": 4.0,
    "shoulder": 5.0,
    "upper_arm": 2.0,
    "hand": 1.3,
}
# The fraction of a trunk's tilt that limbs without targets do not follow: arms and legs hang, and the head looks ahead.
_HANGS: Final = {"upper_arm": 1.0, "forearm": 1.0, "thigh": 1.0, "shin": 1.0, "neck": 0.4, "head": 0.6}
# Shin: degrees by which a knee bends once its foot is dragged away. With 0, a foot that is dragged back along the floor
# by 20 cm bends the knee by at most 4 degrees, instead of 43.
# Upper arm: degrees by which a level arm is lowered once its hand is dragged away; other arms are lowered less. With 0,
# the elbows of a rig in a T pose are above its shoulders when its hands are at a wall.
_EASED: Final = {"shin": 100.0, "upper_arm": 40.0}
# The torque with which a dragged bone keeps its orientation, as a fraction of the torque that holds a target rotation.
# Foot: if lifted by 30 cm, it tilts by 13 degrees; if free to rotate, by 46. With 0.017, the heel stays down even with
# the ankle at its limit. Toe: only the heel of a dragged foot rises. With 0.1, crossed legs snap. Head: if dragged
# forward and down, it tilts by 22 to 33 degrees. Hips tilt only for balance. With 0.11, the trunk tilts back in a squat
# instead of forward. Hands are free: with 0.0001 or more, wrists jerk when released.
KEEPS_ORIENTATION: Final = {"foot": 0.0011, "toe": 0.0075, "head": 0.01, "hips": 0.097}
# Hips that are dragged or have a target, and bones that move with them, are released at this fraction of the force that
# releases other bones. With 1, the trunk folds by 45 degrees if ankles at their limits stop hips that are lowered. With
# a tenth, balance keeps hips that are dragged sideways 11 mm farther away from the mouse.
LEADS_WITH: Final = {"hips": 1.0 / 7.0}
# A rig is a human's if all of these parts are known.
_TELLING: Final = ("hips", "upper_arm", "forearm", "thigh", "shin")
# No bone weighs less than this fraction of the heaviest, since a bone without mass would move erratically.
_MIN: Final = 1e-3
_MIDDLE: Final = 0.5


def body_masses(lengths: Mapping[str, float]) -> dict[str, BoneMass]:
    """The masses of a rig's bones, by name; the shares add up to 1.

    lengths: of all bones, any unit. If their names are not a human's, masses are proportional to length³, as for
    bodies of one shape.
    """
    roles = match(lengths)
    parts = {role.part for role in roles.values()}
    if all(part in parts for part in _TELLING):
        found = _human(lengths, roles)
    else:
        found = {name: BoneMass(length**3, _MIDDLE) for name, length in lengths.items()}
    least = _MIN * max((mass.share for mass in found.values()), default=0.0) or 1.0
    raised = {name: max(found[name].share if name in found else 0.0, least) for name in lengths}
    whole = sum(raised.values())
    return {
        name: found.get(name, BoneMass(0.0, _MIDDLE))._replace(share=share / whole) for name, share in raised.items()
    }


def _human(lengths: Mapping[str, float], roles: Mapping[str, Role]) -> dict[str, BoneMass]:
    found: dict[str, BoneMass] = {}
    for name, segment in _SEGMENTS.items():
        for side in ("L", "R") if name in _SIDED else ("",):
            bones = _bones(roles, name, side)
            whole = sum(lengths[bone] for bone in bones)
            for bone in bones:
                share = segment.percent * (lengths[bone] / whole if whole > 0.0 else 1.0 / len(bones))
                part = roles[bone].part
                # A segment without bones of its own is a mass at the tail of the bone that it is attached to.
                center = segment.center if part in segment.parts else 1.0
                before = found.get(bone, BoneMass(0.0, _MIDDLE))
                both = before.share + share
                center = (before.share * before.center + share * center) / both if both > 0.0 else center
                keeps, bends = _PELVIS_KEEPS if part == "hips" else 1.0, _BENDS.get(part, 1.0)
                hangs, eased = _HANGS.get(part, 0.0), radians(_EASED.get(part, 0.0))
                found[bone] = BoneMass(both, center, keeps, bends, hangs, eased)
    return found


def _bones(roles: Mapping[str, Role], segment: str, side: str) -> list[str]:
    """The bones of a segment; if the rig has none, those of the segment that gets its mass."""
    parts, else_on, sides = _SEGMENTS[segment].parts, _SEGMENTS[segment].else_on, {side, ""}
    of_parts = {name: role for name, role in roles.items() if role.part in parts}
    bones = [name for name, role in of_parts.items() if segment not in _SIDED or role.side in sides]
    return bones if bones or not else_on else _bones(roles, else_on, side)
