"""Finds the controls of limbs on IK by trials: they move the limb on IK, and have no effect on FK."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import bpy
import numpy as np
from mathutils import Matrix

from ...core.arrays import FloatArray
from ..rig.keyframes import bone_path
from ..rig.locks import moved_by
from ..rig.pose_writer import HeldChannels, write_switches
from ..settings.control import FabrikControlRig
from .limbs import LimbOnIk, place_limbs_directly, try_channels
from .model import add_to_channels, free_channels
from .switches import switch_limbs

# Effects below this share of a trial step's largest effect are ignored.
_NOTHING: Final = 1e-3
# A control is needed only if other controls cannot reproduce more than this share of its effect. Smaller differences
# may come from the curvature of the trials' arcs.
_NEW: Final = 0.1
# The largest share of a joint's bend about a second axis, and the least cosine between the hinge and an axis of the
# bone, for a joint to count as a hinge.
_ONE_AXIS: Final = 0.05
_ALONG: Final = 0.9994
# Radians from straight, or half of a limb's bend at rest. Blender's IK has an error of 0.01 mm, which rotates a limb of
# half a meter with a bend of 1 degree by 0.2 degrees. This bend shortens the limb by 0.6 mm.
_STRAIGHT: Final = 0.1
# Share of a trial's movement. A bone whose length changes by more is stretched (Rigify's by a tenth to a fifth).
_STRETCH: Final = 0.03
# Share of a trial's angle. A bone whose rotation differs by less from the control's follows it rigidly.
_RIGID: Final = 0.02
_AXES: Final = 3


def find_limb_controls(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    candidates: Sequence[str],
    after: Mapping[str, int],
) -> None:
    """Store the limb that each control moves on IK. Leaves the switches on IK.

    candidates: the controls that users may move or rotate. after: for each bone, the bones that may follow it, as bits.
    """
    limbs: dict[str, list[str]] = {}
    for row in kept.carriers:
        limbs.setdefault(row.switch, []).append(row.name)
    limbs.pop("", None)
    carrying = {kept.place, *(row.control for row in kept.carriers)}
    # The outermost controls first.
    free = sorted({*candidates} - carrying, key=lambda name: (-after[name].bit_count(), name))
    mine = {path: _exclusive_controls(rig, kept, limb, free, after) for path, limb in limbs.items()}
    write_switches(rig, {row.name: row.fk for row in kept.switches})
    moving = _effective_controls(context, rig, limbs, mine)
    mine = {path: [name for name in mine[path] if name not in moving] for path in limbs}
    write_switches(rig, {row.name: row.ik for row in kept.switches})
    context.view_layer.update()
    tried = {path: LimbOnIk(rig, bones, mine[path]) for path, bones in limbs.items() if mine[path]}
    try_channels(context.view_layer.update, list(tried.values()))
    context.view_layer.update()
    for path, limb in tried.items():
        for name in _chosen(limb):
            _note(kept, limb, name, path)
        end = limb.carried[limb.controls.index(limb.leader)]
        if end.any():
            kept.carriers[limb.bones[int(np.argmax(end))]].goes_by = limb.leader
            _note_heel(kept, limb, int(np.argmax(end)))
        limb.hold({name: kept.carriers[name].goes_by for name in limb.bones if kept.carriers[name].goes_by})
    _stop_stretching(context, kept, tried, after)


def _stop_stretching(
    context: bpy.types.Context, kept: FabrikControlRig, limbs: Mapping[str, LimbOnIk], after: Mapping[str, int]
) -> None:
    """Store the bones whose IK Stretch is turned off, if this keeps the limb's lengths constant.

    IK Stretch is Blender's bone setting, not a setting of the rig. Some limbs stretch only when they are bent more than
    in a trial.
    """
    stretching = _stretching(next(iter(limbs.values())).rig) if limbs else []
    for path, limb in limbs.items():
        mine = _bit_mask(limb.rig, limb.bones)
        for bone in stretching:
            if after[bone.name] & mine:
                row = kept.along.add()
                row.name, row.switch = bone_path(bone.name, "ik_stretch"), path
                row.fk, row.ik = bone.ik_stretch, 0.0
        kept.switches[path].stretches = False
        switch_limbs(limb.rig, kept, {path: kept.switches[path].ik})
    # A paw's rest pose may differ from its controls', since Rigify rotates the heel to match.
    rests = [np.array([limb.rig.data.bones[name].matrix_local for name in limb.bones]) for limb in limbs.values()]
    place_limbs_directly(context.view_layer.update, list(limbs.values()), rests)
    context.view_layer.update()
    tried = {path: LimbOnIk(limb.rig, limb.bones, [limb.leader]) for path, limb in limbs.items()}
    try_channels(context.view_layer.update, list(tried.values()))
    context.view_layer.update()
    for path, limb in tried.items():
        _look_at_joints(kept, limb, path)


def _stretching(rig: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """The bones that IK may stretch."""
    iks: list[tuple[bpy.types.PoseBone, Any]] = [(bone, each) for bone in rig.pose.bones for each in bone.constraints]
    names = {each.name for bone, ik in iks if ik.type == "IK" and ik.use_stretch for each in moved_by(bone, ik)}
    return [bone for bone in rig.pose.bones if bone.name in names and bone.ik_stretch > 0.0]


def _exclusive_controls(
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    limb: Sequence[str],
    controls: Sequence[str],
    after: Mapping[str, int],
) -> list[str]:
    """The controls that move a limb, and nothing else of the body except bones below the limb."""
    below = set(limb)
    for row in kept.carriers:
        if row.parent in below:
            below.add(row.name)
    mine, others = _bit_mask(rig, limb), _bit_mask(rig, (row.name for row in kept.carriers if row.name not in below))
    return [name for name in controls if after[name] & mine and not after[name] & others]


def _bit_mask(rig: bpy.types.Object, names: Iterable[str]) -> int:
    """A bit for each named bone, at its index in the rig."""
    return sum(1 << rig.pose.bones.find(name) for name in names)


def _effective_controls(
    context: bpy.types.Context, rig: bpy.types.Object, limbs: Mapping[str, list[str]], mine: Mapping[str, list[str]]
) -> set[str]:
    """The controls that currently move their limb; in each trial one control of every limb is moved."""
    context.view_layer.update()
    tried = {path: LimbOnIk(rig, bones, mine[path]) for path, bones in limbs.items()}
    here = {path: limb.current_matrices() for path, limb in tried.items()}
    found: set[str] = set()
    for turn in range(max((len(names) for names in mine.values()), default=0)):
        names = {path: names[turn] for path, names in mine.items() if turn < len(names)}
        held = HeldChannels(rig, list(names.values()))
        for path, name in names.items():
            bone = rig.pose.bones[name]
            add_to_channels(bone, free_channels(bone) * tried[path].units)
        context.view_layer.update()
        for path, name in names.items():
            limb = tried[path]
            if limb.error(limb.differences(limb.current_matrices(), here[path])) > _NOTHING * limb.units[0]:
                found.add(name)
        held.put_back()
    return found


def _chosen(limb: LimbOnIk) -> list[str]:
    """The needed controls: the IK control, then those that add an effect, from the innermost.

    An example of a control without an effect is a pole that the rig's IK uses only on request.
    """
    chosen, known = [], np.zeros((len(limb.jacobian), 0))
    for name in (limb.leader, *(name for name in reversed(limb.controls) if name != limb.leader)):
        own = [column for column, (place, _) in enumerate(limb.columns) if limb.controls[place] == name]
        does = limb.jacobian[:, own]
        # A control adds an effect if one of its columns is not a linear combination of the known columns.
        rest = does - known @ (np.linalg.pinv(known, rcond=_NOTHING) @ does) if known.size else does
        sizes = np.linalg.norm(does, axis=0)
        adds = (np.linalg.norm(rest, axis=0) > _NEW * np.maximum(sizes, _NEW * sizes.max())).any()
        if np.abs(does).max() < _NOTHING * limb.units[0] or adds:
            chosen.append(name)
            known = np.concatenate([known, does], axis=1)
    return chosen


def _note(kept: FabrikControlRig, limb: LimbOnIk, control: str, path: str) -> None:
    """Store that a control moves a limb.

    A control that is only translated, a pole, is stored with the first bone that it rotates.
    """
    row = kept.controls.get(control)
    if row is None:
        row = kept.controls.add()
        row.name = control
    row.limb = path
    if row.stands_for:
        return
    own = [column for column, (place, _) in enumerate(limb.columns) if limb.controls[place] == control]
    turned = np.abs(limb.jacobian[:, own]).reshape(len(limb.bones), -1).max(axis=1) > _NOTHING * limb.units[0]
    row.stands_for = limb.bones[int(np.argmax(turned))] if turned.any() else limb.bones[0]


def _note_heel(kept: FabrikControlRig, limb: LimbOnIk, end: int) -> None:
    """Store the control, such as a paw's heel, that rotates only the bone above a limb's end, about all axes."""
    above = limb.bones.index(kept.carriers[limb.bones[end]].parent) if end else 0
    turned = limb.jacobian.reshape(len(limb.bones), 6, -1)[:, 3:] / limb.lengths[:, None, None]
    for place, name in enumerate(limb.controls if above else ()):
        own = [column for column, (control, axis) in enumerate(limb.columns) if control == place and axis >= 3]
        rigid = np.abs(np.linalg.norm(turned[above][:, own], axis=0) - limb.units[3]) < _RIGID * limb.units[3]
        if rigid.sum() == _AXES and np.abs(turned[end][:, own]).max() < _NOTHING * limb.units[3]:
            kept.carriers[limb.bones[above]].goes_by = name


def _look_at_joints(kept: FabrikControlRig, limb: LimbOnIk, path: str) -> None:
    """Store how a limb's IK bends the joints between its first bone and its end, and whether it stretches the limb.

    The limb need not be exactly in its rest pose.
    """
    leader, end = limb.controls.index(limb.leader), limb.carried.any(axis=0)
    own = [column for column, (place, axis) in enumerate(limb.columns) if place == leader and axis < 3]
    moved, turned = np.split(limb.jacobian[:, own].reshape(len(limb.bones), 6, -1), 2, axis=1)
    turned = turned / limb.lengths[:, None, None]
    rest = [limb.rig.data.bones[name].matrix_local for name in limb.bones]
    here = limb.current_matrices()
    for place in range(1, len(limb.bones)):
        row = kept.carriers[limb.bones[place]]
        above = limb.bones.index(row.parent) if row.parent in limb.bones else -1
        if above < 0 or end[above]:
            continue
        apart = here[place, :3, 3] - here[above, :3, 3]
        lengths = np.linalg.norm(apart[:, None] + moved[place] - moved[above], axis=0)
        if np.abs(lengths - np.linalg.norm(apart)).max() > _STRETCH * limb.units[0]:
            kept.switches[path].stretches = True
        if not end[place]:
            row.hinge, row.hinge_low, row.hinge_high = _hinge(turned[place] - turned[above], rest[above], rest[place])


def _hinge(turned: FloatArray, upper: Matrix, lower: Matrix) -> tuple[str, float, float]:
    """The axis ("" for several) and the range of a joint's bend, from rotation vectors `turned` (3, T) of T trials."""
    axes, sizes, _ = np.linalg.svd(turned)
    local = np.array(lower.to_3x3()).T @ axes[:, 0]
    along = int(np.argmax(np.abs(local)))
    if sizes[1] > _ONE_AXIS * sizes[0] or abs(local[along]) < _ALONG or along == 1:
        return "", 0.0, 0.0
    above, below = (each.col[1].to_3d() for each in (upper, lower))
    # The joint's bend at rest, measured from straight.
    bend = float(np.arctan2(above.cross(below).dot(lower.col[along].to_3d()), above.dot(below)))
    least = min(_STRAIGHT, 0.5 * abs(bend))
    low, high = (least - bend, np.pi - bend) if bend > 0.0 else (-np.pi - bend, -bend - least)
    return "XYZ"[along], low, high
