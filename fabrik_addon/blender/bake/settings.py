"""The settings of a bake."""

from math import inf
from typing import Any

import bpy
import numpy as np

from ...core.arrays import IntArray
from ...core.errors import FabrikError
from ..capture.clip import recorded_range
from ..goals.effectors import follows_markers
from ..settings.bake_options import OPTIONS, BakeOptions, KeyOptions, MarkerOptions
from ..settings.why_not import mapped_markers


class BakeError(FabrikError):
    """A bake is impossible; the message says why."""


class BakeSettings(KeyOptions, BakeOptions, MarkerOptions):
    """The settings of a bake: frames, options, and the name of a new action ("" to derive it from the rig).

    `KeyOptions`, `BakeOptions` and `MarkerOptions` describe the options: words in capitals, angles in radians,
    distances in world meters, rates in Hz. Raises BakeError for an empty range, unknown options or choices, and invalid
    numbers.
    """

    def __init__(self, frame_start: int, frame_end: int, *, action_name: str = "", **options: Any) -> None:
        self.frame_start, self.frame_end, self.action_name = frame_start, frame_end, action_name
        if frame_end < frame_start:
            raise BakeError(f"The last frame ({frame_end}) is before the first ({frame_start}): choose a later one")
        unknown = options.keys() - OPTIONS.keys()
        if unknown:
            raise BakeError(f"A bake has no option {min(unknown)!r}: choose from {', '.join(OPTIONS)}")
        for name, declared in OPTIONS.items():
            setattr(self, name, _checked(name, declared.keywords, options))

    @property
    def frames(self) -> IntArray:
        """(F,) the frames that get keys."""
        return np.arange(self.frame_start, self.frame_end + 1, self.step, dtype=np.int64)


def _checked(name: str, declared: dict[str, Any], options: dict[str, Any]) -> Any:
    """The value of an option, or its default; raises BakeError if the value is invalid."""
    if "items" in declared:
        choices = [identifier for identifier, *_ in declared["items"]]
        value = options.get(name, choices[0])
        if value not in choices:
            raise BakeError(f"{name} is {value!r}: it must be one of {', '.join(choices)}")
        return value
    value = options.get(name, declared.get("default", False))
    if "min" in declared and not declared["min"] <= value < inf:
        raise BakeError(f"{name} is {value}: it must be {declared['min']:g} or more")
    return value


def preview_range(scene: bpy.types.Scene) -> tuple[int, int] | None:
    """The first and the last frame of the scene's preview range; None if it is off."""
    return (scene.frame_preview_start, scene.frame_preview_end) if scene.use_preview_range else None


def chosen_range(scene: bpy.types.Scene, rig: bpy.types.Object, source: str) -> tuple[int, int]:
    """The first and the last frame to bake; `source` as in `follows_markers`.

    These are the preview range, if the scene has one, else the frames of the markers, else the scene's range.
    """
    preview = preview_range(scene)
    if preview is not None:
        return preview
    if follows_markers(rig, source):
        return recorded_range(scene, ((marker.target, marker.target_bone) for marker in mapped_markers(rig)))
    return scene.frame_start, scene.frame_end
