"""From targets that move to keyframes on a rig: sample, solve, write.

The scene is written at the very end, when everything has worked out; until then nothing is changed for good.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import bpy
import numpy as np

from ..core import Solution, Solver, Status
from ..core.arrays import BoolArray, FloatArray, IntArray
from ..core.errors import FabrikError
from ..markers.report import Report
from . import live
from .animated import ROTATION_CHANNELS, animated_limits, bone_path, check_still, root_heads
from .effectors import Goals, check_effectors, gather_goals, object_scale
from .goal_places import Places, joined, sampled_places
from .keyframes import check_action, current_or_new_action, new_action_like, write_curves
from .legal import legal_pose
from .limits_to_constraints import is_own
from .pose_keeper import PoseKeeper
from .rig import check_editable, check_rig, read_trees, root_location_channel
from .rotation_modes import to_channels
from .settings import rig_settings
from .solve_frame import moves_root
from .unseen import fill_unseen

Progress = Callable[[float], bool]

# Frames between two looks at the Esc key.
_SAMPLED_AT_ONCE = 500
_SOLVED_AT_ONCE = 1000
_SOLVED_IN_ORDER = 20
# Shares of the time that the stages take, for the progress bar.
_SAMPLING_ENDS = 0.3
_SOLVING_ENDS = 0.9
# What a frame is called where the trees of a rig end differently: the first of these that any of them has.
_WORST_FIRST = (Status.STALLED, Status.UNREACHABLE, Status.LIMITED, Status.FITTED, Status.SOLVED, Status.UNSEEN)


class BakeError(FabrikError):
    """A bake that cannot be done; the sentence says why."""


class BakeStoppedError(FabrikError):
    """A bake that was stopped before it wrote anything."""


@dataclass(frozen=True)
class BakeSettings:
    """What to bake: frames from first to last, in steps, and how.

    start: "REST" or "PREVIOUS". action: "NEW" or "CURRENT". action_name: of a new action, "" for one made from the
    rig's. mend_jumps: solve what jumped or failed again from the frames about it. Raises BakeError for a range without
    frames and for unknown choices.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    start: str = "REST"
    action: str = "NEW"
    action_name: str = ""
    mend_jumps: bool = False

    def __post_init__(self) -> None:
        """Check that the parts make sense."""
        if self.frame_end < self.frame_start:
            raise BakeError(f"The last frame ({self.frame_end}) is before the first ({self.frame_start}).")
        if self.step < 1:
            raise BakeError(f"The step is {self.step}: it must be 1 frame or more.")
        for name, choices in (("start", ("REST", "PREVIOUS")), ("action", ("NEW", "CURRENT"))):
            if getattr(self, name) not in choices:
                raise BakeError(f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(choices)}.")

    @property
    def frames(self) -> IntArray:
        """(F,) the frames that get keys."""
        return np.arange(self.frame_start, self.frame_end + 1, self.step, dtype=np.int64)


@dataclass(frozen=True)
class BakedTree:
    """What a bake found for one tree of bones.

    Attributes:
        goals: the bones, the effectors and their targets.
        bones: names of the bones that got keys.
        solution: the poses written, F frames in the space of the tree.
        scale: (F,) world metres to one unit of that space.
    """

    goals: Goals
    bones: tuple[str, ...]
    solution: Solution
    scale: FloatArray


@dataclass(frozen=True)
class BakeResult:
    """What a bake wrote.

    Attributes:
        report: how well each effector met its target, world metres.
        frames: (F,) the frames with keys.
        trees: what was found for each tree of bones.
        warnings: sentences on what may keep the rig from showing the result.
        timings: seconds for "sample", "solve" and "write".
    """

    report: Report
    frames: IntArray
    trees: tuple[BakedTree, ...]
    warnings: tuple[str, ...]
    timings: dict[str, float]

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The poses of each tree."""
        return tuple(tree.solution for tree in self.trees)

    @property
    def lines(self) -> tuple[str, str, str]:
        """The result in short lines: how much, how well, and where it is worst."""
        total = self.report.total()
        bones = sum(len(tree.bones) for tree in self.trees)
        return (
            f"{bones} bones, {len(self.frames)} frames",
            f"RMS {1000.0 * total.rms:.1f} mm, worst {1000.0 * total.max:.1f} mm",
            f"{total.worst_marker}, frame {total.worst_frame}",
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        return "{}: {} ({})".format(*self.lines)


Steps = Generator[float, None, BakeResult]


@dataclass(frozen=True)
class _Job:
    """One tree to be solved.

    goals: what is to reach what. places: where that is on F frames. bones: places of the bones that some target is ever
    seen for. root_heads: (F, 3) where a pinned root is; None where it is free. scale: (F,) as for a baked tree.
    """

    goals: Goals
    places: Places
    bones: list[int]
    root_heads: FloatArray | None
    scale: FloatArray

    @property
    def seen(self) -> BoolArray:
        """(F, E) whether a target is seen."""
        unseen: BoolArray = np.isnan(self.places.points).any(axis=-1)
        return ~unseen

    @property
    def solver(self) -> Solver:
        """The solver of the tree."""
        return self.goals.solver(free_root=self.root_heads is None)


def bake(  # noqa: PLR0913  one keyword for each setting
    context: bpy.types.Context,
    armature: bpy.types.Object,
    *,
    frame_start: int,
    frame_end: int,
    step: int = 1,
    start: str = "REST",
    action: str = "NEW",
    mend_jumps: bool = False,
    progress: Progress | None = None,
) -> BakeResult:
    """Key the armature's bones so that its effectors follow their targets; the keywords are those of BakeSettings.

    progress: called with the share done, 0 to 1; the bake goes on while it returns True.
    Raises a FabrikError, with the scene as before, for what cannot be baked; BakeStoppedError where `progress` says so.
    """
    settings = BakeSettings(frame_start, frame_end, step, start, action, mend_jumps=mend_jumps)
    return run_bake(context, armature, settings, progress)


def run_bake(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    settings: BakeSettings,
    progress: Progress | None = None,
) -> BakeResult:
    """Do what `bake` does, as the settings say."""
    steps = bake_steps(context, armature, settings)
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            result: BakeResult = end.value
            return result
        if progress is not None and not progress(share):
            steps.close()
            raise BakeStoppedError("The bake was stopped; nothing has changed.")


def bake_steps(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> Steps:
    """Do what `bake` does in small steps: yields the share done, returns the result, and may be closed at any time."""
    _check(context.scene, armature, settings)
    seconds: dict[str, float] = {}
    keyed: list[str] = []
    live.pause()
    keeper = PoseKeeper(context.scene, armature)
    try:
        goals = _goals_at(context, armature, settings.frame_start)
        with _timed(seconds, "sample"):
            jobs = yield from _sample(context.scene, armature, goals, settings.frames)
        with _timed(seconds, "solve"):
            trees = yield from _solve(jobs, settings)
        with _timed(seconds, "write"):
            report = _report(trees, settings.frames)
            _write(armature, trees, settings)
            keyed = [bone for tree in trees for bone in tree.bones]
    finally:
        keeper.restore(keyed)
        live.follow()
    left = (sentence for tree in trees for sentence in tree.goals.left_alone)
    warnings = (*_warnings(armature, keyed), *animated_limits(armature, keyed, settings.frames), *left)
    result = BakeResult(report, settings.frames, trees, warnings, seconds)
    rig_settings(armature).last_result = "\n".join(result.lines)
    return result


def _check(scene: bpy.types.Scene, armature: bpy.types.Object, settings: BakeSettings) -> None:
    """Raise a FabrikError for whatever can be seen to fail before anything is worked out."""
    check_effectors(scene, armature)
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=settings.action == "NEW")


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the seconds that the block takes, pauses of a generator included."""
    began = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - began


def _goals_at(context: bpy.types.Context, armature: bpy.types.Object, frame: int) -> list[Goals]:
    """The effectors with the bones as they are on a frame."""
    if armature.animation_data is not None and context.scene.frame_current_final != frame:
        context.scene.frame_set(frame)
    else:
        context.view_layer.update()
    return gather_goals(armature, read_trees(armature))


def _sample(
    scene: bpy.types.Scene, armature: bpy.types.Object, goals: Sequence[Goals], frames: IntArray
) -> Generator[float, None, list[_Job]]:
    """The trees to be solved."""
    parts = []
    for first in range(0, len(frames), _SAMPLED_AT_ONCE):
        part = frames[first : first + _SAMPLED_AT_ONCE]
        parts.append(sampled_places(scene, armature, goals, part))
        yield _SAMPLING_ENDS * min(1.0, (first + len(part)) / len(frames))
    jobs = []
    for tree, sampled in zip(goals, zip(*parts, strict=True), strict=True):
        places = joined([part for part, _ in sampled])
        space = np.concatenate([space for _, space in sampled])
        jobs.append(_job(armature, tree, places, space, frames))
    seen = [job for job in jobs if job.seen.any()]
    if not seen:
        raise BakeError(f"No marker is seen in frames {frames[0]}-{frames[-1]}.")
    return seen


def _job(armature: bpy.types.Object, goals: Goals, places: Places, space: FloatArray, frames: IntArray) -> _Job:
    """One tree to be solved; raises RigError where a bone that is to be turned moves by itself."""
    ever_seen = ~np.isnan(places.points).any(axis=-1).all(axis=0)
    bones = [int(bone) for bone in np.flatnonzero(goals.turned_by[ever_seen].any(axis=0))]
    check_still(armature, [goals.tree.skeleton.names[bone] for bone in bones], frames)
    heads = None if moves_root(armature, goals) else _root_heads(armature, goals, frames)
    return _Job(goals, places, bones, heads, object_scale(space))


def _root_heads(armature: bpy.types.Object, goals: Goals, frames: IntArray) -> FloatArray:
    """(F, 3) where the root of a tree is that stays where it is; what carries it keeps it in one place of its space."""
    if goals.carrier:
        return np.tile(goals.tree.root_location, (len(frames), 1))
    return root_heads(armature, goals.tree, frames)


def _solve(jobs: Sequence[_Job], settings: BakeSettings) -> Generator[float, None, tuple[BakedTree, ...]]:
    """Solve the trees one after the other."""
    trees = []
    share = (_SOLVING_ENDS - _SAMPLING_ENDS) / len(jobs)
    for place, job in enumerate(jobs):
        stage = _solve_in_order(job) if settings.start == "PREVIOUS" else _solve_from_rest(job)
        parts = []
        for part, done in stage:
            parts.append(part)
            yield _SAMPLING_ENDS + share * (place + done)
        names = tuple(job.goals.tree.skeleton.names[bone] for bone in job.bones)
        solution = _joined(parts, np.concatenate)
        if settings.mend_jumps and settings.start == "REST":
            for _ in job.places.repair(job.solver, solution, job.root_heads):
                yield _SAMPLING_ENDS + share * (place + 1)
        solution = fill_unseen(_others_kept(job, solution), job.goals.turned_by, job.seen)
        # Between two poses inside the limits there may be one outside.
        legal = legal_pose(solution.skeleton, job.goals.limits, solution.rotations)
        solution = replace(solution, rotations=legal)
        trees.append(BakedTree(job.goals, names, solution, job.scale))
    return tuple(trees)


def _solve_from_rest(job: _Job) -> Iterator[tuple[Solution, float]]:
    """The frames in large parts, each frame by itself from rest, with the share done."""
    solver, count = job.solver, len(job.places.points)
    start = job.goals.tree.rotations.copy()
    start[job.bones] = (1.0, 0.0, 0.0, 0.0)
    for first in range(0, count, _SOLVED_AT_ONCE):
        part = slice(first, first + _SOLVED_AT_ONCE)
        heads = None if job.root_heads is None else job.root_heads[part]
        yield job.places.part(part).solve(solver, start, heads), min(1.0, part.stop / count)


def _solve_in_order(job: _Job) -> Iterator[tuple[Solution, float]]:
    """The frames in small parts, each frame from the one before, the first from the present pose."""
    solver, count = job.solver, len(job.places.points)
    rotations, head = job.goals.tree.rotations, job.goals.tree.root_location
    for first in range(0, count, _SOLVED_IN_ORDER):
        found = []
        for frame in range(first, min(count, first + _SOLVED_IN_ORDER)):
            head = head if job.root_heads is None else job.root_heads[frame]
            found.append(job.places.part(frame).solve(solver, rotations, head))
            rotations, head = found[-1].rotations, found[-1].root_location
        yield _joined(found, np.stack), min(1.0, (first + len(found)) / count)


def _others_kept(job: _Job, solution: Solution) -> Solution:
    """The solution with the bones that get no keys as they are: the solver may have bent a limb that was straight."""
    rotations = np.array(solution.rotations)
    others = np.setdiff1d(np.arange(len(solution.skeleton)), job.bones)
    rotations[:, others] = job.goals.tree.rotations[others]
    return replace(solution, rotations=rotations)


def _joined(parts: Sequence[Solution], join: Callable[[list[Any]], Any]) -> Solution:
    """Solutions of successive frames as one."""
    names = [field.name for field in fields(Solution) if field.name != "skeleton"]
    return replace(parts[0], **{name: join([getattr(part, name) for part in parts]) for name in names})


def _report(trees: Sequence[BakedTree], frames: IntArray) -> Report:
    """How well the effectors of all trees met their targets, world metres."""
    errors = np.concatenate([tree.solution.errors * tree.scale[:, None] for tree in trees], axis=1)
    status = np.stack([tree.solution.status for tree in trees])
    rank = {int(status): place for place, status in enumerate(_WORST_FIRST)}
    worst = [min((Status(value) for value in column), key=rank.__getitem__) for column in status.T]
    effectors = [effector for tree in trees for effector in tree.goals.effectors]
    weights = [effector.weight for effector in effectors]
    names = [name for tree in trees for name in tree.goals.names]
    return Report(errors, names, frames.tolist(), worst, weights if len(set(weights)) > 1 else None)


def _write(armature: bpy.types.Object, trees: Sequence[BakedTree], settings: BakeSettings) -> None:
    """Key the solved bones; everything is worked out before the first key is written."""
    tables = [table for tree in trees for table in _curves(armature, tree)]
    if settings.action == "NEW":
        replaced = _replaced_paths(armature, trees)
        action = new_action_like(armature, settings.action_name or f"{armature.name} FABRIK", without=replaced)
    else:
        action = current_or_new_action(armature, settings.action_name or f"{armature.name} FABRIK")
    for path, values, group in tables:
        write_curves(action, armature, path, settings.frames, values, group)


def _curves(armature: bpy.types.Object, tree: BakedTree) -> Iterator[tuple[str, FloatArray, str]]:
    """Data path, (F, n) values and group of each property to be keyed."""
    skeleton, solution = tree.goals.tree.skeleton, tree.solution
    for name in tree.bones:
        mode = armature.pose.bones[name].rotation_mode
        channel, values = to_channels(mode, solution.rotations[:, skeleton.index(name)])
        yield bone_path(name, channel), values, name
    if moves_root(armature, tree.goals):
        root = skeleton.names[0]
        values = root_location_channel(armature.pose.bones[root], solution.root_location)
        yield bone_path(root, "location"), values, root


def _replaced_paths(armature: bpy.types.Object, trees: Sequence[BakedTree]) -> set[str]:
    """The data paths that a new action does not take over from the present one: those that the bake stands for."""
    paths = {bone_path(bone, channel) for tree in trees for bone in tree.bones for channel in ROTATION_CHANNELS}
    free = [tree.goals for tree in trees if moves_root(armature, tree.goals)]
    return paths | {bone_path(goals.tree.skeleton.names[0], "location") for goals in free}


def _warnings(armature: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """What keeps the rig from showing the keys it has got."""
    if armature.data.pose_position == "REST":
        yield f"{armature.name!r} is shown in its rest position: switch it to pose position to see the motion"
    for bone in bones:
        kinds = armature.pose.bones[bone].constraints
        active = [kind.name for kind in kinds if not kind.mute and kind.influence > 0.0 and not is_own(kind)]
        if active:
            yield f"Bone {bone!r} has constraints that change what was baked: {', '.join(active)}"
