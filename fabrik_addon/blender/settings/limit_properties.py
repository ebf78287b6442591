"""Reads and writes joint limits as custom properties of pose bones; no other module does.

They are plain ID properties in radians. So they are saved, appended and linked even if the extension is disabled. A
library override can only change properties that the library has. To allow a change of the type there, every limited
bone has the properties of all types except the outline. A bone without a limit only has properties that differ from the
default, such as its stiffness.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import bpy
from bpy.types import Object, PoseBone

from ...core import FabrikError, LimitError
from ...core.limits import Limit
from .limit_values import AXES, EXTRA_FIELDS, FIELDS, FREE, KINDS, NAMES, LimitSettings, check_extra
from .why_not import why_not_editable


def is_override(pose_bone: PoseBone) -> bool:
    """Whether the bone belongs to a library override."""
    return pose_bone.id_data.override_library is not None


def is_overridable(pose_bone: PoseBone, name: str) -> bool:
    """Whether the property of an overridden bone comes from its library and may be changed."""
    rig: Any = pose_bone.id_data
    original = rig.override_library.reference.pose.bones.get(pose_bone.name)
    if original is None or original.get(name) is None or pose_bone.get(name) is None:
        return False
    return bool(pose_bone.is_property_overridable_library(f'["{name}"]'))


def library_name(pose_bone: PoseBone) -> str:
    """The name of an overridden bone's library file."""
    return bpy.path.basename(pose_bone.id_data.override_library.reference.library.filepath)


def fits(current: Any, value: Any) -> bool:
    """Whether a property can hold another value without a change of type."""
    if isinstance(value, (str, float)):
        return isinstance(current, type(value))
    return getattr(current, "typecode", "") == "d" and len(current) == len(value)


_FREE_BONE: Final = LimitSettings()
# The number of cached limits. Live posing reads them at each step.
_LIMITS_KEPT: Final = 4096

_Value = TypeVar("_Value")


# The properties that a bake uses and that may be animated; text cannot be.
NUMBERS: Final = tuple(NAMES[field] for field in ("cone", "twist", "hinge", "window", "slide"))


class LimitPropertyError(FabrikError):
    """An invalid limit, or one that cannot be stored; the message names the bone and the property."""


def read_limits(armature: Object, bone_names: Collection[str] | None = None) -> dict[str, Limit]:
    """The limits of an armature's bones by name, for the solver; bone_names: the bones to read, None for all.

    Raises LimitPropertyError naming a bone and the invalid property.
    """
    bones = armature.pose.bones
    wanted = bones if bone_names is None else [bones[name] for name in bone_names]
    found = {bone.name: read_limit(bone) for bone in wanted if has_limit(bone)}
    return {name: limit for name, limit in found.items() if limit is not None}


def read_limit(pose_bone: PoseBone) -> Limit | None:
    """A bone's limit; None if it is free.

    Raises LimitPropertyError naming the bone and the invalid property.
    """
    kind = pose_bone.get(NAMES["type"])
    # A cached limit needs no check of its type. A list also finds types that can't be hashed.
    kind = kind if kind in [*KINDS] else read_field(pose_bone, "type")
    kept = (plain(pose_bone.get(NAMES[field])) for field in KINDS[kind].fields)
    try:
        return _limit_of(kind, tuple(kept))
    except (LimitError, TypeError):
        # Read property by property, so that an error names the invalid property.
        settings, limit = LimitSettings(kind), None
        for field in KINDS[kind].fields:
            settings = replace(settings, **{field: read_field(pose_bone, field)})
            limit = checked(pose_bone, field, settings.limit)
        return limit


def plain(value: Any) -> Any:
    """A property's value; arrays, of custom properties and of operators, become tuples."""
    return tuple(value) if hasattr(value, "to_list") or hasattr(value, "foreach_get") else value


@lru_cache(maxsize=_LIMITS_KEPT)
def _limit_of(kind: str, values: tuple[Any, ...]) -> Limit | None:
    """A limit of a kind from property values; None if a value is missing. Raises errors for invalid values."""
    pairs = zip(KINDS[kind].fields, values, strict=True)
    settings = {field: FIELDS[field].convert(value) for field, value in pairs if value is not None}
    return LimitSettings(kind, **settings).limit()


def read_extra(armature: Object, bone_names: Collection[str], field: str) -> dict[str, Any]:
    """The values of a field of `EXTRA_FIELDS` by bone name, without those that are missing or the default.

    Raises LimitPropertyError naming a bone and the invalid property.
    """
    bones, found = armature.pose.bones, dict[str, Any]()
    name, free = NAMES[field], getattr(_FREE_BONE, field)
    for bone in map(bones.__getitem__, bone_names):
        # Most bones don't have the property.
        if (value := bone.get(name)) is not None and plain(value) != free:
            found[bone.name] = value = read_field(bone, field)
            checked(bone, field, partial(check_extra, field, value))
    return found


def has_limit(pose_bone: PoseBone) -> bool:
    """Whether a limit is stored on the bone, even if only "FREE"."""
    return pose_bone.get(NAMES["type"]) is not None


def read_settings(pose_bone: PoseBone) -> LimitSettings:
    """All stored values of a bone's limit; missing or invalid ones get the defaults of a free bone."""
    values = {}
    for field in FIELDS:
        try:
            values[field] = read_field(pose_bone, field)
        except LimitPropertyError:
            values[field] = getattr(_FREE_BONE, field)
    return LimitSettings(**values)


def write_settings(pose_bone: PoseBone, settings: LimitSettings) -> None:
    """Store the values of a limit on a bone: all values of its kind, or for a free bone those that are not the default.

    Raises LimitPropertyError for values that are invalid or cannot be stored; then nothing is changed.
    """
    check_writable(pose_bone, settings)
    store(pose_bone, settings)


def store(pose_bone: PoseBone, settings: LimitSettings) -> None:
    """Store a limit in a bone without the checks of `write_settings`."""
    every = settings.type != FREE or has_limit(pose_bone)
    for field, own in FIELDS.items():
        value = getattr(settings, field)
        if every or value != getattr(_FREE_BONE, field) or pose_bone.get(own.name) is not None:
            _put(pose_bone, field, value)
    pose_bone.id_data.update_tag(refresh={"DATA"})


def check_writable(pose_bone: PoseBone, settings: LimitSettings) -> None:
    """Raise the errors of `write_settings` without writing, to check several bones before the first is written."""
    try:
        settings.check()
    except LimitError as error:
        raise LimitPropertyError(f"Bone {pose_bone.name!r}: {error}") from error
    if reason := why_not_writable(pose_bone) or _why_not_kept(pose_bone, settings):
        raise LimitPropertyError(reason)


def clear_limit(pose_bone: PoseBone) -> None:
    """Remove a bone's limit. On a library override it would come back, so set it to "FREE" without stretch.

    Raises LimitPropertyError if the bone can't be changed.
    """
    current = [name for name in NAMES.values() if pose_bone.get(name) is not None]
    if not current:
        return
    if reason := why_not_writable(pose_bone):
        raise LimitPropertyError(reason)
    if is_override(pose_bone):
        _put(pose_bone, "type", FREE)
        for field in EXTRA_FIELDS:
            _put(pose_bone, field, getattr(_FREE_BONE, field))
    else:
        for name in current:
            del pose_bone[name]
    pose_bone.id_data.update_tag(refresh={"DATA"})


def why_not_writable(pose_bone: PoseBone) -> str:
    """Why a limit can't be set on a bone, and what to do; "" if it can."""
    reason = why_not_editable(pose_bone.id_data)
    if reason or not is_override(pose_bone) or any(is_overridable(pose_bone, name) for name in NAMES.values()):
        return reason
    library = library_name(pose_bone)
    return f"Bone {pose_bone.name!r} has no limit in {library!r}, so the override can't store one: set it there first"


def _why_not_kept(pose_bone: PoseBone, settings: LimitSettings) -> str:
    """Why a library override cannot store a limit: it has only the library's properties, with fixed array sizes."""
    if not is_override(pose_bone):
        return ""
    library = library_name(pose_bone)
    for field in ("type", *KINDS[settings.type].fields, *EXTRA_FIELDS):
        name, value = NAMES[field], getattr(settings, field)
        if not is_overridable(pose_bone, name):
            if value != getattr(_FREE_BONE, field):
                return f"The override can't store {name!r} of bone {pose_bone.name!r}: set it in {library!r} first"
        elif not fits(pose_bone.get(name), value):
            return (
                f"The override can't change the length of {name!r} of bone {pose_bone.name!r}: set it in "
                f"{library!r} first"
            )
    return ""


def _put(pose_bone: PoseBone, field: str, value: Any) -> None:
    """Set one property, on an override only if possible. An outline without points is not created."""
    # Convert whole numbers to floats, because Blender would create integer properties.
    plain = value if isinstance(value, str) else float(value) if isinstance(value, (float, int)) else None
    kept: Any = tuple(map(float, value)) if plain is None else plain
    own, name = FIELDS[field], NAMES[field]
    is_new = not fits(pose_bone.get(name), kept)
    if kept == () or (is_override(pose_bone) and (is_new or not is_overridable(pose_bone, name))):
        return
    if is_new:
        pose_bone.pop(name, None)
    pose_bone[name] = kept
    if is_override(pose_bone):
        return
    pose_bone.property_overridable_library_set(f'["{name}"]', True)
    if not is_new:
        return
    # The tooltip, bounds and unit of a new property.
    shown: Any = pose_bone.id_properties_ui(name)
    choices = {"type": KINDS, "axis": AXES}.get(field, ())
    shown.update(description=f"{own.description}: {', '.join(choices)}" if choices else own.description)
    if own.bounds is not None:
        ends = dict(zip(("min", "max", "soft_min", "soft_max"), own.bounds, strict=True))
        free = getattr(_FREE_BONE, field)
        default = list(free or (0.0,) * len(kept)) if isinstance(kept, tuple) else free
        shown.update(subtype=own.subtype, default=default, **ends)


def read_field(pose_bone: PoseBone, field: str) -> Any:
    """The value of a property, or its default if missing; raises LimitPropertyError for a wrong type."""
    value: Any = pose_bone.get(NAMES[field])
    if value is None:
        return getattr(_FREE_BONE, field)
    return checked(pose_bone, field, lambda: FIELDS[field].convert(plain(value)))


def checked(pose_bone: PoseBone, field: str, make: Callable[[], _Value]) -> _Value:
    """The result of `make`; converts a LimitError to an error that names the bone and the property."""
    try:
        return make()
    except LimitError as error:
        name = NAMES[field]
        raise LimitPropertyError(f"Bone {pose_bone.name!r}, property {name!r}: {error}") from error
