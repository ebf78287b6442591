"""Moves targets to the current pose's effectors, so that solving changes nothing (FK to IK)."""

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...core.arrays import FloatArray
from ...core.errors import first_few
from ..goals.effectors import check_effectors, set_pin
from ..goals.places import present_places, tree_space
from ..goals.problem import find_problems
from ..limits.check_action import clamp_pose
from ..rig.armature import RigError, check_editable
from ..rig.legal import excess
from ..rig.spaces import armature_point
from ..settings.markers import MARKER_NAME
from ..settings.rig import FabrikEffector, rig_settings
from ..settings.why_not import enabled_effectors
from . import live
from .stored_pose import store_pose

# Shares of a limb's length: a limb bends to a side if its middle is at least this far from its line, and a pole on that
# line is placed this far away.
_BENT = 1e-3
_AWAY = 0.5
# Degrees: a smaller violation of a limit is not reported.
_OUTSIDE = 0.5


@dataclass(frozen=True)
class _Move:
    """An object, or a bone of one, and its new world location; its rotation is None if it does not change."""

    holder: bpy.types.Object
    bone: str
    location: Vector
    rotation: Quaternion | None = None


def snap_targets(context: bpy.types.Context, rig: bpy.types.Object, *, clamp: bool = False) -> tuple[int, list[str]]:
    """Move targets, poles and pins to the current pose, and set the target rotations in use.

    clamp: first rotate bones that exceed their limits inside. Returns how many have been moved, and notes on targets
    that cannot be moved and on bones outside their limits. Raises a FabrikError, with nothing moved, if none can be.
    """
    check_effectors(context.scene, rig)
    check_editable(rig)
    context.view_layer.update()
    effectors = enabled_effectors(rig)
    trees = find_problems(rig)
    loops = {(effector.bone, effector.target_bone) for problem in trees for effector in problem.effectors}
    own = [each for each in effectors if each.target == rig and (each.bone, each.target_bone) in loops]
    reaching = [each for each in effectors if each.kind == "TARGET" and each not in own]
    moves = [*(_to_effector(rig, each) for each in reaching), *_to_bends(context, rig)]
    stays = [f"Target {each.target_bone!r} was not moved: it is a bone of {rig.name!r}" for each in own]
    stays += [reason for reason in dict.fromkeys(_why_stays(move) for move in moves) if reason]
    pins = [effector for effector in effectors if effector.kind == "PIN"]
    going = [move for move in moves if not _why_stays(move)]
    if not going and not pins:
        raise RigError(stays[0])
    live.pause(rig)
    try:
        if clamp and _outside_limits(rig):
            stays += clamp_pose(context, list(rig.pose.bones))[1]
            context.view_layer.update()
            moves = [*(_to_effector(rig, each) for each in reaching), *_to_bends(context, rig)]
            going = [move for move in moves if not _why_stays(move)]
        stays += _outside_limits(rig)
        for pin in pins:
            set_pin(pin, rig.pose.bones[pin.bone])
        for move in sorted(going, key=_depth):
            _move(move)
            context.view_layer.update()
    finally:
        if rig_settings(rig).live:
            store_pose(rig, rig_settings(rig).stored_pose)
        live.resume(rig)
    return len(pins) + len(going), stays


def _outside_limits(rig: bpy.types.Object) -> list[str]:
    """A note on the bones that solving would move inside their limits, the farthest first; none if all are inside."""
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


def _to_effector(rig: bpy.types.Object, effector: FabrikEffector) -> _Move:
    """The movement of a target to its effector."""
    bone = rig.pose.bones[effector.bone]
    place = rig.matrix_world @ armature_point(bone, effector.point, effector.offset)
    rotation = (rig.matrix_world @ bone.matrix).to_quaternion() if effector.hold_rotation else None
    return _Move(effector.target, effector.target_bone, place, rotation)


def _to_bends(context: bpy.types.Context, rig: bpy.types.Object) -> Iterator[_Move]:
    """Movements that rotate poles about their limbs, to the side to which the limbs bend."""
    for problem in find_problems(rig):
        if any(bend is not None for bend in problem.bends):
            places = present_places(context.evaluated_depsgraph_get(), context.scene, rig, problem)
            space = tree_space(rig, problem)
            solved = problem.solver().problem
            pose = solved.bodies.pose(problem.tree.rotations[solved.bones], problem.tree.root_location)
            for limb in solved.bend_limbs:
                end = pose.points(np.array(limb.bodies[-1:]), limb.end[None])
                heads = pose.heads[[limb.bodies[0], *limb.middle]]
                bend = problem.bends[limb.effector]
                if bend is not None and places.bends is not None:
                    toward = _Side(np.concatenate([heads[:1], end, heads[1:]]))
                    place = toward(places.bends[limb.effector])
                    yield _Move(*bend, Vector((space[:3, :3] @ place + space[:3, 3]).tolist()))


class _Side:
    """The side to which a limb bends, from its base, its end, and the joints between: (2 + N, 3) points.

    It rotates points to that side.
    """

    def __init__(self, points: FloatArray) -> None:
        self.base = points[0]
        line = points[1] - points[0]
        self.length = float(np.linalg.norm(line))
        self.axis = line / max(self.length, 1e-12)
        self.side = np.sum([self._beside(point) for point in points[2:]], axis=0)

    def __call__(self, point: FloatArray) -> FloatArray:
        """(3,) a point rotated about the limb's line; unchanged if the limb is straight."""
        size = float(np.linalg.norm(self.side))
        if size <= _BENT * self.length:
            return point
        beside = self._beside(point)
        away = float(np.linalg.norm(beside))
        away = away if away > _BENT * self.length else _AWAY * self.length
        turned: FloatArray = point - beside + self.side * (away / size)
        return turned

    def _beside(self, point: FloatArray) -> FloatArray:
        arm = point - self.base
        beside: FloatArray = arm - self.axis * (arm @ self.axis)
        return beside


def _why_stays(move: _Move) -> str:
    """Why something cannot be moved, as a sentence; "" if it can."""
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
    """The number of parents above something."""
    depth = len(move.holder.pose.bones[move.bone].parent_recursive) if move.bone else 0
    holder = move.holder
    while holder.parent is not None:
        depth, holder = depth + 1, holder.parent
    return depth


def _move(move: _Move) -> None:
    """Move one target; its scale stays."""
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
