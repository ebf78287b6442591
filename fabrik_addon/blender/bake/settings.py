"""What a bake is told."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...core.arrays import IntArray
from ...core.errors import FabrikError
from ...markers.take import Gaps
from ..settings.markers import GAPS
from ..settings.rig import ACTIONS, BAKED_BONES, ROOT_MOTIONS, SOURCES, STARTS

# What the settings that are words may be.
_CHOICES: Final = {
    "start": STARTS,
    "action": ACTIONS,
    "source": SOURCES,
    "bones": BAKED_BONES,
    "root_motion": ROOT_MOTIONS,
    "gaps": GAPS,
}


class BakeError(FabrikError):
    """A bake that cannot be done; the sentence says why."""


@dataclass(frozen=True)
class BakeSettings:
    """What to bake: frames from first to last, in steps, and how.

    start: "REST" or "PREVIOUS". action: "NEW", "CURRENT" or "NLA". action_name: of a new action, "" for one made from
    the rig's. mend_jumps: solve what jumped or failed again from the frames about it. source: "MARKERS", "EFFECTORS" or
    "AUTO", the markers where any is on a bone. bones: "SOLVED", "MAPPED" or "SELECTED" get keys. root_motion: "BONE",
    "OBJECT" or "IN_PLACE". key_angle: radians; keys are left out as long as no bone is off by more, 0 keeps all;
    key_distance: metres, the same for the root's place. Of markers only: gaps: "SOLVE", "HOLD", "INTERPOLATE" or
    "UNKEYED", what bones do whose markers are not seen; robust: outliers do not count; steady: bones that
    the markers leave undecided go by the frames about them; low_pass: Hz, above which
    markers are smoothed, 0 for none; plant_feet: feet stay where they stand; key_error: key the error as a custom
    property.
    Raises BakeError for a range without frames, unknown choices and numbers that make no sense.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    start: str = "REST"
    action: str = "NEW"
    action_name: str = ""
    mend_jumps: bool = False
    source: str = "AUTO"
    bones: str = "SOLVED"
    root_motion: str = "BONE"
    key_angle: float = 0.0
    key_distance: float = 0.001
    gaps: Gaps = "SOLVE"
    robust: bool = True
    steady: bool = True
    low_pass: float = 0.0
    plant_feet: bool = False
    key_error: bool = False

    def __post_init__(self) -> None:
        """Check that the parts make sense."""
        if self.frame_end < self.frame_start:
            raise BakeError(f"The last frame ({self.frame_end}) is before the first ({self.frame_start}).")
        if self.step < 1:
            raise BakeError(f"The step is {self.step}: it must be 1 frame or more.")
        for name, items in _CHOICES.items():
            choices = [identifier for identifier, *_ in items]
            if getattr(self, name) not in choices:
                raise BakeError(f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(choices)}.")
        for name in ("key_angle", "key_distance", "low_pass"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise BakeError(f"{name} is {getattr(self, name)}: it must be 0 or more.")

    @property
    def frames(self) -> IntArray:
        """(F,) the frames that get keys."""
        return np.arange(self.frame_start, self.frame_end + 1, self.step, dtype=np.int64)
