"""Clamps rotations and poses to limits, fixes violations in an action, and sets limits from an action.

A limit from an action contains all rotations. It is a hinge if the bone rotates about one axis only, else a ball, or
optionally a polygon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import degrees, pi, radians, tau
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, PoseBone

from ...core import Ball, Fixed, Hinge, Polygon, Skeleton
from ...core.arrays import ROUNDING, FloatArray, IntArray
from ...core.backend import array as many
from ...core.errors import bones_of
from ...core.limits import Limit, swing_of, twist_of
from ...core.rotations import IDENTITY, angle_between
from ..control.posed_rig import Changed, PosedRig, posed_rig
from ..rig import keyframes
from ..rig.armature import RigError, check_editable
from ..rig.keyframes import RigCurves, curves
from ..rig.keying import key_channels
from ..rig.pose_writer import PoseKeeper
from ..rig.rotation_modes import channel_count, property_name, to_channels
from ..settings.limit_properties import read_limit, read_settings
from ..settings.limit_values import ALL_ROUND, AXES, Range, settings_of
from ..settings.why_not import is_layered
from .editing import write_all

# Radians. Smaller changes by a clamp are rounding errors.
_ROUNDING: Final = 1e-9


def legal_rotations(limit: Limit, rotations: npt.ArrayLike) -> FloatArray:
    """(F, 4) rotations within a limit nearest to `rotations` (F, 4), w x y z; rotations inside don't change."""
    given = np.asarray(rotations, dtype=np.float64)
    if not len(given):
        return given
    clamped = many.stack([limit.clamp(many, many.quaternion(given))], len(given))[:, 0]
    return np.where((angle_between(given, clamped) > _ROUNDING)[:, None], clamped, given)


def excess(limit: Limit, rotations: FloatArray) -> FloatArray:
    """(F,) radians by which rotations (F, 4) are outside a limit."""
    return angle_between(rotations, legal_rotations(limit, rotations))


def legal_pose(skeleton: Skeleton, limits: Mapping[str, Limit], rotations: FloatArray) -> FloatArray:
    """Clamp the limited bones of poses (F, J, 4) to their limits; returns (F, J, 4)."""
    legal = np.array(rotations)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        legal[:, bone] = legal_rotations(limit, legal[:, bone])
    return legal


# Radians. A bone that rotates by less over an action is considered still, because matrices have single precision.
_STILL = 1e-4


def whole_frames(times: FloatArray) -> FloatArray:
    """(F,) all whole frames from the first to the last of the times (K,)."""
    return np.arange(np.floor(times.min()), np.ceil(times.max()) + 1.0)


def rotations_of_action(
    context: Context, rig: Object, bones: Sequence[PoseBone]
) -> list[tuple[PoseBone, FloatArray, FloatArray]]:
    """Bones with frames (F,) and their local rotations (F, 4) in the rig's action, from its first to its last key.

    Without an action, returns the combined result of the NLA strips. Subframes with keys are included, except for
    strips and control rigs, which Blender evaluates frame by frame. Raises RigError if there is nothing to play, or if
    it rotates none of the bones.
    """
    posed, names = posed_rig(rig), [bone.name for bone in bones]
    strips = keyframes.active_strips(rig) if is_layered(rig) else []
    moving = list[tuple[PoseBone, FloatArray, FloatArray]]()
    if not strips and (rig.animation_data is None or rig.animation_data.action is None):
        raise RigError(f"{rig.name!r} has no action: assign one, or insert keys first")
    if posed.by_channels and not strips:
        read = RigCurves(rig, curves(rig))
        for bone in bones:
            if len(times := read.times(bone.name)):
                frames = np.union1d(times, whole_frames(times))
                moving.append((bone, frames, read.rotations(bone.name, frames)))
    else:
        ends = [np.array([strip.frame_start, strip.frame_end]) for strip in strips]
        ends += [keyframes.keys(curve)[:, 0] for curve in curves(rig) if len(curve.keyframe_points)]
        frames, poses = whole_frames(np.concatenate(ends)) if ends else np.zeros(1), []
        with PoseKeeper(context.scene, rig):
            for frame in frames.tolist():
                context.scene.frame_set(int(frame))
                poses.append(posed.local(names))
        context.view_layer.update()
        every = [(bone, frames, np.array([pose[bone.name] for pose in poses])) for bone in bones]
        moving += [row for row in every if angle_between(row[2], row[2][:1]).max() > _STILL]
    if not moving:
        shown = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
        raise RigError(f"None of the bones ({shown}) is rotated by {what_plays(rig)}: select others")
    return moving


def what_plays(rig: Object) -> str:
    """The name of a rig's action for messages, or else words for its NLA strips."""
    return f"the NLA strips of {rig.name!r}" if is_layered(rig) else f"action {rig.animation_data.action.name!r}"


# Radians. A smaller excess is due to rounding in single precision.
_OUTSIDE: Final = 1e-5
_ATTEMPTS: Final = 100
# Radians. Smaller violations are ignored: they are invisible, and keys have single precision.
_TOLERANCE: Final = radians(0.01)
# The maximum number of rounds. Each one inserts keys on the frames that still exceed the limit.
_ROUNDS: Final = 20


def clamp_pose(context: Context, bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Rotate bones that are outside their limits to the nearest rotation inside; locked channels don't change.

    A control rig is posed by its controls. Returns a line to show, and notes on bones that stay outside. Raises
    RigError if no bone has a limit, LimitPropertyError for an invalid limit; then nothing is changed.
    """
    rig = cast("Object", bones[0].id_data)
    check_editable(rig)
    limits = _limits(bones)
    context.view_layer.update()
    turned, left, _ = clamp_bones(context, rig, limits)
    return f"Bones clamped to their limits: {len(turned)} of {len(limits)}", left


def clamp_bones(context: Context, rig: Object, limits: Mapping[str, Limit]) -> tuple[list[str], list[str], Changed]:
    """Clamp bones to limits given by bone name, like `clamp_pose`.

    Returns the bones that were outside, sentences about bones that stay outside, and the former values of changed
    channels, by control and channel.
    """
    posed = posed_rig(rig)
    legal = {name: _legal(posed, name, rotation, limits[name]) for name, rotation in posed.local(limits).items()}
    turning = {name: found for name, found in legal.items() if isinstance(found, np.ndarray)}
    left = [found for found in legal.values() if isinstance(found, str)]
    off, changed = posed.turn(context, turning)
    return list(turning), left + off, changed


def _legal(posed: PosedRig, name: str, rotation: FloatArray, limit: Limit) -> FloatArray | str | None:
    """(4,) the nearest rotation to `rotation` (4,) within a limit that the locks allow.

    None if the rotation is inside already, a sentence if locks allow no rotation inside.
    """
    if excess(limit, rotation[None])[0] <= _OUTSIDE:
        return None
    lock = posed.lock(name, rotation)
    legal = legal_rotations(limit, rotation[None])[0]
    if lock is None:
        return legal
    # Apply the limit and the locks in turn, until the rotation satisfies both.
    for _ in range(_ATTEMPTS):
        rotation = lock(legal)
        legal = legal_rotations(limit, rotation[None])[0]
        if angle_between(legal, rotation) <= _OUTSIDE:
            return rotation
    return f"Bone {name!r} stays outside its limit: its rotation is locked"


@dataclass(frozen=True, eq=False)
class Breach:
    """A bone that exceeds its limit.

    Attributes:
        bone: its name.
        frames: (N,) the whole frames on which it exceeds the limit.
        excess: (N,) radians outside the limit on these frames.
    """

    bone: str
    frames: IntArray
    excess: FloatArray

    @property
    def line(self) -> str:
        """The violation in one line, such as "'shin.L' exceeds its limit on frames 3-7, 12: by 8.4° on frame 5"."""
        worst = int(np.argmax(self.excess))
        angle = f"{degrees(self.excess[worst]):.1f}°"
        if len(self.frames) == 1:
            return f"{self.bone!r} exceeds its limit on frame {self.frames[0]} by {angle}"
        runs = np.split(self.frames, np.flatnonzero(np.diff(self.frames) > 1) + 1)
        spans = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
        return f"{self.bone!r} exceeds its limit on frames {spans}: by {angle} on frame {self.frames[worst]}"


def check_action(context: Context, rig: Object, bones: Sequence[PoseBone]) -> list[Breach]:
    """The bones that exceed their limits in the rig's current action, on whole frames from the first to the last key.

    Without an action, the result of the NLA strips is checked. Uses the limits of the current frame. Raises RigError if
    there is no animation, no limit, or no curve for a limited bone, and LimitPropertyError for an invalid limit.
    """
    limits = _limits(bones)
    found = []
    for bone, frames, rotations in rotations_of_action(context, rig, [bone for bone in bones if bone.name in limits]):
        off = excess(limits[bone.name], rotations)
        outside = (off > _TOLERANCE) & (frames == np.round(frames))
        if outside.any():
            found.append(Breach(bone.name, frames[outside].astype(np.int64), off[outside]))
    return found


def fix_action(context: Context, rig: Object, bones: Sequence[PoseBone]) -> tuple[list[Breach], list[Breach]]:
    """Fix the curves of bones that violate their limits; returns the violations found, and those that remain.

    Keys outside a limit are moved onto it; frames between keys that are still outside get keys too. On a
    control rig the controls get keys on the frames with violations. Raises errors like `check_action`, and
    KeyframeError or RigError if the action or the rig cannot be changed.
    """
    check_editable(rig)
    broken = check_action(context, rig, bones)
    action = rig.animation_data.action
    if action is None:
        raise RigError(f"{rig.name!r} only has NLA strips: select one and enter its tweak mode to fix violations")
    if not action.is_editable:
        raise RigError(f"Action {action.name!r} is linked from another file: make a copy of it first")
    keyframes.check_not_shared(rig)
    if not broken:
        return [], []
    limits, turned = _limits(bones), [rig.pose.bones[breach.bone] for breach in broken]
    with PoseKeeper(context.scene, rig) as keeper:
        keeper.keyed = [bone.name for bone in turned]
        if not posed_rig(rig).by_channels:
            # A body's limits don't apply to its controls' curves, so clamp each pose and key the controls.
            own = {bone.name: limits[bone.name] for bone in turned}
            controls: dict[str, None] = {}
            for frame in np.unique(np.concatenate([breach.frames for breach in broken])).tolist():
                context.scene.frame_set(frame)
                _, _, changed = clamp_bones(context, rig, own)
                controls |= dict.fromkeys(key_channels(context, rig, changed, automatic=False, before=changed))
            keeper.keyed = list(controls)
        else:
            for bone in turned:
                _fix_curves(rig, bone, limits[bone.name])
    return broken, check_action(context, rig, turned)


def _limits(bones: Sequence[PoseBone]) -> dict[str, Limit]:
    """The limits of the given bones by name, without free bones; raises RigError if no bone has a limit."""
    limits = {bone.name: limit for bone in bones if (limit := read_limit(bone)) is not None}
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    return limits


def _fix_curves(rig: Object, bone: PoseBone, limit: Limit) -> None:
    """Move the keys of one bone inside its limit, then add keys on frames that are still outside."""
    name, mode, path = bone.name, bone.rotation_mode, bone.path_from_id(property_name(bone.rotation_mode))

    def set_keys(index: int, frames: FloatArray, values: FloatArray) -> None:
        keyframes.set_curve_keys(rig.animation_data.action, rig, path, index, frames, values, name)

    read = RigCurves(rig, curves(rig))
    frames = read.times(name)
    values = read.values(name, frames)
    for index in {*range(channel_count(mode))}.difference(curve.array_index for curve in read.channel(name)):
        set_keys(index, frames, values[:, index])
    read = RigCurves(rig, curves(rig))
    for _ in range(_ROUNDS):
        frames = frames[excess(limit, read.rotations(name, frames)) > _TOLERANCE]
        if len(frames):
            # Key the nearest rotations inside the limit, with channels as close as possible to their current values.
            legal = legal_rotations(limit, read.rotations(name, frames))
            _, found = to_channels(mode, legal[None], previous=read.values(name, frames))
            for index in [curve.array_index for curve in read.channel(name)]:
                set_keys(index, frames, found[0, :, index])
        frames = whole_frames(read.times(name))
        if not (excess(limit, read.rotations(name, frames)) > _TOLERANCE).any():
            return


# The number of an outline's corners; few, because they are edited by hand.
_CORNERS: Final = 12
# Radians. The margin is at least this, so that swings on a line, or all at one point, get an outline with an area.
_LEAST_MARGIN: Final = 1e-3
# Radians. A bone that never rotates by more than this gets no limit.
_STILL_THROUGHOUT: Final = 1e-4
_ROUNDS_OF_WEIGHTS: Final = 200
# Radians (3°) by which rotations may be off a hinge's axis.
_HINGE_TOLERANCE: Final = pi / 60.0


def window_around(swings: FloatArray, margin: float) -> FloatArray:
    """(C, 2) corners of an outline that contains (F, 2) swings and a margin around them, counterclockwise.

    Each edge touches the swings with their margin. The edges are parallel to those of a regular polygon that is
    stretched as the swings are. If a corner would be more than 180° from rest, the outline is the widest one possible.
    """
    margin = max(margin, _LEAST_MARGIN)
    azimuths = tau * np.arange(_CORNERS) / _CORNERS
    circle = np.stack([np.cos(azimuths), np.sin(azimuths)], axis=1)
    # The directions in which the swings vary most and least.
    axes = np.linalg.eigh(np.cov(swings.T, bias=True))[1].T
    axes[1] *= np.linalg.det(axes)
    normals = circle / (np.ptp(swings @ axes.T, axis=0) + 2.0 * margin) @ axes
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    reach = (normals @ swings.T).max(axis=1) + margin
    lines, ends = (np.stack([each, np.roll(each, -1, axis=0)], axis=1) for each in (normals, reach))
    corners = np.linalg.solve(lines, ends[..., None])[..., 0]
    return corners if np.linalg.norm(corners, axis=1).max() <= pi else pi * circle


def limits_from_action(
    context: Context, rig: Object, bones: Sequence[PoseBone], margin: float, shape: str = "FITTED"
) -> tuple[str, list[str]]:
    """Limit bones to their rotations in the rig's current action, widened by a margin.

    margin: radians on each side. shape: "FITTED" for a hinge or a ball, or "POLYGON". Returns a line for the user, and
    sentences about skipped bones. Raises RigError if there is no action or it rotates none of the bones,
    LimitPropertyError if a limit can't be stored; then nothing is changed.
    """
    found = rotations_of_action(context, rig, bones)
    turned = [bone for bone, *_ in found]
    limits = [fitted_limit(rotations, margin, _HINGE_TOLERANCE, shape) for *_, rotations in found]
    write_all(turned, [settings_of(limit, read_settings(bone)) for bone, limit in zip(turned, limits, strict=True)])
    still = [bone.name for bone in bones if bone.name not in {each.name for each in turned}]
    left = [f"These bones are not rotated by {what_plays(rig)}: {', '.join(map(repr, still))}"] if still else []
    return f"Limited {bones_of(len(turned))} to the rotations in {what_plays(rig)}", left


def fitted_limit(
    rotations: FloatArray, margin: float = 0.0, hinge_tolerance: float = 0.0, shape: str = "FITTED"
) -> Limit:
    """The limit that contains successive rotations (F, 4), widened by a margin."""
    if angle_between(rotations, IDENTITY).max() < _STILL_THROUGHOUT:
        return Fixed()
    quaternions = many.quaternion(rotations)
    off_axis = {axis: float(excess(Hinge(axis), rotations).max()) for axis in AXES}
    axis: Any = min(AXES, key=off_axis.__getitem__)
    if shape == "FITTED" and off_axis[axis] <= hinge_tolerance + _STILL_THROUGHOUT:
        return Hinge(axis, *_range(np.asarray(Hinge(axis).angle(many, quaternions)), margin))
    swing = swing_of(many, quaternions)
    swings = np.stack([swing.x, swing.z], axis=-1).reshape(-1, 2)
    twist = _range(np.asarray(twist_of(many, quaternions, 0.0)), margin)
    if shape == "FITTED":
        half_axes = _half_axes(np.concatenate([swings, -swings], axis=1).T)
        return Ball(tuple(np.minimum(half_axes + margin, pi).tolist()), twist)
    corners = window_around(swings, margin)
    return Polygon(tuple((x, z) for x, z in corners.tolist()), twist)


def _range(angles: FloatArray, margin: float) -> Range:
    """The range of successive angles (F,), in radians, widened by a margin. Angles may continue beyond 180°."""
    counted = np.unwrap(angles)
    low, high = float(counted.min()) - margin, float(counted.max()) + margin
    if high - low >= tau:
        return ALL_ROUND
    whole_turns = tau * round((low + high) / (2.0 * tau))
    return low - whole_turns, high - whole_turns


def _half_axes(swings: FloatArray) -> FloatArray:
    """(4,) half-axes of the four quarter ellipses that contain swings (4, F), with a small sum.

    With u = 1 / half-axis², squares · u <= 1 must hold for each swing. Each swing has a weight that grows while it is
    outside; the sum is smallest at u = (2 · weights · squares) to the power of -2/3.
    """
    every = np.square(np.maximum(swings.T, 0.0))
    farthest = every.max(axis=0)
    used = farthest > _STILL_THROUGHOUT**2
    squares = every[:, used]
    inverse = 1.0 / farthest[used]
    weights = np.full(len(squares), 1.0 / len(squares))
    for _ in range(_ROUNDS_OF_WEIGHTS if (squares @ inverse).max(initial=0.0) > 1.0 + _STILL_THROUGHOUT else 0):
        inverse = (2.0 * weights @ squares) ** (-2.0 / 3.0)
        weights *= squares @ inverse
    half_axes = np.zeros(4)
    half_axes[used] = np.sqrt((squares @ inverse).max(initial=1.0) / inverse)
    # Limit the half-axes to 180°, while all swings stay inside.
    while (half_axes > pi).any():
        cut = half_axes >= pi
        half_axes = np.minimum(half_axes, pi)
        room = np.maximum(1.0 - every[:, cut].sum(axis=1) / pi**2, ROUNDING)
        load = every[:, ~cut] @ np.maximum(half_axes[~cut], ROUNDING) ** -2.0
        half_axes[~cut] *= np.sqrt((load / room).max(initial=1.0))
    return half_axes
