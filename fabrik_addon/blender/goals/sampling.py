"""Samples targets and armatures in world space, frame by frame."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Vector

from ...core.arrays import BoolArray, FloatArray
from ...core.errors import TargetError
from ...markers.steps import finish
from ..rig import keyframes
from ..rig.keyframes import bone_path
from ..settings.markers import MARKER_NAME, MARKER_STEP

Target: TypeAlias = tuple[bpy.types.Object, str]
# Data filled frame by frame: (F, …), a function that reads it from a target in the evaluated scene, and the target.
_Column: TypeAlias = tuple[FloatArray, Callable[[bpy.types.Depsgraph, Target], Any], Target]

# Seconds of work between two checks of the Esc key, and the smallest number of frames: each check evaluates one more,
# the scene's own frame.
_LOOK_EVERY: Final = 0.1
_LEAST_FRAMES: Final = 4

# A marker is seen between two keys at most this many steps of its recording apart.
_SEEN_STEPS: Final = 1.5
# A frame this close to a key, in steps, is on it, since subframes are in single precision.
_ON_KEY: Final = 0.01
# Keys of a recording are usually at most this far apart, in frames.
_RECORDED_STEP: Final = 1.5
_TRANSFORM_PATHS: Final = ("location", "rotation", "scale", "delta_")


def sample_targets(
    scene: bpy.types.Scene, targets: Sequence[Target], frames: npt.ArrayLike, *, recorded: bool = False
) -> FloatArray:
    """(F, E, 3) world positions of E targets on F frames, NaN if an imported marker is not seen.

    Plain animated empties are read from their curves. For anything else (parents, constraints, drivers, bones) the
    scene is evaluated on each frame and returned to its own.

    Args:
        scene: the scene that the targets are in.
        targets: E objects, each with the name of one of its bones, whose head is used, or "" for its own origin.
        frames: (F,) frames or subframes.
        recorded: the targets are markers, possibly imported by others: one with a key on nearly every frame is not seen
            on frames without.

    Raises:
        TargetError: naming a target whose bone does not exist, or that is not part of the evaluated scene.
    """
    positions, _ = finish(sample_steps(scene, targets, (), frames, recorded=recorded))
    return positions


def sample_steps(
    scene: bpy.types.Scene,
    targets: Sequence[Target],
    turning: Sequence[Target],
    frames: npt.ArrayLike,
    *,
    recorded: bool = False,
) -> Generator[float, None, tuple[FloatArray, FloatArray]]:
    """(F, E, 3) as from `sample_targets` and (F, M, 4, 4) world matrices of `turning`; yields the share done.

    The scene is evaluated at most once on each frame, and is on its own frame whenever this yields. Raises TargetError
    like `sample_targets`.
    """
    times = np.asarray(frames, dtype=np.float64)
    for target in (*targets, *turning):
        _check(target)
    positions, matrices = np.empty((len(times), len(targets), 3)), np.empty((len(times), len(turning), 4, 4))
    plain = [_is_plain(target) for target in targets]
    still = [is_still(target) for target in turning]
    for place in np.flatnonzero(still):
        matrices[:, place] = _world_matrix(_depsgraph(scene), turning[place])
    columns: list[_Column] = [
        (positions[:, place], _world_place, targets[place]) for place in np.flatnonzero(np.logical_not(plain))
    ]
    columns += [(matrices[:, place], _world_matrix, turning[place]) for place in np.flatnonzero(np.logical_not(still))]
    if columns:
        yield from _evaluated(scene, times, columns)
    for place, target in enumerate(targets):
        gaps, path = _has_gaps(target, recorded=recorded), _location_path(target)
        own = [curve for curve in keyframes.curves(target[0]) if curve.data_path == path]
        keyed = {curve: keyframes.keys(curve) for curve in own} if gaps or plain[place] else {}
        there = _is_there(target, keyed.values(), times) if gaps else np.ones(len(times), dtype=np.bool_)
        if plain[place]:
            positions[there, place] = _from_curves(target[0], keyed, times[there])
        positions[~there, place] = np.nan
        yield 1.0
    return positions, matrices


def _evaluated(scene: bpy.types.Scene, frames: FloatArray, columns: Sequence[_Column]) -> Generator[float, None, None]:
    """Fill columns (F, …) from their targets while the scene is evaluated on each frame."""
    done = 0
    while done < len(frames):
        first, began = done, time.monotonic()
        with _frame_kept(scene):
            while done < len(frames) and (done < first + _LEAST_FRAMES or time.monotonic() < began + _LOOK_EVERY):
                whole = int(np.floor(frames[done]))
                scene.frame_set(whole, subframe=float(frames[done] - whole))
                graph = _depsgraph(scene)
                for column, read, target in columns:
                    column[done] = read(graph, target)
                done += 1
        yield done / len(frames)


def _has_gaps(target: Target, *, recorded: bool) -> bool:
    """Whether a target is only seen near its keys.

    Not if it has no action, since then it is no longer a recorded marker.
    """
    animation = target[0].animation_data
    return animation is not None and animation.action is not None if is_imported(target) else recorded


def _is_there(target: Target, keyed: Iterable[FloatArray], frames: FloatArray) -> BoolArray:
    """(F,) whether a target is seen, by the rules of `sample_targets`.

    Keyed: (K, 2) keys of each curve of its location.
    """
    first, *others = [keys[:, 0] for keys in keyed] or [np.empty(0)]
    # Sorting takes long; most often the curves have their keys on the same frames.
    same = all(np.array_equal(first, other) for other in others) and bool((np.diff(first) > 0.0).all())
    times = first if same else np.unique(np.concatenate([first, *others]))
    padded = np.concatenate(([-np.inf], times, [np.inf]))
    after = np.searchsorted(times, frames) + 1
    near: BoolArray = _is_near(frames, padded[after - 1], padded[after], _recorded_step(target, times))
    return near


def _check(target: Target) -> None:
    """Raise TargetError if a target's bone does not exist."""
    holder, bone = target
    if bone and (holder.type != "ARMATURE" or bone not in holder.pose.bones):
        raise TargetError(f"Target {holder.name!r} has no bone {bone!r}: choose one that it has")


def _is_plain(target: Target) -> bool:
    """Whether a target is an empty that only keyframes of its location move."""
    holder, bone = target
    if bone or holder.type != "EMPTY" or is_led(holder):
        return False
    return all(curve.data_path == "location" and is_simple(curve) for curve in keyframes.curves(holder))


def is_simple(curve: bpy.types.FCurve) -> bool:
    """Whether a curve consists of its keys only."""
    group = curve.group
    return not (curve.mute or (group is not None and group.mute) or curve.modifiers)


def is_still(target: Target) -> bool:
    """Whether a target is an object that neither keys nor other objects move; its bones may move."""
    holder, bone = target
    if bone or is_led(holder):
        return False
    return not any(curve.data_path.startswith(_TRANSFORM_PATHS) for curve in keyframes.curves(holder))


def is_led(holder: bpy.types.Object) -> bool:
    """Whether an object's location depends on anything besides its own channels and its action's keys."""
    if holder.parent is not None or holder.constraints or holder.rigid_body is not None:
        return True
    animation = holder.animation_data
    if animation is None:
        return False
    mixed = animation.action_influence != 1.0 or animation.action_blend_type != "REPLACE"
    driven = any(curve.data_path.startswith(_TRANSFORM_PATHS) for curve in animation.drivers)
    return bool(mixed or animation.nla_tracks or driven)


def _from_curves(
    holder: bpy.types.Object, keyed: Mapping[bpy.types.FCurve, FloatArray], frames: FloatArray
) -> FloatArray:
    """(F, 3) positions of a plain empty, from its channels and its location curves with their keys."""
    values = np.tile(np.array(holder.location), (len(frames), 1))
    for curve, keys in keyed.items():
        if len(keys):
            values[:, curve.array_index] = keyframes.values_at(curve, frames, keys)
    return values + np.array(holder.delta_location)


def _world_place(graph: bpy.types.Depsgraph, target: Target) -> Vector:
    """The world position of an evaluated target."""
    holder, bone = target
    evaluated = _evaluated_object(graph, holder)
    world = evaluated.matrix_world
    return world @ evaluated.pose.bones[bone].head if bone else world.translation


def _world_matrix(graph: bpy.types.Depsgraph, target: Target) -> Matrix:
    """The world matrix of an evaluated target."""
    holder, bone = target
    evaluated = _evaluated_object(graph, holder)
    return evaluated.matrix_world @ evaluated.pose.bones[bone].matrix if bone else evaluated.matrix_world


@contextmanager
def _frame_kept(scene: bpy.types.Scene) -> Iterator[None]:
    """Return the scene to its frame at the end of the block, also after errors."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    try:
        yield
    finally:
        scene.frame_set(frame, subframe=subframe)


def _depsgraph(scene: bpy.types.Scene) -> bpy.types.Depsgraph:
    """The evaluated state of a scene, in the current view layer if it belongs to the scene."""
    if bpy.context.scene == scene:
        return bpy.context.evaluated_depsgraph_get()
    layer = scene.view_layers[0]
    layer.update()
    return layer.depsgraph


def _evaluated_object(graph: bpy.types.Depsgraph, holder: bpy.types.Object) -> bpy.types.Object:
    """An object as evaluated; raises TargetError if it is not in the scene's evaluation."""
    evaluated = holder.evaluated_get(graph)
    if not evaluated.is_evaluated:
        raise TargetError(f"Object {holder.name!r} is not in the view layer or is disabled: enable it first")
    return evaluated


def is_seen(marker: Target, frame: float) -> bool:
    """Whether a marker is seen on a frame, from the keys of its X location; fast enough for drawing."""
    first = (_location_path(marker), 0)
    curve = next((each for each in keyframes.curves(marker[0]) if (each.data_path, each.array_index) == first), None)
    if curve is None:
        return True
    before, after = keyframes.keys_beside(curve, frame)
    if after == frame:
        return True
    times = np.empty(0) if is_imported(marker) else keyframes.keys(curve)[:, 0]
    return bool(_is_near(frame, before, after, _recorded_step(marker, times)))


def is_imported(target: Target) -> bool:
    """Whether a target is a marker imported by this extension."""
    return not target[1] and target[0].get(MARKER_NAME) is not None


def _location_path(target: Target) -> str:
    """The data path of a target's location, from its object."""
    return bone_path(target[1], "location") if target[1] else "location"


def _recorded_step(target: Target, times: FloatArray) -> float:
    """Frames between two samples of a marker: as imported, else from keys (K,).

    Infinite if they are farther apart than in a recording: that is animation by hand, which has no gaps.
    """
    if is_imported(target):
        return float(target[0].get(MARKER_STEP, 1.0))
    step = float(np.median(np.diff(times))) if len(times) > 1 else np.inf
    return step if step <= _RECORDED_STEP else np.inf


def _is_near(frame: Any, before: Any, after: Any, step: float) -> Any:
    """(F,) whether each frame is on a key, or between two keys that are at most about a step apart."""
    on_key = np.minimum(frame - before, after - frame) <= _ON_KEY * step
    return on_key | (after - before <= _SEEN_STEPS * step)
