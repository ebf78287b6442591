"""Live posing: a rig is solved again whenever something that it depends on has changed.

Blender tells of changes through handlers, which are there only while some rig is live. They write the pose and ask for
nothing to be evaluated, as that would call them again. What they write depends on the scene and not on what they wrote
before, so that undo, a file opened again, or frames in any order find the same pose; where that is the present one
nothing is written, and things come to rest.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
from bpy.app.handlers import persistent

from ..core.arrays import FloatArray
from ..core.errors import FabrikError
from .base_pose import BasePose, forget_pose, store_pose
from .effectors import Goals, check_effectors, enabled_effectors, gather_goals, why_no_solve
from .goal_places import present_places
from .legal import angles_between, legal_rotations
from .rig import check_editable, read_trees, write_pose
from .settings import rig_settings
from .slides import present_factors, write_stretches
from .solve_frame import moves_root, solve_tree, stretch_factors
from .unseen import slerp

_Handler: TypeAlias = Callable[..., None]

# Radians, and shares of the root bone's length: what a pose may be off by without being written again.
_SAME_TURN: Final = 2e-6
_SAME_PLACE: Final = 1e-6

_log = logging.getLogger(__name__)


def start() -> None:
    """Be ready for files with live rigs, and go on with those of the present one."""
    bpy.app.handlers.load_post.append(_after_load)
    if hasattr(bpy.data, "objects"):
        follow()
    elif not bpy.app.background:
        # Blender hides its data while it switches an extension on.
        bpy.app.timers.register(follow, first_interval=0.0)


def stop() -> None:
    """Leave nothing behind."""
    if bpy.app.timers.is_registered(follow):
        bpy.app.timers.unregister(follow)
    _remove(bpy.app.handlers.load_post, _after_load)
    _watch(on=False)
    for handlers, handler in _history_handlers():
        _remove(handlers, handler)


def switched(rig: bpy.types.Object) -> None:
    """Live has been switched on or off for a rig."""
    kept = rig_settings(rig)
    if not kept.live:
        forget_pose(rig)
    elif not kept.stored_pose and rig.pose is not None:
        store_pose(rig)
    follow()


def follow() -> None:
    """Watch the scenes while they have a live rig, and no longer."""
    some = any(live_rigs(scene) for scene in bpy.data.scenes)
    _watch(on=some)
    if some:
        # Undo can bring a live rig back after the last one was switched off.
        for handlers, handler in _history_handlers():
            _add(handlers, handler)


def is_watching() -> bool:
    """Whether the handlers are there."""
    return _on_update in bpy.app.handlers.depsgraph_update_post


def pause() -> None:
    """No live posing until `follow` is called, for what goes through frames by itself."""
    _watch(on=False)


def live_rigs(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The armatures of a scene that are live."""
    return [thing for thing in scene.objects if thing.type == "ARMATURE" and rig_settings(thing).live]


def pose_live(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
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
    turned = angles_between(rotations, present)[goals.bones].max() > _SAME_TURN
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


def _pose_all(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, *, changed: bool) -> None:
    """Pose the live rigs of a scene; where `changed` only those that something in the depsgraph's updates concerns."""
    if graph.mode != "VIEWPORT" or bpy.app.is_job_running("RENDER"):
        # A render that finds its pose changed under its hands crashes.
        return
    for rig in live_rigs(scene):
        if changed and not _concerns(graph, rig):
            continue
        try:
            if not why_no_solve(rig):
                pose_live(graph, scene, rig)
            _note(rig, "")
        except FabrikError as error:
            _note(rig, str(error))


def _concerns(graph: bpy.types.Depsgraph, rig: bpy.types.Object) -> bool:
    """Whether something that a rig's pose depends on has been evaluated anew."""
    heeded = {rig, rig.data}
    for effector in enabled_effectors(rig):
        heeded.update((effector.target, effector.bend_target))
    return any(
        (update.is_updated_transform or update.is_updated_geometry) and update.id.original in heeded
        for update in graph.updates
    )


def _note(rig: bpy.types.Object, trouble: str) -> None:
    """Keep what keeps a rig from being posed, for the sidebar."""
    kept = rig_settings(rig)
    if kept.live_trouble != trouble:
        kept.live_trouble = trouble


@persistent  # type: ignore[untyped-decorator]
def _on_update(scene: bpy.types.Scene, graph: bpy.types.Depsgraph) -> None:
    """Something has changed."""
    _pose_all(graph, scene, changed=True)


@persistent  # type: ignore[untyped-decorator]
def _on_frame(scene: bpy.types.Scene, graph: bpy.types.Depsgraph) -> None:
    """The frame has changed."""
    _pose_all(graph, scene, changed=False)


@persistent  # type: ignore[untyped-decorator]
def _after_load(*_arguments: object) -> None:
    """A file has been opened."""
    follow()


@persistent  # type: ignore[untyped-decorator]
def _after_undo(*_arguments: object) -> None:
    """Something has been undone or redone, the switch perhaps."""
    follow()


@persistent  # type: ignore[untyped-decorator]
def _before_render(scene: bpy.types.Scene, *_arguments: object) -> None:
    """A render begins, in which live rigs are not posed."""
    for rig in live_rigs(scene):
        _log.warning("Live posing of %r is off in renders: bake it to keyframes first", rig.name)


def _watch(*, on: bool) -> None:
    """Add or remove what sees changes."""
    change = _add if on else _remove
    change(bpy.app.handlers.depsgraph_update_post, _on_update)
    change(bpy.app.handlers.frame_change_post, _on_frame)
    change(bpy.app.handlers.render_init, _before_render)


def _history_handlers() -> list[tuple[list[_Handler], _Handler]]:
    """What sees undo and redo."""
    handlers: Any = bpy.app.handlers
    return [(handlers.undo_post, _after_undo), (handlers.redo_post, _after_undo)]


def _add(handlers: list[_Handler], handler: _Handler) -> None:
    if handler not in handlers:
        handlers.append(handler)


def _remove(handlers: list[_Handler], handler: _Handler) -> None:
    if handler in handlers:
        handlers.remove(handler)
