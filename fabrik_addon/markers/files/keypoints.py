"""Reads 3D keypoints: CSV files with a header such as nose_x, nose_y, nose_z, and NumPy arrays.

CSV: three columns for each point, with the axis at the end of the name ("nose_x", "nose.x", "noseX") or at the
beginning ("x0"), as written by FreeMoCap (`…_3d_xyz.csv`, `…_by_trajectory.csv`), anipose and others; or FreeMoCap's
tidy `…_by_frame.csv`, with a row for each frame and keypoint and the columns frame, keypoint, x, y, z (rows of other
trajectories, such as centers of mass, are skipped). Time columns give the rate. Other columns, except confidences, are
skipped. Arrays: (F, N, 3), (F, N, 4) with a confidence last, or (F, 3 N), with or without an axis of length 1 for one
person. Points with confidence 0 are missing.

Files contain no units or axes, and arrays no rate. Units are detected from a person's size, and the up axis from the
direction from feet to head. The rate is 30 frames per second unless it is given. Points without a bone, such as those
of a face, are left out.

The orders in which pose estimators write keypoints are from these sources: MediaPipe's pose and hand landmarks, and
FreeMoCap's order of them (body, right hand, left hand, face); COCO and COCO-WholeBody (jin-s13/COCO-WholeBody); HALPE
(Fang-Haoshu/Halpe-FullBody); OpenPose's BODY_25 (its output.md); Human3.6M as reduced to 17 points by VideoPose3D and
MotionBERT; the joints of SMPL, SMPL-H and SMPL-X (joint_names.py of the package smplx).
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ...core.arrays import FloatArray, lengths
from ...core.errors import first_few
from ...human.naming_schemes import FINGER_JOINTS, FINGERS
from ..clip import ChoiceError, Clip, MarkerFileError
from ..person import up_of_markers
from . import LAYOUTS, reading

_BODY_33: Final = (
    "nose left_eye_inner left_eye left_eye_outer right_eye_inner right_eye right_eye_outer left_ear right_ear"
    " mouth_left mouth_right left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist left_pinky"
    " right_pinky left_index right_index left_thumb right_thumb left_hip right_hip left_knee right_knee left_ankle"
    " right_ankle left_heel right_heel left_foot_index right_foot_index"
)
_COCO_17: Final = (
    "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist"
    " right_wrist left_hip right_hip left_knee right_knee left_ankle right_ankle"
)
_COCO_FEET: Final = "left_big_toe left_small_toe left_heel right_big_toe right_small_toe right_heel"
_HALPE_26: Final = (
    f"{_COCO_17} head neck hip left_big_toe right_big_toe left_small_toe right_small_toe left_heel right_heel"
)
_BODY_25: Final = (
    "nose neck right_shoulder right_elbow right_wrist left_shoulder left_elbow left_wrist mid_hip right_hip right_knee"
    " right_ankle left_hip left_knee left_ankle right_eye left_eye right_ear left_ear left_big_toe left_small_toe"
    " left_heel right_big_toe right_small_toe right_heel"
)
_H36M_17: Final = (
    "hip right_hip right_knee right_ankle left_hip left_knee left_ankle mid_spine neck nose head left_shoulder"
    " left_elbow left_wrist right_shoulder right_elbow right_wrist"
)
# In SMPL feet begin at ankles, so "foot" is the ball; the head joint is at the base of the skull.
_SMPL_22: Final = (
    "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 left_ball right_ball"
    " neck left_collar right_collar head_joint left_shoulder right_shoulder left_elbow right_elbow left_wrist"
    " right_wrist"
)
_TIPS: Final = [f"{side}_{finger}_tip" for side in ("left", "right") for finger in FINGERS]
_FACES: Final = (468, 478)


def hand_names(side: str) -> list[str]:
    """MediaPipe's 21 points of a hand, in the order shared by OpenPose, COCO and HALPE."""
    fingers = [f"{side}_hand_{finger}_{joint}" for finger, joints in FINGER_JOINTS.items() for joint in joints]
    return [f"{side}_hand_wrist", *fingers]


def _smpl_hands() -> list[str]:
    return [
        f"{side}_hand_{finger}_{joint}"
        for side in ("left", "right")
        for finger in ("index", "middle", "pinky", "ring", "thumb")
        for joint in FINGER_JOINTS[finger][:3]
    ]


def _variants() -> Mapping[str, tuple[list[str], ...]]:
    """The names in each layout; "" for points without a bone."""
    body, coco, halpe, smpl = (order.split() for order in (_BODY_33, _COCO_17, _HALPE_26, _SMPL_22))
    left, right, feet = hand_names("left"), hand_names("right"), _COCO_FEET.split()
    face = [""] * 68
    extra = ["nose", "right_eye", "left_eye", "right_ear", "left_ear", *feet, *_TIPS]
    return {
        "MEDIAPIPE": (body, *([*body, *right, *left, *[""] * count] for count in (0, *_FACES))),
        "COCO": (coco, [*coco, *feet, *face, *left, *right]),
        "HALPE": (halpe, [*halpe, *face, *left, *right]),
        "BODY_25": (_BODY_25.split(),),
        "H36M": (_H36M_17.split(),),
        "SMPL": (
            smpl,
            [*smpl, "left_hand", "right_hand"],
            [*smpl, "left_hand", "right_hand", *extra],
            [*smpl, *_smpl_hands()],
            [*smpl, "", "left_eye", "right_eye", *_smpl_hands()],
        ),
    }


_LAYOUTS: Final = _variants()

# A layout fits if limbs are equally long on both sides and on all frames, and if both bones of a limb are similarly
# long. Lengths may differ by these fractions. In a wrong layout, they differ by 100 % and more.
_SIDES_DIFFER: Final = 0.35
_FRAMES_DIFFER: Final = 0.5
_HALVES_DIFFER: Final = 1.0
_LIMBS: Final = (("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist"))


def names_of(points: FloatArray, layout: str | None) -> tuple[str, ...]:
    """The names of points (F, N, 3) in any unit; "" for points without one.

    layout: a key of LAYOUTS; None: found from N and the lengths of the limbs. Raises ChoiceError, which names the
    choices, if several layouts fit or none fits, and MarkerFileError if the chosen layout does not have N points.
    """
    count = points.shape[1]
    known = {key: names for key, variants in _LAYOUTS.items() for names in variants if len(names) == count}
    if layout is not None:
        key = layout.upper()
        if key not in _LAYOUTS:
            raise MarkerFileError(f"there is no layout {layout!r}: choose from {', '.join(LAYOUTS)}")
        if key not in known:
            counts = " or ".join(str(len(names)) for names in _LAYOUTS[key])
            raise MarkerFileError(
                f"it has {count} points, but the layout {LAYOUTS[key]} has {counts}: choose another layout"
            )
        return tuple(known[key])
    fitting = [key for key, names in known.items() if _fits(points, names)]
    if len(fitting) == 1:
        return tuple(known[fitting[0]])
    choices = fitting or list(known)
    if not choices:
        raise MarkerFileError(
            f"it has {count} points without names, and no known layout has this number: "
            "export a CSV file with names in its header"
        )
    raise ChoiceError(
        f"it has {count} points without names: choose their layout, {' or '.join(LAYOUTS[key] for key in choices)} "
        f"(--layout {'|'.join(key.lower() for key in choices)} on the command line)",
        "keypoints",
        choices,
    )


def _fits(points: FloatArray, names: Sequence[str]) -> bool:
    """Whether limbs between the named points (F, N, 3) are equally long on both sides and on all frames."""
    for joints in _LIMBS:
        halves = []
        for first, last in pairwise(joints):
            middles = []
            for side in ("left", "right"):
                ends = (points[:, names.index(f"{side}_{joint}")] for joint in (first, last))
                spans = lengths(np.subtract(*ends))
                # Limbs that are never seen do not count.
                if not len(seen := spans[np.isfinite(spans)]):
                    continue
                low, middle, high = np.quantile(seen, (0.25, 0.5, 0.75))
                if middle <= 0.0 or high - low > _FRAMES_DIFFER * middle:
                    return False
                middles.append(float(middle))
            if len(middles) == 2 and abs(np.log(middles[0] / middles[1])) > _SIDES_DIFFER:
                return False
            halves += [float(np.mean(middles))] if middles else []
        if len(halves) == 2 and abs(np.log(halves[0] / halves[1])) > _HALVES_DIFFER:
            return False
    return True


_COLUMN: Final = re.compile(r"(?P<name>.+?)(?:[\s_.:\-]+(?P<axis>[xyz])|(?P<cap>[XYZ]))", re.ASCII | re.IGNORECASE)
_CONFIDENCE: Final = re.compile(r"(.+?)[\s_.:\-]+(?:c|conf|confidence|score|likelihood|visibility)", re.IGNORECASE)
_AXIS_FIRST: Final = re.compile(r"(?P<axis>[xyz])[\s_]?(?P<name>\d+)", re.IGNORECASE)
# Columns of rotations and velocities, such as "hips_rx", "hips.rotationX", "hips_quat_w" and "hips_velocity_x".
# Positions next to them may be named "hips_tx".
_TURNED: Final = re.compile(
    r"(.+?)[\s_.:\-]*(?:rotat(?:e|ion)|quaternion|euler|orientation|velocity|acceleration)[\s_.:\-]*[wxyz]"
    r"|(.+?)[\s_.:\-]+(?:rot|quat|ang|vel|acc)[\s_.:\-]*[wxyz]|(.+)[\s_.:\-][rqvaw][wxyz]",
    re.IGNORECASE,
)
_MOVED: Final = re.compile(r"(.+?)(?:[\s_.:\-]+(?:t|pos)|[\s_.:\-]*(?:position|translat(?:e|ion)))", re.IGNORECASE)
_NAMELESS: Final = re.compile(r"(?:points?|joints?|landmarks?|key_?points?|kpt?|lm|[pjk])?[\s_]?\d+", re.IGNORECASE)
_TIMES: Final = re.compile(r"(?:t|times?|timestamps?|seconds)(?:[\s_]*[(\[]?(?:[mun]?s|sec|seconds)[)\]]?)?")
_FRAMES: Final = re.compile(r"frames?|frame#|frame_(?:number|index)|fnum")
_TIDY: Final = frozenset({"frame", "keypoint", "x", "y", "z"})
_BODY: Final = re.compile(r"(?:body|pose)[_.](?=.)", re.IGNORECASE)
_FINGERS: Final = ("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger")
# Points of hands by number, or by the names of COCO-WholeBody, such as "left_forefinger1".
_HAND_POINT: Final = re.compile(
    rf"(left|right)_(?:hand_(\d+)|(?:hand_){{0,2}}root|(?:hand_)?({'|'.join(_FINGERS)})([1-4]))", re.IGNORECASE
)
_NO_BONE: Final = re.compile(r"face[_.]\w+|(?:\w+[_.])?(?:com|center_of_mass)(?:[_.]\w+)?", re.IGNORECASE)
# Points count as 2D points of an image if their smallest extent is below this fraction of their size.
_FLAT: Final = 1e-3
# A hand is at a wrist of the body if its own wrist is closer than this fraction of the forearm's length.
_AT_WRIST: Final = 0.6
# Frames are missing if the time between two rows is more than this many times the usual one.
_SKIPPED: Final = 1.7
# Points in the middle of the hips. Hips stay in place if they are within this many meters of the origin.
_HIPS: Final = ({"pelvis"}, {"mid_hip"}, {"hip"}, {"left_hip", "right_hip"})
_STILL: Final = 1e-3
_NO_COLUMNS: Final = "it has no point columns: add a header such as nose_x, nose_y, nose_z"


def parse_csv(content: bytes, chosen: reading.Chosen) -> Clip:
    """The keypoints in a CSV file's bytes, as a clip in meters.

    Raises MarkerFileError if there are no point columns, if points have neither names nor a known layout, or if units
    are neither given nor clear.
    """
    rows = reading.CsvRows(reading.decoded(content))
    header = rows.next() or []
    while header and not any(header):
        header = rows.next() or []
    lowered = [cell.lower() for cell in header]
    names, frames, numbers = _tidy(rows, lowered) if set(lowered) >= _TIDY else _wide(rows, header)
    placed, notes = reading.in_place(frames, numbers)
    points = placed[:, 1:].reshape(len(placed), -1, 3)
    return _clip(chosen, points, names, reading.rate_of_times(placed[:, 0]), notes)


def parse_npy(content: bytes, chosen: reading.Chosen) -> Clip:
    """The keypoints in a NumPy array's bytes, as a clip in meters; see `parse_csv`.

    Also raises MarkerFileError for unknown shapes, and for arrays of Python objects, which are never unpickled.
    """
    array = reading.array_in(content)
    shape = array.shape
    while array.ndim > 3 and 1 in array.shape[:-2]:
        array = array.squeeze(axis=array.shape[:-2].index(1))
    if array.ndim == 2 and array.shape[1] > 4 and array.shape[1] % 3 == 0:
        array = array.reshape(len(array), -1, 3)
    elif array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[2] not in (3, 4) or not array.size:
        flat = "points in two dimensions" if array.ndim == 3 and array.shape[2] == 2 else f"an array of shape {shape}"
        raise MarkerFileError(f"it contains {flat}: export frames of 3D points, (F, N, 3)")
    points = np.asarray(array[:, :, :3], dtype=np.float64)
    # Points with confidence 0 were not found.
    found = array[:, :, 3:] > 0.0
    if array.shape[2] > 3 and found.any():
        points = np.where(found, points, np.nan)
    return _clip(chosen, points, None)


def _wide(rows: reading.CsvRows, header: list[str]) -> tuple[list[str] | None, FloatArray, FloatArray]:
    """Names (None without a header), frame numbers (F,), and (F, 1 + 3 N) times and points of a wide table.

    A wide table has three columns for each point. Times are NaN if there are none; frames are then counted.
    """
    if not header:
        raise MarkerFileError(_NO_COLUMNS)
    if not any(re.search("[a-z]", cell, re.IGNORECASE) and cell.lower() != "nan" for cell in header):
        rows.back(header)
        numbers = rows.columns(range(len(header)))
        if len(header) % 3:
            raise MarkerFileError(
                f"it has no header and {len(header)} columns, but each point needs three: export it again"
            )
        return None, np.arange(len(numbers), dtype=np.float64), np.insert(numbers, 0, np.nan, axis=1)
    cells = rows.next() or []
    rows.back(cells)
    if any(cells[len(header) :]):
        raise MarkerFileError(
            f"its header names {len(header)} columns, but the first row has {len(cells)}: add the missing names"
        )
    columns: dict[str, dict[str, int]] = {}
    lowered, turned = [cell.lower() for cell in header], set[str]()
    for place, cell in enumerate(header):
        rotation = _TURNED.fullmatch(cell)
        # "hand_rX" next to "hand_lX" is a right hand.
        if rotation is not None and not (rotation[3] and f"{cell[:-2]}l{cell[-1]}".lower() in lowered):
            turned.add(rotation[rotation.lastindex or 0])
            continue
        match = _AXIS_FIRST.fullmatch(cell) or _COLUMN.fullmatch(cell)
        if match is not None:
            axis = (match["axis"] or match["cap"]).lower()
            columns.setdefault(match["name"], {}).setdefault(axis, place)
    if turned:
        columns = {name if (own := _MOVED.fullmatch(name)) is None else own[1]: axes for name, axes in columns.items()}
    whole = {name: axes for name, axes in columns.items() if len(axes) == 3}
    if len(turned - whole.keys()) > len(whole):
        raise MarkerFileError(
            f"it has rotations of bones, such as {min(turned)}, but no positions: export positions, or BVH to retarget"
        )
    if not whole:
        if any(len(axes) == 2 for axes in columns.values()):
            raise MarkerFileError("its points have two coordinates: export 3D points")
        raise MarkerFileError(_NO_COLUMNS)
    wanted = [axes[axis] for axes in whole.values() for axis in "xyz"]
    counted, timed = (_number_column(rows, lowered, names) for names in (_FRAMES, _TIMES))
    trusted = {
        list(whole).index(match[1]): place
        for place, cell in enumerate(header)
        if (match := _CONFIDENCE.fullmatch(cell)) is not None and match[1] in whole
    }
    first = [wanted[0] if place is None else place for place in (counted, timed)]
    numbers = rows.columns([*first, *wanted, *trusted.values()])
    numbers, trust = np.split(numbers, [2 + len(wanted)], axis=1)
    if (trust > 0.0).any():
        for point, column in zip(trusted, trust.T, strict=True):
            numbers[column == 0.0, 2 + 3 * point : 5 + 3 * point] = np.nan
    if timed is None:
        numbers[:, 1] = np.nan
    frames = _counted(numbers[:, 1]) if counted is None else numbers[:, 0]
    return list(whole), frames, numbers[:, 1:]


def _counted(times: FloatArray) -> FloatArray:
    """(F,) frame numbers for rows with times (F,), with gaps where the times have gaps."""
    steps = np.diff(times)
    if not len(steps) or not (steps > 0.0).all():
        return np.arange(len(times), dtype=np.float64)
    counts = steps / np.median(steps)
    return np.append(0.0, np.cumsum(np.where(counts > _SKIPPED, np.round(counts), 1.0)))


def _number_column(rows: reading.CsvRows, header: list[str], names: re.Pattern[str]) -> int | None:
    """The column with such a name in the header; None if there is none, or if its first cell is not a number."""
    cells = rows.next() or []
    rows.back(cells)
    columns = enumerate(zip(header, cells, strict=False))
    return next(
        (at for at, (name, cell) in columns if names.fullmatch(name) and reading.number_in(cell) is not None), None
    )


def _tidy(rows: reading.CsvRows, header: list[str]) -> tuple[list[str] | None, FloatArray, FloatArray]:
    """From a table with a row for each frame and point: names, frame numbers, and times and points, as from `_wide`."""
    frame, keypoint, *axes = (header.index(name) for name in ("frame", "keypoint", "x", "y", "z"))
    model, trajectory = (header.index(name) if name in header else None for name in ("model", "trajectory"))
    timed = _number_column(rows, header, _TIMES)
    order: dict[str, int] = {}
    places: list[int] = []
    wanted = [frame, *axes, *([] if timed is None else [timed])]

    def place_of(row: list[str]) -> None:
        name = row[keypoint] if keypoint < len(row) else ""
        part = "" if model is None else row[model].rpartition(".")[2].removeprefix("mediapipe_")
        if part == "com" or (trajectory is not None and row[trajectory] != "3d_xyz"):
            name = ""
        elif part == "hand":
            # The points of both hands are named like "left_0000".
            name = name.replace("_", "_hand_", 1)
        elif part not in ("", "body"):
            name = f"{part}_{name}"
        places.append(order.setdefault(name, len(order)))

    numbers = rows.columns(wanted, place_of)
    frames, row_of = np.unique(numbers[:, 0], return_inverse=True)
    table = np.full((len(frames), 1 + len(order), 3), np.nan)
    table[row_of, 1 + np.array(places[: len(numbers)])] = numbers[:, 1:4]
    if timed is not None:
        table[row_of, 0, 2] = numbers[:, 4]
    return list(order), frames, table.reshape(len(frames), -1)[:, 2:]


def _clip(
    chosen: reading.Chosen,
    points: FloatArray,
    names: list[str] | None,
    rate: float | None = None,
    file_notes: Sequence[str] = (),
) -> Clip:
    """Named points in meters, upright. names: None if the file has none. rate: None if unknown.

    file_notes: notes about the file.
    """
    points = reading.without_unseen(points)
    if np.isnan(points).all():
        raise MarkerFileError("no marker is visible on any frame: choose another recording")
    extents = np.nanmax(points, axis=(0, 1)) - np.nanmin(points, axis=(0, 1))
    if points.shape[1] > 1 and extents.min() <= _FLAT * extents.max():
        raise MarkerFileError("its points lie in a plane, like those of an image: choose a file of 3D points")
    notes = list(file_notes)
    if chosen.layout is not None or names is None or all(_NAMELESS.fullmatch(_BODY.sub("", name)) for name in names):
        own = list(names_of(points, chosen.layout))
    else:
        own = [_plain(name) for name in names]
    own = ["" if _NO_BONE.fullmatch(name) else name for name in own]
    if not any(own):
        raise MarkerFileError("none of its points belongs to a bone: choose the file of the body")
    if count := own.count(""):
        notes.append(f"left out {count} points that belong to no bone")
    own = _with_hands_on_wrists(points, own, notes)
    kept = [place for place, name in enumerate(own) if name]
    points, own = points[:, kept], [own[place] for place in kept]
    unit = reading.unit_of(points) if chosen.units is None else chosen.units
    if chosen.up_axis is None:
        points = _upright(points, own, reading.METERS[reading.unit_name(unit)], notes)
    return reading.to_clip(chosen, own, points, None, "Y", rate, notes=notes)


def _plain(name: str) -> str:
    """The name without the prefix "body_"; points of hands get their own names."""
    if (hand := _HAND_POINT.fullmatch(name)) is not None:
        points = hand_names(hand[1].lower())
        index = 4 * _FINGERS.index(hand[3].lower()) + int(hand[4]) if hand[3] else int(hand[2] or 0)
        return points[index] if index < len(points) else ""
    return _BODY.sub("", name, count=1)


def _upright(points: FloatArray, names: Sequence[str], meter: float, notes: list[str]) -> FloatArray:
    """(F, N, 3) points, rotated by 180° if upside down; meter: the length of their unit in meters."""
    if np.nanmin(points[..., :2]) >= 0.0 and np.nanmax(points[..., :2]) <= 1.0:
        in_image = up_of_markers(points * [1.0, 1.0, 0.0], names)
        if in_image is not None and in_image[:2] == (1, False):
            raise MarkerFileError("its points are image coordinates (0 to 1): use the world landmarks instead")
    found = up_of_markers(meter * points, names)
    if found is not None and found[2]:
        middles = [points[:, [names.index(name) for name in own]].mean(axis=1) for own in _HIPS if own <= set(names)]
        off = [meter * np.nanmax(np.abs(middle)) for middle in middles if np.isfinite(middle).any()]
        if min(off, default=math.inf) < _STILL:
            notes.append(reading.IN_PLACE)
    if found is None or found[1]:
        return points
    notes.append(f"rotated upright: {'XYZ'[found[0]]} pointed down")
    return np.asarray(points * [1.0, -1.0, -1.0])


def _with_hands_on_wrists(points: FloatArray, names: list[str], notes: list[str]) -> list[str]:
    """The names of points (F, N, 3), with each hand on the side of the nearest wrist; "" for hands at neither wrist."""
    hands = {
        side: [place for place, name in enumerate(names) if name.startswith(f"{side}_hand_")]
        for side in ("left", "right")
    }
    if not any(hands.values()) or not {"left_wrist", "right_wrist", "left_elbow", "right_elbow"} <= set(names):
        return names

    def apart(one: str, other: str) -> float:
        steps = np.linalg.norm(points[:, names.index(one)] - points[:, names.index(other)], axis=1)
        seen = steps[np.isfinite(steps)]
        return float(np.median(seen)) if len(seen) else math.nan

    near = _AT_WRIST * np.nanmean([apart(f"{side}_elbow", f"{side}_wrist") for side in hands])
    named = list(names)
    for (side, places), other in zip(hands.items(), ("right", "left"), strict=True):
        wrist = f"{side}_hand_wrist"
        if wrist not in names:
            continue
        own, across = (apart(wrist, f"{one}_wrist") for one in (side, other))
        for place in places:
            if across < own and across <= near:
                named[place] = names[place].replace(side, other, 1)
            elif own > near:
                named[place] = ""
    if named.count("") > names.count(""):
        notes.append(f"left out hands that are not at the wrists: {first_few(sorted(set(names) - set(named)))}")
    return named
