"""Recordings of people in BVH files, as skeletons of this solver: bones at rest, and the pose on each frame."""

from dataclasses import dataclass

import numpy as np

from fabrik_addon.core import Skeleton
from fabrik_addon.core.rotations import quaternion_from_matrix
from fabrik_addon.human.rest_body import bones_of

# Meters from toe to head: people of one size, so that errors of recordings can be compared.
SIZE = 1.7
# Fingers, and joints that are only the ends of others.
LEFT_OUT = ("Thumb", "Index", "Middle", "Ring", "Pinky", "HandEnd")
ON_TO = ("Spine", "Neck", "Middle", "HandEnd")
# Joints that bend about one axis, and the smallest bend at rest that shows this axis (radians).
HINGES, STRAIGHT = ("LeftForeArm", "RightForeArm", "LeftLeg", "RightLeg"), 0.09
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class Recording:
    """A person of J bones over F frames, Z up.

    local: (F, J, 4) rotations from rest. heads: (F, J, 3) meters. hips: (F, 4) the first bone's rotation in space.
    bones: the bones at rest, as the limit preset takes them. rate: frames a second.
    """

    skeleton: Skeleton
    local: np.ndarray
    heads: np.ndarray
    hips: np.ndarray
    bones: dict
    rate: float


@dataclass
class _Joints:
    """The contents of a file: names, parents, offsets, channels, ends of the last joints, and a row for each frame."""

    names: list
    parents: list
    offsets: list
    channels: list
    ends: dict
    rows: np.ndarray
    rate: float


def read_recording(path, stands_at_zero=True):
    """The person in a file. stands_at_zero: whether zero rotations are a T pose with Z up."""
    joints = _read(path)
    turns, places = _placed(joints)
    rest_turns, rest_places = _stood(joints, np.zeros(0)) if stands_at_zero else _stood(joints, turns[0])
    turns, places = _in_space(joints, turns, places)
    if not stands_at_zero:
        turns, places = Y_UP @ turns, places @ Y_UP.T
        rest_turns, rest_places = Y_UP @ rest_turns, rest_places @ Y_UP.T
    scale = SIZE / np.ptp(rest_places[:, 2])
    kept = [joint for joint, name in enumerate(joints.names) if not any(word in name for word in LEFT_OUT)]
    skeleton = _skeleton(joints, kept, rest_turns, rest_places * scale, scale)
    frames = turns[:, kept] @ np.swapaxes(rest_turns[kept], 1, 2) @ skeleton.rest[:, :3, :3]
    local = np.stack([quaternion_from_matrix(each) for each in _local(skeleton, frames)], axis=1)
    bones = bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths)
    hips = quaternion_from_matrix(frames[:, 0])
    return Recording(skeleton, local, scale * places[:, kept], hips, bones, joints.rate)


def _read(path):
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    joints, open_joints, last = _Joints([], [], [], [], {}, np.zeros(0), 0.0), [], None
    for line in lines:
        word, *rest = line.split() or [""]
        if word == "{":
            open_joints.append(last)
        elif word == "}":
            open_joints.pop()
        elif word == "Frame":
            joints.rate = 1.0 / float(rest[-1])
            break
        else:
            last = _taken(joints, word, rest, open_joints, last)
    joints.rows = np.array([line.split() for line in lines if line.strip()], dtype=float)
    return joints


def _taken(joints, word, rest, open_joints, last):
    """Read one more line; returns the index of the current joint, None for an end."""
    if word in {"ROOT", "JOINT"}:
        joints.parents.append(open_joints[-1] if open_joints else -1)
        joints.names.append(rest[0])
        return len(joints.names) - 1
    if word == "End":
        return None
    if word == "OFFSET" and open_joints[-1] is None:
        joints.ends[open_joints[-2]] = np.array(rest, dtype=float)
    elif word == "OFFSET":
        joints.offsets.append(np.array(rest, dtype=float))
    elif word == "CHANNELS":
        joints.channels.append(rest[1:])
    return last


def _placed(joints):
    """(F, N, 3, 3) local rotations and (F, 3) locations of the root."""
    frames, column = len(joints.rows), 0
    turns = np.tile(np.eye(3), (frames, len(joints.names), 1, 1))
    root = np.tile(joints.offsets[0], (frames, 1))
    for joint, channels in enumerate(joints.channels):
        for channel in channels:
            axis, values = "XYZ".index(channel[0]), joints.rows[:, column]
            column += 1
            if channel.endswith("position"):
                root[:, axis] = values
            else:
                turns[:, joint] = turns[:, joint] @ _turn(axis, np.radians(values))
    return turns, root


def _turn(axis, angles):
    """(F, 3, 3) about X, Y or Z."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    result = np.tile(np.eye(3), (len(angles), 1, 1))
    result[:, first, first] = result[:, second, second] = np.cos(angles)
    result[:, second, first] = np.sin(angles)
    result[:, first, second] = -np.sin(angles)
    return result


def _in_space(joints, local, root):
    """(F, N, 3, 3) and (F, N, 3) from local rotations and the root's location."""
    turns, places = local.copy(), np.repeat(root[:, None], len(joints.names), axis=1)
    for joint, parent in enumerate(joints.parents):
        if parent >= 0:
            turns[:, joint] = turns[:, parent] @ local[:, joint]
            places[:, joint] = places[:, parent] + (turns[:, parent] @ joints.offsets[joint])
    return turns, places


def _stood(joints, first):
    """(N, 3, 3) and (N, 3) of a T pose: with zero rotations, or made from the first frame's (N, 3, 3) local rotations.

    In the second kind, bones are along X and hinges rotate about Y, so limbs are placed by hand: legs down, arms level.
    Joints that hardly rotate in the recording (collar bones, ankles) do not change.
    """
    local = np.tile(np.eye(3), (1, len(joints.names), 1, 1)) if not len(first) else first[None].copy()
    laid = {}
    if len(first):
        for name in ("Hips", "Spine1", "Spine2", "Neck", *HINGES):
            local[0, joints.names.index(name)] = np.eye(3)
        local[0, joints.names.index("Head")] = _turn(2, np.array([-np.pi / 2]))[0]
        x, y, z = np.eye(3)
        laid = {"LeftArm": (x, y, z), "RightArm": (-x, y, -z)}
        laid |= {f"{side}UpLeg": (-y, x, z) for side in ("Left", "Right")}
    for joint, name in enumerate(joints.names):
        if name in laid:
            above, _ = _in_space(joints, local, np.zeros((1, 3)))
            local[0, joint] = above[0, joints.parents[joint]].T @ np.stack(laid[name], axis=1)
    turns, places = _in_space(joints, local, joints.offsets[0][None])
    return turns[0], places[0]


def _skeleton(joints, kept, turns, places, scale):
    """Bones from each joint to the next one. The X axis of a hinge is near the axis about which it bends."""
    rest, lengths = np.tile(np.eye(4), (len(kept), 1, 1)), []
    for bone, joint in enumerate(kept):
        below = [child for child, parent in enumerate(joints.parents) if parent == joint]
        on = [child for child in below if any(word in joints.names[child] for word in ON_TO)] or below
        tail = places[on[0]] if on else places[joint] + turns[joint] @ joints.ends[joint] * scale
        along = tail - places[joint]
        lengths.append(np.linalg.norm(along))
        y = along / lengths[-1]
        x = np.array([0.0, 0.0, 1.0]) if abs(y[0]) > np.sqrt(0.5) else np.array([1.0, 0.0, 0.0])
        if joints.names[joint] in HINGES:
            before = places[joint] - places[joints.parents[joint]]
            bend = np.cross(before / np.linalg.norm(before), y)
            x = bend if np.linalg.norm(bend) > STRAIGHT else x
        x = x - (x @ y) * y
        x /= np.linalg.norm(x)
        rest[bone, :3, :3], rest[bone, :3, 3] = np.stack([x, y, np.cross(x, y)], axis=1), places[joint]
    parents = [kept.index(joints.parents[joint]) if joints.parents[joint] >= 0 else -1 for joint in kept]
    return Skeleton([joints.names[joint] for joint in kept], parents, rest, lengths)


def _local(skeleton, frames):
    """For each bone (F, 3, 3) rotations from rest on frames (F, J, 3, 3)."""
    rest = skeleton.rest[:, :3, :3]
    for bone, parent in enumerate(skeleton.parents):
        if parent < 0:
            yield rest[bone].T @ frames[:, bone]
        else:
            yield rest[bone].T @ rest[parent] @ np.swapaxes(frames[:, parent], 1, 2) @ frames[:, bone]
