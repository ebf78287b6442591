"""The pose of a live rig: solved for its targets as they are now, and written where it is another than the present."""

from dataclasses import replace
from typing import Final, TypeAlias

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.errors import FabrikError
from ...core.rotations import angle_between, slerp
from ..control.limbs import Update
from ..control.posed_rig import posed_rig
from ..goals.effectors import check_effectors
from ..goals.goals import Goals
from ..goals.places import Places, present_places
from ..goals.root import moves_root
from ..rig.armature import Tree, check_editable
from ..rig.legal import legal_rotations
from ..rig.stretch import present_factors, write_stretches
from ..settings.rig import rig_settings
from ..settings.why_not import why_no_solve
from .base_pose import BasePose
from .live_session import LiveRig, LiveSession, OnIk
from .solve_frame import is_by_posture, solve_tree, stretch_factors

# Radians, and shares of the root bone's length: what a pose may be off by without being written again.
_SAME_TURN: Final = 2e-6
_SAME_PLACE: Final = 1e-6

# By the rig's number in this run of Blender.
LiveRigs: TypeAlias = dict[int, LiveRig]


def try_pose(
    graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, rigs: LiveRigs, update: Update
) -> str:
    """Pose a rig that has something to reach; what keeps it from being posed, "" where nothing does.

    update: evaluates the scene, without calling back.
    """
    try:
        if not why_no_solve(rig):
            live = rigs.setdefault(rig.session_uid, LiveRig())
            check_effectors(scene, rig)
            check_editable(rig)
            base = BasePose(rig, scene.frame_current_final)
            for goals, tree in live.goals.gather(rig):
                _pose_tree(scene, rig, goals, tree, base, present_places(graph, scene, rig, goals), live, update)
    except FabrikError as error:
        return str(error)
    return ""


def _pose_tree(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    goals: Goals,
    tree: Tree,
    base: BasePose,
    places: Places,
    live: LiveRig,
    update: Update,
) -> None:
    """Pose one tree, a share of the way from its base pose to its targets."""
    free, posed = moves_root(rig, goals), posed_rig(rig)
    present, place = tree.rotations, tree.root_location
    start = present.copy()
    start[goals.bones] = base.rotations(goals.bone_names)
    head = base.root_place(tree.skeleton.names[0]) if free else place
    share = rig_settings(rig).influence
    if is_by_posture(goals, places):
        session: LiveSession | None = _session(rig, goals, (start, head), live)
        shown = tree if share == 1.0 else None
        locks = posed.locks(tree.skeleton, goals.bones, start)
        solved, solved_head = session.pose(places, (start, head), locks, scene.frame_current_final, shown)
        stretches: dict[str, float] = {}
    else:
        solution, session = solve_tree(rig, replace(goals, tree=tree), places, start, head), None
        solved, solved_head = solution.rotations, solution.root_location
        factors = stretch_factors(goals, solution)
        stretches = {name: 1.0 + share * (factor - 1.0) for name, factor in factors.items()}
    rotations = blend(goals, start, solved, share)
    location = head + share * (solved_head - head)
    factors = present_factors(rig, stretches)
    stretched = any(abs(factors[name] - factor) > _SAME_PLACE for name, factor in stretches.items())
    root, elsewhere = tree.skeleton.names[0], posed.on_ik
    on_ik = [bone for bone in goals.bones if tree.skeleton.names[bone] in elsewhere]
    others = [bone for bone in goals.bones if bone not in on_ik]
    turned = bool((angle_between(rotations[others], present[others]) > _SAME_TURN).any())
    if on_ik and not live.on_ik.setdefault(root, OnIk(np.zeros_like(rotations))).are_there(rotations, present, on_ik):
        turned = True
    moved = np.abs(location - place).max() > _SAME_PLACE * max(float(tree.skeleton.lengths[0]), 1e-3)
    if turned or stretched or (free and moved):
        write_stretches(rig, stretches)
        live.on_ik[root] = OnIk(rotations)
        known = {} if session is None else session.limbs
        writer = posed.writer(update, tree.skeleton, goals.bones, moves_root=free, known=known)
        if session is not None:
            # Limbs that stay on IK go on from where they are.
            session.limbs = dict(writer.limbs)
        writer.write(rotations, location if free else None)
        rig.update_tag(refresh={"DATA"})


def _session(rig: bpy.types.Object, goals: Goals, base: tuple[FloatArray, FloatArray], live: LiveRig) -> LiveSession:
    """The session of a tree, the one that is there if it still fits."""
    root = goals.tree.skeleton.names[0]
    session = live.trees.get(root)
    if session is None or not session.fits(rig, goals):
        session = live.trees[root] = LiveSession(rig, goals, base, session)
    return session


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
