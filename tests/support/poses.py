"""Files of poses to be written: SMPL's .npz and MVNX, with the truth for their readers."""

import numpy as np
from support.checker import matrices

SMPL = (
    "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 left_foot right_foot"
    " neck left_collar right_collar head left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist"
)
SMPL_PARENTS = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19]
# The rotation with which AMASS makes the model upright: from Y to Z.
UPRIGHT = np.array([np.pi / 2, 0.0, 0.0])


def rotation(vector):
    """(..., 3, 3) the matrices of (..., 3) axes times angles, by Rodrigues's formula."""
    vector = np.asarray(vector, dtype=float)
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    x, y, z = np.moveaxis(vector, -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*vector.shape[:-1], 3, 3)
    safe = np.where(angle > 0.0, angle, 1.0)
    return np.eye(3) + np.sin(angle) / safe * cross + (1.0 - np.cos(angle)) / safe**2 * (cross @ cross)


def places(rest, parents, local, root):
    """(F, N, 3) joint positions, computed joint by joint.

    rest: (N, 3). local: (F, N, 3, 3). root: (F, 3).
    """
    world, heads = np.empty_like(local), np.empty((*local.shape[:2], 3))
    for joint, parent in enumerate(parents):
        if parent < 0:
            world[:, joint], heads[:, joint] = local[:, joint], root
        else:
            world[:, joint] = world[:, parent] @ local[:, joint]
            heads[:, joint] = heads[:, parent] + world[:, parent] @ (rest[joint] - rest[parent])
    return heads


# Segments of MVN: the parent, the joint's name and its position on the parent, and the free end of the segment.
MVN = {
    "Pelvis": (None, "", (0, 0, 0)),
    "L5": ("Pelvis", "jL5S1", (0, 0, 0.1)),
    "L3": ("L5", "jL4L3", (0, 0, 0.1)),
    "T12": ("L3", "jL1T12", (0, 0, 0.1)),
    "T8": ("T12", "jT9T8", (0, 0, 0.1)),
    "Neck": ("T8", "jT1C7", (0, 0, 0.13)),
    "Head": ("Neck", "jC1Head", (0, 0, 0.09)),
    "RightShoulder": ("T8", "jRightT4Shoulder", (0, -0.03, 0.08)),
    "RightUpperArm": ("RightShoulder", "jRightShoulder", (0, -0.14, 0)),
    "RightForeArm": ("RightUpperArm", "jRightElbow", (0, -0.29, 0)),
    "RightHand": ("RightForeArm", "jRightWrist", (0, -0.25, 0)),
    "LeftShoulder": ("T8", "jLeftT4Shoulder", (0, 0.03, 0.08)),
    "LeftUpperArm": ("LeftShoulder", "jLeftShoulder", (0, 0.14, 0)),
    "LeftForeArm": ("LeftUpperArm", "jLeftElbow", (0, 0.29, 0)),
    "LeftHand": ("LeftForeArm", "jLeftWrist", (0, 0.25, 0)),
    "RightUpperLeg": ("Pelvis", "jRightHip", (0, -0.09, 0)),
    "RightLowerLeg": ("RightUpperLeg", "jRightKnee", (0, 0, -0.42)),
    "RightFoot": ("RightLowerLeg", "jRightAnkle", (0, 0, -0.41)),
    "RightToe": ("RightFoot", "jRightBallFoot", (0.16, 0, -0.07)),
    "LeftUpperLeg": ("Pelvis", "jLeftHip", (0, 0.09, 0)),
    "LeftLowerLeg": ("LeftUpperLeg", "jLeftKnee", (0, 0, -0.42)),
    "LeftFoot": ("LeftLowerLeg", "jLeftAnkle", (0, 0, -0.41)),
    "LeftToe": ("LeftFoot", "jLeftBallFoot", (0.16, 0, -0.07)),
}
MVN_ENDS = {
    "Head": ("pTopOfHead", (0, 0, 0.17)),
    "RightHand": ("pRightTopOfHand", (0, -0.19, 0)),
    "LeftHand": ("pLeftTopOfHand", (0, 0.19, 0)),
    "RightToe": ("pRightToe", (0.07, 0, 0)),
    "LeftToe": ("pLeftToe", (0.07, 0, 0)),
}


def mvn_positions(orientations, pelvis):
    """(F, N, 3) positions of the segments' origins.

    orientations: (F, N, 4) in the world. pelvis: (F, 3).
    """
    names, world = list(MVN), matrices(orientations)
    heads = np.empty((*orientations.shape[:2], 3))
    for place, (parent, _, offset) in enumerate(MVN.values()):
        heads[:, place] = (
            pelvis if parent is None else heads[:, names.index(parent)] + world[:, names.index(parent)] @ offset
        )
    return heads


def mvnx_text(orientations, pelvis, rate=240, *, segments=None, frames_tail="</frames></subject></mvnx>", head=""):
    """An MVNX document, with an identity and a T-pose before the frames, as MVN writes it."""
    names = list(MVN)
    points = {name: {"pHipOrigin": (0, 0, 0)} if name == "Pelvis" else {} for name in names}
    joints = []
    for name, (parent, joint, offset) in MVN.items():
        if parent is not None:
            points[parent][joint], points[name][joint] = offset, (0, 0, 0)
            ends = f"<connector1>{parent}/{joint}</connector1><connector2>{name}/{joint}</connector2>"
            joints.append(f'<joint label="{joint}">{ends}</joint>')
    for name, (point, offset) in MVN_ENDS.items():
        points[name][point] = offset
    # Soles are 2 cm under the toes.
    for side in ("Left", "Right"):
        points[f"{side}Toe"][f"p{side}Sole"] = (0, 0, -0.02)
    listed = "".join(
        f'<segment id="{place}" label="{name}"><points>'
        + "".join(
            f'<point label="{point}"><pos_b>{x} {y} {z}</pos_b></point>' for point, (x, y, z) in points[name].items()
        )
        + "</points></segment>"
        for place, name in enumerate(names, 1)
    )

    def frame(kind, orientation, position):
        numbers = [" ".join(f"{value:.9g}" for value in np.ravel(table)) for table in (orientation, position)]
        return (
            f'<frame time="0" index="0" type="{kind}"><orientation>{numbers[0]}</orientation>'
            f"<position>{numbers[1]}</position><sensorAngularVelocity>nonsense</sensorAngularVelocity></frame>"
        )

    still = np.tile([1.0, 0.0, 0.0, 0.0], (1, len(names), 1))
    rest = mvn_positions(still, np.array([[0.0, 0.0, 0.92]]))
    frames = [frame(kind, still, rest) for kind in ("identity", "tpose", "tpose-isb")]
    frames += [frame("normal", *both) for both in zip(orientations, mvn_positions(orientations, pelvis), strict=True)]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<mvnx version="4" xmlns="http://www.xsens.com/mvn/mvnx">'
        f'<mvn version="2020.0"/><subject label="Anna" frameRate="{rate}" segmentCount="{len(names)}">'
        f"<segments>{listed if segments is None else segments}</segments><joints>{''.join(joints)}</joints>"
        f'<frames segmentCount="{len(names)}">{"".join(frames)}{frames_tail}'
    )


def bvh_text(turns, pelvis, rate=60):
    """A BVH file of MVN's body at rest in a T-pose, in centimeters, Y up.

    turns: (F, 3) degrees about Z, X and Y by segment; segments that are not in it don't turn. pelvis: (F, 3) meters,
    Z up.
    """
    names, ends = [], {name: offset for name, (_, offset) in MVN_ENDS.items()}

    def joint(name):
        names.append(name)
        parent, _, offset = MVN[name]
        x, y, z = 100.0 * np.array(offset)
        parts = [joint(other) for other, (above, *_) in MVN.items() if above == name]
        if name in ends:
            ahead, aside, up = 100.0 * np.array(ends[name])
            parts = [f"End Site {{\nOFFSET {aside} {up} {ahead}\n}}"]
        places = "" if parent else "Xposition Yposition Zposition "
        return (
            f"{'JOINT' if parent else 'ROOT'} {name}\n{{\nOFFSET {y} {z} {x}\n"
            f"CHANNELS {3 if parent else 6} {places}Zrotation Xrotation Yrotation\n" + "\n".join(parts) + "\n}"
        )

    hierarchy, still = joint("Pelvis"), np.zeros((len(pelvis), 3))
    rows = np.hstack([100.0 * pelvis[:, [0, 2, 1]] * [1, 1, -1], *(turns.get(name, still) for name in names)])
    motion = "\n".join(" ".join(f"{value:.6f}" for value in row) for row in rows)
    return f"HIERARCHY\n{hierarchy}\nMOTION\nFrames: {len(rows)}\nFrame Time: {1.0 / rate:.7f}\n{motion}\n"
