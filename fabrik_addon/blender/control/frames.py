"""What each control goes with while others are turned: so that a pose can be written without asking Blender."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...core.arrays import BoolArray
from .trials import Trials

# Shares of a turn: what is nearer to none or to all is that.
_NONE: Final = 0.02
# Metres by radian, as a share of the rig's size: a lever of less moves nothing that could be told.
_NO_ARM: Final = 1e-4


@dataclass(frozen=True)
class Frame:
    """The controls that a control's own frame goes with, by name, "" for none.

    It turns with one, and by a `share` with a second; its head is fixed to a third.
    """

    turns_with: str = ""
    shares_turn: str = ""
    share: float = 0.0
    moves_with: str = ""


def find_frames(trials: Trials, written: Collection[str]) -> dict[str, Frame]:
    """The frame of each control: the innermost of those that are written that it goes with."""
    is_written = np.array([name in written for name in trials.controls])
    rows = [trials.bones.index(name) for name in trials.controls]
    full, shares, carried = trials.full[:, rows], trials.shares[:, rows], trials.carried[:, rows]
    heads = trials.rest[rows, :3, 3]
    apart = np.linalg.norm(heads[:, None] - heads[None], axis=-1) > _NO_ARM * np.ptp(heads, axis=0).max()
    # Those farther out turn more of the other controls; of two that turn the same ones, more of the bones.
    sizes = full.sum(axis=1) + trials.full.sum(axis=1) / (1.0 + len(trials.bones))

    def innermost(chosen: BoolArray) -> str:
        found = np.flatnonzero(chosen)
        return trials.controls[found[np.argmin(sizes[found])]] if len(found) else ""

    frames = {}
    for column, name in enumerate(trials.controls):
        others = is_written & (np.arange(len(rows)) != column)
        first = innermost(others & full[:, column])
        # What turns the control's leader by as much turns the control only with that.
        leader = trials.controls.index(first) if first else column
        own = np.isnan(shares[:, leader]) | (np.abs(shares[:, column] - shares[:, leader]) > _NONE) | (not first)
        part = others & own & (shares[:, column] > _NONE) & (shares[:, column] < 1.0 - _NONE)
        second = innermost(part)
        share = float(shares[trials.controls.index(second), column]) if second else 0.0
        rest = np.abs(shares[:, column] - (1.0 - share)) < _NONE
        if second:
            # Two that do not turn one another share it between them; what turns both is farther out.
            row = trials.controls.index(second)
            first = innermost(part & rest & ~full[row] & ~full[:, row]) or first
        moving = others & carried[:, column] & (apart[:, column] | full[:, column])
        frames[name] = Frame(first, second, round(share, 3), innermost(moving))
    return frames
