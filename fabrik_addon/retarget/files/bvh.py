"""Reads BVH files: a skeleton, and the rotations of its joints.

A BVH file has HIERARCHY with joints, each with OFFSET and CHANNELS, and MOTION with Frames, Frame Time and one line of
numbers for each frame. The axes of all joints are those of the world at rest, and Y is up. A joint's rotations are in
degrees and multiplied in the order of its channels. Decimal commas, UTF-16, radians, and joints with only some channels
are read too.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import IDENTITY, product
from ...markers.files.reading import decoded, frame_count_doubt, number_in, plausible_rate
from ..motion import Recorded, RetargetError

_MOTION: Final = re.compile(r"^[ \t]*MOTION[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FRAMES: Final = re.compile(r"^[ \t]*Frames:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FRAME_TIME: Final = re.compile(r"^[ \t]*Frame[ \t]+Time:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
# The beginning of a joint or an end, its numbers or channels, or its closing brace.
_PART: Final = re.compile(r"\b(ROOT|JOINT|END)\b([^\n{]*)|\b(OFFSET|CHANNELS)\b([^\n{}]*)|(\})", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_KINDS: Final = ("position", "rotation")
_CHANNELS: Final = tuple(f"{axis}{kind}" for kind in _KINDS for axis in "XYZ")
# Angles in radians are at most a full turn. If such small numbers were degrees, the body would move by at most this
# fraction of its longest bone (13 cm).
_TURN: Final = 6.3
_MOVES: Final = 0.3
# In the file's units. Shorter bones without an end get this length.
_NO_LENGTH: Final = 1e-3
_SHORT: Final = 0.1


class _Joint(NamedTuple):
    """A joint: its parent's index (-1 for a root), offset, channels, and the offset of its end, if it has one."""

    name: str
    parent: int
    offset: list[float]
    channels: list[str]
    end: list[float]


def parse_bvh(content: bytes, rate: float | None = None) -> Recorded:
    """The body in a BVH file, in the file's units.

    Missing positions are replaced by the joint's offset, and so are positions that are all 0, except the root's.
    Missing rotations are 0. The rate of a single pose may be unknown (0).

    rate: frames per second, overrides the file's. Raises RetargetError, one sentence without the file's name, for words
    that are not numbers, unknown or repeated channels, lines that are too short, or an implausible rate.
    """
    text = decoded(content).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    if not text:
        raise RetargetError("the file is empty: choose another")
    if text[:9].upper() != "HIERARCHY":
        raise RetargetError("this is not a BVH file, because it does not begin with HIERARCHY: choose another")
    motion = _MOTION.search(text)
    time = _FRAME_TIME.search(text, motion.end()) if motion else None
    if motion is None or time is None:
        raise RetargetError("it has no MOTION with a Frame Time after the skeleton: export it again")
    head, data = text[: motion.start()], text[time.end() :].strip("\n")
    offsets = (part[4] for part in _PART.finditer(head) if (part[3] or "").upper() == "OFFSET")
    if "." not in data and any("," in each for each in (data, *offsets)):
        head, data = head.replace(",", "."), data.replace(",", ".")
    joints = _joints(head)
    rows = _rows(data, text.count("\n", 0, time.end()) + 2, sum(len(joint.channels) for joint in joints))
    own_rate = rate or 1.0 / (number_in(time[1]) or math.nan)
    if not plausible_rate(own_rate):
        if len(rows) > 1:
            raise RetargetError(
                f"its Frame Time is {time[1]!r}, but must be in seconds, such as 0.0333: choose the frame rate"
            )
        own_rate = 0.0
    stated = _FRAMES.search(text, motion.end())
    doubts = frame_count_doubt((number_in(stated[1]) if stated else None) or math.nan, len(rows))
    if (there := len(data.partition("\n")[0].split())) > rows.shape[1]:
        more = f"Lines have {there} numbers, but the joints have {rows.shape[1]} channels: check the poses"
        doubts = (*doubts, more)
    return _body(joints, rows, own_rate, doubts)


def _joints(head: str) -> list[_Joint]:
    joints: list[_Joint] = []
    # Indices of the joints whose braces are open, the innermost last; an end repeats its joint.
    opened: list[int] = []
    is_end = False
    for kind, name, field, values, _ in (part.groups("") for part in _PART.finditer(head)):
        if kind:
            is_end = kind.upper() == "END"
            if not is_end:
                own, used = "_".join(name.split()), {joint.name for joint in joints}
                # Number names that occur twice, like Blender.
                numbered = (f"{own}.{number:03}" if number else own for number in count())
                own = next(each for each in numbered if each not in used)
                joints.append(_Joint(own, opened[-1] if opened else -1, [], [], []))
            opened += opened[-1:] if is_end else [len(joints) - 1]
        elif not opened:
            raise RetargetError("the braces of its joints do not match: export it again")
        elif not field:
            is_end = False
            opened.pop()
        elif field.upper() == "CHANNELS":
            names = [each.capitalize() for each in values.split()[1:]]
            if not set(names) <= set(_CHANNELS) or len(set(names)) < len(names):
                raise RetargetError(f"the channels {' '.join(names)} are unknown or repeated: export it again")
            joints[opened[-1]].channels[:] = names
        else:
            cells = values.split()
            if (bad := next(_no_numbers(cells), None)) is not None:
                raise RetargetError(f"{bad!r} in an OFFSET is not a number: export it again")
            joint = joints[opened[-1]]
            (joint.end if is_end else joint.offset)[:] = map(float, cells[:3])
    if odd := [joint.name for joint in joints if len(joint.offset) != 3 or len(joint.end) not in (0, 3)]:
        raise RetargetError(f"joint {odd[0]!r} has no OFFSET of three numbers: export it again")
    return joints


def _no_numbers(cells: Sequence[str]) -> Iterator[str]:
    return (cell for cell in cells if not _NUMBER.fullmatch(cell))


def _rows(data: str, first: int, wide: int) -> FloatArray:
    """(F, n) the numbers of each frame's line. first: the first line's number. wide: the count in a line."""
    lines = data.split("\n")
    with suppress(ValueError):
        rows = np.loadtxt(lines, comments=None, usecols=range(wide), ndmin=2) if data and wide else np.empty((0, wide))
        if len(rows) and np.isfinite(rows).all():
            return rows
    for number, line in enumerate(lines, start=first):
        cells = line.split()
        if (bad := next(_no_numbers(cells), None)) is not None:
            raise RetargetError(f"line {number}: {bad!r} is not a number: export it again")
        if 0 < len(cells) < wide:
            raise RetargetError(
                f"line {number} has {len(cells)} of {wide} numbers, as if the file were cut off: export it again"
            )
    raise RetargetError("there are no frames after the header: export it again")


def _body(joints: list[_Joint], rows: FloatArray, rate: float, doubts: tuple[str, ...]) -> Recorded:
    """The body with its motion; rows: (F, n) the values of all channels."""
    offsets, parents = np.array([joint.offset for joint in joints]), np.array([joint.parent for joint in joints])
    is_angle = np.array([_KINDS[1] in name for joint in joints for name in joint.channels])
    longest, notes = max(np.linalg.norm(offsets[1:], axis=1).tolist(), default=math.inf), tuple[str, ...]()
    moved, largest = np.ptp(rows[:, ~is_angle], axis=0).max(initial=0.0), np.abs(rows[:, is_angle]).max(initial=0.0)
    if 0.0 < largest <= _TURN and moved > _MOVES * longest:
        notes = ("its rotations are in radians; converted them to degrees",)
    else:
        rows[:, is_angle] = np.radians(rows[:, is_angle])
    rotations, columns = np.empty((len(rows), len(joints), 4)), iter(rows.T)
    heads, tails, shifted = offsets.copy(), np.zeros(offsets.shape), dict[int, FloatArray]()
    for index, joint in enumerate(joints):
        place, is_placed, turned = np.tile(offsets[index], (len(rows), 1)), joint.parent < 0, IDENTITY
        for name, values in zip(joint.channels, columns, strict=False):
            axis = "XYZ".index(name[0])
            if _KINDS[0] in name:
                place[:, axis] = values
                is_placed |= values.any()
            else:
                turn = np.zeros((len(rows), 4))
                turn[:, 0], turn[:, 1 + axis] = np.cos(0.5 * values), np.sin(0.5 * values)
                turned = product(turned, turn)
        rotations[:, index] = turned
        if joint.parent < 0 or (is_placed and (place != offsets[index]).any()):
            shifted[index] = _z_up(place)
        heads[index] += heads[joint.parent] if joint.parent >= 0 else 0.0
        ends = np.array([joint.end]) if joint.end else offsets[parents == index]
        way = ends.mean(axis=0) if len(ends) else np.zeros(3)
        tails[index] = heads[index] + (way if np.linalg.norm(way) > _NO_LENGTH else [0.0, _SHORT, 0.0])
    rotations[..., 1:] = _z_up(rotations[..., 1:])
    frames, names, root = np.arange(len(rows)), [joint.name for joint in joints], shifted.pop(0)
    return Recorded(names, parents, _z_up(heads), _z_up(tails), frames, rotations, root, rate, notes, doubts, shifted)


def _z_up(vectors: FloatArray) -> FloatArray:
    """Convert vectors (..., 3) from the file's axes, in which Y is up, to Blender's axes."""
    return np.stack([vectors[..., 0], -vectors[..., 2], vectors[..., 1]], axis=-1)
