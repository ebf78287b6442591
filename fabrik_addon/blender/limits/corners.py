"""The corners of polygon limits, edited one by one: each is a lean, given by numbers or by how the bone leans now."""

from dataclasses import replace
from math import dist
from typing import Final, TypeAlias, cast

import bpy
import numpy as np

from ...core import LimitError, Polygon
from ...core.backend import array as many
from ...core.limits.swing_twist import lean_of
from ..control.posed_rig import posed_rig
from ..rig.armature import RigError
from ..settings.limit_properties import read_limit, read_settings, write_settings
from ..settings.limit_values import LimitSettings, flat, points

Corner: TypeAlias = tuple[float, float]
Corners: TypeAlias = list[Corner]

# Radians between corners that are the same one.
_SAME_POINT: Final = 1e-3


def present_lean(bone: bpy.types.PoseBone) -> Corner:
    """The (X, Z) swing of a bone as it is posed, radians."""
    rig = cast("bpy.types.Object", bone.id_data)
    lean = lean_of(many, many.quaternion(posed_rig(rig).local([bone.name])[bone.name][None]))
    return float(np.asarray(lean.x).item()), float(np.asarray(lean.z).item())


def add_point(bone: bpy.types.PoseBone, *, from_pose: bool = False) -> str:
    """Add a corner to a polygon limit, in the middle of its longest edge or where the bone leans now.

    Returns a line for people. Raises RigError, with nothing changed, where the outline would cross itself.
    """
    settings = _polygon(bone)
    corners = list(points(settings.window))
    grown = _with_lean(bone, corners) if from_pose else _split(corners)
    write_settings(bone, replace(settings, window=flat(grown)))
    return f"The outline of {bone.name!r} now has {len(grown)} points"


def move_point(bone: bpy.types.PoseBone, index: int) -> str:
    """Move a corner of a polygon limit to where the bone leans now; returns a line for people."""
    settings = _polygon(bone)
    corners = _with_corner(bone, settings, index)
    corners[index] = present_lean(bone)
    write_settings(bone, replace(settings, window=flat(corners)))
    return f"Point {index + 1} of the outline of {bone.name!r} is now at the bone's swing"


def remove_point(bone: bpy.types.PoseBone, index: int) -> str:
    """Take a corner from a polygon limit; returns a line for people."""
    settings = _polygon(bone)
    corners = _with_corner(bone, settings, index)
    del corners[index]
    write_settings(bone, replace(settings, window=flat(corners)))
    return f"The outline of {bone.name!r} now has {len(corners)} points"


def _split(corners: Corners) -> Corners:
    """The corners with one more in the middle of the longest edge."""
    following = corners[1:] + corners[:1]
    lengths = _edges(corners)
    longest = lengths.index(max(lengths))
    (ax, az), (bx, bz) = corners[longest], following[longest]
    return [*corners[: longest + 1], ((ax + bx) / 2.0, (az + bz) / 2.0), *corners[longest + 1 :]]


def _with_lean(bone: bpy.types.PoseBone, corners: Corners) -> Corners:
    """The corners with the bone's present lean put into the edge that it makes longer by least."""
    lean = present_lean(bone)
    if any(dist(lean, corner) < _SAME_POINT for corner in corners):
        raise RigError(f"There is already a point at the current swing of {bone.name!r}: rotate the bone first")
    ways = [[*corners[:place], lean, *corners[place:]] for place in range(1, len(corners) + 1)]
    simple = [way for way in ways if _is_simple(way)]
    if not simple:
        raise RigError(
            f"A point at the current swing of {bone.name!r} would make the outline cross itself: rotate the bone first"
        )
    return min(simple, key=lambda way: sum(_edges(way)))


def _is_simple(corners: Corners) -> bool:
    try:
        Polygon(corners)
    except LimitError:
        return False
    return True


def _edges(corners: Corners) -> list[float]:
    """The lengths of the edges, each from a corner to the next."""
    return [dist(corner, following) for corner, following in zip(corners, corners[1:] + corners[:1], strict=True)]


def _polygon(bone: bpy.types.PoseBone) -> LimitSettings:
    settings = read_settings(bone)
    if settings.type != "POLYGON":
        raise RigError(f"The limit of bone {bone.name!r} is not a polygon: set its type to Polygon first")
    read_limit(bone)
    return settings


def _with_corner(bone: bpy.types.PoseBone, settings: LimitSettings, index: int) -> Corners:
    """The corners, one of which has that place; raises RigError where none has."""
    corners = list(points(settings.window))
    if not 0 <= index < len(corners):
        raise RigError(
            f"The outline of {bone.name!r} has no point number {index}: choose one from 0 to {len(corners) - 1}"
        )
    return corners
