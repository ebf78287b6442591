"""The options of a solve."""

from dataclasses import dataclass

import numpy as np

from ..errors import OptionsError
from ..readers import LARGEST, number, shown, whole


@dataclass(frozen=True)
class Options:
    """The options of a solve.

    Attributes:
        tolerance: the allowed error, as a fraction of each effector's path length from the root, and in radians for a
            rotation.
        max_sweeps: the largest number of forward-and-backward sweeps; with 0, the finish alone solves, which is enough
            if the start pose is close.
        finish: end with the exact finish after a few sweeps; False uses sweeps alone.
        most_steps: the largest number of steps of the finish. Nine in ten fits end within 30; the others gain almost
            nothing after that.
        plain: the paper's plain method: sweeps only, limits clamped in both passes.
        restarts: the number of further start poses inside the limits that are tried if limits seem to keep a target
            away. With 16 a hand with five goals missed 1 of 150 targets within its limits, and a robot of five hinges 2
            of 120.
        repair_pops: solve frames that pop or fail again, starting from neighboring frames. A frame's pose then depends
            on those frames.
        chunk: the number of frames solved at once, so that memory does not grow with the length of an action.

    Raises:
        OptionsError: naming the value out of range.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    finish: bool = True
    most_steps: int = 60
    plain: bool = False
    restarts: int = 32
    repair_pops: bool = False
    chunk: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < number(self.tolerance) <= LARGEST:
            raise OptionsError(f"The tolerance is {shown(self.tolerance)}: it must be a number above zero")
        for name, least in (("max_sweeps", 0), ("most_steps", 0), ("restarts", 0), ("chunk", 1)):
            value = whole(getattr(self, name))
            if value is None or not least <= value <= LARGEST:
                raise OptionsError(
                    f"{name} is {shown(getattr(self, name))}: it must be a whole number, at least {least}"
                )
        for name in ("finish", "plain", "repair_pops"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionsError(f"{name} is {shown(getattr(self, name))}: it must be True or False")
