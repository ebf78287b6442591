"""Warnings, one sentence each, that name reasons why a bake may not show the recorded person."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from ..core import Solution
from ..core.arrays import ROUNDING, FloatArray, evenly_spread, times
from ..core.errors import first_few
from ..human.naming_schemes import ARM, LEG, Role, match
from ..human.rest_body import degrees_between, length, square, unit
from .feet import head_positions
from .mapping.labels import is_named
from .person import find_walk
from .report import Report

# Each limb in words, its parts, and its side; whole limbs come before their ends. With the article, a bone named "head"
# is not translated.
_LIMBS: Final = (
    ("the head", ("head", "neck"), ""),
    ("the trunk", ("chest", "spine", "shoulder"), ""),
    ("the hips", ("hips",), ""),
    ("the left arm", ARM, "L"),
    ("the right arm", ARM, "R"),
    ("the left leg", LEG, "L"),
    ("the right leg", LEG, "R"),
    ("the left forearm", ARM[1:], "L"),
    ("the right forearm", ARM[1:], "R"),
    ("the left foot", LEG[2:], "L"),
    ("the right foot", LEG[2:], "R"),
)
# If less than this fraction of the labels is on bones, the recording may not be of a person.
_FEW: Final = 0.5
# If a bone is at its limits on more than this percentage of the frames, its limits or the calibration are wrong.
_MOSTLY: Final = 50.0
# A marker that was left out on more than this percentage of the frames is wrong throughout.
_OFTEN_WRONG: Final = 10.0
# A person crouches if the stature, divided by that at rest, is below this. For upright people, it is at least 0.88.
_CROUCHING: Final = 0.82
# The distance from the ankles to the base of the head, as a fraction of a person's height.
_FEET_TO_HEAD: Final = 0.82
# Meters: nearly all people who stand are between these heights. Inches read as centimeters make adults 0.7 m tall.
_SHORTEST, _TALLEST = 0.8, 2.3
# An RMS error above this fraction of a rig's size from end to end (30 mm on a person) is too large. It is up to 25 mm
# on rigs of other proportions.
_FAR: Final = 0.0127
# A marker is misplaced if it is farther from its label's position than this fraction of the rig's height at rest (15 cm
# on a person). In six recordings on six rigs, it is at most 0.072; for markers on another joint, 0.11 to 0.18.
_MISPLACED: Final = 0.1
# A difference between the positions of a left and a right marker counts as this many times its size, because rigs and
# marker sets differ from people on both sides alike.
_UNLIKE: Final = 2.0
# A wrong marker is farther from its label's position than that of the other side by at least this factor. If both are
# equally far, their bones are rotated, since few markers leave the rotation of a bone undetermined.
_FARTHER: Final = 1.25
# A left and a right marker swap sides or coincide if their distance from side to side is below this fraction of the
# usual one. It is at least 0.52 in these recordings.
_BESIDE: Final = 0.3
# A person is wider or narrower than the rig if hips and shoulders both differ by more than this factor, after limbs are
# scaled to the same length. In five recordings, it is 0.93 to 1.14.
_WIDER: Final = 1.15
_WIDE_PARTS: Final = (("hips",), ("chest", "shoulder"))
# The parts at both ends of the trunk, of the trunk without the neck, and of the legs.
_BODY: Final = (
    ("head", "neck"),
    ("thigh",),
    ("shoulder", "upper_arm"),
    ("foot",),
    ("shin",),
)
# Degrees: a person whose trunk is tilted by more is lying down. The trunks of people who sit or bend down are tilted by
# less on most frames.
_LYING: Final = 60.0
# Degrees, and a fraction of the frames: if the trunk is tilted by less on more of the frames, the person also stands.
_UPRIGHT: Final = 20.0
_SOMETIMES: Final = 0.1
# Degrees: the largest mean angles by which walking people lean back, forward and sideways. In six recordings, they lean
# up to 10 forward and 2 sideways.
_BACK, _AHEAD, _ASIDE = -4.0, 12.0, 6.0
_FEET, _HIPS, _SHOULDERS = ("foot",), ("thigh",), ("upper_arm", "shoulder")
# Degrees between trunk and legs at rest, above which a rig is an animal: people have at most 9, animals at least 60.
_ON_FOUR: Final = 45.0
# Maximum number of frames that are examined.
LOOKED_AT: Final = 500
_NAMED: Final = 4


def matching_doubts(
    labels: Sequence[str], on_bones: Mapping[str, str], roles: Mapping[str, Role], unseen: Collection[str] = ()
) -> Iterator[str]:
    """Warnings about the mapping of markers to bones.

    labels: all labels. on_bones: bone by label. roles: role by bone of the rig. unseen: labels that are never seen.
    """
    named = [label for label in labels if is_named(label)] or list(labels)
    known = [label for label in named if label in on_bones]
    if len(known) < _FEW * len(named):
        yield (
            f"Only {len(known)} of {len(named)} labeled markers are on bones: if the recording shows a person, "
            "assign the others in the list or with a map"
        )
    bare = list(limbs_without_markers(set(on_bones.values()), roles))
    if bare and on_bones:
        yield f"No marker is on {listed(bare)}: these bones only follow their parents"
    visible = {bone for label, bone in on_bones.items() if label not in unseen}
    if hidden := [bone for bone in dict.fromkeys(on_bones.values()) if bone not in visible]:
        yield (
            f"The markers on {listed(hidden)} are never visible on these frames: these bones only follow their parents"
        )


def placing_doubts(
    places: Mapping[str, FloatArray],
    usual: Mapping[str, FloatArray],
    height: float,
    others: Mapping[str, str] = MappingProxyType({}),
    parts: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Warnings about marker positions measured by a calibration.

    places, usual: by label, (3,) positions of markers, and those usual for their labels: forward, left, up. height: the
    largest extent of the rig's joints at rest along an axis, in the same units. others: the markers of the other side.
    parts: the part of each marker's bone.
    """
    widths = []
    for own in _WIDE_PARTS:
        pairs = [(label, other) for label, other in others.items() if label in places and parts.get(label) in own]
        apart, usually = (
            np.array([each[label][1] - each[other][1] for label, other in pairs if other in places])
            for each in (places, usual)
        )
        widths.append(float(apart @ usually) / max(float(usually @ usually), ROUNDING) if pairs else 1.0)
    if min(widths) > _WIDER or max(widths) < 1.0 / _WIDER:
        yield (
            f"The person is {np.mean(widths):.1f} times as wide as the rig: check that all axes have the same scale, "
            "and that the rig represents this person"
        )
    moved = {label: place - usual[label] for label, place in places.items()}
    off, unlike, swapped = {label: length(vector) for label, vector in moved.items()}, dict[str, float](), list[str]()
    for label, other in others.items():
        if label not in off or other not in off:
            continue
        if off[label] >= _FARTHER * off[other]:
            unlike[label] = _UNLIKE * length(moved[label] - moved[other] * (1.0, -1.0, 1.0))
        apart, usually = (each[label][1] - each[other][1] for each in (places, usual))
        if apart * usually < _BESIDE * usually**2:
            swapped.append(label)
    # A marker that is far off makes its neighbors unlike those of the other side.
    if far := _over(off, _MISPLACED * height) or _over(unlike, _MISPLACED * height) or swapped:
        yield (
            f"Markers are far from the usual positions for their labels: {listed(far)}; check their bones, and whether "
            "the labels swap left and right or the axes are mirrored"
        )


def calibration_doubts(
    stature: float, left_out: tuple[float, float] | None, height: float = math.nan, *, is_unsure: bool = False
) -> Iterator[str]:
    """Warnings about a calibration.

    stature, is_unsure: see `Calibration`. height: from feet to head of the person, meters; NaN if it is not known.
    left_out: the take's RMS errors in meters, with and without a static recording that was left out; else None.
    """
    if left_out is not None:
        yield (
            f"The static recording was left out, because markers are {1000.0 * left_out[0]:.0f} mm off with "
            f"it and {1000.0 * left_out[1]:.0f} mm without it: check that it shows this person with these markers"
        )
    if is_unsure:
        yield (
            "The positions of most markers on their bones are uncertain, and no calibration pose was detected: choose "
            "reference frames on which the person stands as the rig does at rest, or in an A or T pose"
        )
    if not math.isnan(tall := height / _FEET_TO_HEAD) and not _SHORTEST < tall < _TALLEST:
        yield f"The person is {tall:.2f} m tall: choose other units if that is wrong"
    if stature < _CROUCHING:
        yield (
            f"The person crouches on the frames of the calibration ({100.0 * stature:.0f} % of the standing height): "
            "choose reference frames on which the person stands, or a static recording"
        )


def result_doubts(report: Report, size: float, marked: Collection[str], moved: Sequence[str] = ()) -> Iterator[str]:
    """Warnings from a bake's figures.

    size: of the rig from end to end, meters. marked: bones with markers. Others share a bend with their neighbors, so
    their limits don't matter. moved: bones that constraints move and markers depend on.
    """
    rms = report.total.rms
    if rms > _FAR * size and moved:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is high because constraints move {listed(moved)}: press Set Up Control Rig, "
            "or mute these constraints, and bake again"
        )
        return
    bones = named_figures({bone: report.limits[bone] for bone in report.limits if bone in marked}, _MOSTLY, " %")
    if bones:
        yield (
            f"At their limits on most frames: {bones}; calibrate on frames on which the person stands, or clear these "
            "limits, bake again and use Limits from Action"
        )
    markers = named_figures(report.left_out, _OFTEN_WRONG, " %")
    if markers:
        yield (f"Often left out as outliers: {markers}; check their bones, and that limits allow the person's poses")
    if rms > _FAR * size:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is high: check that the rig represents this person, that units are "
            "right, and that markers are on the right bones"
        )


def posture_doubts(solution: Solution, matrices: FloatArray) -> Iterator[str]:
    """A warning if a person lies, leans or is upside down on most frames or at rest, or an animal is upright.

    matrices: (F, 4, 4) world matrices of the armature.
    """
    skeleton = solution.skeleton
    roles = match(skeleton.names)
    tops, hips, shoulders, *legs = ([name for name in roles if roles[name].part in parts] for parts in _BODY)
    if not tops or not hips:
        return
    places, feet = evenly_spread(len(matrices), LOOKED_AT), legs[0] or legs[1]
    posed = head_positions(solution.part(places), {*tops, *hips, *shoulders, *feet})
    rest = dict(zip(skeleton.names, skeleton.rest[:, :3, 3], strict=True))

    def line(heads: Mapping[str, FloatArray], low: Sequence[str], high: Sequence[str]) -> FloatArray:
        """(..., 3) vectors between the means of the heads (..., 3) of bones `low` and `high`."""
        return np.asarray(np.subtract(*(np.mean([heads[name] for name in end], axis=0) for end in (high, low))))

    up = matrices[places, 2, :3]
    lies = median_angle(line(rest, hips, tops), up[0]) > _LYING
    if shoulders and feet:
        leans = [median_angle(line(heads, hips, shoulders), line(heads, feet, hips)) for heads in (rest, posed)]
        if leans[0] > _ON_FOUR >= leans[1]:
            yield (
                "The rig is an animal with four legs, but is upright on most frames: if the recording shows a person, "
                "choose the rig of a person"
            )
            return
        if lies and leans[0] <= _ON_FOUR:
            yield "The rig does not stand upright at rest: rotate its object until the rig stands, then run this again"
        tilts = degrees_between(line(posed, feet, shoulders), up)
        lean = float(np.median(tilts))
        is_tipped = lean < _LYING and (tilts < _UPRIGHT).mean() <= _SOMETIMES and not lies
        if leans[1] < _UPRIGHT and (is_tipped or (lean := _lean_in_walk(solution, matrices)) > 0.0):
            yield (
                f"The person is straight but leans by {lean:.0f}° on most frames: if the recording shows someone "
                "upright, rotate the markers until their floor is level"
            )
    tilts = degrees_between(line(posed, hips, tops), up)
    # Someone who also stands upright shows which axis is up.
    if lies or (tilted := float(np.median(tilts))) <= _LYING or (tilts < _UPRIGHT).mean() > _SOMETIMES:
        return
    how = "is upside down" if tilted > 180.0 - _LYING else "lies or crawls"
    yield f"The person {how} on most frames: if the recording shows something else, choose the other up axis"


def _lean_in_walk(solution: Solution, matrices: FloatArray) -> float:
    """Degrees by which a person leans while walking; 0 if that is usual, or if the person does not walk.

    Examines consecutive frames in the middle of the take.
    """
    middle, roles = len(matrices) // 2, match(solution.skeleton.names)
    # The first bone of each part and side.
    bones = [
        [name for name, role in roles.items() if role.side == side and role.part in parts][:1]
        for parts in (_FEET, _HIPS, _SHOULDERS)
        for side in "LR"
    ]
    if not all(bones):
        return 0.0
    part = slice(max(middle - 2 * LOOKED_AT, 0), middle + 2 * LOOKED_AT)
    posed = head_positions(solution.part(part), {name for (name,) in bones})
    foot, other, *joints = (times(matrices[part, :3, :3], posed[name]) for (name,) in bones)
    hips, shoulders = joints[:2], joints[2:]
    up = np.array([0.0, 0.0, 1.0])
    walk = find_walk(foot - other, 0.5 * (hips[0] + hips[1]) @ up - np.minimum(foot @ up, other @ up), up)
    if walk is None:
        return 0.0
    lines, left = unit(np.sum(shoulders, axis=0) - foot - other)[walk[0]], unit(square(hips[0] - hips[1], up))[walk[0]]
    mean = np.array([(lines * np.cross(left, up)).sum(axis=1).mean(), (lines * left).sum(axis=1).mean()])
    ahead, aside = np.degrees(np.arcsin(mean))
    is_usual = _BACK < ahead < _AHEAD and abs(aside) < _ASIDE
    return 0.0 if is_usual else float(np.degrees(np.arcsin(np.linalg.norm(mean))))


def median_angle(one: FloatArray, other: FloatArray) -> float:
    """Median angle between directions (..., 3), degrees."""
    return float(np.median(degrees_between(one, other)))


def named_figures(figures: Mapping[str, float], more_than: float, unit: str) -> str:
    """A phrase that lists names and figures above `more_than`, the highest first; "" if there are none."""
    names = _over(figures, more_than)
    return listed([f"{name} ({figures[name]:.0f}{unit})" for name in names]) if names else ""


def _over(values: Mapping[str, float], more_than: float) -> list[str]:
    return sorted((name for name, value in values.items() if value > more_than), key=lambda name: -values[name])


def limbs_without_markers(bones: Collection[str], roles: Mapping[str, Role]) -> Iterator[str]:
    """The limbs of the rig that have no marker, without the ends of such limbs."""
    told = set[str]()
    for limb, parts, side in _LIMBS:
        own = {bone for bone, role in roles.items() if role.part in parts and side in ("", role.side)}
        if own - told and not own & set(bones):
            told |= own
            yield limb


def listed(things: Sequence[str]) -> str:
    """A phrase that lists names, or the first few of many."""
    if len(things) > _NAMED:
        return first_few(things, _NAMED)
    return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]
