"""Live posing: solves a rig again whenever its targets or anything else that it depends on change.

Blender reports changes to handlers, which exist only while a rig is live. They write the pose without requesting an
evaluation, which would call them again. While targets move, a rig continues from its last pose. After a change of frame
it starts from its stored pose, so that a frame's pose does not depend on the order of frames. After undo, or in a
reopened file, it starts from the existing pose. If nothing has changed, nothing is written, so that updates end.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import bpy
from bpy.app.handlers import persistent
from bpy.types import Depsgraph, Object, Scene

from ..settings.in_use import call_later, listen, seen, stop_timers, when_ready
from ..settings.rig import LIVE_LISTENERS, rig_settings
from ..settings.why_not import enabled_effectors

# Seconds from one pose to the next while joints catch up with targets at rest.
PAUSE: Final = 1.0 / 60.0
_HISTORY: Final = ("undo_post", "redo_post")


def start() -> None:
    """Add the handler for opened files, and start the live rigs of the current file."""
    LIVE_LISTENERS.append(switched)
    listen(_after_load, "load_post", on=True)
    when_ready(follow)


def stop() -> None:
    """Remove all handlers."""
    LIVE_LISTENERS.remove(switched)
    stop_timers()
    listen(_after_load, "load_post", on=False)
    _watch(on=False)
    listen(follow, *_HISTORY, on=False)


def switched(rig: Object) -> None:
    """Handle a change of a rig's Live setting."""
    from ...core.errors import FabrikError
    from .solve import store_base

    settings = rig_settings(rig)
    _WATCHED.failed.discard(rig.session_uid)
    if not settings.live:
        settings.stored_pose.clear()
    elif not settings.stored_pose and rig.pose is not None:
        resting = {*_WATCHED.resting}
        pause(rig)
        try:
            # The panel shows why the rig can't be posed.
            with suppress(FabrikError):
                store_base(rig)
        finally:
            _WATCHED.resting = resting
    follow()


@persistent  # type: ignore[untyped-decorator]
def follow(*_arguments: object) -> None:
    """Find live rigs, and add handlers while there are any; paused rigs stay paused. Handles undo and redo."""
    _WATCHED.rigs = list(dict.fromkeys(rig for scene in bpy.data.scenes for rig in live_rigs(scene)))
    _WATCHED.posed.clear()
    _watch(on=bool(_WATCHED.rigs))
    if _WATCHED.rigs:
        # Undo may restore a live rig after the last one was switched off.
        listen(follow, *_HISTORY, on=True)


def pause(rig: Object) -> None:
    """Pause live posing of a rig while something else poses it, until `resume` is called; other rigs continue."""
    _WATCHED.resting.add(rig.session_uid)


def resume(rig: Object | None = None) -> None:
    """Continue live posing of a rig, or of all rigs if none is given or the rig has been deleted."""
    try:
        _WATCHED.resting -= {rig.session_uid} if rig is not None else set(_WATCHED.resting)
    except ReferenceError:
        _WATCHED.resting.clear()
    follow()


def is_paused(rig: Object) -> bool:
    """Whether something else currently poses a live rig, such as a drag."""
    return rig.session_uid in _WATCHED.resting


def why_short(rig: Object) -> str:
    """Why a live rig misses its targets, such as "foot.L is at its limit"; "" if there is no reason."""
    posed = _WATCHED.posed.get(rig.session_uid) if seen(rig).live else None
    return "" if posed is None else next((why for tree in posed.values() if (why := tree.why_short())), "")


def trouble_of(rig: Object) -> str:
    """The reason why live posing can't pose a rig; "" if it can."""
    return _WATCHED.troubles.get(rig.session_uid, "")


def live_rigs(scene: Scene) -> list[Object]:
    """The live armatures of a scene."""
    return [thing for thing in scene.objects if thing.type == "ARMATURE" and seen(thing).live]


@dataclass
class _Watched:
    """The live rigs of the file, cached because scenes may have thousands of objects.

    Attributes:
        rigs: references to them. Blender reports deleted rigs. Undo, redo and opening a file start a new search.
            Depsgraph updates report copied or appended rigs.
        resting: session IDs of paused rigs.
        failed: session IDs of rigs that stopped after an unexpected error, until Live is switched again.
        troubles: by session ID, the reason why a rig can't be posed; "" if it can.
        posed: the sessions of each rig, for `try_pose`.
        evaluating: whether the scene is being evaluated for a new pose. Then no rig is posed.
    """

    rigs: list[Object] = field(default_factory=list)
    resting: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    troubles: dict[int, str] = field(default_factory=dict)
    posed: dict[int, Any] = field(default_factory=dict)
    evaluating: bool = False


_WATCHED: Final = _Watched()


@persistent  # type: ignore[untyped-decorator]
def _pose_all(scene: Scene, graph: Depsgraph, updated: set[bpy.types.ID] | None = None) -> None:
    """Pose the live rigs of a scene, leaders first; handles a change of the frame.

    updated: pose only the rigs that depend on these data-blocks.
    """
    if _WATCHED.evaluating or graph.mode != "VIEWPORT" or bpy.app.is_job_running("RENDER"):
        # Changing a pose during a render would crash Blender.
        return
    rigs = [rig for rig in _WATCHED.rigs if _is_there(rig, graph) and rig.session_uid not in _WATCHED.resting]
    # The leaders of each rig: rigs whose bones are its targets, or which its targets follow by a parent or constraint.
    leaders: dict[Object, set[Object]] = {rig: set() for rig in rigs}
    for rig in rigs if len(rigs) > 1 else ():
        leaders[rig] = _carriers(_followed_effectors(rig) - {rig, rig.data, None}).intersection(rigs) - {rig}
    posed: set[bpy.types.ID] = set()
    # Rigs that depend on each other keep their order.
    with suppress(CycleError):
        rigs = list(TopologicalSorter(leaders).static_order())
    for rig in rigs:
        led = not posed.isdisjoint(leaders[rig])
        if updated is None or led or not updated.isdisjoint(_followed_effectors(rig)):
            if led:
                _evaluate(graph)
                posed.clear()
            _pose(graph, scene, rig)
            posed.add(rig)
    if not bpy.app.background and _catching_up():
        call_later(go_on, PAUSE)


def _catching_up() -> list[Any]:
    return [tree for rig in _WATCHED.posed.values() for tree in rig.values() if tree.is_catching_up]


def go_on() -> float | None:
    """Pose rigs whose joints are still catching up with targets at rest; called by a timer, only with a window.

    Returns the seconds until the next attempt if a render prevents posing, else None.
    """
    if bpy.app.is_job_running("RENDER"):
        # Accessing the evaluated scene evaluates it, which would crash a render.
        return PAUSE
    for session in _catching_up():
        session.may_continue = True
    graph = bpy.context.evaluated_depsgraph_get()
    _pose_all(graph.scene, graph)
    return None


def _pose(graph: Depsgraph, scene: Scene, rig: Object) -> None:
    from .solve import try_pose

    if rig.session_uid in _WATCHED.failed:
        return
    try:
        trouble = try_pose(graph, scene, rig, _WATCHED.posed, lambda: _evaluate(graph))
    except Exception as error:
        # Blender would print the traceback again on each frame.
        logging.getLogger(__name__).exception("Live posing of %r has stopped", rig.name)
        _WATCHED.failed.add(rig.session_uid)
        trouble = f"Stopped by an unexpected error ({error}): switch Live off and on to try again"
    _WATCHED.troubles[rig.session_uid] = trouble


def _evaluate(graph: Depsgraph) -> None:
    """Evaluate the scene with the new poses, without calling the handlers again."""
    _WATCHED.evaluating = True
    try:
        graph.update()
    finally:
        _WATCHED.evaluating = False


def _is_there(rig: Object, graph: Depsgraph) -> bool:
    """Whether a rig still exists, is live, and is in the evaluated scene."""
    try:
        return bool(rig_settings(rig).live and rig.evaluated_get(graph).is_evaluated)
    except ReferenceError:
        return False


def _followed_effectors(rig: Object) -> set[bpy.types.ID | None]:
    """The data-blocks that a rig's pose depends on, including the rig."""
    heeded: set[bpy.types.ID | None] = {rig, rig.data}
    for effector in enabled_effectors(rig):
        heeded.update((effector.target, effector.bend_target))
    return heeded


def _carriers(things: Iterable[Any]) -> set[Any]:
    """The objects, and all objects that they are parented or constrained to."""
    found: set[Any] = set()
    waiting = list(things)
    while waiting:
        thing = waiting.pop()
        if thing is not None and thing not in found:
            found.add(thing)
            waiting += [thing.parent, *(getattr(each, "target", None) for each in thing.constraints)]
    return found


@persistent  # type: ignore[untyped-decorator]
def _on_update(scene: Scene, graph: Depsgraph) -> None:
    # Check this first, because Blender searches the whole scene to list the changes (0.2 ms for 10,000 objects).
    if not (graph.id_type_updated("OBJECT") or graph.id_type_updated("ARMATURE")):
        return
    updated: set[Any] = {
        update.id.original for update in graph.updates if update.is_updated_transform or update.is_updated_geometry
    }
    for thing in updated.difference(_WATCHED.rigs):
        if isinstance(thing, Object) and thing.type == "ARMATURE" and seen(thing).live:
            _WATCHED.rigs.append(thing)
    _pose_all(scene, graph, updated)


@persistent  # type: ignore[untyped-decorator]
def _after_load(*_arguments: object) -> None:
    """Handle the opening of a file. Undo cannot go back beyond it."""
    listen(follow, *_HISTORY, on=False)
    resume()


@persistent  # type: ignore[untyped-decorator]
def _before_render(scene: Scene, *_arguments: object) -> None:
    """Handle the start of a render, during which live rigs are not posed."""
    for rig in live_rigs(scene):
        logging.getLogger(__name__).warning("Live posing of %r is off in renders: bake it to keyframes first", rig.name)


def _watch(*, on: bool) -> None:
    listen(_on_update, "depsgraph_update_post", on=on)
    listen(_pose_all, "frame_change_post", on=on)
    listen(_before_render, "render_init", on=on)
