"""Reads poses of SMPL, SMPL-H and SMPL-X in .npz files, as written by AMASS and video tools.

Rotations are rotation vectors (axis times angle) of each joint relative to its parent. Their key is `poses` (F, 3 J),
where J is 22 to 24 for SMPL, 52 for SMPL-H and 55 for SMPL-X; or `root_orient` (F, 3) and `pose_body` (F, 63),
optionally with `pose_hand` (F, 90). `trans` (F, 3) is in meters. Other tools use the other keys below; in files of
SLAHMR, the first axis is that of people. Rotations may also be (F, J, 3) or matrices (F, J, 3, 3). `betas`, `dmpls`,
eyes, jaw and gender are not used. Sources: nghorbani/amass (notebook 01), vchoutas/smplx (joint_names.py) and
Meshcapade/smplcodec.

With zero rotations all of these models hold their arms out to the sides, Y up, facing Z. Our skeleton is in that pose
and contains no data of the models: it is that of an average adult of 1.72 m. The distance that the body moves while a
foot is planted shows the length of the legs, to which the skeleton is scaled. AMASS has Z up, video tools Y up or down:
up is the trunk's direction on most frames, unless the body lies on a floor that shows another axis.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.arrays import FloatArray
from ...core.rotations import (
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
)
from ...human.naming_schemes import FINGERS
from ...markers.clip import LOOKED_AT
from ...markers.files.reading import IN_PLACE, RATES, arrays_in, rate_or_usual, rates_in, two_rates_doubt, unknown_up
from ...markers.person import FLOOR_OFF, up_of_person
from ..motion import Recorded, RetargetError, in_meters, in_other_axes, whole_frames

# The keys of each part; the first one that a file has is used.
_WHOLE: Final = ("poses", "fullpose", "pose_world", "bodyPose", "smpl_poses", "pose")
_ROOT: Final = ("root_orient", "global_orient")
_BODY: Final = ("pose_body", "body_pose")
_HANDS: Final = ("pose_hand", "hand_pose")
_LEFT_HAND: Final = ("left_hand_pose", "pose_lhand", "leftHandPose")
_RIGHT_HAND: Final = ("right_hand_pose", "pose_rhand", "rightHandPose")
_TRANS: Final = ("trans_world", "trans", "transl", "bodyTranslation", "smpl_trans")
_PARTS: Final = (*_WHOLE, *_ROOT, *_BODY, *_HANDS, *_LEFT_HAND, *_RIGHT_HAND, *_TRANS)


class _Joint(NamedTuple):
    """A joint at rest: its parent, its position (meters, X to the left, Y to the back, Z up), and the bone's tail."""

    parent: str
    head: tuple[float, float, float]
    tail: tuple[float, float, float]


# Left and middle joints, by Winter's proportions of an adult of 1.72 m (2009, figure 4.1).
_REST: Final = {
    "pelvis": _Joint("", (0.0, 0.0, 0.95), (0.0, 0.0, 1.05)),
    "left_hip": _Joint("pelvis", (0.08, 0.0, 0.91), (0.117, 0.0, 0.49)),
    "spine1": _Joint("pelvis", (0.0, 0.0, 1.05), (0.0, 0.0, 1.18)),
    "left_knee": _Joint("left_hip", (0.117, 0.0, 0.49), (0.105, 0.036, 0.07)),
    "spine2": _Joint("spine1", (0.0, 0.0, 1.18), (0.0, 0.0, 1.26)),
    "left_ankle": _Joint("left_knee", (0.105, 0.036, 0.07), (0.14, -0.08, 0.02)),
    "spine3": _Joint("spine2", (0.0, 0.0, 1.26), (0.0, 0.0, 1.46)),
    "left_foot": _Joint("left_ankle", (0.14, -0.08, 0.02), (0.16, -0.145, 0.02)),
    "neck": _Joint("spine3", (0.0, 0.0, 1.46), (0.0, -0.01, 1.55)),
    "left_collar": _Joint("spine3", (0.03, 0.0, 1.41), (0.17, 0.0, 1.42)),
    "head": _Joint("neck", (0.0, -0.01, 1.55), (0.0, -0.01, 1.72)),
    "left_shoulder": _Joint("left_collar", (0.17, 0.0, 1.42), (0.45, 0.02, 1.42)),
    "left_elbow": _Joint("left_shoulder", (0.45, 0.02, 1.42), (0.7, 0.02, 1.42)),
    "left_wrist": _Joint("left_elbow", (0.7, 0.02, 1.42), (0.79, 0.02, 1.42)),
}
_SPINE: Final = (
    "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 left_foot right_foot"
    " neck left_collar right_collar head left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist"
)
# From the wrist of the left hand: the position of a finger's first joint, and the lengths of its three bones.
_KNUCKLES: Final = {
    "index": ((0.09, -0.025, 0.0), (0.04, 0.024, 0.02)),
    "middle": ((0.092, -0.003, 0.0), (0.044, 0.027, 0.021)),
    "pinky": ((0.08, 0.037, 0.0), (0.032, 0.018, 0.017)),
    "ring": ((0.088, 0.018, 0.0), (0.04, 0.025, 0.02)),
    "thumb": ((0.025, -0.03, -0.01), (0.045, 0.032, 0.026)),
}
_THUMB_WAY: Final = (0.7071, -0.7071, 0.0)
_BODY_JOINTS: Final = 22
_HAND_JOINTS: Final = 15
# The number of joints between body and hands, by the file's number of joints. Only SMPL-X has some: jaw and eyes.
_BETWEEN: Final = {22: 0, 24: 0, 52: 0, 55: 3}
# Radians: joints rotate by at most half a turn, so numbers above two turns must be degrees.
_MOST_TURNED: Final = 4.0 * np.pi
# The product of a rounded rotation matrix and its transpose differs from the identity by at most this.
_NO_ROTATION: Final = 0.05
# Quaternions that rotate Y up, or Y down, to Z up.
_Y_UP: Final = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
_Y_DOWN: Final = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
_Z_DOWN: Final = np.array([0.0, 1.0, 0.0, 0.0])
_SAME: Final = np.array([1.0, 0.0, 0.0, 0.0])
# Meters: the pelvis of SMPL is this far below `trans`, along Y; that of SMPL-X is 0.13 m lower.
_BELOW: Final = 0.22
# Meters: feet are planted at most this far above the floor.
_PLANTED_HEIGHT: Final = 0.04
# Meters: a body's size is not measured if it moves by less than this while its feet are planted.
_GOES: Final = 0.5
# Seconds: the shortest contact that is used, a third of the stance of a fast walk.
_SPAN: Final = 0.2
# The range of a person's size relative to the skeleton. Outside it, feet are assumed to slide, as on a treadmill.
_SMALLEST, _LARGEST = 0.75, 1.25
# The floor is at this quantile of the lower foot's heights.
_LOWER: Final = 0.05


def parse_smpl(content: bytes, up_axis: str | None = None, rate: float | None = None) -> Recorded:
    """The body in a file's bytes.

    up_axis: "Y" or "Z"; None: detected. rate: frames per second, overrides the file's. Raises RetargetError if there
    are no poses, if their format is unknown, or if no frame is complete; MarkerFileError if the file is truncated or
    would have to be unpickled. Neither names the file.
    """
    found = _of_one_person(arrays_in(content, (*_PARTS, *RATES)))
    poses, notes = _poses(found)
    count = poses.shape[1]
    trans = _first(found, _TRANS)
    if trans is None:
        trans = np.zeros((len(poses), 3))
        notes += ("it has no location of the body (trans); the body stays in place",)
    trans = trans.reshape(-1, 3) if trans.shape[-1:] == (3,) else trans
    if trans.shape != (len(poses), 3) or trans.dtype.kind not in "fiu":
        raise RetargetError(f"its trans has the shape {trans.shape} and there are {len(poses)} poses: export it again")
    frames, lost = whole_frames(poses, trans)
    rotations, root = poses[frames], np.asarray(trans[frames], dtype=np.float64)
    names, parents, heads, tails = _skeleton(count)
    stated, other = rates_in(found)
    frame_rate, rate_doubts = rate_or_usual(rate or stated)
    rate_doubts += two_rates_doubt(frame_rate, other) if rate is None else ()
    # At rest, Y is up for the models and Z for the skeleton, so the axes of all rotations change. In the file's world,
    # Z may already be up.
    turned = in_other_axes(rotations, _Y_UP)
    turned[:, 0] = product(np.array([_Y_UP[0], -_Y_UP[1], 0.0, 0.0]), turned[:, 0])
    body = Recorded(names, parents, heads, tails, frames, turned, root, frame_rate)
    change, up_notes, up_doubts = _upright(body, up_axis)
    turned[:, 0] = product(change, turned[:, 0])
    body = replace(body, root=root @ matrix_from_quaternion(change).T)
    body = replace(body, notes=(*notes, *lost, *up_notes), doubts=(*up_doubts, *rate_doubts))
    return _on_floor(_scaled(in_meters(body)), known=change is _SAME)


def has_poses(content: bytes) -> bool:
    """Whether a .npz file has poses. Raises MarkerFileError if it is truncated, or if poses would be unpickled."""
    return bool(arrays_in(content, (*_WHOLE, *_ROOT)))


def _of_one_person(found: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays without an axis for people, such as the first of (1, F, 3); raises RetargetError for more people."""
    trans = _first(found, _TRANS)
    if trans is None or trans.ndim < 3 or trans.shape[1] == 1:
        return found
    if len(trans) > 1:
        raise RetargetError(f"it has {len(trans)} people: save each of them in a file of its own")
    return {
        key: array[0] if key in _PARTS and array.shape[:2] == trans.shape[:2] else array for key, array in found.items()
    }


def _first(found: Mapping[str, npt.NDArray[Any]], keys: tuple[str, ...]) -> npt.NDArray[Any] | None:
    return next((found[key] for key in keys if key in found), None)


def _poses(found: Mapping[str, npt.NDArray[Any]]) -> tuple[FloatArray, tuple[str, ...]]:
    """(F, J, 4) quaternions of a file's joints, NaN for values that are not numbers; and notes.

    Raises RetargetError for other shapes.
    """
    notes: tuple[str, ...] = ()
    whole, root, body, *hands = (
        _first(found, keys) for keys in (_WHOLE, _ROOT, _BODY, _HANDS, _LEFT_HAND, _RIGHT_HAND)
    )
    if whole is not None:
        parts = [_quaternions("poses", whole)]
    elif root is None or body is None:
        missing = " and ".join(key for key, part in (("root_orient", root), ("pose_body", body)) if part is None)
        raise RetargetError(f"it has neither poses nor {missing}: choose a file of SMPL, SMPL-H or SMPL-X poses")
    else:
        parts = [_quaternions("root_orient", root), _quaternions("pose_body", body)]
    hands = hands[1:] if hands[0] is None else hands[:1]
    joints = [hand for hand in hands if hand is not None]
    if joints and sum(part.shape[1] for part in parts) <= _BODY_JOINTS + 2:
        joints = [_quaternions("pose_hand", hand) for hand in joints if _is_rotations(hand)]
        if sum(part.shape[1] for part in joints) == 2 * _HAND_JOINTS:
            # SMPL's own two joints of the hands, after the wrists, are left out.
            parts = [*parts[:-1], parts[-1][:, : _BODY_JOINTS + 1 - len(parts)], *joints]
        else:
            notes = ("left out the hands, because they don't have rotations of 15 joints each",)
    if len({len(part) for part in parts}) > 1:
        raise RetargetError("its parts have different numbers of frames: export it again")
    poses = np.concatenate(parts, axis=1)
    if poses.shape[1] not in _BETWEEN or not len(poses):
        counts = ", ".join(map(str, _BETWEEN))
        raise RetargetError(
            f"it has {len(poses)} poses of {poses.shape[1]} joints: export {counts} joints, as SMPL has"
        )
    hands_from = _BODY_JOINTS + _BETWEEN[poses.shape[1]]
    return np.concatenate([poses[:, :_BODY_JOINTS], poses[:, hands_from:]], axis=1), notes


def _is_rotations(array: npt.NDArray[Any]) -> bool:
    """Whether an array has three numbers or a matrix for each joint of the hands, and not principal components."""
    return array.shape[-2:] == (3, 3) or int(np.prod(array.shape[1:])) % (3 * _HAND_JOINTS) == 0


def _quaternions(name: str, array: npt.NDArray[Any]) -> FloatArray:
    """(F, J, 4) quaternions from (F, 3 J) or (F, J, 3) rotation vectors, or from (F, J, 3, 3) matrices."""
    if array.dtype.kind not in "fiu":
        raise RetargetError(f"its {name} are not numbers: export it again")
    values = np.asarray(array, dtype=np.float64)
    if values.ndim == 4 and values.shape[2:] == (3, 3):
        lost = ~np.isfinite(values).all(axis=(2, 3))
        turned = np.where(lost[..., None, None], np.eye(3), values)
        off = np.abs(turned @ np.swapaxes(turned, 2, 3) - np.eye(3)).max(axis=(2, 3), initial=0.0)
        if (np.median(np.where(np.linalg.det(turned) > 0.0, off, np.inf), axis=0) > _NO_ROTATION).any():
            raise RetargetError(f"its {name} have matrices that mirror or scale instead of rotating: export rotations")
        quaternions = quaternion_from_matrix(turned)
        return np.where(lost[..., None], np.nan, quaternions)
    if values.ndim < 2 or values.shape[-1] % 3 or values.ndim > 3 or (values.ndim == 3 and values.shape[2] != 3):
        raise RetargetError(
            f"its {name} has the shape {array.shape}: export rotation vectors, three numbers for each joint"
        )
    vectors = values.reshape(len(values), values.shape[1] // 3 if values.ndim == 2 else values.shape[1], 3)
    lost = ~np.isfinite(vectors).all(axis=2, keepdims=True)
    vectors = np.where(lost, 0.0, vectors)
    if len(vectors) and (np.median(np.abs(vectors).max(axis=2), axis=0) > _MOST_TURNED).any():
        raise RetargetError(f"its {name} has angles of more than two turns: export radians")
    return np.where(lost, np.nan, quaternion_from_rotation_vector(vectors))


def _skeleton(count: int) -> tuple[list[str], npt.NDArray[np.intp], FloatArray, FloatArray]:
    """Names, parents, heads and tails of the body's first joints, and of the hands if there are more."""
    rest = dict(_REST)
    if count > _BODY_JOINTS + 2:
        wrist = np.array(_REST["left_wrist"].head)
        for finger, (knuckle, lengths) in _KNUCKLES.items():
            way = np.array(_THUMB_WAY if finger == FINGERS[0] else (1.0, 0.0, 0.0))
            ends = wrist + knuckle + np.append(0.0, np.cumsum(lengths))[:, None] * way
            for number in range(3):
                parent = f"left_{finger}{number}" if number else "left_wrist"
                rest[f"left_{finger}{number + 1}"] = _Joint(parent, tuple(ends[number]), tuple(ends[number + 1]))
    elif count > _BODY_JOINTS:
        rest["left_hand"] = _Joint("left_wrist", (0.79, 0.02, 1.42), (0.88, 0.02, 1.42))
    names = _SPINE.split()
    names += [name for name in rest if name not in names]
    names += [name.replace("left", "right") for name in names[_BODY_JOINTS:]]
    joints = [rest[name.replace("right", "left")] for name in names]
    is_right = np.array([name.startswith("right") for name in names])
    above = [
        joint.parent.replace("left", "right" if right else "left")
        for joint, right in zip(joints, is_right, strict=True)
    ]
    parents = np.array([names.index(name) if name else -1 for name in above])
    mirror = np.where(is_right[:, None], [-1.0, 1.0, 1.0], 1.0)
    heads, tails = (mirror * [getattr(joint, end) for joint in joints] for end in ("head", "tail"))
    return names, parents, heads, tails


def _upright(body: Recorded, up_axis: str | None) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """The quaternion that rotates the file's world to Z up, notes and doubts; body: in the file's axes."""
    some = slice(None, None, max(1, len(body.frames) // LOOKED_AT))
    body = replace(body, rotations=body.rotations[some], root=body.root[some], frames=body.frames[some])
    trunks = matrix_from_quaternion(body.rotations[:, 0])[:, :, 2]
    notes, doubts = tuple[str, ...](), tuple[str, ...]()
    if up_axis is not None:
        up = bool(np.median(trunks[:, "XYZ".index(up_axis)]) >= 0.0)
    else:
        below = [0.0, _BELOW, 0.0]
        found = up_of_person(trunks, body.positions().min(axis=1) - below, body.root - below)
        axis, up, is_shown = found or (2, True, False)
        up_axis = "XYZ"[axis]
        if not is_shown:
            doubts = (unknown_up("Y" if axis == 1 else "Z"),)
        else:
            notes = (f"rotated upright: {up_axis} pointed down",) * (not up)
            notes += (IN_PLACE,) * (not body.root.any())
    change = {("Y", True): _Y_UP, ("Y", False): _Y_DOWN, ("Z", True): _SAME, ("Z", False): _Z_DOWN}[up_axis, up]
    return change, notes, doubts


def _feet(body: Recorded) -> FloatArray:
    """(F, 4, 3) positions of ankles and balls of the feet."""
    names = list(body.names)
    feet = [names.index(f"{side}_{joint}") for side in ("left", "right") for joint in ("ankle", "foot")]
    positions: FloatArray = body.positions()[:, feet]
    return positions


def _scaled(body: Recorded) -> Recorded:
    """The body, scaled so that its planted feet stay in place, if it moves far enough to measure this.

    With size s, a foot at trans + s · d stays in place if Δtrans + s · Δd = 0. The size is found by least squares, in
    the floor's plane, over spans in which the same foot is the lower one and planted. The spans are long enough to
    average out jitter.
    """
    lag = max(1, round(_SPAN * body.rate))
    if len(body.frames) <= lag or body.frames[-1] - body.frames[0] >= len(body.frames):
        return body
    balls = _feet(body)[:, 1::2]
    heights = balls[:, :, 2]
    low = np.quantile(heights.min(axis=1), _LOWER) + _PLANTED_HEIGHT
    planted = (heights <= low) & (heights == heights.min(axis=1, keepdims=True))
    counts = np.cumsum(np.vstack([np.zeros((1, 2), dtype=int), planted]), axis=0)
    first, foot = np.nonzero(counts[lag + 1 :] - counts[: -lag - 1] == lag + 1)
    relative = balls - body.root[:, None]
    back = (relative[first + lag, foot] - relative[first, foot])[:, :2]
    along = (body.root[first + lag] - body.root[first])[:, :2]
    if np.linalg.norm(back, axis=1).sum() < _GOES * lag:
        return body
    size = -float((along * back).sum() / (back * back).sum())
    if not _SMALLEST <= size <= _LARGEST:
        return body
    return replace(body, heads=size * body.heads, tails=size * body.tails)


def _on_floor(body: Recorded, *, known: bool) -> Recorded:
    """The body moved vertically until its lowest foot is as high as at rest; known: the floor is already near 0."""
    feet = _feet(body)
    rest = body.heads[[list(body.names).index(f"left_{joint}") for joint in ("ankle", "foot")], 2]
    heights = (feet[:, :, 2] - np.tile(rest, 2)).min(axis=1)
    lift = -float(np.quantile(heights, _LOWER))
    if known and abs(lift) > FLOOR_OFF:
        return body
    return replace(body, root=body.root + np.array([0.0, 0.0, lift]))
