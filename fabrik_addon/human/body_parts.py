"""The parts of a human body that bones represent and markers are attached to."""

from dataclasses import dataclass
from typing import Final

FINGERS: Final = ("thumb", "index", "middle", "ring", "pinky")
# The joints of each finger, from the hand outward, as keypoints name them.
FINGER_JOINTS: Final = {"thumb": ("cmc", "mcp", "ip", "tip")} | dict.fromkeys(FINGERS[1:], ("mcp", "pip", "dip", "tip"))
PARTS: Final = (
    "hips", "spine", "chest", "neck", "head",
    "shoulder", "upper_arm", "forearm", "hand", "palm", "finger",
    "thigh", "shin", "foot", "toe",
    "rigid",
)  # fmt: skip
# Groups of parts, each from the root of the body outward.
TRUNK: Final = ("hips", "spine", "chest")
MIDDLE: Final = (*TRUNK, "neck", "head")
ARM: Final = ("upper_arm", "forearm", "hand")
LEG: Final = ("thigh", "shin", "foot", "toe")


@dataclass(frozen=True)
class Role:
    """The role of a bone in a body.

    Attributes:
        part: one of PARTS; "rigid" is a bone without a joint of its own: half a pelvis, the far half of a limb's bone.
        side: "L" or "R"; "" in the middle, or if the name does not show the side.
        finger: one of FINGERS, for fingers and palms.
        number: the position of a bone in its finger or toe, 1 at the root; 0 for other parts.
    """

    part: str
    side: str = ""
    finger: str = ""
    number: int = 0
