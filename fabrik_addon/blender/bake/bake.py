"""Bakes moving targets or markers to keyframes on a rig: samples, solves, writes and reports.

The scene is changed only at the end, after everything has succeeded.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import bpy

from ...core.arrays import FloatArray
from ...core.errors import FabrikError
from ...markers.steps import finish, within
from ..capture.takes import take_name
from ..goals.effectors import check_followed, follows_markers
from ..posing import live
from ..rig.actions import check_action, check_not_shared
from ..rig.armature import check_editable, check_rig
from ..rig.pose_keeper import PoseKeeper
from ..settings.control import solved_bone
from ..settings.selection import selected_bones
from .jobs import BakedTree, sample
from .keys import Writing, check_root_motion, off_their_keys, write_keys, written_bones
from .parted import parted
from .report import BakeResult, make_report, tell
from .settings import BakeError, BakeSettings
from .solve import solve

Progress = Callable[[float], bool]

# The shares of the stages in the total time, for the progress bar.
_SAMPLING_ENDS: Final = 0.33
_SOLVING_ENDS: Final = 0.9


class BakeStoppedError(FabrikError):
    """A bake that was stopped before it wrote anything."""


Steps = Generator[float, None, BakeResult]
# Finds the poses of the trees and the (F, 4, 4) world matrices of the armature in small steps, and notes their seconds.
FindSteps = Generator[float, None, tuple[tuple[BakedTree, ...], FloatArray]]
Find = Callable[[bpy.types.Context, bpy.types.Object, BakeSettings, dict[str, float]], FindSteps]


def bake(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    *,
    frame_start: int,
    frame_end: int,
    progress: Progress | None = None,
    **choices: Any,
) -> BakeResult:
    """Key the armature's bones so that its effectors follow their targets; the keywords are those of BakeSettings.

    progress: called with the share done, 0 to 1; the bake continues while it returns True.
    Raises a FabrikError if something can't be baked, and BakeStoppedError if `progress` returns False. The scene is
    then as before.
    """
    settings = BakeSettings(frame_start, frame_end, **choices)
    return run_bake(context, armature, settings, progress)


def run_bake(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    settings: BakeSettings,
    progress: Progress | None = None,
) -> BakeResult:
    """Bake with the given settings."""
    steps = bake_steps(context, armature, settings)

    def go_on(share: float) -> None:
        if progress is not None and not progress(share):
            steps.close()
            raise BakeStoppedError("The bake was stopped; nothing has changed")

    return finish(steps, go_on)


def bake_steps(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> Steps:
    """Bake in small steps: yields the share done, returns the result, and may be closed at any time."""
    check_followed(context.scene, armature, settings.source)
    return (yield from keyed_steps(context, armature, settings, _found_steps))


def keyed_steps(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings, find: Find, take: str = ""
) -> Steps:
    """Key the poses that `find` finds, in small steps like `bake_steps`; take: the name of the motion."""
    _check(armature, settings)
    seconds: dict[str, float] = {}
    keyed: list[str] = []
    live.pause(armature)
    keeper = PoseKeeper(context.scene, armature)
    try:
        trees, matrices = yield from within(0.0, _SOLVING_ENDS, find(context, armature, settings, seconds))
        if settings.self_collision:
            with timed(seconds, "self-collision"):
                trees = tuple(parted(armature, tree) for tree in trees)
        with timed(seconds, "write"):
            report = make_report(trees, settings.frames)
            trees = _chosen(context, armature, trees, settings.bones)
            name = take or (take_name(armature) if follows_markers(armature, settings.source) else "")
            writing = Writing(context, armature, settings, trees, matrices, name)
            off = yield from within(_SOLVING_ENDS, 1.0, write_keys(writing))
            keyed = [*written_bones(writing)]
            off += off_their_keys(writing)
    finally:
        keeper.restore(keyed)
        live.resume(armature)
    result = tell(armature, settings, trees, report, matrices, seconds, take)
    return replace(result, warnings=(*result.warnings, *off))


def _found_steps(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings, seconds: dict[str, float]
) -> FindSteps:
    """Find the poses that follow markers or the targets of effectors."""
    with timed(seconds, "sample"):
        jobs, matrices = yield from within(0.0, _SAMPLING_ENDS, sample(context, armature, settings))
    check_root_motion(armature, settings.root_motion, [job.goals for job in jobs])
    with timed(seconds, "solve"):
        trees = yield from within(_SAMPLING_ENDS, 1.0, solve(jobs))
    return trees, matrices


def _check(armature: bpy.types.Object, settings: BakeSettings) -> None:
    """Raise a FabrikError for every problem that can be found before the solve."""
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=settings.action != "CURRENT")
    if settings.action == "CURRENT":
        check_not_shared(armature)


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the seconds that the block takes, including pauses of a generator."""
    began = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - began


def _chosen(
    context: bpy.types.Context, armature: bpy.types.Object, trees: Sequence[BakedTree], choice: str
) -> tuple[BakedTree, ...]:
    """The trees without the bones that get no keys; raises BakeError if no bone is left."""
    if choice == "SOLVED":
        return tuple(trees)
    wanted = {solved_bone(armature, bone.name) for bone in selected_bones(context, armature)}
    chosen = []
    for tree in trees:
        root = tree.goals.tree.skeleton.names[0]
        names = wanted if choice == "SELECTED" else {effector.bone for effector in tree.goals.effectors}
        kept = tuple(bone for bone in tree.bones if bone in names)
        chosen.append(replace(tree, bones=kept, travels=choice == "MAPPED" or root in wanted))
    if not any(tree.bones for tree in chosen):
        what = "selected" if choice == "SELECTED" else "followed by a marker, a target or a pin"
        raise BakeError(f"No bone to key is {what}: choose All Solved")
    return tuple(chosen)
