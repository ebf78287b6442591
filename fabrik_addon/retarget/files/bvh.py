"""Checks BVH files before Blender's importer reads them, because it misreads damaged files.

A BVH file has HIERARCHY with joints, each with OFFSET and CHANNELS, and MOTION with Frames, Frame Time and one line of
numbers for each frame. Blender's importer turns NaN into a rotation, uses a Frame Time of 33.3 as it is, and answers
files that are cut off, in UTF-16 or with decimal commas with errors of Python.
"""

import math
import re
from typing import Final

from ...markers.files.reading import decoded, number_in, plausible_rate
from ..motion import RetargetError

_MOTION: Final = re.compile(r"^[ \t]*MOTION[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FRAME_TIME: Final = re.compile(r"^[ \t]*Frame[ \t]+Time:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CHANNELS: Final = re.compile(r"^[ \t]*CHANNELS[ \t]+(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CHANNEL: Final = re.compile(r"[XYZ](position|rotation)", re.IGNORECASE)
_OFFSET: Final = re.compile(r"^[ \t]*OFFSET[ \t]+(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_NO_NUMBER: Final = re.compile(r"[^-+.\deE\s]\S*")


def checked_bvh(content: bytes, rate: float | None = None) -> str:
    """The text of a BVH file as Blender's importer reads it: lines end with a line feed, numbers have points.

    rate: frames a second, overrides the file's. Raises RetargetError, one sentence without the file's name, for words
    that are not numbers, unknown or repeated channels, lines that are too short, and an implausible rate.
    """
    text = decoded(content).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    if not text:
        raise RetargetError("the file is empty: choose another")
    if text[:9].upper() != "HIERARCHY":
        raise RetargetError("this is not a BVH file, which begins with HIERARCHY: choose another")
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
    count = 0
    for line in _CHANNELS.findall(head):
        names = line.split()[1:]
        wrong = [name for name in names if not _CHANNEL.fullmatch(name)]
        if wrong or len({name.lower() for name in names}) < len(names):
            raise RetargetError(f"the channels {' '.join(names)} are unknown or repeated: export it again")
        count += len(names)
    first = text.count("\n", 0, time.end()) + 2
    if found := _NO_NUMBER.search(data):
        before = data[: found.end()]
        number, word = first + before.count("\n"), before.split()[-1]
        raise RetargetError(f"line {number}: {word!r} is not a number: export it again")
    frames = 0
    for number, line in enumerate(data.split("\n"), start=first):
        cells = len(line.split())
        frames += cells > 0
        if 0 < cells < count:
            raise RetargetError(
                f"line {number} has {cells} of {count} numbers, as if the file were cut off: export it again"
            )
    seconds = 1.0 / rate if rate else number_in(time.group(1)) or math.nan
    if not seconds > 0.0 or not plausible_rate(1.0 / seconds):
        if frames > 1:
            raise RetargetError(
                f"its Frame Time is {time.group(1)!r}, but must be in seconds, such as 0.0333: choose the frame rate"
            )
        # One pose has no rate: with zero, Blender keeps the scene's.
        seconds = 0.0
    return f"{head}\nFrames: {frames}\nFrame Time: {seconds:.9g}\n{data}\n"
