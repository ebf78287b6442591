"""Imports marker recordings as animated empties, one per marker, in their own collection."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import bpy
import numpy as np
from bpy.types import ID, Context, Object, Scene
from mathutils import Vector

from ...core.arrays import FloatArray
from ...core.errors import FabrikError
from ...markers.clip import ChoiceError, Clip, to_z_up
from ...markers.files.any_file import performers, select_performer
from ...markers.signals import Timing, retimed
from ..goals.places import UNKEYED, Samples
from ..rig.keyframes import new_action, write_curves
from ..rig.pose_writer import set_rest
from ..settings.motion import MARKER_NAME, TAKE_DOUBTS, TAKE_RATE, TAKE_STATIC
from ..settings.rig import follow_take, rig_settings
from .matching import scene_rate

# The radius of the empties in scene units, similar to that of a real marker.
_EMPTY_SIZE: Final = 0.02
# A recording is static if the upper quartile of its markers' ranges along an axis is below this many meters. It is
# 0.007 in gait2354's static trial, and 0.75 to 3.6 in six recordings of motion.
_STANDS_WITHIN: Final = 0.1
# Blender's limits for frames and rates.
_LAST_FRAME: Final = 1_048_574
_FASTEST_RATE: Final = 32_767


class ImportMarkersError(FabrikError):
    """A recording can't be imported; the message names it."""


def choose_performer(clip: Clip, name: str) -> Clip:
    """The markers of one performer; all markers if the labels have at most one prefix.

    Raises ChoiceError if a performer must be chosen, ClipError if the chosen one does not exist.
    """
    there = performers(clip)
    if len(there) > 1 and not name:
        names = f"{', '.join(there[:-1])} and {there[-1]}"
        raise ChoiceError(
            f"{clip.source} has {len(there)} performers, {names}: choose one (--performer on the command line)",
            "performer",
            there,
        )
    return select_performer(clip, name or there[0]) if name or there else clip


@contextmanager
def all_or_nothing(context: Context, rig: Object | None = None) -> Iterator[Callable[[], list[ID]]]:
    """If the block fails, remove the data that it added; restore the scene's frames, the rig's take and rest pose.

    Yields a function that returns this data. What is added after its last call is kept.
    """
    scene, render = context.scene, context.scene.render
    before, added = {each.session_uid for each in bpy.data.user_map()}, list[ID]()
    frames = render.fps, render.fps_base, scene.frame_start, scene.frame_end
    if rig is not None:
        settings, ends = rig_settings(rig), _ends(rig)
        capture, count = settings.capture, len(settings.capture.takes)
        take, root, brought = capture.take or capture.take_armature, settings.root, settings.retarget.brought

    def additions() -> list[ID]:
        added[:] = [each for each in bpy.data.user_map() if each.session_uid not in before]
        return added

    try:
        yield additions
    except BaseException:
        if rig is not None:
            follow_take(rig, take)
            while len(capture.takes) > count:
                capture.takes.remove(count)
            settings.root, settings.retarget.brought = root, brought
            if _ends(rig) != ends:
                set_rest(context, rig, ends)
        render.fps, render.fps_base, scene.frame_start, scene.frame_end = frames
        bpy.data.batch_remove(added or additions())
        raise


def _ends(rig: Object) -> dict[str, tuple[Vector, Vector]]:
    """The head and the tail of each bone at rest."""
    return {bone.name: (bone.head_local.copy(), bone.tail_local.copy()) for bone in rig.data.bones}


def import_clip(
    context: Context,
    clip: Clip,
    *,
    timing: Timing = "SET_SCENE_RATE",
    start_frame: int = 1,
    scale: float = 1.0,
    keyed: bool = True,
) -> bpy.types.Collection:
    """Make an animated empty for each marker of a clip, in a new collection named after the clip's file.

    Keys the locations, with Z up, on the frames on which the marker is visible. Extends the scene's range to include
    the clip, unless it is static. The keywords are options of the import operator, which describes them; without
    `keyed`, `key_take` keys the empties later. Raises ImportMarkersError, with nothing changed, if the clip has no
    frames or markers, or exceeds Blender's limits.
    """
    name = clip.source or "The recording"
    if not clip.names or not clip.frame_count:
        raise ImportMarkersError(f"{name}: there are no markers to import: choose another recording")
    if not (math.isfinite(scale) and scale > 0.0):
        raise ImportMarkersError(f"The scale must be a positive number, not {scale}")
    rate, clip = clip.rate, retimed(clip, scene_rate(context.scene), timing)
    frames = start_frame + np.arange(clip.frame_count, dtype=np.float64)
    check_times(name, rate, frames)
    if timing == "SET_SCENE_RATE":
        set_rate(context.scene, clip.rate)
    collection = bpy.data.collections.new(Path(clip.source).stem or "Markers")
    context.scene.collection.children.link(collection)
    positions = to_z_up(clip).positions
    positions = positions if scale == 1.0 else scale * positions
    ranges = np.fmax.reduce(positions) - np.fmin.reduce(positions)
    is_static = bool(np.quantile(np.nan_to_num(ranges).max(axis=1), 0.75) <= _STANDS_WITHIN)
    if not is_static:
        widen_range(context.scene, frames)
    collection[TAKE_STATIC] = is_static
    collection[TAKE_RATE] = scene_rate(context.scene)
    collection[TAKE_DOUBTS] = "\n".join(clip.doubts)
    for name, places in zip(clip.names, np.moveaxis(positions, 1, 0), strict=True):
        empty = bpy.data.objects.new(name, None)
        empty.empty_display_type, empty.empty_display_size = "SPHERE", _EMPTY_SIZE
        empty[MARKER_NAME] = name
        UNKEYED[empty.name_full] = Samples(start_frame, places.astype(np.float32))
        if (seen := ~np.isnan(places).any(axis=1)).any():
            empty.location = [
                float(np.interp(context.scene.frame_current_final, frames[seen], axis)) for axis in places[seen].T
            ]
        collection.objects.link(empty)
    if keyed:
        key_take(collection)
    return collection


def key_take(take: bpy.types.Collection) -> None:
    """Key the empties of a take on the frames on which their markers are visible."""
    for empty in take.objects:
        samples = UNKEYED.pop(empty.name_full)
        seen = np.flatnonzero(samples.seen())
        action, frames = new_action(empty, empty.name), samples.first + seen
        write_curves(action, empty, "location", frames, samples.locations[seen], "Location")


def remove_take(take: bpy.types.Collection) -> None:
    """Remove a collection of imported markers from the file, with all data that was created for it."""
    for empty in take.objects:
        UNKEYED.pop(empty.name_full, None)
    actions = {empty.animation_data.action for empty in take.objects if empty.animation_data is not None}
    bpy.data.batch_remove([take, *take.objects, *(each for each in actions if each is not None and each.users == 1)])


def check_times(name: str, rate: float, frames: FloatArray) -> None:
    """Raise ImportMarkersError, naming the recording, for a rate or frames (F,) beyond Blender's limits."""
    if not 0.0 < rate <= _FASTEST_RATE:
        raise ImportMarkersError(
            f"{name}: the frame rate is {rate}, but must be above 0 and at most {_FASTEST_RATE:g} frames per second"
        )
    if np.abs(frames[[0, -1]]).max() > _LAST_FRAME:
        raise ImportMarkersError(
            f"{name}: frames {frames[0]:.0f} to {frames[-1]:.0f} are outside Blender's range: import fewer samples"
        )


def set_rate(scene: Scene, rate: float) -> None:
    """Set the scene to `rate` frames per second: an integer divided by a base, such as 60 / 1.001."""
    scene.render.fps = max(1, round(rate))
    scene.render.fps_base = scene.render.fps / rate


def widen_range(scene: Scene, frames: FloatArray) -> None:
    """Extend the scene's range to include all frames (F,)."""
    scene.frame_start = min(scene.frame_start, max(0, math.floor(frames[0])))
    scene.frame_end = max(scene.frame_end, math.ceil(frames[-1]))
