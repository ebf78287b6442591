"""Holds: keys that keep a hand or a foot in place from one frame to another.

An offset moves the bone. During the hold, the offset keeps the bone in place. Before and after, it starts at zero and
fades to zero with minimum jerk. The replaced keys are stored, so that the hold can be removed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np

from ...core import Effector
from ...core.arrays import FloatArray
from ...core.rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ...markers.steps import finish
from ..capture.clip import scene_rate
from ..control.posed_rig import posed_rig
from ..goals.effectors import why_no_target
from ..goals.places import sample_steps
from ..posing.drag.setup import DragSettings, DragSetup
from ..rig.actions import check_action
from ..rig.armature import RigError, check_bones, check_editable, check_rig
from ..rig.pose_writer import PoseKeeper
from ..rig.spaces import bone_offset, meters_per_unit
from ..settings.control import solved_bone
from ..settings.rig import FabrikHold, rig_settings
from .contacts import Contact, Stand, find_contacts
from .keys import Change, changes_of, new_channels, write_changes
from .replaced import keep_before, keep_written, put_back
from .span import Extent, Span, check_on_fk, span_over
from .take import Take, every_curve, is_animated, tree_of

# Share of the rig's size. A human's foot that is more than a millimeter or two off visibly slides.
_MISSED: Final = 1e-3
# Seconds over which a foot eases in and out of its place, unless its next contact is nearer.
_EASE: Final = 0.5
# The speed at the end of an offset is measured over this many frames: noise of 1 mm then gives 0.5 mm per frame.
_BESIDE: Final = 4
# A speed that fades out over T frames with minimum jerk has at most this many times speed / T as acceleration: the
# maximum of |36 t - 96 t² + 60 t³| from 0 to 1.
_PEAK: Final = 3.94
# Frames; keys that are at most this far apart are on successive frames.
_DENSE: Final = 1.5


@dataclass(frozen=True)
class HoldSettings:
    """The settings of a hold: the end of the bone, rotation or not, ease frames, and the object to stay with."""

    point: str = "TAIL"
    hold_rotation: bool = True
    ease: float = 10.0
    target: bpy.types.Object | None = None
    target_bone: str = ""


@dataclass(frozen=True)
class _Held:
    """A stand that is held at its position on frame `at`; it eases in from the first of `ends` and out to the last."""

    stand: Stand
    ends: tuple[float, float]
    at: float


def add_hold(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    frames: tuple[float, float],
    settings: HoldSettings | None = None,
) -> str:
    """Hold a bone from the first frame to the last, at its position on the current frame, or else on the first.

    Also changes keys on the ease frames before and after. Returns a sentence if the bone could not be held exactly,
    else "".

    Raises:
        FabrikError: names why the bone can't be held; nothing is changed.
    """
    chosen = settings or HoldSettings()
    _check(armature, bone, frames, chosen)
    bone = solved_bone(armature, bone)
    context.view_layer.update()
    here = context.scene.frame_current_final
    ends = frames[0] - chosen.ease, frames[1] + chosen.ease
    at = here if frames[0] <= here <= frames[1] else frames[0]
    return _add(context, armature, bone, [_Held(Stand(bone, chosen.point, *frames), ends, at)], chosen)[1]


def remove_hold(context: bpy.types.Context, armature: bpy.types.Object, number: int) -> tuple[str, str]:
    """Remove a hold from the list, and restore the keys that it replaced.

    Keys that were inserted or changed since are kept. Returns its name, and a sentence about keys that could not be
    restored, or "".
    """
    holds = rig_settings(armature).holds
    if not 0 <= number < len(holds):
        raise RigError(f"{armature.name!r} has no hold number {number}: choose one from 0 to {len(holds) - 1}")
    check_editable(armature)
    check_action(armature, new=False)
    name: str = holds[number].name
    record = holds[number].replaced
    stay, is_found = (0, False) if record is None else put_back(armature, record)
    holds.remove(number)
    if record is not None and record.users == 0:
        bpy.data.actions.remove(record)
    PoseKeeper(context.scene, armature).restore(armature.pose.bones.keys())
    if not is_found:
        return name, f"No action contains the keys of hold {name!r} anymore, so none were restored"
    return name, f"Keys on {stay} frames were changed after hold {name!r} was added and are kept" if stay else ""


def hold_feet(context: bpy.types.Context, armature: bpy.types.Object, ease: float | None = None) -> list[str]:
    """Hold the feet during their contacts in the scene's range; returns the result of `add_hold` for each.

    Removes holds from earlier calls first. ease: maximum number of frames to ease in and out; None for half a second.
    """
    check_rig(armature)
    holds = rig_settings(armature).holds
    for number in range(len(holds) - 1, -1, -1):
        if holds[number].is_contact:
            remove_hold(context, armature, number)
    scene = context.scene
    takes = [Take(armature, tree) for tree in posed_rig(armature).trees()]
    keys = np.unique(np.concatenate([take.key_frames(take.skeleton.names) for take in takes]))
    if not len(keys):
        raise RigError(f"{armature.name!r} has no animation to find foot contacts in: bake or key some first")
    first, last = max(scene.frame_start, keys[0]), min(scene.frame_end, keys[-1])
    frames = np.arange(first, last + 1.0)
    contacts = [contact for take in takes for contact in find_contacts(scene, armature, take, frames)]
    if not contacts:
        raise RigError(f"No planted foot of {armature.name!r} found in frames {first:g}-{last:g}: add holds by hand")
    for bone in dict.fromkeys(contact.bone for contact in contacts):
        check_on_fk(armature, bone)
    most = _EASE * scene_rate(scene) if ease is None else ease
    said = []
    for contact in contacts:
        held = _held_contact(contact, [each for each in contacts if each.bone == contact.bone], most)
        chosen = HoldSettings(contact.stands[0].point, hold_rotation=False, ease=most)
        hold, missed = _add(context, armature, contact.bone, held, chosen)
        hold.is_contact = True
        said.append(missed)
    return said


def _held_contact(contact: Contact, contacts: Sequence[Contact], ease: float) -> list[_Held]:
    """The points of a foot, held at their positions while all of them are in contact, so that they fit each other.

    contacts: contacts of the same foot. A point eases over at most the frames on which it is off the floor. The first
    returned point is in contact longest, usually the ball of the foot.
    """
    together = max(each.first for each in contact.stands), min(each.last for each in contact.stands)
    found = []
    for stand in contact.stands:
        others = [each for other in contacts for each in other.stands if each[:2] == stand[:2]]
        before = max((each.last for each in others if each.last < stand.first), default=-np.inf)
        after = min((each.first for each in others if each.first > stand.last), default=np.inf)
        first, last = together if together[0] <= together[1] else (stand.first, stand.last)
        ends = max(stand.first - ease, before), min(stand.last + ease, after)
        found.append(_Held(stand, ends, np.floor(0.5 * (first + last))))
    return sorted(found, key=lambda each: each.stand.first - each.stand.last)


def _add(
    context: bpy.types.Context, armature: bpy.types.Object, bone: str, held: Sequence[_Held], settings: HoldSettings
) -> tuple[FabrikHold, str]:
    """Hold points of a limb that ends with a bone; returns the new hold, and a sentence about errors, or ""."""
    scene = context.scene
    whole = min(each.stand.first for each in held), max(each.stand.last for each in held)
    ends = min(each.ends[0] for each in held), max(each.ends[1] for each in held)
    also = tuple(dict.fromkeys(frame for each in held for frame in (each.at, each.stand.first, each.stand.last)))
    bones = armature.pose.bones
    points = [
        Effector(each.stand.bone, bone_offset(bones[each.stand.bone], each.stand.point), rotation_weight=1.0)
        for each in held
    ]
    setup = DragSetup(armature, bone, settings.point, DragSettings())
    take = Take(armature, tree_of(armature, bone))
    names = take.skeleton.names
    keys = take.key_frames(names)
    if len(keys) and np.isinf(take.round_length(names)):
        # No ease is needed before the first key and after the last one.
        ends = max(ends[0], min(keys[0], whole[0]) - 1.0), min(ends[1], max(keys[-1], whole[1]) + 1.0)
    span = span_over(armature, setup, settings.point, take, Extent(whole, ends), also=also, held=points)
    keeper = PoseKeeper(scene, armature)
    name = f"{bone} {whole[0]:g}-{whole[1]:g}"
    try:
        changes, miss = _held_changes(scene, armature, span, held, settings)
        curves = [change.curve for change in changes]
        record = keep_before(armature, name, curves, span.ends)
        write_changes(armature, changes, also, span.ends)
        keep_written(record, curves, span.ends)
    finally:
        keeper.restore(armature.pose.bones.keys())
    hold = rig_settings(armature).holds.add()
    hold.name, hold.replaced = name, record
    hold.bone, hold.point, hold.hold_rotation = bone, settings.point, settings.hold_rotation
    hold.first, hold.last = whole
    if miss < _MISSED * span.model.skeleton.size:
        return hold, ""
    shown = 1000.0 * miss * meters_per_unit(armature)
    return hold, (
        f"{bone!r} could not follow and is up to {shown:.1f} mm off; hold fewer frames, or release other bones"
    )


def _check(armature: bpy.types.Object, bone: str, frames: tuple[float, float], settings: HoldSettings) -> None:
    """Raise RigError if there is nothing to hold."""
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=False)
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
    if settings.target is not None:
        reason = why_no_target(armature, settings.target, settings.target_bone)
        if reason:
            raise RigError(reason)


def _held_changes(
    scene: bpy.types.Scene, armature: bpy.types.Object, span: Span, held: Sequence[_Held], settings: HoldSettings
) -> tuple[list[Change], float]:
    """The changes of the keys, and the maximum distance of a held point from its place."""
    frames, solver = span.motion.frames, span.solver(slice(None))
    leads = [(armature, ""), *([(settings.target, settings.target_bone)] if settings.target is not None else [])]
    _, matrices = finish(sample_steps(scene, (), leads, frames))
    # From armature space to the space that the bone stays in: of the world, an object or a bone.
    into = matrices[:, 0] if settings.target is None else np.linalg.inv(matrices[:, 1]) @ matrices[:, 0]
    targets, rotations = solver.own_points.copy(), solver.own_rotations.copy()
    is_held, is_dense = [], bool(np.diff(frames).max() <= _DENSE)
    base = np.zeros_like(targets[:, 0])
    for place, each in enumerate(held):
        row = int(np.argmin(np.abs(frames - each.at)))
        back = np.linalg.inv(into) @ into[row]
        whole = each.stand.first, each.stand.last
        # Except for what keeps each of them in place, the points of a foot move alike. So their distances hardly
        # change.
        offsets = (back @ (*targets[row, place], 1.0))[:, :3] - targets[:, place] - base
        most = np.linalg.norm(np.diff(targets[:, place], 2, axis=0), axis=1).max(initial=0.0) if is_dense else 0.0
        moved = base + eased(frames, offsets, whole, each.ends, most)
        targets[:, place] += moved
        base = moved if place == 0 else base
        if settings.hold_rotation:
            turned = back[:, :3, :3] @ matrix_from_quaternion(rotations[row, place])
            turned /= np.cbrt(np.linalg.det(turned))[:, None, None]
            own = rotations[:, place]
            away = rotation_vector_from_quaternion(product(quaternion_from_matrix(turned), conjugate(own)))
            rotations[:, place] = product(quaternion_from_rotation_vector(eased(frames, away, whole, each.ends)), own)
        else:
            rotations[:, place] = np.nan
        is_held.append((frames >= whole[0]) & (frames <= whole[1]))
    found = solver.solve(targets, rotations)
    if is_dense:
        found = solver.smoothed(targets, rotations, found)
    new = new_channels(armature, span.take, span.motion, found.rotations, found.roots)
    miss = max(float(found.errors[rows, place].max()) for place, rows in enumerate(is_held))
    return changes_of(span.take, span.motion, new), miss


def eased(
    frames: FloatArray,
    offsets: FloatArray,
    whole: tuple[float, float],
    ends: tuple[float, float],
    acceleration: float = 0.0,
) -> FloatArray:
    """(F, n) offsets, unchanged on the frames of `whole`, and zero at the ends and beyond.

    In between are minimum-jerk curves from an offset and its speed to zero (Flash and Hogan, Journal of Neuroscience 5,
    1985). The speed fades out as fast as the acceleration allows. If it faded out over the whole time, a foot that
    leaves slowly would move by some centimeters.

    Args:
        frames: (F,) in rising order, including those of `whole`.
        offsets: (F, n) in any unit.
        whole: the first and the last frame on which the offsets do not change.
        ends: the frames at which the offsets are zero.
        acceleration: in the offsets' unit per frame²; 0 lets the speed fade out over the whole time.
    """
    inside = np.flatnonzero((frames >= whole[0]) & (frames <= whole[1]))
    found = np.zeros_like(offsets)
    found[inside] = offsets[inside]
    for edge, beside, end in (
        (inside[0], inside[:_BESIDE][-1], ends[0]),
        (inside[-1], inside[-_BESIDE:][0], ends[1]),
    ):
        rows = np.flatnonzero((frames - frames[edge]) * (end - frames[edge]) > 0.0)
        if not len(rows):
            continue
        width = end - frames[edge]
        speed = (offsets[beside] - offsets[edge]) / ((frames[beside] - frames[edge]) or 1.0)
        shortest = _PEAK * float(np.linalg.norm(speed)) / acceleration if acceleration > 0.0 else np.inf
        stops = np.sign(width) * np.clip(shortest, 1.0, abs(width))
        time, own = (np.minimum((frames[rows] - frames[edge]) / every, 1.0)[:, None] for every in (width, stops))
        stays = 1.0 - time**3 * (10.0 - 15.0 * time + 6.0 * time**2)
        goes_on = own - own**3 * (6.0 - 8.0 * own + 3.0 * own**2)
        found[rows] = stays * offsets[edge] + goes_on * stops * speed
    return found
