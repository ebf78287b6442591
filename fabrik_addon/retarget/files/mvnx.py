"""Reads MVNX, the XML files of Xsens MVN: orientations of segments, and the position of the pelvis.

mvnx/subject has `frameRate`. subject/segments/segment has the label, and in points/point/pos_b positions on the segment
(meters, in its own axes). subject/joints/joint connects two of these points ("Pelvis/jL5S1"). Each frames/frame of the
type "normal" has `orientation`, a quaternion w x y z for each segment, and `position`, three numbers for each segment.
Both are in world space: X to the front (or north), Y to the left, Z up. If all orientations are 1 0 0 0 ("identity"),
the body is in a T-pose and faces X. Fingers (fingerTrackingSegmentsLeft and -Right) and props are not connected, and
are left out. A file without segments, joints or points has MVN's usual segments; their lengths are then measured from
the positions. A body whose frames have no positions stays in place, with its lowest joint on the floor. Other programs
may write quaternions as x y z w; the positions of the segments show which order is right.
Sources: the MVN User Manual, section MVNX, and Andres FR's io_anim_mvnx.

Of several people, the first is read. Documents that declare entities, which can expand without end, are refused.
"""

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from ...core.arrays import FloatArray, IntArray, lengths, times
from ...core.errors import first_few
from ...core.rotations import matrix_from_quaternion
from ...markers.files.reading import in_place, number_in, rate_in_cell, rate_of_times, two_rates_doubt
from ..motion import Recorded, RetargetError, in_meters, in_other_axes, local_rotations, whole_frames

# X to the front becomes -Y: a rotation by 90° to the right about Z.
_TO_FRONT: Final = np.array([math.sqrt(0.5), 0.0, 0.0, -math.sqrt(0.5)])
# The ends of segments to which nothing is connected.
_ENDS: Final = ("pTopOfHead", "pRightTopOfHand", "pLeftTopOfHand", "pRightToe", "pLeftToe")
# Meters: the length of a bone without a known end.
_SHORT: Final = 0.03
_NO_LENGTH: Final = 1e-4
# Quaternions are read in the other order if its position errors are below this fraction of the usual order's.
_OTHER_ORDER: Final = 0.5
# Positions contradict the orientations if they are off by more than this fraction of the bones' length.
_UNLIKE: Final = 0.5
# MVN's segments, in their order, each with its parent.
_PAIRS = (
    "Pelvis= L5=Pelvis L3=L5 T12=L3 T8=T12 Neck=T8 Head=Neck RightShoulder=T8 RightUpperArm=RightShoulder"
    " RightForeArm=RightUpperArm RightHand=RightForeArm LeftShoulder=T8 LeftUpperArm=LeftShoulder"
    " LeftForeArm=LeftUpperArm LeftHand=LeftForeArm RightUpperLeg=Pelvis RightLowerLeg=RightUpperLeg"
    " RightFoot=RightLowerLeg RightToe=RightFoot LeftUpperLeg=Pelvis LeftLowerLeg=LeftUpperLeg LeftFoot=LeftLowerLeg"
    " LeftToe=LeftFoot"
)
_USUAL: Final[Mapping[str, str]] = dict(pair.split("=") for pair in _PAIRS.split())
_CHANNELS: Final = (("orientation", 4), ("position", 3))


@dataclass
class _Document:
    rate: str = ""
    people: int = 0
    segments: dict[str, dict[str, FloatArray]] = field(default_factory=dict)
    joints: list[list[str]] = field(default_factory=list)
    fingers: int = 0
    frames: list[dict[str, FloatArray]] = field(default_factory=list)
    # Of each frame: its index and its time, NaN if unknown.
    counts: list[list[float]] = field(default_factory=list)


def _read(content: bytes) -> _Document:
    """The document in a file's bytes; raises RetargetError if it is incomplete or declares entities."""
    # Without the zeros of UTF-16.
    if b"<!ENTITY" in content.replace(b"\0", b""):
        raise RetargetError("it declares entities, which MVN does not write: export it again")
    document = _Document()
    try:
        for event, element in ET.iterparse(io.BytesIO(content), ("start", "end")):
            name = element.tag.rpartition("}")[2]
            if event == "start" and name == "subject":
                document.people += 1
                document.rate = document.rate or element.get("frameRate", "")
            elif document.people > 1:
                element.clear()
            elif event == "start":
                continue
            elif name == "segment":
                document.fingers += 1
            elif name == "segments":
                for segment in element.iterfind("{*}segment"):
                    points = segment.iterfind("{*}points/{*}point")
                    positions = {point.get("label", ""): _numbers(point, "pos_b") for point in points}
                    document.segments.setdefault(segment.get("label", ""), {}).update(positions)
                    document.fingers -= 1
            elif name == "joint":
                document.joints.append([(end.text or "").strip() for end in element])
            elif name == "frame":
                if element.get("type", "normal") == "normal":
                    document.frames.append({channel: _numbers(element, channel) for channel, _ in _CHANNELS})
                    counts = (number_in(element.get(key, "")) for key in ("index", "time"))
                    document.counts.append([math.nan if count is None else count for count in counts])
                element.clear()
    except ET.ParseError as trouble:
        raise RetargetError(f"it is not a complete MVNX document ({trouble}): export it again") from None
    return document


def _numbers(element: ET.Element, name: str) -> FloatArray:
    # Commas are decimal points, as some programs write them.
    text = element.findtext(f"{{*}}{name}", "").replace(",", ".")
    try:
        return np.array(text.split(), dtype=np.float64)
    except ValueError:
        raise RetargetError(f"its {name} {text.strip()[:20]!r} does not consist of numbers: export it again") from None


def parse_mvnx(content: bytes, rate: float | None = None) -> Recorded:
    """The body in a file's bytes; rate: frames per second, overrides the file's.

    Raises RetargetError, without the file's name, if the document is incomplete, if segments, frames or rate are
    missing, or if a frame's numbers do not match its segments.
    """
    document = _read(content)
    if not document.frames:
        raise RetargetError("it has no frames of the type normal: export it from MVN again")
    frame_rate = rate_in_cell(document.rate) if rate is None else rate
    if frame_rate is None:
        raise RetargetError(f"its frameRate is {document.rate!r}: choose the frame rate")
    if not document.segments:
        count = len(document.frames[0]["orientation"]) // 4
        # Props come after the body.
        names = [*_USUAL, *(f"Prop{number + 1}" for number in range(count - len(_USUAL)))]
        document.segments = {name: {} for name in names}
    labels = list(document.segments)
    has_lengths = bool(document.joints) and any(document.segments.values())
    is_placed = not has_lengths or any(len(frame["position"]) for frame in document.frames)
    if not is_placed:
        nowhere = {"position": np.zeros(3 * len(labels))}
        document.frames = [frame | nowhere for frame in document.frames]
    channels = [_of_frames(document, channel, len(labels), width) for channel, width in _CHANNELS]
    (indices, seconds), gaps = np.array(document.counts).T, tuple[str, ...]()
    if np.isfinite(indices).all() and (np.diff(indices) > 0.0).all():
        # Missing frames become gaps.
        rows, gaps = in_place(indices, np.column_stack([seconds, *(each.reshape(len(each), -1) for each in channels)]))
        seconds, parts = rows[:, 0], np.split(rows[:, 1:], [4 * len(labels)], axis=1)
        channels = [part.reshape(len(part), len(labels), -1) for part in parts]
    orientations, positions = channels
    order, parents, heads, tails = _rest(document, labels, orientations, positions)
    names = [labels[segment] for segment in order]
    orientations, positions = orientations[:, order], positions[:, order]
    frames, notes = whole_frames(orientations, positions[:, 0])
    notes = gaps or notes
    props = [label for label in labels if label not in names]
    notes += (f"left out unconnected segments: {first_few(props)}",) * bool(props)
    notes += (f"left out {document.fingers} finger segments",) * bool(document.fingers)
    people = f"Used the first of {document.people} people: export each of them to a file of its own"
    doubts = (people,) * (document.people > 1)
    if rate is None:
        doubts += two_rates_doubt(frame_rate, rate_of_times(seconds, frame_rate))
    length = np.linalg.norm(orientations[frames], axis=2, keepdims=True)
    if (length == 0.0).any():
        raise RetargetError("it has orientations of 0 0 0 0: export it again")
    turned, along = orientations[frames] / length, heads[1:] - heads[parents[1:]]
    between = positions[frames, 1:] - positions[frames][:, parents[1:]]
    orders = [turned, np.roll(turned, 1, axis=2)]
    off = [np.nanmedian(lengths(between - times(matrix_from_quaternion(q[:, parents[1:]]), along))) for q in orders]
    if is_placed and min(off) > _UNLIKE * np.median(lengths(along)):
        doubts += (
            "The positions of its segments do not match their orientations: export both in the same axes and units",
        )
    if off[1] < _OTHER_ORDER * off[0]:
        turned = orders[1]
        notes += ("its quaternions are x y z w; read them in this order",)
    rotations, change = local_rotations(in_other_axes(turned, _TO_FRONT), parents), matrix_from_quaternion(_TO_FRONT).T
    heads, tails, root = heads @ change, tails @ change, positions[frames, 0] @ change
    body = Recorded(names, parents, heads, tails, frames, rotations, root, frame_rate, notes, doubts)
    if not is_placed:
        root[:, 2] = heads[:, 2].min() - body.positions()[..., 2].min(axis=1)
        at_one_place = (
            "Its frames have no position, so the body stays in place: export it with Orientation and Position"
        )
        body = replace(body, root=root, doubts=(*doubts, at_one_place))
    return in_meters(body)


def _of_frames(document: _Document, channel: str, count: int, width: int) -> FloatArray:
    """(F, N, n) values of a channel on all frames; raises RetargetError if a frame has more or fewer values."""
    rows = [frame[channel] for frame in document.frames]
    odd = next((index for index, row in enumerate(rows) if len(row) != count * width), None)
    if not any(map(len, rows)):
        raise RetargetError(f"its frames have no {channel}: export it with Orientation and Position")
    if odd is not None:
        raise RetargetError(
            f"frame {odd} has {len(rows[odd])} numbers as its {channel}, but {count} segments need {count * width}: "
            "export it again"
        )
    return np.array(rows).reshape(len(rows), count, width)


def _rest(
    document: _Document, labels: list[str], orientations: FloatArray, positions: FloatArray
) -> tuple[list[int], IntArray, FloatArray, FloatArray]:
    """The segments of the largest tree, parents first; their parents, heads and tails in the T-pose, in MVN's axes.

    The lowest point is on the floor. Raises RetargetError if joints form a circle.
    """
    joined: dict[int, tuple[int, FloatArray]] = {}
    for joint in document.joints:
        (first, point), (second, other) = (
            (end.partition("/")[0], end.partition("/")[2]) for end in [*joint, "", ""][:2]
        )
        if first in labels and second in labels and first != second:
            offset = _position(document, first, point) - _position(document, second, other)
            joined[labels.index(second)] = labels.index(first), offset
    if not any(offset.any() for _, offset in joined.values()):
        joined = {}
    for second, usual in _USUAL.items():
        first = usual
        while first and first not in labels:
            first = _USUAL[first]
        if first and second in labels and labels.index(second) not in joined:
            child, parent = labels.index(second), labels.index(first)
            turned = matrix_from_quaternion(orientations[:, parent] * [1.0, -1.0, -1.0, -1.0])
            between = times(turned, positions[:, child] - positions[:, parent])
            joined[child] = parent, np.nanmedian(between, axis=0)
    trees = [[segment] for segment in range(len(labels)) if segment not in joined]
    for tree in trees:
        for segment in tree:
            tree.extend(child for child, (parent, _) in joined.items() if parent == segment)
    order = max(trees, key=len, default=[])
    if len(order) < 2:
        raise RetargetError("its joints form a loop, or connect no segments: export it again")
    parents = np.array([order.index(joined[segment][0]) if segment in joined else -1 for segment in order])
    heads = np.zeros((len(order), 3))
    for row, segment in enumerate(order[1:], start=1):
        heads[row] = heads[parents[row]] + joined[segment][1]
    tails = heads.copy()
    low = heads[:, 2].min()
    for row, segment in enumerate(order):
        points = document.segments[labels[segment]]
        ends = [heads[child] for child in np.flatnonzero(parents == row)[:1]]
        ends += [heads[row] + _position(document, labels[segment], point) for point in _ENDS if point in points]
        way = ends[0] - heads[row] if ends else np.zeros(3)
        if np.linalg.norm(way) < _NO_LENGTH:
            # Hands and toes without an end continue the limb.
            way = heads[row] - heads[max(parents[row], 0)]
            way = _SHORT * (way / length if (length := np.linalg.norm(way)) > _NO_LENGTH else np.array([0.0, 0.0, 1.0]))
        tails[row] += way
        low = min([low, *(heads[row, 2] + _position(document, labels[segment], point)[2] for point in points)])
    return order, parents, heads - [0.0, 0.0, low], tails - [0.0, 0.0, low]


def _position(document: _Document, label: str, point: str) -> FloatArray:
    """(3,) the position of a point on its segment; the segment's origin if unknown."""
    position = document.segments[label].get(point)
    return position if position is not None and position.shape == (3,) and np.isfinite(position).all() else np.zeros(3)
