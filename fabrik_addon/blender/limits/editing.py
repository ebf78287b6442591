"""Sets, clears, copies and mirrors the limits of bones, edits the points of polygon limits, and sets human limits.

Each point is a swing. The rest frame of the opposite bone is the mirror image of the original one, with one axis
flipped to make it right-handed: local X if the roll is mirrored too. Mirrored swings and rotations follow from the two
rest frames.

Limits are also converted from and to Blender's IK limits and constraints. These are ranges of rotation about the bone's
axes. If only one axis is free, the limit is a hinge, else a ball. A rotation about X swings the bone along Z, a
rotation about Z swings it along X, and a rotation about Y twists it. A constraint made from a limit is a box of Euler
angles. For a hinge it equals the limit. Otherwise it is the smallest box that contains the limit: it allows a little
more, and never changes a pose within the limit.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import atan2, cos, dist, hypot, radians, tau
from typing import Any, Final, TypeAlias, cast

import numpy as np
from bpy.types import Object, PoseBone

from ...core import LimitError, Polygon
from ...core.arrays import IntArray
from ...core.backend.array import many
from ...core.channels import Box, euler_box, limit_in
from ...core.errors import bones_of, first_few
from ...core.limits import outline, swing_of
from ...human.preset import LimitPreset, human_limits, swing_names, why_not_human
from ..control.posed_rig import posed_rig
from ..rig import armature as armatures
from ..settings import limit_properties
from ..settings.control import control_rig
from ..settings.limit_values import ALL_ROUND, EXTRA_FIELDS, FIELDS, FREE, NO_SLIDE, LimitSettings, flat, settings_of
from ..settings.selection import active_bone

Bones = Sequence[PoseBone]

# The number of points of a new outline, and their smallest and largest swing.
_CORNERS: Final = 8
_WINDOW_LEAST: Final = radians(5.0)
_WINDOW_MOST: Final = radians(45.0)
# Swings in radians are rounded to this many decimals, far more than Blender's single precision has.
_DIGITS: Final = 12
# A new hinge bends by up to this angle from straight, like elbows and knees. A joint that is bent by less than a degree
# at rest counts as straight.
_FOLDED: Final = radians(150.0)
_STRAIGHT: Final = radians(1.0)
_BOTH_WAYS: Final = radians(90.0)
Corner: TypeAlias = tuple[float, float]
Corners: TypeAlias = list[Corner]

# The names of the types of limits in messages.
_KINDS: Final = {
    FREE: "no limit",
    "BALL": "ball joint",
    "HINGE": "hinge joint",
    "FIXED": "fixed joint",
    "POLYGON": "polygon joint",
}

# Radians. Points that are closer to each other than this are equal.
_SAME_POINT: Final = 1e-3


def set_limits(bones: Bones, **values: Any) -> str:
    """Change some values of the bones' limits. Keywords: names from `LimitSettings`, or low and high.

    If no type is given, limited bones keep theirs, and a free bone gets the type that has these values. Returns a line
    to show. Raises LimitPropertyError or LimitError, with nothing changed, for invalid values or bones that cannot
    store them.
    """
    wanted = [(bone, _changed(bone, values)) for bone in bones]
    write_all(wanted)
    kinds = [words for kind, words in _KINDS.items() if any(settings.type == kind for _, settings in wanted)]
    return f"{_limits(bones)}: {', '.join(kinds)}"


def _changed(bone: PoseBone, values: dict[str, Any]) -> LimitSettings:
    kept, given = limit_properties.read_settings(bone), dict(values)
    if given.keys() & {"low", "high"}:
        given["hinge"] = given.pop("low", kept.hinge[0]), given.pop("high", kept.hinge[1])
    kind = given.pop("type", "") or kept.type
    # Operators pass numbers in single precision.
    given = {field: FIELDS[field].convert(limit_properties.plain(value)) for field, value in given.items()}
    if kind == FREE and not values.get("type"):
        turns = {"axis", "hinge"} & given.keys()
        is_extra = given.keys() <= set(EXTRA_FIELDS)
        kind = "POLYGON" if "window" in given else FREE if is_extra else "HINGE" if turns else "BALL"
    changed = replace(kept, **given, type=kind)
    if kind == "POLYGON" and not changed.window:
        changed = replace(changed, window=window_in(changed.cone))
    if kind == "HINGE" and kept.hinge == ALL_ROUND and not given.keys() & {"axis", "hinge"}:
        axis, hinge = first_hinge(bone)
        changed = replace(changed, axis=axis, hinge=hinge)
    return changed


def first_hinge(bone: PoseBone) -> tuple[str, tuple[float, float]]:
    """The axis and range of a hinge, from the bone's bend relative to its parent at rest.

    The hinge bends further in that direction, and back until it is straight. A bone that is straight at rest bends
    both ways about X.
    """
    rest = bone.bone
    carrier = (rest if rest.parent is None else rest.parent).matrix_local
    above = (rest.matrix_local.inverted() @ carrier).to_3x3().col[1]
    # The bone's own direction is (0, 1, 0). If the parent's is (x, y, z), the axis between them is (-z, 0, x).
    about = {"X": -above.z, "Z": above.x}
    bent = atan2(hypot(above.x, above.z), above.y)
    if bent < _STRAIGHT:
        return "X", (-_BOTH_WAYS, _BOTH_WAYS)
    axis = max(about, key=lambda each: abs(about[each]))
    straight, folded = -bent, max(_FOLDED - bent, 0.0)
    return axis, (straight, folded) if about[axis] > 0.0 else (-folded, -straight)


def numbers_in(text: str) -> tuple[float, ...]:
    """Parse numbers separated by commas or spaces, with or without brackets. Raises LimitError for other text."""
    words = text.translate(str.maketrans("[](),", "     ")).split()
    try:
        return tuple(map(float, words))
    except ValueError:
        raise LimitError(f"The outline {text!r} is invalid: give swings in radians, separated by commas") from None


def window_in(cone: Sequence[float]) -> tuple[float, ...]:
    """An octagonal outline as wide as a cone; very small and very large widths are clamped."""
    corners = outline(np.clip(cone, _WINDOW_LEAST, _WINDOW_MOST), np.linspace(0.0, tau, _CORNERS, endpoint=False))
    # Remove the sign of zero, because Blender would show -0°.
    return flat((np.round(corners, _DIGITS) + 0.0).tolist())


def write_all(wanted: Sequence[tuple[PoseBone, LimitSettings | None]]) -> None:
    """Write the limits of several bones (None frees a bone), or raise LimitPropertyError and write none.

    Children of bones that may stretch are set to keep their size.
    """
    limited = [(bone, settings) for bone, settings in wanted if settings is not None]
    growing = armatures.growing_children([bone for bone, settings in limited if settings.slide != NO_SLIDE])
    for child in growing:
        data = cast("Object", child.id_data).data
        if data.library is not None or data.override_library is not None:
            raise limit_properties.LimitPropertyError(
                f"Bone {child.name!r} would be scaled by its stretching parent, and its armature "
                f"{data.name!r} is linked: set Inherit Scale to None there first"
            )
    for bone, settings in limited:
        limit_properties.check_writable(bone, settings)
    for child in growing:
        child.bone.inherit_scale = "NONE"
    for bone, settings in limited:
        limit_properties.store(bone, settings)
    for bone in [bone for bone, settings in wanted if settings is None]:
        limit_properties.clear_limit(bone)


def clear_limits(bones: Bones) -> str:
    """Remove the limits of bones; returns a line for the user."""
    write_all([(bone, None) for bone in bones])
    return f"{_limits(bones)}: free"


def copy_limit(source: PoseBone, bones: Bones) -> str:
    """Copy the limit of a bone to others; returns a line for the user. Raises LimitPropertyError, changing nothing."""
    others = [bone for bone in bones if bone != source]
    if not others:
        raise armatures.RigError(f"Only {source.name!r} is selected: select more bones to copy its limit to")
    limit_properties.read_limit(source)
    write_all([(bone, limit_properties.read_settings(source)) for bone in others])
    return f"{_limits(others)}: copied from {source.name!r}"


def _limits(bones: Bones) -> str:
    """The subject of a message: the limits of some bones."""
    return f"Limit of {bones[0].name!r}" if len(bones) == 1 else f"Limits of {len(bones)} bones"


def current_swing(bone: PoseBone) -> Corner:
    """The current (X, Z) swing of a bone in radians, rounded to hide errors of single precision."""
    rig = cast("Object", bone.id_data)
    swing = swing_of(many, many.quaternion(posed_rig(rig).local([bone.name])[bone.name][None]))
    # Adding 0.0 removes the sign of -0.0.
    x, z = (round(float(np.asarray(angle).item()), 5) + 0.0 for angle in (swing.x, swing.z))
    return x, z


def add_point(bone: PoseBone, *, from_pose: bool = False) -> str:
    """Add a point to a polygon limit, in the middle of its longest edge or at the bone's current swing.

    Returns a line for the user. Raises RigError, with nothing changed, if the outline would cross itself.
    """
    corners = _corners(bone)
    if from_pose:
        return _put_corners(bone, _with_swing_point(bone, corners))
    lengths = _edges(corners)
    longest = lengths.index(max(lengths))
    (ax, az), (bx, bz) = corners[longest], corners[(longest + 1) % len(corners)]
    corners.insert(longest + 1, ((ax + bx) / 2.0, (az + bz) / 2.0))
    return _put_corners(bone, corners)


def move_point(bone: PoseBone, index: int) -> str:
    """Move a point of a polygon limit to the bone's current swing; returns a line for the user."""
    corners = _corners(bone, index)
    corners[index] = current_swing(bone)
    _put_corners(bone, corners)
    return f"Point {index + 1} of the outline of {bone.name!r} is now at the bone's swing"


def remove_point(bone: PoseBone, index: int) -> str:
    """Remove a point from a polygon limit; returns a line for the user."""
    corners = _corners(bone, index)
    del corners[index]
    return _put_corners(bone, corners)


def _put_corners(bone: PoseBone, corners: Corners) -> str:
    """Write the points of a polygon limit; returns a line with their number."""
    limit_properties.write_settings(bone, replace(limit_properties.read_settings(bone), window=flat(corners)))
    return f"The outline of {bone.name!r} now has {len(corners)} points"


def _with_swing_point(bone: PoseBone, corners: Corners) -> Corners:
    """The points with the bone's current swing inserted into the edge that it lengthens least."""
    swing = current_swing(bone)
    if any(dist(swing, corner) < _SAME_POINT for corner in corners):
        raise armatures.RigError(
            f"There is already a point at the current swing of {bone.name!r}: rotate the bone first"
        )
    simple = list[Corners]()
    for place in range(1, len(corners) + 1):
        outline = [*corners[:place], swing, *corners[place:]]
        with suppress(LimitError):
            Polygon(outline)
            simple.append(outline)
    if not simple:
        raise armatures.RigError(
            f"A point at the current swing of {bone.name!r} would make the outline cross itself: rotate the bone first"
        )
    return min(simple, key=lambda outline: sum(_edges(outline)))


def _edges(corners: Corners) -> list[float]:
    return [dist(corner, following) for corner, following in zip(corners, corners[1:] + corners[:1], strict=True)]


def _corners(bone: PoseBone, index: int = 0) -> Corners:
    """The points of a polygon limit; raises RigError if it has no point with this index."""
    if limit_properties.read_settings(bone).type != "POLYGON":
        raise armatures.RigError(f"The limit of bone {bone.name!r} is not a polygon: set its type to Polygon first")
    corners = [*cast("Polygon", limit_properties.read_limit(bone)).points]
    if not 0 <= index < len(corners):
        raise armatures.RigError(
            f"The outline of {bone.name!r} has no point number {index}: choose one from 0 to {len(corners) - 1}"
        )
    return corners


_Pair: TypeAlias = tuple[PoseBone, PoseBone]

_PLANE: Final = (0, 2)
# Toward +X, +Z, -X and -Z, in the order of the angles of a cone.
_DIRECTIONS: Final = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
# Axes count as mirrored if they are within 10° of the mirror image's axes.
_NEAR: Final = cos(radians(10.0))


def mirror_limits(rig: Object, bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Copy the limits of bones to the other side, and free bones whose counterparts are free.

    Returns a line for the user, and sentences about skipped bones. Raises RigError or LimitPropertyError, with nothing
    changed, if no bone has another side, if a limit is invalid or can't be stored, or if both bones of a pair are given
    and the active bone does not determine the direction.
    """
    pairs = _pairs(rig, bones)
    if not pairs:
        names = first_few([repr(bone.name) for bone in bones])
        raise armatures.RigError(
            f"No bone on the other side found for {names}: names such as 'arm.L' and 'arm.R' are needed"
        )
    wanted, left = list[tuple[PoseBone, LimitSettings | None]](), list[str]()
    for bone, other in pairs:
        if (axes := _mirrored_axes(bone, other)) is not None:
            wanted.append((other, _settings(bone, axes)))
        else:
            left.append(
                f"The axes of {other.name!r} don't mirror those of {bone.name!r}: give it the mirrored roll first"
            )
    if not wanted:
        raise armatures.RigError(left[0])
    write_all(wanted)
    paired = {bone.name for pair in pairs for bone in pair}
    left += [f"{bone.name!r} has no bone on the other side" for bone in bones if bone.name not in paired]
    return f"Mirrored the limits of {bones_of(len(wanted))}", left


def _pairs(rig: Object, bones: Sequence[PoseBone]) -> list[_Pair]:
    """The bones with their counterparts; if both of a pair are given, the one on the active bone's side comes first."""
    given = {bone.name for bone in bones}
    pairs = [(bone, other) for bone in bones if (other := armatures.opposite_bone(rig, bone)) is not None]
    active = active_bone(rig)
    side = 0.0 if active is None or armatures.opposite_bone(rig, active) is None else _place(active)
    for bone, other in pairs:
        if other.name in given and not side:
            raise armatures.RigError(
                f"Both {bone.name!r} and {other.name!r} are selected: make one of them active to copy its limit"
            )
    return [(bone, other) for bone, other in pairs if other.name not in given or _place(bone) * side > 0.0]


def _place(bone: PoseBone) -> float:
    """The X coordinate of a bone's middle in armature space: positive on one side, negative on the other."""
    return float(bone.bone.head_local.x + bone.bone.tail_local.x)


def _mirrored_axes(bone: PoseBone, other: PoseBone) -> IntArray | None:
    """(2, 2) the mirror images of the bone's X and Z in the counterpart's axes; None if they are not aligned."""
    rest, other_rest = (np.array(each.bone.matrix_local)[:3, :3] for each in (bone, other))
    images = other_rest.T @ np.diag((-1.0, 1.0, 1.0)) @ rest
    plane = images[np.ix_(_PLANE, _PLANE)]
    near = images[1, 1] >= _NEAR and (np.abs(plane).max(axis=0) >= _NEAR).all()
    return np.rint(plane).astype(np.int64) if near else None


def _settings(bone: PoseBone, axes: IntArray) -> LimitSettings | None:
    """The mirror image of a bone's limit; None if the bone has none."""
    settings = limit_properties.read_settings(bone)
    if not limit_properties.has_limit(bone) and settings == LimitSettings():
        return None
    limit_properties.read_limit(bone)
    # The mirror images of the four directions, in the other bone's frame.
    images = _DIRECTIONS @ axes.T
    cone = [settings.cone[int(np.argmax(images @ direction))] for direction in _DIRECTIONS]
    axis, sign = settings.axis, -1
    if axis != "Y":
        # A reflection reverses rotations.
        image = axes[:, "XZ".index(axis)]
        place = int(np.argmax(np.abs(image)))
        axis, sign = "XZ"[place], -int(image[place])
    return replace(
        settings,
        cone=tuple(cone),
        twist=(0.0 - settings.twist[1], 0.0 - settings.twist[0]),
        axis=axis,
        hinge=settings.hinge if sign > 0 else (0.0 - settings.hinge[1], 0.0 - settings.hinge[0]),
        # Reverse the points, so that the outline keeps its orientation.
        window=flat((np.reshape(settings.window, (-1, 2))[::-1] @ axes.T).tolist()),
    )


def apply_preset(rig: Object, bones: Bones) -> LimitPreset:
    """Apply human joint limits to some bones; the returned preset lists the result for each.

    Raises RigError if no bone can be limited, and LimitPropertyError if a limit can't be stored; then nothing is
    changed.
    """
    armatures.check_rig(rig)
    rest = armatures.read_rest(rig)
    if control_rig(rig) is not None:
        # Users select controls instead of the bones with limits, so limit all bones.
        bones = [rig.pose.bones[name] for name in rest]
    preset = human_limits(rest, [bone.name for bone in bones])
    if not preset.limits:
        if preset.unplaced:
            name, why = next(iter(preset.unplaced.items()))
            raise armatures.RigError(f"{name}: {why}; set its limit by hand")
        if preset.free:
            raise armatures.RigError(f"{first_few(preset.free)}: a root is not limited; choose other bones")
        raise armatures.RigError(f"No bone of {rig.name!r} has the name of a human bone: set limits by hand")
    limited = [(bone, preset.limits[bone.name]) for bone in bones if bone.name in preset.limits]
    write_all([(bone, settings_of(limit, limit_properties.read_settings(bone))) for bone, limit in limited])
    return preset


def doubt_of_human(rig: Object) -> str:
    """Why an armature does not look like a human; "" if it does."""
    why = why_not_human(armatures.read_rest(rig))
    return f"{rig.name!r} does not look like a human: {why}" if why else ""


def swings_of(rig: Object) -> dict[str, tuple[str, ...]]:
    """The names of the swings of a human's bones, by bone name, from `swing_names`."""
    return _swings(armatures.rest_key(rig))


_swings: Final = lru_cache(maxsize=4)(lambda key: swing_names(armatures.rest_of(*key)))


def described(preset: LimitPreset) -> tuple[str, list[str]]:
    """The result of a preset: a line, and sentences about details for the user."""
    line = f"Human limits set on {len(preset.limits)} bones"
    if preset.unknown:
        line += f"; not changed, because their names are unknown: {first_few(preset.unknown)}"
    reasons = dict.fromkeys(preset.unplaced.values())
    alike = {reason: [name for name, why in preset.unplaced.items() if why == reason] for reason in reasons}
    sentences = [f"{first_few(names)}: {reason}" for reason, names in alike.items()]
    if preset.turned:
        bones = first_few([f"{name} by {angle:.0f}°" for name, angle in preset.turned.items()])
        sentences.append(f"These bones are rolled relative to their joints, so their limits are rotated too: {bones}")
    return line, sentences


CONSTRAINT_NAME: Final = "FABRIK Limit"

_AXES: Final = "xyz"
# Radians. A range that is smaller than a full turn by less than this is a full turn.
_ROUNDING: Final = 1e-6


def limits_to_constraints(bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Add to each bone a constraint that represents its limit; remove it from free bones.

    On a control rig, the FK control of the bone gets the constraint. Returns a line to show, and notes on
    bones without a control that has the same axes. Other constraints do not change. Raises LimitPropertyError or
    RigError with nothing changed.
    """
    rig = cast("Object", bones[0].id_data)
    armatures.check_editable(rig)
    posed = posed_rig(rig)
    rows = [(bone.name, posed.limited(bone.name), euler_box(limit_properties.read_limit(bone))) for bone in bones]
    left = [
        f"Bone {name!r} has no control with the same rotation, so its limit gets no constraint"
        for name, holder, box in rows
        if holder is None and any(box[1])
    ]
    if left and not any(holder for _, holder, _ in rows):
        raise armatures.RigError(left[0])
    limited = [(holder, box) for _, holder, box in rows if holder is not None]
    for holder, box in limited:
        constraint = next(filter(is_own, holder.constraints), None)
        if any(box[1]):
            own: Any = constraint or holder.constraints.new("LIMIT_ROTATION")
            own.name = CONSTRAINT_NAME if constraint is None else own.name
            own.owner_space, own.euler_order = "LOCAL", box[0]
            own.use_transform_limit, own.use_legacy_behavior = True, False
            own.mute, own.influence = False, 1.0
            for axis, ends in zip(_AXES, box[1], strict=True):
                setattr(own, f"use_limit_{axis}", ends is not None)
                for side, end in zip(("min", "max"), ends or (), strict=False):
                    setattr(own, f"{side}_{axis}", end)
        elif constraint is not None:
            # A constraint from a library can only be muted.
            if rig.override_library is not None and constraint.is_override_data:
                constraint.mute = True
            else:
                holder.constraints.remove(constraint)
    count = sum(any(ranges) for _, (_, ranges) in limited)
    return f"Added Limit Rotation constraints to {count} of {bones_of(len(bones))}", left


def is_own(constraint: Any) -> bool:
    """Whether a constraint was made from a limit; Blender adds a number if its name was taken."""
    return constraint.type == "LIMIT_ROTATION" and constraint.name.split(".")[0] == CONSTRAINT_NAME


def limits_from_ik(bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Set the limits of bones from their IK settings and Limit Rotation constraints.

    Returns a line for the user, and sentences about skipped bones. Raises RigError if there is nothing to convert, and
    LimitPropertyError if a limit can't be stored; then nothing is changed.
    """
    found, left = list[tuple[PoseBone, LimitSettings]](), list[str]()
    for bone in bones:
        limited = _ranges(bone, "ik_", "use_ik_limit_")
        locked = [getattr(bone, f"lock_ik_{axis}") for axis in _AXES]
        boxes: list[Box] = [[(0.0, 0.0) if lock else ends for lock, ends in zip(locked, limited, strict=True)]]
        for constraint in bone.constraints:
            if constraint.type != "LIMIT_ROTATION" or constraint.mute or not constraint.influence or is_own(constraint):
                continue
            where = f"Constraint {constraint.name!r} of bone {bone.name!r} was skipped"
            if constraint.owner_space != "LOCAL":
                left.append(f"{where}: it is not in local space")
            elif constraint.influence < 1.0:
                left.append(f"{where}: its influence is not 1")
            else:
                # A full turn is not a limit.
                limited = _ranges(constraint, "", "use_limit_")
                boxes.append([ends if ends and ends[1] - ends[0] < tau - _ROUNDING else None for ends in limited])
        try:
            limit = limit_in(boxes)
        except LimitError as error:
            left.append(f"Bone {bone.name!r} was skipped: {error}")
            continue
        if limit is not None:
            found.append((bone, settings_of(limit, limit_properties.read_settings(bone))))
    if not found:
        reason = "None of these bones has IK limits, IK locks or a local Limit Rotation constraint: add one first"
        raise armatures.RigError("; ".join([reason, *left]))
    write_all(found)
    return f"Converted the limits of {len(found)} of {bones_of(len(bones))}", left


def _ranges(owner: Any, prefix: str, use: str) -> Box:
    ends = [sorted((getattr(owner, f"{prefix}min_{axis}"), getattr(owner, f"{prefix}max_{axis}"))) for axis in _AXES]
    used = [getattr(owner, f"{use}{axis}") for axis in _AXES]
    return [(low, high) if limited else None for (low, high), limited in zip(ends, used, strict=True)]
