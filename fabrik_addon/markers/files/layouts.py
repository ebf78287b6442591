"""The orders in which pose estimators write keypoints, and detection of the order of an array without names.

Sources: MediaPipe's pose and hand landmarks, and FreeMoCap's order of them (body, right hand, left hand, face); COCO
and COCO-WholeBody (jin-s13/COCO-WholeBody); HALPE (Fang-Haoshu/Halpe-FullBody); OpenPose's BODY_25 (its output.md);
Human3.6M as reduced to 17 points by VideoPose3D and MotionBERT; the joints of SMPL, SMPL-H and SMPL-X (joint_names.py
of the package smplx). Points without names here have no bone: inner joints of spines, and faces.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ...core.arrays import FloatArray, lengths
from ...human.naming_schemes import FINGER_JOINTS, FINGERS
from ..clip import MarkerFileError
from . import LAYOUTS

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
    """Three joints for each finger, in SMPL-H's order."""
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


class LayoutError(MarkerFileError):
    """Points without names whose layout has to be chosen; `choices` are keys of LAYOUTS."""

    def __init__(self, message: str, choices: Sequence[str]) -> None:
        self.choices = tuple(choices)
        super().__init__(message)


def names_of(points: FloatArray, layout: str | None) -> tuple[str, ...]:
    """The names of points (F, N, 3) in any unit; "" for points without one.

    layout: a key of LAYOUTS; None: found from N and the lengths of the limbs. Raises LayoutError, which names the
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
    raise LayoutError(
        f"it has {count} points without names: choose their layout, {' or '.join(LAYOUTS[key] for key in choices)} "
        f"(--layout {'|'.join(key.lower() for key in choices)} on the command line)",
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
