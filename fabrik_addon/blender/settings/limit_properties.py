"""Joint limits as custom properties of pose bones: the only module that reads and writes them.

They are plain ID properties, in radians, so that they are saved, appended and linked whether or not the extension is
on. Every limited bone has those of all types but the window: on a library override only what its library has can be
set, and there the type can be changed too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite, pi
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import bpy

from ...core import Ball, FabrikError, Fixed, Hinge, LimitError, Polygon
from ...core.limits.kinds import Limit
from .limit_values import (
    ALL_ROUND,
    AXES,
    FREE,
    NO_SLIDE,
    TYPES,
    WHOLE_CONE,
    Cone,
    LimitSettings,
    Range,
    as_cone,
    as_range,
    as_window,
    check_slide,
    points,
    settings_of,
)

LIMIT: Final = "fabrik_limit"
CONE: Final = "fabrik_cone"
TWIST: Final = "fabrik_twist"
HINGE_AXIS: Final = "fabrik_hinge_axis"
HINGE: Final = "fabrik_hinge"
WINDOW: Final = "fabrik_window"
SLIDE: Final = "fabrik_slide"
PROPERTIES: Final = (LIMIT, CONE, TWIST, HINGE_AXIS, HINGE, WINDOW, SLIDE)
# What may be animated: text can't be.
NUMBERS: Final = (CONE, TWIST, HINGE, WINDOW, SLIDE)

_FULL_TURN: Final = 2.0 * pi
_LEAST_FACTOR: Final = 0.01
_MOST_FACTOR: Final = 100.0
_ABSENT: Final[Mapping[str, Any]] = MappingProxyType(
    {LIMIT: FREE, CONE: WHOLE_CONE, TWIST: ALL_ROUND, HINGE_AXIS: "X", HINGE: ALL_ROUND, WINDOW: (), SLIDE: NO_SLIDE}
)
_USED: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        FREE: (LIMIT, SLIDE),
        "BALL": (LIMIT, CONE, TWIST, SLIDE),
        "HINGE": (LIMIT, HINGE_AXIS, HINGE, SLIDE),
        "FIXED": (LIMIT, SLIDE),
        "POLYGON": (LIMIT, WINDOW, TWIST, SLIDE),
    }
)
_DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        LIMIT: "Kind of joint limit: FREE, BALL, HINGE, FIXED or POLYGON",
        CONE: "How far the bone may lean toward its +X, +Z, -X and -Z",
        TWIST: "Lowest and highest twist about the bone",
        HINGE_AXIS: "The bone's axis that a hinge turns about: X, Y or Z",
        HINGE: "Lowest and highest turn about the hinge's axis",
        WINDOW: "Corners of the window that the bone may lean in: X and Z leans by turns",
        SLIDE: "Least and greatest length that the bone may stretch to, as factors of its own; 1 and 1: it keeps it",
    }
)
# Hard and soft bounds of the sliders.
_BOUNDS: Final[Mapping[str, tuple[float, float, float, float]]] = MappingProxyType(
    {
        CONE: (0.0, pi, 0.0, pi),
        TWIST: (-_FULL_TURN, _FULL_TURN, -pi, pi),
        HINGE: (-_FULL_TURN, _FULL_TURN, -pi, pi),
        WINDOW: (-pi, pi, -pi, pi),
        SLIDE: (_LEAST_FACTOR, _MOST_FACTOR, 0.5, 2.0),
    }
)

_Value = TypeVar("_Value")


class LimitPropertyError(FabrikError):
    """A limit that makes no sense, or that can't be kept where it is; the sentence names the bone and the property."""


def read_limits(armature: bpy.types.Object, bone_names: Collection[str] | None = None) -> dict[str, Limit]:
    """The limits of an armature's bones by name, as the solver wants them; those of some bones only where named.

    Raises LimitPropertyError naming a bone and the property that makes no sense.
    """
    bones = armature.pose.bones
    wanted = bones if bone_names is None else [bones[name] for name in bone_names]
    found = {bone.name: read_limit(bone) for bone in wanted if has_limit(bone)}
    return {name: limit for name, limit in found.items() if limit is not None}


def read_limit(pose_bone: bpy.types.PoseBone) -> Limit | None:
    """A bone's limit, None where it is free.

    Raises LimitPropertyError naming the bone and the property that makes no sense.
    """
    kind = limit_type(pose_bone)
    if kind == "BALL":
        cone = _read(pose_bone, CONE, _cone)
        _checked(pose_bone, CONE, lambda: Ball(cone))
        return _checked(pose_bone, TWIST, lambda: Ball(cone, _read(pose_bone, TWIST, _range)))
    if kind == "HINGE":
        axis: Any = _read(pose_bone, HINGE_AXIS, _axis)
        return _checked(pose_bone, HINGE, lambda: Hinge(axis, *_read(pose_bone, HINGE, _range)))
    if kind == "POLYGON":
        corners = points(_read(pose_bone, WINDOW, _window))
        _checked(pose_bone, WINDOW, lambda: Polygon(corners))
        return _checked(pose_bone, TWIST, lambda: Polygon(corners, _read(pose_bone, TWIST, _range)))
    return Fixed() if kind == "FIXED" else None


def read_slides(armature: bpy.types.Object, bone_names: Collection[str]) -> dict[str, Range]:
    """The length factors between which bones may stretch, of those that may.

    Raises LimitPropertyError naming a bone whose factors make no sense.
    """
    found = {name: read_slide(armature.pose.bones[name]) for name in bone_names}
    return {name: slide for name, slide in found.items() if slide != NO_SLIDE}


def read_slide(pose_bone: bpy.types.PoseBone) -> Range:
    """A bone's least and greatest length factor, 1 and 1 where it keeps its length.

    Raises LimitPropertyError naming the bone and the property that makes no sense.
    """
    slide = _read(pose_bone, SLIDE, _slide)
    _checked(pose_bone, SLIDE, lambda: check_slide(slide))
    return slide


def limit_type(pose_bone: bpy.types.PoseBone) -> str:
    """The kind of limit, one of `TYPES`; raises LimitPropertyError for any other."""
    return _read(pose_bone, LIMIT, _type)


def has_limit(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether a limit is kept on the bone, if only "FREE"."""
    return _has(pose_bone, LIMIT)


def read_settings(pose_bone: bpy.types.PoseBone) -> LimitSettings:
    """All that is kept of a bone's limit; what is absent or makes no sense is as in a free bone."""
    readers: dict[str, Callable[[Any], Any]] = {
        LIMIT: _type,
        CONE: _cone,
        TWIST: _range,
        HINGE_AXIS: _axis,
        HINGE: _range,
        WINDOW: _window,
        SLIDE: _slide,
    }
    values = {}
    for name, convert in readers.items():
        try:
            values[name] = _read(pose_bone, name, convert)
        except LimitPropertyError:
            values[name] = _ABSENT[name]
    return LimitSettings(*values.values())


def write_limit(pose_bone: bpy.types.PoseBone, limit: Limit | None) -> None:
    """Keep a limit on a bone; None clears it. Raises LimitPropertyError where it can't be kept."""
    if limit is None:
        clear_limit(pose_bone)
    else:
        write_settings(pose_bone, settings_of(limit, read_settings(pose_bone)))


def write_settings(pose_bone: bpy.types.PoseBone, settings: LimitSettings) -> None:
    """Keep all values of a limit on a bone.

    Raises LimitPropertyError for what makes no sense or can't be kept there; then nothing is changed.
    """
    check_writable(pose_bone, settings)
    for name, value in _values(settings).items():
        _put(pose_bone, name, value)
    pose_bone.id_data.update_tag(refresh={"DATA"})


def check_writable(pose_bone: bpy.types.PoseBone, settings: LimitSettings) -> None:
    """Raise LimitPropertyError where `write_settings` would: to ask about all of several bones before the first."""
    try:
        settings.check()
    except LimitError as error:
        raise LimitPropertyError(f"Bone {pose_bone.name!r}: {error}") from error
    reason = why_not_writable(pose_bone) or _why_not_kept(pose_bone, settings)
    if reason:
        raise LimitPropertyError(reason)


def clear_limit(pose_bone: bpy.types.PoseBone) -> None:
    """Take a bone's limit away; on a library override, where it would come back, it is "FREE" and keeps its length.

    Raises LimitPropertyError where the bone can't be changed.
    """
    present = [name for name in PROPERTIES if _has(pose_bone, name)]
    if not present:
        return
    reason = why_not_writable(pose_bone)
    if reason:
        raise LimitPropertyError(reason)
    if _is_override(pose_bone):
        _put(pose_bone, LIMIT, FREE)
        _put(pose_bone, SLIDE, NO_SLIDE)
    else:
        for name in present:
            del pose_bone[name]
    pose_bone.id_data.update_tag(refresh={"DATA"})


def why_not_writable(pose_bone: bpy.types.PoseBone) -> str:
    """What keeps a limit from being set on a bone, and what to do; "" where nothing does."""
    rig: Any = pose_bone.id_data
    if rig.library is not None:
        return f"{rig.name!r} is linked from another file: make a library override of it first"
    if not _is_override(pose_bone):
        return ""
    if rig.override_library.is_system_override:
        return f"The library override of {rig.name!r} is not editable: make it editable first"
    if not _is_overridable(pose_bone, LIMIT):
        library = _library_name(pose_bone)
        return f"Bone {pose_bone.name!r} has no limit in {library!r}, so an override can't keep one: set it there first"
    return ""


def _why_not_kept(pose_bone: bpy.types.PoseBone, settings: LimitSettings) -> str:
    """What keeps an override from keeping a limit: it has only what its library has, and arrays as long as there."""
    if not _is_override(pose_bone):
        return ""
    values, library = _values(settings), _library_name(pose_bone)
    for name in _USED[settings.type]:
        if not _is_overridable(pose_bone, name):
            if values[name] != _ABSENT[name]:
                return f"Bone {pose_bone.name!r} has no {name!r} in {library!r}, so an override can't keep it"
        elif not _fits(cast("Any", pose_bone)[name], values[name]):
            return f"Bone {pose_bone.name!r} has {name!r} of another length in {library!r}: an override can't change it"
    return ""


def _is_override(pose_bone: bpy.types.PoseBone) -> bool:
    return pose_bone.id_data.override_library is not None


def _is_overridable(pose_bone: bpy.types.PoseBone, name: str) -> bool:
    """Whether a bone of a library override has the property from its library, and may change it."""
    rig: Any = pose_bone.id_data
    original = rig.override_library.reference.pose.bones.get(pose_bone.name)
    if original is None or not _has(original, name) or not _has(pose_bone, name):
        return False
    return bool(pose_bone.is_property_overridable_library(f'["{name}"]'))


def _library_name(pose_bone: bpy.types.PoseBone) -> str:
    return bpy.path.basename(pose_bone.id_data.override_library.reference.library.filepath)


def _values(settings: LimitSettings) -> dict[str, Any]:
    """The properties' values by name; arrays as Python's floats, whole numbers as well, or Blender makes integers."""
    values = dict(zip(PROPERTIES, vars(settings).values(), strict=True))
    return {name: value if isinstance(value, str) else tuple(map(float, value)) for name, value in values.items()}


def _put(pose_bone: bpy.types.PoseBone, name: str, value: Any) -> None:
    """Set one property, made anew where there is none of that kind. No window is made of no points."""
    if _is_override(pose_bone):
        if _is_overridable(pose_bone, name) and _fits(cast("Any", pose_bone)[name], value):
            pose_bone[name] = value
        return
    if not value:
        return
    if not _fits(pose_bone.get(name), value):
        pose_bone.pop(name, None)
        pose_bone[name] = value
        _describe(pose_bone, name, value)
    pose_bone.property_overridable_library_set(f'["{name}"]', True)
    pose_bone[name] = value


def _fits(present: Any, value: Any) -> bool:
    """Whether a property can hold another value as it is."""
    if isinstance(value, str):
        return isinstance(present, str)
    return getattr(present, "typecode", "") == "d" and len(present) == len(value)


def _describe(pose_bone: bpy.types.PoseBone, name: str, value: Any) -> None:
    """Tooltip, bounds and unit of a new property."""
    shown: Any = pose_bone.id_properties_ui(name)
    if isinstance(value, str):
        shown.update(description=_DESCRIPTIONS[name])
        return
    least, most, soft_least, soft_most = _BOUNDS[name]
    shown.update(
        description=_DESCRIPTIONS[name],
        subtype="NONE" if name == SLIDE else "ANGLE",
        min=least,
        max=most,
        soft_min=soft_least,
        soft_max=soft_most,
        default=list(_ABSENT[name]) or [0.0] * len(value),
    )


def _has(pose_bone: bpy.types.PoseBone, name: str) -> bool:
    return name in cast("Any", pose_bone)


def _read(pose_bone: bpy.types.PoseBone, name: str, convert: Callable[[Any], _Value]) -> _Value:
    """The value of a property, or what its absence means; raises LimitPropertyError for the wrong kind of value."""
    if not _has(pose_bone, name):
        return cast("_Value", _ABSENT[name])
    try:
        return convert(cast("Any", pose_bone)[name])
    except ValueError as error:
        raise LimitPropertyError(f"Bone {pose_bone.name!r}: property {name!r} {error}.") from None
    except LimitError as error:
        raise LimitPropertyError(f"Bone {pose_bone.name!r}, property {name!r}: {error}") from None


def _checked(pose_bone: bpy.types.PoseBone, name: str, make: Callable[[], _Value]) -> _Value:
    """What `make` makes; its LimitError becomes one that names the bone and the property."""
    try:
        return make()
    except LimitError as error:
        raise LimitPropertyError(f"Bone {pose_bone.name!r}, property {name!r}: {error}") from error


def _type(value: Any) -> str:
    return _choice(value, TYPES)


def _axis(value: Any) -> str:
    return _choice(value, AXES)


def _choice(value: Any, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"is {value!r}: it must be one of {', '.join(choices)}")
    return value


def _cone(value: Any) -> Cone:
    return as_cone(_numbers(value, 4))


def _range(value: Any) -> Range:
    return as_range(_numbers(value, 2))


def _slide(value: Any) -> Range:
    low, high = _numbers(value, 2)
    return low, high


def _window(value: Any) -> tuple[float, ...]:
    return as_window(_numbers(value))


def _numbers(value: Any, count: int | None = None) -> tuple[float, ...]:
    """Plain finite numbers from an array property; raises ValueError saying what is wrong with them."""
    if not hasattr(value, "to_list"):
        raise ValueError(f"is {value!r}: {count or 'several'} numbers are needed")
    numbers = tuple(float(number) for number in value.to_list())
    if count is not None and len(numbers) != count:
        raise ValueError(f"has {len(numbers)} numbers: {count} are needed")
    if not all(isfinite(number) for number in numbers):
        raise ValueError(f"is {', '.join(map(str, numbers))}: every number must be finite")
    return numbers
