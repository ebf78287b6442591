"""Clamps a pose to limits, and finds and fixes frames on which an action exceeds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import degrees, radians
from typing import Final, cast

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.limits.base import Limit
from ...core.rotations import angle_between
from ..control.posed_rig import Changed, PosedRig, posed_rig
from ..rig.armature import RigError, check_editable
from ..rig.keyframes import set_curve_keys
from ..rig.keying import key_channels
from ..rig.legal import excess, legal_rotations
from ..rig.pose_writer import PoseKeeper
from ..rig.rotation_modes import to_channels
from ..settings.limit_properties import read_limit
from .posed import BoneCurves, rotation_curves, rotations_of_action, whole_frames

# Radians. A smaller excess is due to rounding in single precision.
_OUTSIDE: Final = 1e-5
_ATTEMPTS: Final = 100
# Radians. Smaller violations are ignored: they are invisible, and keys have single precision.
_TOLERANCE: Final = radians(0.01)
# The maximum number of rounds. Each one inserts keys on the frames that still exceed the limit.
_ROUNDS: Final = 20


def clamp_pose(context: bpy.types.Context, bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Rotate bones that are outside their limits to the nearest rotation inside; locked channels don't change.

    A control rig is posed by its controls. Returns a line to show, and notes on bones that stay outside. Raises
    RigError if none has a limit, LimitPropertyError for an invalid limit; nothing is changed then.
    """
    rig = cast("bpy.types.Object", bones[0].id_data)
    check_editable(rig)
    limits = {bone.name: limit for bone in bones if (limit := read_limit(bone)) is not None}
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    context.view_layer.update()
    turned, left, _ = clamp_bones(context, rig, limits)
    return f"{len(turned)} of {len(limits)} bones were clamped to their limits", left


def clamp_bones(
    context: bpy.types.Context, rig: bpy.types.Object, limits: Mapping[str, Limit]
) -> tuple[list[str], list[str], Changed]:
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
    kept = posed.lock(name, rotation)
    legal = legal_rotations(limit, rotation[None])[0]
    if kept is None:
        return legal
    # Apply the limit and the locks in turn, until the rotation satisfies both.
    for _ in range(_ATTEMPTS):
        rotation = kept(legal)
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
        """The violation in one line, such as "'shin.L' breaks its limit on frames 3-7, 12: 8.4° on frame 5"."""
        worst = int(np.argmax(self.excess))
        runs = np.split(self.frames, np.flatnonzero(np.diff(self.frames) > 1) + 1)
        spans = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
        frames = f"frames {spans}" if len(self.frames) > 1 else f"frame {spans}"
        most = f"{degrees(self.excess[worst]):.1f}° on frame {self.frames[worst]}"
        return f"{self.bone!r} exceeds its limit on {frames}: {most}"


def check_action(
    context: bpy.types.Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
) -> list[Breach]:
    """The bones that exceed their limits in the rig's current action, on whole frames from the first to the last key.

    Without an action, the result of the NLA strips is checked. Uses the limits of the current frame. Raises RigError if
    there is no animation, no limit, or no curve for a limited bone, and LimitPropertyError for an invalid limit.
    """
    limits = _limits(bones)
    found = []
    for each in rotations_of_action(context, rig, [bone for bone in bones if bone.name in limits]):
        whole = each.frames == np.round(each.frames)
        frames = each.frames[whole]
        rotations = each.rotations[whole]
        limit = limits[each.bone.name]
        off = excess(limit, rotations)
        outside = off > _TOLERANCE
        found.append(Breach(each.bone.name, frames[outside].astype(np.int64), off[outside]) if outside.any() else None)
    return [breach for breach in found if breach is not None]


def fix_action(
    context: bpy.types.Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
) -> tuple[list[Breach], list[Breach]]:
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
    if not broken:
        return [], []
    limits, turned = _limits(bones), [rig.pose.bones[breach.bone] for breach in broken]
    keeper = PoseKeeper(context.scene, rig)
    keyed = [bone.name for bone in turned]
    try:
        if not posed_rig(rig).by_channels:
            keyed = _fix_by_controls(context, rig, {bone.name: limits[bone.name] for bone in turned}, broken)
        else:
            for curves in rotation_curves(rig, turned):
                _fix_curves(rig, curves, limits[curves.bone.name])
    finally:
        keeper.restore(keyed)
    return broken, check_action(context, rig, turned)


def _fix_by_controls(
    context: bpy.types.Context, rig: bpy.types.Object, limits: Mapping[str, Limit], broken: Sequence[Breach]
) -> list[str]:
    """Clamp the pose and key it on all frames with violations; returns the names of the controls with keys."""
    keyed: dict[str, None] = {}
    for frame in np.unique(np.concatenate([breach.frames for breach in broken])).tolist():
        context.scene.frame_set(frame)
        _, _, changed = clamp_bones(context, rig, limits)
        keyed |= dict.fromkeys(key_channels(context, rig, changed, automatic=False, before=changed))
    return list(keyed)


def _limits(bones: Sequence[bpy.types.PoseBone]) -> dict[str, Limit]:
    """The limits of the given bones by name, without free bones; raises RigError if no bone has a limit."""
    limits = {bone.name: limit for bone in bones if (limit := read_limit(bone)) is not None}
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    return limits


def _fix_curves(rig: bpy.types.Object, curves: BoneCurves, limit: Limit) -> None:
    """Move the keys of one bone inside its limit, then add keys on frames that are still outside."""
    times = curves.times
    held = curves.values(times)
    for index in curves.missing:
        _set_keys(rig, curves, index, times, held[:, index])
    curves = rotation_curves(rig, [curves.bone])[0]
    frames = curves.times
    for _ in range(_ROUNDS):
        outside = frames[excess(limit, curves.rotations(frames)) > _TOLERANCE]
        _put_inside(rig, curves, limit, outside)
        frames = whole_frames(curves.times)
        if not (excess(limit, curves.rotations(frames)) > _TOLERANCE).any():
            return


def _put_inside(rig: bpy.types.Object, curves: BoneCurves, limit: Limit, frames: FloatArray) -> None:
    """Key the nearest rotation inside on frames (K,), with channels as near as possible to their values there."""
    if not len(frames):
        return
    mode = curves.bone.rotation_mode
    legal = legal_rotations(limit, curves.rotations(frames))
    _, values = to_channels(mode, legal[None], previous=curves.values(frames))
    for index in curves.curves:
        _set_keys(rig, curves, index, frames, values[0, :, index])


def _set_keys(rig: bpy.types.Object, curves: BoneCurves, index: int, frames: FloatArray, values: FloatArray) -> None:
    set_curve_keys(rig.animation_data.action, rig, curves.path, index, frames, values, curves.bone.name)
