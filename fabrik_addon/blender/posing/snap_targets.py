"""Moves targets to the current pose's effectors, so that solving changes nothing (FK to IK)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bpy.types import Context, Object
from mathutils import Matrix, Quaternion, Vector

from ...core.arrays import FloatArray
from ...core.errors import first_few
from ...core.limits import excess
from ..goals.effectors import check_followed, set_pin
from ..goals.places import current_targets, tree_space
from ..goals.problem import find_problems
from ..limits.action import clamp_pose
from ..rig.armature import RigError, armature_point, check_editable
from ..settings.motion import MARKER_NAME
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors
from . import live
from .solve import store_base

# Fractions of a limb's length. A limb has a bend direction if its middle is at least the first fraction away from the
# line between its ends. A pole on that line is moved away by the second one.
_BENT = 1e-3
_AWAY = 0.5
# Degrees. Smaller violations of a limit are not reported.
_OUTSIDE = 0.5


@dataclass(frozen=True)
class _Move:
    """An object or one of its bones, and its new world location and rotation; None if the rotation does not change."""

    holder: Object
    bone: str
    location: Vector
    rotation: Quaternion | None = None


def snap_targets(context: Context, rig: Object, *, clamp: bool = False) -> tuple[int, list[str]]:
    """Move targets, poles and pins to the current pose, and set the target rotations that are used.

    clamp: first clamp bones to their limits. Returns the number of moved targets, and notes on targets that can't be
    moved and on bones outside their limits. Raises a FabrikError, with nothing moved, if no target can be moved.
    """
    check_followed(context.scene, rig)
    check_editable(rig)
    context.view_layer.update()
    effectors = enabled_effectors(rig)
    trees = find_problems(rig)
    loops = {(effector.bone, effector.target_bone) for problem in trees for effector in problem.effectors}
    own = [each for each in effectors if each.target == rig and (each.bone, each.target_bone) in loops]
    reaching = [each for each in effectors if each.kind == "TARGET" and each not in own]
    going, why = _moves(context, rig, reaching)
    stays = [f"Target {each.target_bone!r} was not moved: it is a bone of {rig.name!r}" for each in own] + why
    pins = [effector for effector in effectors if effector.kind == "PIN"]
    if not going and not pins:
        raise RigError(stays[0])
    live.pause(rig)
    try:
        if clamp and _outside_limits(rig):
            stays += clamp_pose(context, list(rig.pose.bones))[1]
            context.view_layer.update()
            going, _ = _moves(context, rig, reaching)
        stays += _outside_limits(rig)
        for pin in pins:
            set_pin(pin, rig.pose.bones[pin.bone])
        for move in sorted(going, key=_depth):
            _move(move)
            context.view_layer.update()
    finally:
        if rig_settings(rig).live:
            store_base(rig)
        live.resume(rig)
    return len(pins) + len(going), stays


def _outside_limits(rig: Object) -> list[str]:
    """A note on the bones outside their limits, which solving would change; an empty list if there are none."""
    found: dict[str, float] = {}
    for problem in find_problems(rig):
        for bone in problem.bones:
            name = problem.tree.skeleton.names[bone]
            if name in problem.limits:
                found[name] = float(np.degrees(excess(problem.limits[name], problem.tree.rotations[bone][None])[0]))
    outside = sorted((name for name in found if found[name] > _OUTSIDE), key=lambda name: -found[name])
    if not outside:
        return []
    worst = f"{found[outside[0]]:.0f}"
    sentence = "Bones outside their limits, by up to {}°: {}; solving would rotate them inside, so use Clamp Pose first"
    return [sentence.format(worst, first_few(outside))]


def _moves(context: Context, rig: Object, reaching: Sequence[FabrikEffector]) -> tuple[list[_Move], list[str]]:
    """Movements of targets to their effectors, and of poles in the directions in which their limbs bend.

    Also returns the reasons why other targets are not moved.
    """
    found = list[_Move]()
    for effector in reaching:
        bone = rig.pose.bones[effector.bone]
        point = rig.matrix_world @ armature_point(bone, effector.point, effector.offset)
        rotation = (rig.matrix_world @ bone.matrix).to_quaternion() if effector.hold_rotation else None
        found.append(_Move(effector.target, effector.target_bone, point, rotation))
    for problem in find_problems(rig):
        if any(bend is not None for bend in problem.bends):
            places = current_targets(context.evaluated_depsgraph_get(), context.scene, rig, problem)
            space = tree_space(rig, problem)
            solved = problem.solver().problem
            pose = solved.bodies.pose(problem.tree.rotations[solved.bones], problem.tree.root_location)
            for limb in solved.bend_limbs:
                end = pose.points(np.array(limb.bodies[-1:]), limb.end[None])
                heads = pose.heads[[limb.bodies[0], *limb.middle]]
                bend = problem.bends[limb.effector]
                if bend is not None and places.bends is not None:
                    joints = np.concatenate([heads[:1], end, heads[1:]])
                    place = _on_its_side(joints, places.bends[limb.effector])
                    found.append(_Move(*bend, Vector((space[:3, :3] @ place + space[:3, 3]).tolist())))
    reasons = dict.fromkeys(filter(None, map(_why_stays, found)))
    return [move for move in found if not _why_stays(move)], list(reasons)


def _on_its_side(joints: FloatArray, pole: FloatArray) -> FloatArray:
    """(3,) a pole (3,) rotated about a limb's line in the limb's bend direction; unchanged if the limb is straight.

    joints: (2 + N, 3) the limb's base, its end, and the joints between.
    """
    base, line = joints[0], joints[1] - joints[0]
    length = float(np.linalg.norm(line))
    axis = line / max(length, 1e-12)
    beside = np.concatenate([joints[2:], pole[None]]) - base
    beside -= np.outer(beside @ axis, axis)
    side, own = beside[:-1].sum(axis=0), beside[-1]
    size, away = float(np.linalg.norm(side)), float(np.linalg.norm(own))
    if size <= _BENT * length:
        return pole
    away = away if away > _BENT * length else _AWAY * length
    return np.asarray(pole - own + side * (away / size))


def _why_stays(move: _Move) -> str:
    """The reason why a target cannot be moved, as a sentence; "" if it can."""
    holder = move.holder
    if holder.library is not None:
        return f"Target {holder.name!r} was not moved: it is linked from another file"
    if not move.bone and holder.get(MARKER_NAME) is not None:
        return f"Target {holder.name!r} was not moved: it is a recorded marker"
    owner = holder.pose.bones[move.bone] if move.bone else holder
    if any(not each.mute and each.influence > 0.0 for each in owner.constraints):
        return f"Target {owner.name!r} was not moved: it has constraints"
    if move.bone and owner.bone.use_connect:
        return f"Target {owner.name!r} was not moved: it is connected to its parent"
    return ""


def _depth(move: _Move) -> int:
    depth, holder = len(move.holder.pose.bones[move.bone].parent_recursive) if move.bone else 0, move.holder
    while (holder := holder.parent) is not None:
        depth += 1
    return depth


def _move(move: _Move) -> None:
    world = move.holder.matrix_world
    if move.bone:
        bone = move.holder.pose.bones[move.bone]
        into = world.inverted()
        turn = bone.matrix.to_quaternion() if move.rotation is None else into.to_quaternion() @ move.rotation
        bone.matrix = Matrix.LocRotScale(into @ move.location, turn, bone.matrix.to_scale())
        return
    scale = move.holder.scale.copy()
    turn = world.to_quaternion() if move.rotation is None else move.rotation
    move.holder.matrix_world = Matrix.LocRotScale(move.location, turn, world.to_scale())
    move.holder.scale = scale
