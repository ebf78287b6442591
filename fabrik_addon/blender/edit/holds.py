"""Holds: keys that keep a hand or a foot in place from one frame to another.

During the hold the bone stays at the same position. The change fades in before it and out after it. The replaced keys
are stored, so that the hold can be removed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Object

from ...core import Effector
from ...core.arrays import times
from ...core.model.effector import effector_offset
from ...core.rotations import matrix_from_quaternion, quaternion_from_matrix
from ...human.naming_schemes import match
from ...markers.feet import PointContact
from ...markers.steps import finish
from ..capture.matching import scene_rate
from ..control.posed_rig import posed_rig
from ..goals.effectors import why_no_target
from ..goals.places import sample_steps
from ..posing.drag import DragSettings, DragSetup
from ..rig.armature import RigError, bone_offset, check_bones, check_rig, meters_per_unit, unscaled
from ..rig.keyframes import check_action, check_not_shared, every_curve
from ..rig.pose_writer import PoseKeeper
from ..settings.control import solved_bone
from ..settings.rig import FabrikHold, rig_settings
from .spread_drag import Span, check_on_ik, contacts_on, span_over
from .take import EditedTake, Shift, changed_channels, changes_of, is_animated, recorded, restore_keys, write_changes

# Fraction of the rig's size. A human's foot visibly slides if its error exceeds a millimeter or two.
_MISSED: Final = 1e-3
# Seconds over which a foot eases into and out of a contact, unless the next contact is closer.
_EASE: Final = 0.5


@dataclass(frozen=True)
class HoldSettings:
    """The settings of a hold: head or tail, whether to keep the rotation, ease frames, and the object to stay with."""

    point: str = "TAIL"
    hold_rotation: bool = True
    ease: float = 10.0
    target: Object | None = None
    target_bone: str = ""


# A bone's head or tail that is held in its position on a frame, and this frame.
_Held: TypeAlias = tuple[PointContact, float]


def add_hold(
    context: Context, armature: Object, bone: str, frames: tuple[float, float], settings: HoldSettings | None = None
) -> str:
    """Hold a bone from the first frame to the last, at its position on the current frame.

    If the current frame is outside, the position on the first frame is used. Also changes keys on the ease frames
    before and after. Returns a sentence if the bone could not be held exactly, else "". Raises FabrikError, with
    nothing changed, if it can't be held at all.
    """
    chosen = settings or HoldSettings()
    check_rig(armature)
    check_action(armature, new=False)
    check_not_shared(armature)
    check_bones(armature, bone)
    if not is_animated(armature):
        raise RigError(f"{armature.name!r} has no animation to hold: bake or key some first")
    curves = [(curve.data_path, curve.array_index) for curve in every_curve(armature)]
    if len(set(curves)) < len(curves):
        raise RigError(f"{armature.name!r} has several NLA strips with keys of the same bones: mute all but one")
    if frames[1] <= frames[0]:
        raise RigError(
            f"A hold from frame {frames[0]:g} to {frames[1]:g} is empty: choose a last frame after the first"
        )
    if chosen.target is not None and (reason := why_no_target(armature, chosen.target, chosen.target_bone)):
        raise RigError(reason)
    bone = solved_bone(armature, bone)
    context.view_layer.update()
    here = context.scene.frame_current_final
    # Keys at the ends do not change, so the ends must be outside the held frames.
    ease = max(chosen.ease, 1.0)
    ends = frames[0] - ease, frames[1] + ease
    at = here if frames[0] <= here <= frames[1] else frames[0]
    return _add(context, armature, bone, [(PointContact(bone, chosen.point, *frames), at)], ends, chosen)[1]


def remove_hold(context: Context, armature: Object, number: int) -> tuple[str, str]:
    """Remove a hold from the list, and restore the keys that it replaced.

    Keys that were inserted or changed since are kept. Returns the hold's name, and a sentence about keys that could not
    be restored, or "".
    """
    holds = rig_settings(armature).holds
    if not 0 <= number < len(holds):
        raise RigError(f"{armature.name!r} has no hold number {number}: choose one from 0 to {len(holds) - 1}")
    check_action(armature, new=False)
    check_not_shared(armature)
    name: str = holds[number].name
    stay, is_found = restore_keys(armature, holds[number])
    record = holds[number].replaced
    holds.remove(number)
    if record is not None and record.users == 0:
        bpy.data.actions.remove(record)
    PoseKeeper(context.scene, armature).restore(armature.pose.bones.keys())
    if not is_found:
        return name, f"No action contains the keys of hold {name!r} anymore, so none were restored"
    return name, f"Keys on {stay} frames were changed after hold {name!r} was added and are kept" if stay else ""


def hold_feet(context: Context, armature: Object) -> list[str]:
    """Hold the feet during their contacts in the scene's range; returns the result of `add_hold` for each.

    Removes holds of earlier calls on these frames first. The holds ease in and out over at most half a second. Raises
    RigError, with nothing changed, if there is no animation, or if a foot can't be held.
    """
    check_rig(armature)
    check_not_shared(armature)
    scene, holds = context.scene, rig_settings(armature).holds
    takes = [EditedTake(armature, tree) for tree in posed_rig(armature).trees()]
    keys = np.unique(np.concatenate([take.key_frames(take.skeleton.names) for take in takes]))
    if not len(keys):
        raise RigError(f"{armature.name!r} has no animation to find foot contacts in: bake or key some first")
    for take in takes:
        for name, role in match(take.skeleton.names).items():
            if role.part == "foot":
                check_on_ik(take, name)
    start, end = max(scene.frame_start, keys[0]), min(scene.frame_end, keys[-1])
    earlier = [
        index for index, hold in enumerate(holds) if hold.is_contact and hold.first <= end and hold.last >= start
    ]
    for index in reversed(earlier):
        remove_hold(context, armature, index)
    if earlier:
        takes = [EditedTake(armature, take.tree) for take in takes]
    frames = np.arange(start, end + 1.0)
    contacts = [contact for take in takes for contact in contacts_on(scene, armature, take, frames)]
    if not contacts:
        reason = f"No planted foot of {armature.name!r} found in frames {start:g}-{end:g}: add holds by hand"
        if not earlier:
            raise RigError(reason)
        return [reason]
    most = _EASE * scene_rate(context.scene)
    warnings = []
    for contact in contacts:
        others = [each for each in contacts if each.bone == contact.bone]
        before = max((each.last for each in others if each.last < contact.first), default=-np.inf)
        after = min((each.first for each in others if each.first > contact.last), default=np.inf)
        ends = max(contact.first - most, before), min(contact.last + most, after)
        chosen = HoldSettings(contact.point_contacts[0].point, hold_rotation=False, ease=most)
        # Use a frame on which all points are in contact, so that their positions match. The first point, usually the
        # ball, has the longest contact.
        points, held = contact.point_contacts, []
        together = max(each.first for each in points), min(each.last for each in points)
        for point in sorted(points, key=lambda each: each.first - each.last):
            first, last = together if together[0] <= together[1] else (point.first, point.last)
            held.append((point, float(np.floor(0.5 * (first + last)))))
        hold, missed = _add(context, armature, contact.bone, held, ends, chosen)
        hold.is_contact = True
        warnings.append(missed)
    return warnings


def _add(
    context: Context,
    armature: Object,
    bone: str,
    held: Sequence[_Held],
    ends: tuple[float, float],
    settings: HoldSettings,
) -> tuple[FabrikHold, str]:
    """Hold points of a bone at the end of a limb; returns the new hold, and a sentence about errors, or "".

    ends: the first and last frame, on which nothing changes.
    """
    scene = context.scene
    whole = min(contact.first for contact, _ in held), max(contact.last for contact, _ in held)
    # Between the keys of the action, the bone would move, so each frame of the hold gets keys.
    own = [frame for contact, at in held for frame in (at, contact.first, contact.last)]
    also = tuple(dict.fromkeys([*own, *np.arange(np.ceil(whole[0]), whole[1] + 1.0).tolist()]))
    bones = armature.pose.bones
    points = [
        Effector(contact.bone, bone_offset(bones[contact.bone], contact.point), rotation_weight=1.0)
        for contact, _ in held
    ]
    setup = DragSetup(armature, bone, settings.point, DragSettings(), over_time=True)
    take = EditedTake.of_bone(armature, bone)
    names = take.skeleton.names
    keys = take.key_frames(names)
    if len(keys) and np.isinf(take.round_length(names)):
        # No easing is needed before the first key and after the last one.
        ends = max(ends[0], min(keys[0], whole[0]) - 1.0), min(ends[1], max(keys[-1], whole[1]) + 1.0)
    span = span_over(setup, take, whole, ends, also=also, held=points)
    shown_bone = setup.posed.shown(bone)
    name = f"{shown_bone} {whole[0]:g}-{whole[1]:g}"
    with PoseKeeper(scene, armature) as keeper:
        keeper.keyed = armature.pose.bones.keys()
        changes, miss = _held_changes(context, armature, span, held, settings)
        curves = [change.curve for change in changes]
        with recorded(armature, name, curves, span.ends) as record:
            write_changes(changes, also, span.ends)
    hold = rig_settings(armature).holds.add()
    hold.name, hold.replaced = name, record
    hold.bone, hold.point, hold.hold_rotation = bone, settings.point, settings.hold_rotation
    hold.first, hold.last = whole
    if miss < _MISSED * span.skeleton.size:
        return hold, ""
    shown = 1000.0 * miss * meters_per_unit(armature)
    return hold, (
        f"{shown_bone!r} could not follow and is up to {shown:.1f} mm off; hold fewer frames, or release other bones"
    )


def _held_changes(
    context: Context, armature: Object, span: Span, held: Sequence[_Held], settings: HoldSettings
) -> tuple[list[Shift], float]:
    frames, solver = span.motion.frames, span.solver(slice(None))
    leads = [(armature, ""), *([(settings.target, settings.target_bone)] if settings.target is not None else [])]
    _, matrices = finish(sample_steps(context.scene, (), leads, frames))
    # Matrices from armature space to the space in which the bone stays: the world's, an object's or a bone's.
    into = matrices[:, 0] if settings.target is None else np.linalg.inv(matrices[:, 1]) @ matrices[:, 0]
    targets, rotations = np.full_like(solver.own_points, np.nan), np.full_like(solver.own_rotations, np.nan)
    targets[:, len(held) :], rotations[:, len(held) :] = (
        own[:, len(held) :] for own in (solver.own_points, solver.own_rotations)
    )
    for index, (contact, frame) in enumerate(held):
        at = int(np.argmin(np.abs(frames - frame)))
        rows = (frames >= contact.first) & (frames <= contact.last)
        back = np.linalg.inv(into[rows]) @ into[at]
        turned = turns = matrix_from_quaternion(solver.own_rotations[:, index])
        if settings.hold_rotation:
            turned = turns.copy()
            turned[rows] = back[:, :3, :3] @ turns[at]
            turned /= np.cbrt(np.linalg.det(turned))[:, None, None]
            rotations[rows, index] = quaternion_from_matrix(turned[rows])
        own = posed = solver.own_points[:, index]
        if contact.bone in span.motion.matrices:
            # IK may stretch the limb, on each frame by another amount.
            offset = effector_offset(span.skeleton, span.problem.effectors[index])
            posed = (unscaled(span.motion.matrices[contact.bone]) @ (*offset, 1.0))[:, :3]
        apart = times(turned @ np.swapaxes(turns, 1, 2), posed - own)
        targets[rows, index] = (back @ (*posed[at], 1.0))[:, :3] - apart[rows]
    found = solver.over_time(targets, rotations, frames, settings.ease)
    changed, _ = changed_channels(context, armature, span.motion, found.rotations, found.roots)
    return changes_of(span.take, frames, changed), float(np.nanmax(found.errors[:, : len(held)]))
