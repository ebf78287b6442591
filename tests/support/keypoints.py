"""Keypoints of the walking sample person in the orders and units of pose estimators: ground truth for their readers."""

import numpy as np

from . import walker

_HEADS = {
    "shoulder": "upper_arm", "elbow": "forearm", "wrist": "hand", "hip": "thigh", "knee": "shin", "ankle": "foot",
    "ball": "toe",
}  # fmt: skip
# The positions of points that are not at joints: on a bone, meters along its axes X (to the left), Y (to its tail), Z.
_ON_BONES = {
    "nose": ("head", (0.0, 0.05, 0.11)), "left_eye": ("head", (0.03, 0.08, 0.09)),
    "left_ear": ("head", (0.07, 0.06, 0.0)),
    "head": ("head", (0.0, 0.19, 0.0)), "left_heel": ("foot.L", (0.0, -0.06, 0.03)),
    "left_big_toe": ("toe.L", (-0.02, 0.05, 0.0)), "left_small_toe": ("toe.L", (0.04, 0.02, 0.0)),
    "left_foot_index": ("toe.L", (0.0, 0.05, 0.0)), "left_hand": ("hand.L", (0.0, 0.08, 0.0)),
    "left_index": ("hand.L", (0.02, 0.09, 0.0)), "left_pinky": ("hand.L", (-0.02, 0.08, 0.0)),
    "left_thumb": ("hand.L", (0.04, 0.05, 0.0)), "mouth_left": ("head", (0.02, 0.01, 0.09)),
}  # fmt: skip
_MIDDLE = {
    "pelvis": "hips", "mid_hip": "hips", "hip": "hips", "spine1": "spine", "mid_spine": "spine", "spine2": "chest",
    "spine3": "upper_chest", "neck": "neck", "head_joint": "head",
}  # fmt: skip


def person(frames=40):
    """(F, 3) positions by name, meters, Z up: of every body point in the layouts of pose estimators."""
    matrices = dict(zip(walker.skeleton().names, np.moveaxis(walker.true_matrices()[:frames], 1, 0), strict=True))
    points = {name: matrices[bone][:, :3, 3] for name, bone in _MIDDLE.items()}
    for side, letter in (("left", "L"), ("right", "R")):
        points |= {f"{side}_{name}": matrices[f"{bone}.{letter}"][:, :3, 3] for name, bone in _HEADS.items()}
        points[f"{side}_collar"] = matrices[f"shoulder.{letter}"][:, :3, 3]
    for name, (bone, offset) in _ON_BONES.items():
        points[name] = matrices[bone][:, :3, 3] + matrices[bone][:, :3, :3] @ offset
        if "left" in name:
            other = matrices[bone.replace(".L", ".R")]
            points[name.replace("left", "right")] = other[:, :3, 3] + other[:, :3, :3] @ (np.array(offset) * (-1, 1, 1))
    for side in ("left", "right"):
        for part in ("inner", "outer"):
            points[f"{side}_eye_{part}"] = points[f"{side}_eye"] + [0.0, 0.0, 0.01]
    return points


def array(names, frames=40):
    """(F, N, 3) the person's points in some order, meters, Z up; (0.01 k, 0, 0) from the pelvis for missing points."""
    points = person(frames)
    other = [points["pelvis"] + [0.01 * place, 0.0, 1.0] for place in range(len(names))]
    return np.stack([points.get(name, other[place]) for place, name in enumerate(names)], axis=1)


def y_up(points):
    """Z-up points in axes with Y up."""
    x, y, z = np.moveaxis(np.asarray(points), -1, 0)
    return np.stack((x, z, -y), axis=-1)


def y_down(points):
    """Z-up points in a camera's axes: X to the right, Y down, Z away."""
    x, y, z = np.moveaxis(np.asarray(points), -1, 0)
    return np.stack((x, -z, y), axis=-1)


def csv_text(names, points, *, ends=("_x", "_y", "_z"), separator=","):
    """A table with three columns for each point; blank if a point is NaN."""
    rows = [separator.join(f"{name}{end}" for name in names for end in ends)]
    rows += [separator.join("" if np.isnan(value) else f"{value:.6f}" for value in np.ravel(one)) for one in points]
    return "\n".join(rows) + "\n"
