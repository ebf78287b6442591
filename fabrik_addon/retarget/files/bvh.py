"""Checks BVH files before Blender's importer reads them, because it misreads damaged and unusual files.

A BVH file has HIERARCHY with joints, each with OFFSET and CHANNELS, and MOTION with Frames, Frame Time and one line of
numbers for each frame. Blender's importer turns NaN into a rotation and accepts a Frame Time of 33.3. It reports Python
errors for files that are truncated, in UTF-16, with decimal commas, or with only one or two rotation channels. It moves
joints to 0 along axes without a position channel, and reads radians as degrees.
"""

import math
import re
from typing import Final

import numpy as np

from ...core.arrays import FloatArray
from ...markers.files.reading import decoded, frame_count_doubt, number_in, plausible_rate
from ..motion import RetargetError

_MOTION: Final = re.compile(r"^[ \t]*MOTION[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FRAMES: Final = re.compile(r"^[ \t]*Frames:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FRAME_TIME: Final = re.compile(r"^[ \t]*Frame[ \t]+Time:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
# A joint's OFFSET, and the CHANNELS below it.
_JOINT: Final = re.compile(r"(^[ \t]*OFFSET[ \t]+(.*)\n\s*CHANNELS[ \t]+)\S+(.*)$", re.IGNORECASE | re.MULTILINE)
_CHANNELS: Final = re.compile(r"^[ \t]*CHANNELS\b", re.IGNORECASE | re.MULTILINE)
_CHANNEL: Final = re.compile(r"[XYZ](position|rotation)")
_KINDS: Final = ("position", "rotation")
_OFFSET: Final = re.compile(r"^[ \t]*OFFSET[ \t]+(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_NO_NUMBER: Final = re.compile(r"[^-+.\deE\s]\S*")
# Angles in radians are at most a full turn. If such small numbers were degrees, poses would stay near rest, and the
# body could move by no more than this fraction of the longest bone (13 cm on a person).
_TURN: Final = 6.3
_MOVES: Final = 0.3


def checked_bvh(content: bytes, rate: float | None = None) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The text of a BVH file in a form that Blender's importer reads; notes on changes, and doubts, as sentences.

    Lines end with a line feed, numbers have decimal points, and angles are in degrees. A joint has all three channels
    for positions or none, and the same for rotations. Missing positions are the joint's offset; so are positions that
    are all 0, except those of the root.

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
    head, data = text[: motion.end()], text[time.end() :].strip("\n")
    if "." not in data and any("," in each for each in (data, *_OFFSET.findall(head))):
        head, data = head.replace(",", "."), data.replace(",", ".")
    bad = next((each for line in _OFFSET.findall(head) for each in _NO_NUMBER.findall(line)), None)
    if bad is not None:
        raise RetargetError(f"{bad!r} in an OFFSET is not a number: export it again")
    joints = [[name.capitalize() for name in joint[3].split()] for joint in _JOINT.finditer(head)]
    if len(joints) < len(_CHANNELS.findall(head)):
        raise RetargetError("a joint's CHANNELS are not below its OFFSET: export it again")
    for names in joints:
        if not all(map(_CHANNEL.fullmatch, names)) or len(set(names)) < len(names):
            raise RetargetError(f"the channels {' '.join(names)} are unknown or repeated: export it again")
    count = sum(map(len, joints))
    first = text.count("\n", 0, time.end()) + 2
    rows = _rows(data, first, count)
    seconds = 1.0 / rate if rate else number_in(time.group(1)) or math.nan
    if not seconds > 0.0 or not plausible_rate(1.0 / seconds):
        if len(rows) > 1:
            raise RetargetError(
                f"its Frame Time is {time.group(1)!r}, but must be in seconds, such as 0.0333: choose the frame rate"
            )
        # A single pose has no rate. With a time of 0, Blender keeps the scene's rate.
        seconds = 0.0
    head, table, notes = _completed(head, rows, joints) if rows and count else (head, None, ())
    if table is not None:
        data = "\n".join(" ".join(map("{:.9g}".format, row)) for row in table.tolist())
    stated = _FRAMES.search(text, motion.end())
    doubts = frame_count_doubt((number_in(stated[1]) if stated else None) or math.nan, len(rows))
    return f"{head}\nFrames: {len(rows)}\nFrame Time: {seconds:.9g}\n{data}\n", notes, doubts


def _rows(data: str, first: int, count: int) -> list[list[str]]:
    """The words of each frame's line; first: the number of the first line, count: of the words in a line."""
    if found := _NO_NUMBER.search(data):
        before = data[: found.end()]
        number, word = first + before.count("\n"), before.split()[-1]
        raise RetargetError(f"line {number}: {word!r} is not a number: export it again")
    rows: list[list[str]] = []
    for number, line in enumerate(data.split("\n"), start=first):
        if cells := line.split():
            rows.append(cells[:count])
            if len(cells) < count:
                raise RetargetError(
                    f"line {number} has {len(cells)} of {count} numbers, as if the file were cut off: export it again"
                )
    return rows


def _completed(
    head: str, rows: list[list[str]], joints: list[list[str]]
) -> tuple[str, FloatArray | None, tuple[str, ...]]:
    """The header and the numbers with complete channels in degrees, and notes; no numbers (None) if they do not change.

    joints: the channels of each joint.
    """
    columns = iter(np.array(rows, dtype=np.float64).T)
    offsets = [np.array(joint[2].split()[:3], dtype=np.float64) for joint in _JOINT.finditer(head)]
    changed, notes = False, tuple[str, ...]()
    every: list[list[str]] = []
    values: list[FloatArray] = []
    for names, offset in zip(joints, offsets, strict=True):
        found = {name: next(columns) for name in names}
        usual = dict(zip((f"{axis}{kind}" for kind in _KINDS for axis in "XYZ"), [*offset, 0.0, 0.0, 0.0], strict=True))
        kinds = {name[1:] for name in names}
        nowhere = bool(every) and offset.any() and not any(found[name].any() for name in names if _KINDS[0] in name)
        missing = [
            name for name in usual if name[1:] in kinds and (name not in found or (nowhere and _KINDS[0] in name))
        ]
        found |= {name: np.full(len(rows), usual[name]) for name in missing}
        every.append(list(found))
        values += found.values()
        changed |= bool(missing)
    table = np.array(values).T
    turned = np.array([_KINDS[1] in name for names in every for name in names])
    largest = np.abs(table[:, turned]).max(initial=0.0)
    moved = np.ptp(table[:, ~turned], axis=0).max(initial=0.0)
    if 0.0 < largest <= _TURN and moved > _MOVES * max(map(np.linalg.norm, offsets[1:]), default=math.inf):
        table[:, turned] = np.degrees(table[:, turned])
        notes = ("its rotations are in radians; converted them to degrees",)
    elif not changed:
        return head, None, ()
    channels = iter(every)

    def whole(joint: re.Match[str]) -> str:
        names = next(channels)
        return f"{joint[1]}{len(names)} {' '.join(names)}"

    return _JOINT.sub(whole, head), table, notes
