"""Custom properties of pose bones. On library overrides, only properties that the library has can be changed."""

from typing import Any

import bpy


def held(pose_bone: bpy.types.PoseBone) -> Any:
    """Return the bone, typed as an object with custom properties."""
    return pose_bone


def is_override(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether the bone belongs to a library override."""
    return pose_bone.id_data.override_library is not None


def is_overridable(pose_bone: bpy.types.PoseBone, name: str) -> bool:
    """Whether the property of an overridden bone comes from its library and may be changed."""
    rig: Any = pose_bone.id_data
    original = rig.override_library.reference.pose.bones.get(pose_bone.name)
    if original is None or name not in held(original) or name not in held(pose_bone):
        return False
    return bool(pose_bone.is_property_overridable_library(f'["{name}"]'))


def library_name(pose_bone: bpy.types.PoseBone) -> str:
    """The name of an overridden bone's library file."""
    return bpy.path.basename(pose_bone.id_data.override_library.reference.library.filepath)


def put(pose_bone: bpy.types.PoseBone, name: str, value: str | float | tuple[float, ...]) -> bool:
    """Set a property, and create it if there is none of that type; on an override only if possible.

    Returns whether it was created.
    """
    if is_override(pose_bone):
        if is_overridable(pose_bone, name) and fits(held(pose_bone)[name], value):
            pose_bone[name] = value
        return False
    made = not fits(pose_bone.get(name), value)
    if made:
        pose_bone.pop(name, None)
    pose_bone[name] = value
    pose_bone.property_overridable_library_set(f'["{name}"]', True)
    return made


def fits(present: Any, value: Any) -> bool:
    """Whether a property can hold another value without a change of type."""
    if isinstance(value, (str, float)):
        return isinstance(present, type(value))
    return getattr(present, "typecode", "") == "d" and len(present) == len(value)


def number(value: Any) -> float:
    """Convert a property to a plain number; raises ValueError for other types."""
    if type(value) not in (float, int):
        raise ValueError(f"is {value!r}: a number is needed")
    return float(value)
