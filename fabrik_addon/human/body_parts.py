"""The parts of a human body that bones stand for and that markers are put on."""

from dataclasses import dataclass
from typing import Final

FINGERS: Final = ("thumb", "index", "middle", "ring", "pinky")
PARTS: Final = (
    "hips", "spine", "chest", "neck", "head",
    "shoulder", "upper_arm", "forearm", "hand", "palm", "finger",
    "thigh", "shin", "foot", "toe",
    "rigid",
)  # fmt: skip


@dataclass(frozen=True)
class Role:
    """What a bone is.

    Attributes:
        part: one of PARTS; "rigid" is what has no joint of its own: half a pelvis, the far half of a limb's bone.
        side: "L", "R", or "" for the middle and where the name does not say.
        finger: one of FINGERS, for fingers and palms.
        number: which bone of a finger or toe, 1 at its root; 0 elsewhere.
    """

    part: str
    side: str = ""
    finger: str = ""
    number: int = 0
