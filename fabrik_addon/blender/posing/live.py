"""Live posing: a rig is solved again whenever something that it depends on has changed.

Blender tells of changes through handlers, which are there only while some rig is live. They write the pose and ask for
nothing to be evaluated, as that would call them again. What they write depends on the scene and not on what they wrote
before, so that undo, a file opened again, or frames in any order find the same pose; where that is the present one
nothing is written, and things come to rest.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import bpy
from bpy.app.handlers import persistent

from ..settings.rig import LIVE_LISTENERS, rig_settings
from ..settings.why_not import enabled_effectors

_Handler: TypeAlias = Callable[..., None]


def start() -> None:
    """Be ready for files with live rigs, and go on with those of the present one."""
    LIVE_LISTENERS.append(switched)
    bpy.app.handlers.load_post.append(_after_load)
    if hasattr(bpy.data, "objects"):
        follow()
    elif not bpy.app.background:
        # Blender hides its data while it switches an extension on.
        bpy.app.timers.register(follow, first_interval=0.0)


def stop() -> None:
    """Leave nothing behind."""
    LIVE_LISTENERS.remove(switched)
    if bpy.app.timers.is_registered(follow):
        bpy.app.timers.unregister(follow)
    _remove(bpy.app.handlers.load_post, _after_load)
    _watch(on=False)
    for handlers, handler in _history_handlers():
        _remove(handlers, handler)


def switched(rig: bpy.types.Object) -> None:
    """Live has been switched on or off for a rig."""
    from ..rig.base_pose import forget_pose, store_pose

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


def _pose_all(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, *, changed: bool) -> None:
    """Pose the live rigs of a scene; where `changed` only those that something in the depsgraph's updates concerns."""
    if graph.mode != "VIEWPORT" or bpy.app.is_job_running("RENDER"):
        # A render that finds its pose changed under its hands crashes.
        return
    from .live_pose import try_pose

    for rig in live_rigs(scene):
        if not changed or _concerns(graph, rig):
            _note(rig, try_pose(graph, scene, rig))


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
    import logging

    for rig in live_rigs(scene):
        logging.getLogger(__name__).warning("Live posing of %r is off in renders: bake it to keyframes first", rig.name)


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
