"""Clamps poses to limits, fixes violations in an action, and sets limits from an action."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import degrees, pi, radians
from typing import Final, cast

import numpy as np
from bpy.types import Context, Object, PoseBone

from ...core.arrays import FloatArray, IntArray
from ...core.channels import channel_count, to_channels
from ...core.errors import bones_of, first_few
from ...core.limits import Limit, excess, fitted_limit, legal_rotations
from ...core.rotations import angle_between
from ..control.posed_rig import Changed, PosedRig, posed_rig
from ..rig import keyframes
from ..rig.armature import RigError, check_editable, property_name
from ..rig.keyframes import RigCurves, curves
from ..rig.keying import key_channels
from ..rig.pose_writer import PoseKeeper
from ..settings.limit_properties import read_limit, read_settings
from ..settings.limit_values import settings_of
from ..settings.why_not import is_layered
from .editing import write_all

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
        shown = first_few([*map(repr, names)])
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
    read = RigCurves(rig, curves(rig))
    frames = read.times(name)
    missing = {*range(channel_count(mode))}.difference(curve.array_index for curve in read.channel(name))
    action, values = rig.animation_data.action, read.values(name, frames)
    keyframes.write_curves(action, rig, path, frames, values, name, components=missing)
    read = RigCurves(rig, curves(rig))
    for _ in range(_ROUNDS):
        frames = frames[excess(limit, read.rotations(name, frames)) > _TOLERANCE]
        if len(frames):
            # Key the nearest rotations inside the limit, with channels as close as possible to their current values.
            legal = legal_rotations(limit, read.rotations(name, frames))
            found = to_channels(mode, legal[None], previous=read.values(name, frames))
            for curve in read.channel(name):
                keyframes.insert_keys(curve, frames, found[0, :, curve.array_index])
        frames = whole_frames(read.times(name))
        if not (excess(limit, read.rotations(name, frames)) > _TOLERANCE).any():
            return


# Radians (3°) by which rotations may be off a hinge's axis.
_HINGE_TOLERANCE: Final = pi / 60.0


def limits_from_action(
    context: Context, rig: Object, bones: Sequence[PoseBone], margin: float, shape: str = "FITTED"
) -> tuple[str, list[str]]:
    """Limit bones to their rotations in the rig's current action, widened by a margin.

    margin: radians on each side. shape: "FITTED" for a hinge or a ball, or "POLYGON". Returns a line for the user, and
    sentences about skipped bones. Raises RigError if there is no action or it rotates none of the bones,
    LimitPropertyError if a limit can't be stored; then nothing is changed.
    """
    turned = {bone: rotations for bone, _, rotations in rotations_of_action(context, rig, bones)}
    limits = {bone: fitted_limit(rotations, margin, _HINGE_TOLERANCE, shape) for bone, rotations in turned.items()}
    write_all([(bone, settings_of(limit, read_settings(bone))) for bone, limit in limits.items()])
    still = [repr(bone.name) for bone in bones if bone not in turned]
    left = [f"These bones are not rotated by {what_plays(rig)}: {first_few(still)}"] if still else []
    return f"Limited {bones_of(len(turned))} to the rotations in {what_plays(rig)}", left
