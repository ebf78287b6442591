"""What makes one doubt that a bake shows the person who was recorded: a sentence for each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ...core.errors import first_few
from ...human.body_parts import Role
from ..mapping.labels import is_unlabelled, is_virtual
from .figures import Report

# The parts of each limb, and whether it has a side.
_LIMBS: Final = (
    ("head", frozenset({"head", "neck"}), False),
    ("trunk", frozenset({"chest", "spine", "shoulder"}), False),
    ("arm", frozenset({"upper_arm", "forearm", "hand"}), True),
    ("leg", frozenset({"thigh", "shin", "foot", "toe"}), True),
)
_SIDES: Final = (("L", "left "), ("R", "right "))
# Fewer than this share of a recording's labels on bones, and it may be of something else.
_FEW: Final = 0.5
# A bone that stands at its limits on more than this percentage of the frames does not do so by itself.
_MOSTLY: Final = 50.0
# A marker that was left out on more than this percentage of the frames was not wrong for a moment.
_OFTEN_WRONG: Final = 10.0
# People who walk are 95 to 101 % as tall as at rest, those of a sports take 88.
_CROUCHING: Final = 0.82
# RMS, of a rig's size from end to end, 2.4 m of a person 1.75 m tall: there surface markers on the right person are
# within 10 mm, keypoints within 15, other people's sizes within 25; more than 30 is far off.
_FAR: Final = 0.0127
_PERSON: Final = 2.37
# Measured places farther from where labels say, of the rig's height at rest (1.5 m from toes to skull): none of ten
# recordings' has one 12 cm away; with left and right swapped it is 32 to 56 percent of them.
_MISPLACED: Final = 0.08
_MANY: Final = 0.2
_NAMED: Final = 4


def matching_doubts(
    labels: Sequence[str], on_bones: Mapping[str, str], roles: Mapping[str, Role], unseen: Collection[str] = ()
) -> Iterator[str]:
    """Doubts about which markers are on bones.

    labels: of all markers. on_bones: the bone of those that are on one. roles: of the rig's bones. unseen: labels of
    markers that are never seen.
    """
    named = [label for label in labels if not (is_unlabelled(label) or is_virtual(label))] or list(labels)
    known = [label for label in named if label in on_bones]
    if len(known) < _FEW * len(named):
        yield (
            f"Only {len(known)} of {len(named)} labelled markers are on bones: put the others on theirs in the list "
            "or by a map, unless this is no recording of a person"
        )
    bare = list(bare_limbs(set(on_bones.values()), roles))
    if bare and on_bones:
        yield f"No marker is on the {listed(bare)}: these bones only follow the others"
    visible = {bone for label, bone in on_bones.items() if label not in unseen}
    if hidden := [bone for bone in dict.fromkeys(on_bones.values()) if bone not in visible]:
        yield f"The markers on {listed(hidden)} are never seen on these frames: these bones only follow the others"


def placing_doubts(moved: Mapping[str, float], height: float) -> Iterator[str]:
    """Doubts about places that a calibration has measured.

    moved: how far markers are from where their labels say. height: of the rig's joints at rest, in the same units.
    """
    far = _over(moved, _MISPLACED * height)
    if len(far) > _MANY * len(moved):
        yield (
            f"Markers are far from where their labels say: {listed(far)}; see that left and right are not swapped, by "
            "labels or by a mirrored recording, and that markers are on the right bones"
        )


def calibration_doubts(stature: float, left_out: tuple[float, float] | None) -> Iterator[str]:
    """Doubts about a calibration.

    stature: as in `Calibration`. left_out: how far the take's markers are off, metres, with a static recording that was
    left out, and without it.
    """
    if left_out is not None:
        yield (
            f"The static recording was left out: with it markers are {1000.0 * left_out[0]:.0f} mm off, without it "
            f"{1000.0 * left_out[1]:.0f} mm; see that it is of this person with these markers"
        )
    if stature < _CROUCHING:
        yield (
            f"The person crouches on the frames of the calibration ({100.0 * stature:.0f} % of the standing height): "
            "choose reference frames on which the person stands, or a static recording"
        )


def result_doubts(report: Report, size: float = _PERSON, moved: Sequence[str] = ()) -> Iterator[str]:
    """Doubts that a bake's figures raise.

    size: metres from one end of the rig to the other. moved: the bones that constraints move and markers depend on.
    """
    rms = report.total().rms
    if rms > _FAR * size and moved:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is far off, as constraints move {listed(moved)}: press Set Up Control Rig, "
            "or mute these constraints, and bake again"
        )
        return
    bones = _often(report.limits, _MOSTLY)
    if bones:
        yield (
            f"At their limits on most frames: {bones}; calibrate on frames on which the person stands, or clear these "
            "limits, bake again and use Limits from Action"
        )
    markers = _often(report.left_out, _OFTEN_WRONG)
    if markers:
        yield (
            f"Left out as wrong on many frames: {markers}; see that they are on the right bones, and that limits "
            "let these go where the person went"
        )
    if rms > _FAR * size:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is far off: see that this is the person whom the rig stands for, in the right "
            "units, and that markers are on the right bones"
        )


def _often(percents: Mapping[str, float], more_than: float) -> str:
    """What has more than so many percent, the most first, in words; "" where nothing has."""
    names = _over(percents, more_than)
    return listed([f"{name} ({percents[name]:.0f} %)" for name in names]) if names else ""


def _over(values: Mapping[str, float], more_than: float) -> list[str]:
    """What has more than so much, the most first."""
    return sorted((name for name, value in values.items() if value > more_than), key=lambda name: -values[name])


def bare_limbs(bones: Collection[str], roles: Mapping[str, Role]) -> Iterator[str]:
    """The limbs that the rig has and no marker is on."""
    for limb, parts, sided in _LIMBS:
        for side, word in _SIDES if sided else (("", ""),):
            own = {bone for bone, role in roles.items() if role.part in parts and (not sided or role.side == side)}
            if own and not own & set(bones):
                yield word + limb


def listed(things: Sequence[str]) -> str:
    """Some of many in words."""
    if len(things) > _NAMED:
        return first_few(things, _NAMED)
    return " and ".join((", ".join(things[:-1]), things[-1])) if len(things) > 1 else things[0]
