"""Reads marker files of all formats, and separates performers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...core.arrays import ROUNDING, FloatArray, lengths
from ...core.errors import first_few
from ...human.naming_schemes import MIDDLE
from ..clip import LOOKED_AT, Clip, ClipError, MarkerFileError, true_spans
from ..mapping.labels import SIDES, landmarks_of
from ..mapping.landmarks import LANDMARKS, is_mirrored, is_stretched, limb_vectors, limbs_on_other_sides
from ..person import GRAVITY, cadence_doubts, cut_doubts, of_most, repeat_doubts
from . import ARMATURE_SUFFIXES, SUFFIXES
from .c3d import MAGIC, parse_c3d
from .csv_exports import has_sections, is_motive, parse_motive, parse_nexus
from .keypoints import parse_csv, parse_npy
from .reading import NPY_START, NPZ_START, PICKLE_START, PICKLED, Chosen, Parser, extent, parse_npz, read_file
from .trc import parse_trc

_PARSERS: Final[Mapping[str, Parser]] = {".trc": parse_trc, ".c3d": parse_c3d, ".npy": parse_npy, ".npz": parse_npz}
_TRC_START: Final = b"pathfiletype"
# Prefixes without a colon name performers if this many labels occur with each prefix.
_SHARED_LABELS: Final = 5
# A performer has at least this fraction of the body labels of the performer with the most.
_MIN_SHARE: Final = 0.25
# Meters: the extent of a person's markers, from a sitting child to an adult with raised arms. It is only checked with
# at least this many landmarks.
_SMALLEST, _LARGEST = 0.35, 3.5
_FEWEST_LANDMARKS: Final = 8
# In a recording of one person, the lengths of limbs never all change by this factor: with markers by up to 1.01; with
# keypoints by more, but not all together.
_GROWN: Final = 1.15
_PARTS: Final = 10
# Markers of one landmark belong to two people if they are farther apart than this fraction of a person's extent.
_APART: Final = 0.25
# Seconds: shorter spans without motion are not examined. Coordinates are often rounded.
_HELD: Final = 0.2
# A marker that may be frozen is compared with this many nearest markers, of which a few may be frozen too.
_NEAREST: Final = 7
_FROZEN_TOO: Final = 2
# The distance of two markers on neighboring bones changes by less than this fraction of the person's extent.
_KEPT: Final = 0.1
# Acceleration is measured over this many seconds before and after a frame.
_LAG: Final = 0.02
# A body falls too fast if its trunk falls at more than this multiple of gravity. Jumps reach 1. A dance recorded with
# sensors in a suit reaches 2.6, and a walk at 5 times its rate at least 3.3.
_FASTER: Final = 3.0


def read_markers(
    path: str | os.PathLike[str],
    units: str | None = None,
    up_axis: str | None = None,
    layout: str | None = None,
    rate: float | None = None,
) -> Clip:
    """Read a file of markers or keypoints, in meters. The format is detected from the content, or else the suffix.

    units: "mm", "cm", "m", "in" or "ft"; None: the file's. up_axis: "Y" or "Z"; None: the file's, or detected. layout:
    the order of keypoints without names, a key of `layouts.LAYOUTS`; None: detected. rate: frames per second; None: the
    file's. Raises MarkerFileError, one sentence that names the file, if the file cannot be read or its format is
    unknown; ChoiceError if a layout has to be chosen.
    """
    suffix = Path(path).suffix.lower()
    # `read_file` checks the axis.
    axis: Any = up_axis
    chosen = Chosen(units, axis, layout, rate)
    clip = read_file(path, lambda content, checked: _parser(content, suffix)(content, checked), chosen)
    clip = _without_frozen(clip)
    return replace(clip, doubts=(*clip.doubts, *_person_doubts(clip)))


def _person_doubts(clip: Clip) -> Iterator[str]:
    """Warnings if the size, sides, steps or falls of the markers do not match one person."""
    for name in performers(clip) or ("",):
        person, who = select_performer(clip, name) if name else clip, name or "the person"
        known = landmarks_of(person.names)
        if len(known) < _FEWEST_LANDMARKS:
            continue
        columns = [person.names.index(label) for label in known]
        positions = person.positions[:: max(1, person.frame_count // LOOKED_AT), columns]
        places = np.moveaxis(positions, 1, 0)
        landmarks = dict(zip(known.values(), places, strict=True))
        size = extent(positions)
        if not (is_sized := size == 0.0 or _SMALLEST < size < _LARGEST):
            length = f"{size:.2g}" if size < 1.0 else f"{size:.0f}"
            yield f"The markers of {who} extend over {length} m: choose units other than {clip.units} if that is wrong"
        along = [each for each in limb_vectors(landmarks) if len(each) >= _PARTS and np.median(lengths(each)) > 0.0]
        long = [lengths(each) for each in along]
        middles = [[np.median(part) for part in np.array_split(each / np.median(each), _PARTS)] for each in long]
        relative = np.array(middles or [[1.0]])
        sizes = np.median(relative, axis=0)
        grown = float((relative[:, sizes.argmax()] / np.maximum(relative[:, sizes.argmin()], ROUNDING)).min())
        if grown > _GROWN:
            yield (
                f"The size of {who} changes {grown:.1f}-fold during the recording: export the file with one unit for "
                "all frames"
            )
        elif is_stretched(along):
            yield f"The limbs of {who} change their lengths as they rotate: check that all axes have the same scale"
        if is_mirrored(landmarks):
            yield (
                f"The body of {who} faces backward: check whether the labels swap left and right, or the axes are "
                "mirrored"
            )
        else:
            swapped = set(limbs_on_other_sides(landmarks))
            for limbs, words in (("legs", "the legs"), ("arms", "the arms")):
                if limbs in swapped:
                    yield f"The labels of {who} swap left and right on {words}: rename them"
        apart = [lengths(place - landmarks[each]) for place, each in zip(places, known.values(), strict=True)]
        if sum(np.nanmedian(each) > _APART * size for each in apart if np.isfinite(each).any()) >= _FEWEST_LANDMARKS:
            yield (
                f"The labels of {who} occur twice, far apart: if there are two people, put a name before each "
                "person's labels, as in Anna:LASI"
            )
        if not is_sized:
            continue
        parts: dict[str, list[int]] = {}
        for column, (side, point) in zip(columns, known.values(), strict=True):
            part = LANDMARKS[point].part
            is_foot = part in ("foot", "toe") or point.endswith("ankle")
            parts.setdefault(f"foot{side}" if is_foot else part, []).append(column)
        trunk = person.positions[:, [column for part in (*MIDDLE, "shoulder") for column in parts.get(part, ())]]
        up = np.eye(3)["XYZ".index(person.up_axis)]
        yield from repeat_doubts((np.diff(trunk, axis=0) == 0.0).all(axis=(1, 2)))
        times = _falls(trunk @ up, person.rate)
        if times > 0.0:
            yield (
                f"The body of {who} falls at {times:.1f} times the acceleration of gravity: choose another frame "
                "rate, or other units"
            )
        else:
            left, right, hips = (
                [person.positions[:, column] for column in parts.get(part, ())] for part in ("footL", "footR", "hips")
            )
            yield from cadence_doubts(who, left, right, hips, up, person.rate)
            yield from cut_doubts(who, trunk, person.rate)


def _without_frozen(clip: Clip) -> Clip:
    """The clip without positions at which a marker is frozen, and a note.

    Some systems repeat the last position of a marker that is lost. A real marker may stay in place too, on a planted
    foot. But then its distances from some of the nearest markers hardly change.
    """
    prefixed = _prefixed(clip.names)
    people = [_places_of(clip, prefixed, name) for name in performers(clip)] or [list(range(len(clip.names)))]
    frozen = [span for own in people if len(own) >= _FEWEST_LANDMARKS for span in _frozen_spans(clip, own)]
    if not frozen:
        return clip
    positions = clip.positions.copy()
    for place, frames in frozen:
        positions[frames, place] = np.nan
    names = first_few(dict.fromkeys(clip.names[place] for place, _ in frozen))
    note = f"left out positions that stay the same while the other markers move: {names}"
    return replace(clip, positions=positions, notes=(*clip.notes, note))


def _frozen_spans(clip: Clip, own: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """The frozen markers of one person, each with its frames; own: the indices of the person's markers."""
    spans = [
        (place, slice(start, end + 1))
        for place in own
        for start, end in true_spans((np.diff(clip.positions[:, place], axis=0) == 0.0).all(axis=1))
        if end - start > max(_HELD * clip.rate, 1.0)
    ]
    if not spans:
        return
    size = extent(clip.positions[:: max(1, clip.frame_count // LOOKED_AT), own])
    for place, span in spans:
        points = clip.positions[span.start : span.stop : max(1, (span.stop - span.start) // LOOKED_AT), own]
        apart = lengths(points - clip.positions[span.start, place])
        # The nearest markers are on its own bone, on neighboring ones, or on the other foot.
        near = apart[:, np.argsort(apart[0])[1 : 1 + _NEAREST]]
        if np.sort(np.fmax.reduce(near) - np.fmin.reduce(near))[_FROZEN_TOO] > _KEPT * size:
            yield place, span


def _falls(heights: FloatArray, rate: float) -> float:
    """The acceleration of a trunk that falls too fast, as a multiple of gravity's; 0 if it never does.

    heights: (F, P) of points on it, meters; rate: Hz. The ground only pushes upward, so nobody falls faster.
    """
    lag = max(1, round(_LAG * rate))
    falling = of_most(2.0 * heights[lag:-lag] - heights[2 * lag :] - heights[: -2 * lag]) * (rate / lag) ** 2 / GRAVITY
    # A jump of the positions, as at a cut, looks like a fall for `lag` frames.
    falls = [falling[start:end] for start, end in true_spans(falling > _FASTER) if end - start > lag + 1]
    return max((float(np.median(fall)) for fall in falls), default=0.0)


def _parser(content: bytes, suffix: str) -> Parser:
    start = content[:64]
    letters = start.replace(b"\0", b"").lower()
    if _TRC_START in letters:
        return parse_trc
    if is_motive(content):
        return parse_motive
    if start.startswith(NPY_START):
        return parse_npy
    if start.startswith(NPZ_START):
        return parse_npz
    if start.startswith(PICKLE_START) and b"." in content[-2:]:
        raise MarkerFileError(PICKLED)
    if len(start) > 1 and start[1] == MAGIC and start[0] < ord(" "):
        return parse_c3d
    if suffix == ".csv":
        return parse_nexus if has_sections(content) else parse_csv
    if suffix in ARMATURE_SUFFIXES:
        raise MarkerFileError("it has an armature instead of markers: import it with File ▸ Import, then retarget it")
    if suffix not in _PARSERS:
        kinds = "/".join(suffix.lstrip(".").upper() for suffix in SUFFIXES)
        raise MarkerFileError(f"this is not a {kinds} file: choose one of these formats")
    return _PARSERS[suffix]


def performers(clip: Clip) -> tuple[str, ...]:
    """The prefixes of performers, in the clip's order: the part before the colon in labels such as Anna:LASI.

    A name between colon and underscore, as in Session:Anna_LASI, belongs to the prefix if several such names have the
    same labels. Without colons, the same applies to the part before the first underscore. Prefixes with far fewer body
    labels than others are props, and are left out. If no label is known, every prefix is a performer.
    """
    labels: dict[str, list[str]] = {}
    prefixed = _prefixed(clip.names)
    if not prefixed:
        return ()
    for name in clip.names:
        prefix, label = prefixed.get(name, ("", name))
        labels.setdefault(prefix, []).append(label)
    counts = {prefix: len(landmarks_of(own)) for prefix, own in labels.items()}
    if not any(counts.values()):
        counts = {prefix: len(own) for prefix, own in labels.items()}
    least = _MIN_SHARE * max(counts.values(), default=0)
    return tuple(prefix for prefix, count in counts.items() if prefix and count >= least)


def select_performer(clip: Clip, name: str) -> Clip:
    """The markers of one performer, without the prefix. Unlabeled markers belong to no performer.

    Raises ClipError if there is no such performer.
    """
    prefixed = _prefixed(clip.names)
    places = _places_of(clip, prefixed, name)
    if not places:
        if known := first_few(performers(clip)):
            raise ClipError(f"{clip.source or 'the recording'}: there is no performer {name!r}: choose {known}")
        raise ClipError(
            f"{clip.source or 'the recording'}: there is no performer {name!r}, because the labels name none: "
            "choose none"
        )
    names = tuple(prefixed[clip.names[place]][1] for place in places)
    return replace(clip, names=names, positions=clip.positions[:, places])


def _places_of(clip: Clip, prefixed: Mapping[str, tuple[str, str]], name: str) -> list[int]:
    """The indices of a performer's markers in the clip; prefixed: see `_prefixed`."""
    return [place for place, label in enumerate(clip.names) if label in prefixed and prefixed[label][0] == name]


def _prefixed(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Each label with a prefix, split into prefix and rest."""
    pieces = ((name, *map(str.strip, name.rpartition(":")[::2])) for name in names)
    by_colon = {name: (prefix, rest) for name, prefix, rest in pieces if prefix and rest}
    if not by_colon:
        return _with_underscores(names)
    # The part before the colon may be a session, followed by a person's name, as in Session:Anna_LASI.
    labels: dict[str, list[str]] = {}
    for prefix, rest in by_colon.values():
        labels.setdefault(prefix, []).append(rest)
    people = {prefix: _with_underscores(rests) for prefix, rests in labels.items()}
    return {
        name: (f"{prefix}:{people[prefix][rest][0]}", people[prefix][rest][1])
        if rest in people[prefix]
        else (prefix, rest)
        for name, (prefix, rest) in by_colon.items()
    }


def _with_underscores(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Each label with a prefix before an underscore, split into prefix and rest.

    Underscores also separate words of a label. So a prefix only counts if others have the same labels.
    """
    pieces = {name: (prefix, rest) for name in names for prefix, _, rest in (name.partition("_"),) if prefix and rest}
    labels: dict[str, set[str]] = {}
    # Words for left and right are sides only if both occur. A single one, such as Li, may be a name.
    has_sides = {SIDES.get(prefix.lower()) for prefix, _ in pieces.values()} >= {"L", "R"}
    for prefix, rest in pieces.values():
        if not (has_sides and prefix.lower() in SIDES) and not rest.isdigit():
            labels.setdefault(prefix, set()).add(rest)
    alike = {
        one
        for one, rests in labels.items()
        if any(one != other and len(rests & others) >= _SHARED_LABELS for other, others in labels.items())
    }
    return {name: piece for name, piece in pieces.items() if piece[0] in alike}
