"""Holds: a hand or a foot that stays where it is from one frame to another, as keys, and kept in a list."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import matrix_from_quaternion, quaternion_from_matrix, slerp
from ...markers.steps import finish
from ..control.body import read_trees
from ..goals.effectors import why_no_target
from ..goals.sampling import sample_steps
from ..posing.drag.setup import DragSettings, DragSetup
from ..rig import keyframes
from ..rig.actions import check_action
from ..rig.armature import RigError, check_bones, check_editable, check_rig
from ..rig.pose_keeper import PoseKeeper
from ..rig.spaces import metres_per_unit
from ..settings.control import solved_bone
from ..settings.rig import rig_settings
from .contacts import find_contacts
from .keys import Change, changes_of, shift_keys, write_changes
from .new_channels import new_channels
from .span import Extent, Span, check_on_fk, span_over
from .take import Take, is_animated, tree_of

# Share of the rig's size: what is farther from its place than a millimetre or two of a human's is seen to slide.
_MISSED: Final = 1e-3


@dataclass(frozen=True)
class HoldSettings:
    """How a bone is held: which end, with its rotation or not, frames to ease in and out, and what it stays with."""

    point: str = "TAIL"
    hold_rotation: bool = True
    ease: float = 10.0
    target: bpy.types.Object | None = None
    target_bone: str = ""


def add_hold(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    frames: tuple[float, float],
    settings: HoldSettings | None = None,
) -> str:
    """Keep a bone, from the first frame to the last, where it is on the present one or else on the first.

    Its keys are changed from as many frames before to as many after as it eases. Returns a sentence on where it could
    not be kept, "" where it was.

    Raises:
        FabrikError: naming what keeps the bone from being held; nothing has changed then.
    """
    chosen = settings or HoldSettings()
    _check(armature, bone, frames, chosen)
    bone = solved_bone(armature, bone)
    context.view_layer.update()
    scene, here = context.scene, context.scene.frame_current_final
    at = here if frames[0] <= here <= frames[1] else frames[0]
    take, setup = Take(armature, tree_of(armature, bone)), DragSetup(armature, bone, chosen.point, DragSettings())
    extent = Extent(frames, (frames[0] - chosen.ease, frames[1] + chosen.ease))
    span = span_over(armature, setup, chosen.point, take, extent, also=(at,), is_held=True)
    keeper = PoseKeeper(scene, armature)
    try:
        changes, miss = _held_changes(scene, armature, span, at, chosen)
        write_changes(changes, frames, span.ends)
    finally:
        keeper.restore(armature.pose.bones.keys())
    hold = rig_settings(armature).holds.add()
    hold.name = f"{bone} {frames[0]:g}-{frames[1]:g}"
    hold.bone, hold.point, hold.hold_rotation = bone, chosen.point, chosen.hold_rotation
    (hold.first, hold.last), hold.ease = frames, chosen.ease
    hold.target, hold.target_bone = chosen.target, chosen.target_bone
    hold.changed = _written(changes)
    if miss < _MISSED * span.model.skeleton.size:
        return ""
    shown = 1000.0 * miss * metres_per_unit(armature)
    return f"{bone!r} could not follow: it is up to {shown:.1f} mm off; hold fewer frames, or let other bones go"


def remove_hold(context: bpy.types.Context, armature: bpy.types.Object, number: int) -> str:
    """Take a hold out of the list and what it has changed out of the keys; returns its name."""
    holds = rig_settings(armature).holds
    if not 0 <= number < len(holds):
        raise RigError(f"{armature.name!r} has no hold number {number}: choose one from 0 to {len(holds) - 1}")
    check_editable(armature)
    check_action(armature, new=False)
    name: str = holds[number].name
    curves = {(curve.data_path, curve.array_index): curve for curve in keyframes.curves(armature)}
    for path, index, frames, by in _read(holds[number].changed):
        if (path, index) in curves:
            shift_keys(curves[path, index], frames, -by)
    holds.remove(number)
    PoseKeeper(context.scene, armature).restore(armature.pose.bones.keys())
    return name


def holds_from_contacts(context: bpy.types.Context, armature: bpy.types.Object) -> list[str]:
    """Hold the feet wherever they stand in the scene's frames; what `add_hold` says of each."""
    check_rig(armature)
    scene = context.scene
    takes = [Take(armature, tree) for tree in read_trees(armature)]
    keys = np.unique(np.concatenate([take.key_frames(take.skeleton.names) for take in takes]))
    if not len(keys):
        raise RigError(
            f"{armature.name!r} has no keys, so no motion in which its feet could stand: bake or key one first"
        )
    first, last = max(scene.frame_start, keys[0]), min(scene.frame_end, keys[-1])
    frames = np.arange(first, last + 1.0)
    contacts = [contact for take in takes for contact in find_contacts(scene, armature, take, frames)]
    if not contacts:
        raise RigError(f"No foot of {armature.name!r} stands in frames {first:g}-{last:g}: add holds by hand")
    for bone in dict.fromkeys(contact.bone for contact in contacts):
        check_on_fk(armature, bone)
    chosen = HoldSettings(point="HEAD", ease=5.0)
    return [add_hold(context, armature, bone, (begins, ends), chosen) for bone, begins, ends in contacts]


def _check(armature: bpy.types.Object, bone: str, frames: tuple[float, float], settings: HoldSettings) -> None:
    """Raise RigError, naming the trouble, for what can't be held."""
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=False)
    check_bones(armature, bone)
    if not is_animated(armature):
        raise RigError(
            f"{armature.name!r} has no keys, but a hold changes a motion that is there: bake or key one first"
        )
    if frames[1] <= frames[0]:
        raise RigError(
            f"A hold from frame {frames[0]:g} to {frames[1]:g} has no length: choose a last frame after the first"
        )
    if settings.target is not None:
        reason = why_no_target(armature, settings.target, settings.target_bone)
        if reason:
            raise RigError(reason)


def _held_changes(
    scene: bpy.types.Scene, armature: bpy.types.Object, span: Span, at: float, settings: HoldSettings
) -> tuple[list[Change], float]:
    """What changes of the keys, and how far from its place the bone is at most where it is held."""
    frames, solver = span.motion.frames, span.solver(slice(None))
    leads = [(armature, ""), *([(settings.target, settings.target_bone)] if settings.target is not None else [])]
    _, matrices = finish(sample_steps(scene, (), leads, frames))
    # From armature space to that of what it stays with: the world, an object or a bone.
    into = matrices[:, 0] if settings.target is None else np.linalg.inv(matrices[:, 1]) @ matrices[:, 0]
    row = int(np.argmin(np.abs(frames - at)))
    targets, rotations = solver.own_points.copy(), solver.own_rotations.copy()
    back = np.linalg.inv(into) @ into[row]
    place = (back @ (*targets[row, 0], 1.0))[:, :3]
    targets[:, 0] += span.shares[:, None] * (place - targets[:, 0])
    if settings.hold_rotation:
        turned = back[:, :3, :3] @ matrix_from_quaternion(rotations[row, 0])
        turned /= np.cbrt(np.linalg.det(turned))[:, None, None]
        rotations[:, 0] = slerp(rotations[:, 0], quaternion_from_matrix(turned), span.shares)
    else:
        rotations[:, 0] = np.nan
    found = solver.solve(targets, rotations)
    new = new_channels(armature, span.take, span.motion, found.rotations, found.roots)
    return changes_of(span.take, span.motion, new), float(found.errors[span.shares == 1.0, 0].max())


def _written(changes: Sequence[Change]) -> str:
    """What keys were changed by, as a text."""
    rows = [
        (each.curve.data_path, each.curve.array_index, _packed(each.frames), _packed(each.values - each.before))
        for each in changes
    ]
    return json.dumps(rows)


def _read(text: str) -> list[tuple[str, int, FloatArray, FloatArray]]:
    """Data path and number of curves, (F,) frames, and (F,) what their keys were changed by."""
    return [(path, index, _unpacked(frames), _unpacked(by)) for path, index, frames, by in json.loads(text or "[]")]


def _packed(values: FloatArray) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def _unpacked(text: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)
