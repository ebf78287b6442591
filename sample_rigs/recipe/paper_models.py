"""The four models of section 5 of the paper (Aristidou and Lasenby, 2011).

A joint is a point: the head of a bone or the tail of the last one. Bones without children are the end effectors.
The paper gives lengths for the chain only; the others have the sizes of real ones, in meters.
"""

from __future__ import annotations

from .bones import Bone, Point, chain, with_mirror

LINK = 0.1  # 9 links of 100 mm: the paper's chain of 10 joints and 900 mm


def chain_bones() -> tuple[Bone, ...]:
    """10 joints in a straight vertical line of 0.9 m."""
    points: list[Point] = [(0.0, 0.0, LINK * i) for i in range(10)]
    return tuple(chain([f"bone_{i}" for i in range(1, 10)], points, "", (1.0, 0.0, 0.0)))


def y_bones() -> tuple[Bone, ...]:
    """10 joints: a stem of three bones and two arms of three, tilted by 35 degrees to either side."""
    stem: list[Point] = [(0.0, 0.0, LINK * i) for i in range(4)]
    step = (0.0573576, 0.0819152)  # 0.1 m at 35 degrees from upright
    arm: list[Point] = [(step[0] * i, 0.0, 0.3 + step[1] * i) for i in range(4)]
    bones = chain(["stem_1", "stem_2", "stem_3"], stem, "", (1.0, 0.0, 0.0))
    bones += chain(["arm_1.L", "arm_2.L", "arm_3.L"], arm, "stem_3", (1.0, 0.0, 0.0))
    return with_mirror(bones)


# For each finger: its position at the wrist's end of the palm, then the offsets (x, y) of the next joints.
_FINGERS: dict[str, tuple[Point, ...]] = {
    "thumb": ((0.022, 0.018, -0.005), (0.043, 0.045, -0.012), (0.060, 0.072, -0.016), (0.071, 0.094, -0.018),
              (0.079, 0.111, -0.019)),
    "index": ((0.013, 0.030, 0.0), (0.026, 0.095, 0.0), (0.031, 0.137, 0.0), (0.034, 0.163, 0.0), (0.036, 0.184, 0.0)),
    "middle": ((0.003, 0.031, 0.0), (0.005, 0.096, 0.0), (0.006, 0.142, 0.0), (0.006, 0.171, 0.0), (0.006, 0.193, 0.0)),
    "ring": ((-0.007, 0.029, 0.0), (-0.014, 0.089, 0.0), (-0.018, 0.131, 0.0), (-0.021, 0.158, 0.0),
             (-0.023, 0.179, 0.0)),
    "little": ((-0.015, 0.026, 0.0), (-0.031, 0.079, 0.0), (-0.040, 0.112, 0.0), (-0.046, 0.132, 0.0),
               (-0.051, 0.151, 0.0)),
}  # fmt: skip


def hand_bones() -> tuple[Bone, ...]:
    """26 joints: the wrist and five for each finger, including its tip; 5 effectors.

    The wrist bone includes the carpus: the metacarpals start away from its tail and are fixed in its frame. The palm
    faces down and the fingers point along +Y. A positive rotation about local X curls a finger toward the palm.
    """
    curl: Point = (-1.0, 0.0, 0.0)
    bones = [Bone("wrist", "", (0.0, 0.0, 0.0), _FINGERS["middle"][0], curl)]
    for finger, points in _FINGERS.items():
        names = [f"{finger}_{part}" for part in ("metacarpal", "proximal", "middle", "distal")]
        bones += chain(names, points, "wrist", curl)
    return tuple(bones)


def humanoid_bones() -> tuple[Bone, ...]:
    """13 joints: pelvis, neck, top of the head, and on each side shoulder, elbow, wrist, knee, ankle; 5 effectors.

    The thighs start at the pelvis, the arms at shoulders that are fixed in the torso's frame.
    """
    pelvis: Point = (0.0, 0.0, 0.95)
    bones = chain(["torso", "head"], [pelvis, (0.0, 0.0, 1.46), (0.0, 0.0, 1.75)], "", (1.0, 0.0, 0.0))
    arm: list[Point] = [(0.185, 0.0, 1.43), (0.411, 0.0, 1.24), (0.606, 0.0, 1.076)]
    leg: list[Point] = [pelvis, (0.1, 0.0, 0.51), (0.12, 0.0, 0.085)]
    bones += chain(["upper_arm.L", "forearm.L"], arm, "torso", (0.0, 0.0, -1.0))
    bones += chain(["thigh.L", "shin.L"], leg, "torso", (1.0, 0.0, 0.0))
    return with_mirror(bones)


PAPER_MODELS = {"chain": chain_bones, "y": y_bones, "hand": hand_bones, "humanoid": humanoid_bones}
