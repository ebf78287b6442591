"""Setting, clearing and copying the limits of bones."""

from collections.abc import Sequence
from dataclasses import replace
from math import atan2, hypot, pi, radians
from typing import Any, Final

import bpy
import numpy as np

from ...core import LimitError
from ...core.limits.ellipse import outline
from ..rig.armature import RigError
from ..rig.stretch import check_children, keep_size_of_children
from ..settings.limit_properties import check_writable, clear_limit, read_limit, read_settings, write_settings
from ..settings.limit_values import (
    ALL_ROUND,
    BESIDE_LIMIT,
    FREE,
    NO_SLIDE,
    LimitSettings,
    as_cone,
    as_range,
    as_window,
    flat,
)

Bones = Sequence[bpy.types.PoseBone]

# A first window: this many corners, as far out as the cone allows and within these leans.
_CORNERS: Final = 8
_WINDOW_LEAST: Final = radians(5.0)
_WINDOW_MOST: Final = radians(45.0)
# A first hinge: elbows and knees fold by so much from straight; what is bent by less than a degree at rest is straight,
# and tells no way.
_FOLDED: Final = radians(150.0)
_STRAIGHT: Final = radians(1.0)
_BOTH_WAYS: Final = radians(90.0)


def set_limits(bones: Bones, **values: Any) -> str:
    """Change what is given of the bones' limits: `LimitSettings` by name, or low and high; the rest stays as it is.

    Without a type it stays as well, and a free bone gets the one that the values are for. Returns a line for people.
    Raises LimitPropertyError or LimitError, with nothing changed, for what makes no sense or can't be kept.
    """
    wanted = [_changed(bone, values) for bone in bones]
    write_all(bones, wanted)
    kinds = " and ".join(sorted({settings.type.lower() for settings in wanted}))
    return f"{_limits(bones)}: {kinds}"


def _changed(bone: bpy.types.PoseBone, values: dict[str, Any]) -> LimitSettings:
    """A bone's settings with some values changed."""
    kept, given = read_settings(bone), dict(values)
    if given.keys() & {"low", "high"}:
        given["hinge"] = given.pop("low", kept.hinge[0]), given.pop("high", kept.hinge[1])
    # Operators have their numbers in single precision.
    tidy: dict[str, Any] = {"cone": as_cone, "twist": as_range, "hinge": as_range, "window": as_window, "slide": tuple}
    given = {name: tidy[name](tuple(value)) if name in tidy else value for name, value in given.items()}
    kind = given.pop("type", "") or (_type_for(given) if kept.type == FREE else kept.type)
    changed = replace(kept, **given, type=kind)
    if kind == "POLYGON" and not changed.window:
        changed = replace(changed, window=window_in(changed.cone))
    if kind == "HINGE" and kept.hinge == ALL_ROUND and not given.keys() & {"axis", "hinge"}:
        axis, hinge = first_hinge(bone)
        changed = replace(changed, axis=axis, hinge=hinge)
    return changed


def first_hinge(bone: bpy.types.PoseBone) -> tuple[str, tuple[float, float]]:
    """Axis and range of a hinge that knows only how the bone is bent against its parent at rest.

    It goes on bending that way, and straightens as far as straight. Where it is straight, it bends both ways about X.
    """
    rest = bone.bone
    if rest.parent is None:
        return "X", (-_BOTH_WAYS, _BOTH_WAYS)
    above = (rest.matrix_local.inverted() @ rest.parent.matrix_local).to_3x3().col[1]
    # The turn that takes the parent's direction to the bone's own (0, 1, 0): about (-z, 0, x) of the former.
    about = {"X": -above.z, "Z": above.x}
    bent = atan2(hypot(above.x, above.z), above.y)
    if bent < _STRAIGHT:
        return "X", (-_BOTH_WAYS, _BOTH_WAYS)
    axis = max(about, key=lambda each: abs(about[each]))
    straight, folded = -bent, max(_FOLDED - bent, 0.0)
    return axis, (straight, folded) if about[axis] > 0.0 else (-folded, -straight)


def _type_for(values: dict[str, Any]) -> str:
    """The type of limit that some values are for."""
    if "window" in values:
        return "POLYGON"
    if values.keys() <= set(BESIDE_LIMIT):
        return FREE
    return "HINGE" if values.keys() & {"axis", "hinge"} else "BALL"


def numbers_in(text: str) -> tuple[float, ...]:
    """Numbers separated by commas or spaces, in brackets or not. Raises LimitError naming what is no number."""
    numbers = []
    for word in text.strip("[]() ").replace(",", " ").split():
        try:
            numbers.append(float(word.strip("[]()")))
        except ValueError:
            raise LimitError(
                f"{word!r} in the outline is not a number: give swings in radians, separated by commas"
            ) from None
    return tuple(numbers)


def window_in(cone: Sequence[float]) -> tuple[float, ...]:
    """An octagon as wide as a cone, or as a moderate one where the cone is wide."""
    moderate = np.clip(cone, _WINDOW_LEAST, _WINDOW_MOST)
    return flat(outline(moderate, np.linspace(0.0, 2.0 * pi, _CORNERS, endpoint=False)).tolist())


def write_all(bones: Bones, settings: Sequence[LimitSettings | None]) -> None:
    """Write the limits of several bones, None to free one, or raise LimitPropertyError and write none.

    Children of those that may stretch are made to keep their size.
    """
    limited = [(bone, wanted) for bone, wanted in zip(bones, settings, strict=True) if wanted is not None]
    stretching = [bone for bone, wanted in limited if wanted.slide != NO_SLIDE]
    check_children(stretching)
    for bone, wanted in limited:
        check_writable(bone, wanted)
    keep_size_of_children(stretching)
    for bone, wanted in limited:
        write_settings(bone, wanted)
    for bone, wanted in zip(bones, settings, strict=True):
        if wanted is None:
            clear_limit(bone)


def clear_limits(bones: Bones) -> str:
    """Take the limits of bones away; returns a line for people."""
    write_all(bones, [None] * len(bones))
    return f"{_limits(bones)}: free"


def copy_limit(source: bpy.types.PoseBone, bones: Bones) -> str:
    """Give bones the limit of another; returns a line for people. Raises LimitPropertyError, with nothing changed."""
    others = [bone for bone in bones if bone != source]
    if not others:
        raise RigError(f"Only {source.name!r} is selected: select more bones to copy its limit to")
    read_limit(source)
    write_all(others, [read_settings(source)] * len(others))
    return f"{_limits(others)}: copied from {source.name!r}"


def _limits(bones: Bones) -> str:
    """The limits of some bones, as the beginning of a line."""
    return f"Limit of {bones[0].name!r}" if len(bones) == 1 else f"Limits of {len(bones)} bones"
