"""The pose of a live rig: solved for its targets as they are now, and written where it is another than the present."""

from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.errors import FabrikError
from ...core.rotations import angle_between, slerp
from ..goals.effectors import check_effectors
from ..goals.goals import Goals, gather_goals
from ..goals.places import present_places
from ..goals.root import moves_root
from ..rig.armature import check_editable, read_trees, write_pose
from ..rig.legal import legal_rotations
from ..rig.stretch import present_factors, write_stretches
from ..settings.rig import rig_settings
from ..settings.why_not import why_no_solve
from .base_pose import BasePose
from .solve_frame import solve_tree, stretch_factors

# Radians, and shares of the root bone's length: what a pose may be off by without being written again.
_SAME_TURN: Final = 2e-6
_SAME_PLACE: Final = 1e-6


def try_pose(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object) -> str:
    """Pose a rig that has something to reach; what keeps it from being posed, "" where nothing does."""
    try:
        if not why_no_solve(rig):
            _pose_live(graph, scene, rig)
    except FabrikError as error:
        return str(error)
    return ""


def _pose_live(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Pose a rig for its targets as a depsgraph has them. Raises a FabrikError, with the pose as before."""
    check_effectors(scene, rig)
    check_editable(rig)
    base = BasePose(rig, scene.frame_current_final)
    for goals in gather_goals(rig, read_trees(rig)):
        _pose_tree(graph, scene, rig, goals, base)


def _pose_tree(
    graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, goals: Goals, base: BasePose
) -> None:
    """Pose one tree, a share of the way from its base pose to its targets."""
    tree, free = goals.tree, moves_root(rig, goals)
    present, place = tree.rotations, tree.root_location
    start = present.copy()
    start[goals.bones] = base.rotations(goals.bone_names)
    head = base.root_place(tree.skeleton.names[0]) if free else place
    solution = solve_tree(rig, goals, present_places(graph, scene, rig, goals), start, head)
    share = rig_settings(rig).influence
    rotations = blend(goals, start, solution.rotations, share)
    location = head + share * (solution.root_location - head)
    stretches = {name: 1.0 + share * (factor - 1.0) for name, factor in stretch_factors(goals, solution).items()}
    shown = present_factors(rig, stretches)
    stretched = any(abs(shown[name] - factor) > _SAME_PLACE for name, factor in stretches.items())
    turned = angle_between(rotations, present)[goals.bones].max() > _SAME_TURN
    moved = np.abs(location - place).max() > _SAME_PLACE * max(float(tree.skeleton.lengths[0]), 1e-3)
    if turned or stretched or (free and moved):
        write_stretches(rig, stretches)
        write_pose(rig, tree.skeleton, rotations, location if free else None, bones=goals.bones)


def blend(goals: Goals, start: FloatArray, end: FloatArray, share: float) -> FloatArray:
    """(J, 4) a share of the way from one pose to another; bones that start inside their limits stay inside."""
    if share in {0.0, 1.0}:
        return end if share else start
    mixed = slerp(start, end, np.full(len(start), share))
    for name, limit in goals.limits.items():
        bone = goals.tree.skeleton.index(name)
        if np.array_equal(legal_rotations(limit, start[bone][None])[0], start[bone]):
            mixed[bone] = legal_rotations(limit, mixed[bone][None])[0]
    return mixed
