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

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.errors import FabrikError
from ...markers.report import Report
from ...markers.steps import finish, within
from ..capture.calibrate import kept_factors
from ..capture.clip import scene_rate
from ..capture.matching import of_take, take_name
from ..goals.followed import check_followed, followed, follows_markers
from ..goals.goals import Goals, gather_goals
from ..goals.places import Places, sampled_steps
from ..limits.to_constraints import is_own
from ..posing import live
from ..posing.solve_frame import moves_root
from ..rig.actions import check_action
from ..rig.armature import check_editable, check_rig, read_trees
from ..rig.legal import legal_pose
from ..rig.pose_keeper import PoseKeeper
from ..rig.spaces import object_scale
from ..settings.rig import rig_settings
from .animated import animated_limits, check_still, root_heads
from .keys import BakedTree, Writing, check_root_motion, write_keys
from .report import make_report, note_results, take_notes
from .settings import BakeError, BakeSettings
from .take import TakeSettings, smoothed_in, solve_tree
from .unseen import fill_unseen

Progress = Callable[[float], bool]

# Frames between two looks at the Esc key.
_SOLVED_IN_ORDER = 20
# Shares of the time that the stages take, for the progress bar.
_SAMPLING_ENDS = 0.3
_SOLVING_ENDS = 0.9


class BakeStoppedError(FabrikError):
    """A bake that was stopped before it wrote anything."""


@dataclass(frozen=True)
class BakeResult:
    """What a bake wrote.

    Attributes:
        report: how well each effector met its target, world metres.
        frames: (F,) the frames with keys.
        trees: what was found for each tree of bones.
        warnings: sentences on what may keep the rig from showing the result.
        timings: seconds for "sample", "solve" and "write".
        notes: lines on what was done about gaps, outliers and feet.
        take: the name of the recording; "" where effectors were followed, or markers that were picked one by one.
    """

    report: Report
    frames: IntArray
    trees: tuple[BakedTree, ...]
    warnings: tuple[str, ...]
    timings: dict[str, float]
    notes: tuple[str, ...] = ()
    take: str = ""

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
            f"{bones} bones, {len(self.frames)} frames{of_take(self.take)}",
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

    goals: what is to reach what. places: where that is on F frames, NaN where not seen. bones: places of the bones that
    some target is ever seen for. root_heads: (F, 3) where a pinned root is; None where it is free. scale: (F,) as for a
    baked tree. factors: (J,) how much longer than the rig's the recorded person's bones are; None where that does not
    count. take: how markers are solved; None where effectors are followed.
    """

    goals: Goals
    places: Places
    bones: list[int]
    root_heads: FloatArray | None
    scale: FloatArray
    factors: FloatArray | None
    take: TakeSettings | None

    @property
    def seen(self) -> BoolArray:
        """(F, E) whether a target is seen."""
        unseen: BoolArray = np.isnan(self.places.points).any(axis=-1)
        return ~unseen

    @property
    def solver(self) -> Solver:
        """The solver of the tree."""
        return self.goals.solver(free_root=self.root_heads is None)


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

    progress: called with the share done, 0 to 1; the bake goes on while it returns True.
    Raises a FabrikError, with the scene as before, for what cannot be baked; BakeStoppedError where `progress` says so.
    """
    settings = BakeSettings(frame_start, frame_end, **choices)
    return run_bake(context, armature, settings, progress)


def run_bake(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    settings: BakeSettings,
    progress: Progress | None = None,
) -> BakeResult:
    """Do what `bake` does, as the settings say."""
    steps = bake_steps(context, armature, settings)

    def go_on(share: float) -> None:
        if progress is not None and not progress(share):
            steps.close()
            raise BakeStoppedError("The bake was stopped; nothing has changed.")

    return finish(steps, go_on)


def bake_steps(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> Steps:
    """Do what `bake` does in small steps: yields the share done, returns the result, and may be closed at any time."""
    _check(context.scene, armature, settings)
    seconds: dict[str, float] = {}
    keyed: list[str] = []
    live.pause(armature)
    keeper = PoseKeeper(context.scene, armature)
    try:
        goals = _goals_at(context, armature, settings)
        with _timed(seconds, "sample"):
            jobs, matrices = yield from _sample(context.scene, armature, goals, settings)
        check_root_motion(armature, settings.root_motion, len(jobs))
        with _timed(seconds, "solve"):
            trees = yield from _solve(jobs, settings)
        with _timed(seconds, "write"):
            report = make_report(trees, settings.frames)
            trees = _chosen(armature, trees, settings.bones)
            write_keys(Writing(armature, settings, trees, matrices, report.frame_rms if settings.key_error else None))
            keyed = [bone for tree in trees for bone in tree.bones]
    finally:
        keeper.restore(keyed)
        live.follow()
    return _told(armature, settings, trees, report, matrices, seconds)


def _told(
    armature: bpy.types.Object,
    settings: BakeSettings,
    trees: tuple[BakedTree, ...],
    report: Report,
    matrices: FloatArray,
    seconds: dict[str, float],
) -> BakeResult:
    """The result, of which the rig keeps what the sidebar shows."""
    keyed = [bone for tree in trees for bone in tree.bones]
    left = (sentence for tree in trees for sentence in tree.goals.left_alone)
    warnings = (*_warnings(armature, keyed), *animated_limits(armature, keyed, settings.frames), *left)
    notes = tuple(take_notes(trees, 1.0 / float(object_scale(matrices[0]))))
    by_markers = follows_markers(armature, settings.source)
    take = take_name(armature) if by_markers else ""
    result = BakeResult(report, settings.frames, trees, warnings, seconds, notes, take)
    rig_settings(armature).last_result = "\n".join((*result.lines, *notes))
    if by_markers:
        note_results(armature, report)
    return result


def _check(scene: bpy.types.Scene, armature: bpy.types.Object, settings: BakeSettings) -> None:
    """Raise a FabrikError for whatever can be seen to fail before anything is worked out."""
    check_followed(scene, armature, settings.source)
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=settings.action != "CURRENT")


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the seconds that the block takes, pauses of a generator included."""
    began = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - began


def _goals_at(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> list[Goals]:
    """What is followed, with the bones as they are on the first frame."""
    frame = settings.frame_start
    if armature.animation_data is not None and context.scene.frame_current_final != frame:
        context.scene.frame_set(frame)
    else:
        context.view_layer.update()
    return gather_goals(armature, read_trees(armature), followed(armature, settings.source))


def _sample(
    scene: bpy.types.Scene, armature: bpy.types.Object, goals: Sequence[Goals], settings: BakeSettings
) -> Generator[float, None, tuple[list[_Job], FloatArray]]:
    """The trees to be solved, and (F, 4, 4) world matrices of the armature."""
    frames, by_markers = settings.frames, follows_markers(armature, settings.source)
    steps = sampled_steps(scene, armature, goals, frames, recorded=by_markers)
    sampled, matrices = yield from within(0.0, _SAMPLING_ENDS, steps)
    take = _take_settings(scene, settings, matrices[0]) if by_markers else None
    jobs = []
    for tree, (places, space) in zip(goals, sampled, strict=True):
        points = places.points
        if take is not None:
            points = smoothed_in(space, points, take.rate, settings.low_pass)
        jobs.append(_job(armature, tree, places._replace(points=points), space, frames, take))
    seen = [job for job in jobs if job.seen.any()]
    if not seen:
        raise BakeError(f"No marker is seen in frames {frames[0]}-{frames[-1]}.")
    return seen, matrices


def _take_settings(scene: bpy.types.Scene, settings: BakeSettings, world: FloatArray) -> TakeSettings:
    """How markers are solved; world: (4, 4) of the armature."""
    return TakeSettings(
        gaps=settings.gaps,
        robust=settings.robust,
        steady=settings.steady,
        plant_feet=settings.plant_feet,
        rate=scene_rate(scene) / settings.step,
        up=int(np.argmax(np.abs(world[2, :3]))),
        metre=1.0 / float(object_scale(world)),
    )


def _job(
    armature: bpy.types.Object,
    goals: Goals,
    places: Places,
    space: FloatArray,
    frames: IntArray,
    take: TakeSettings | None,
) -> _Job:
    """One tree to be solved; raises RigError where a bone that is to be turned moves by itself."""
    ever_seen = ~np.isnan(places.points).any(axis=-1).all(axis=0)
    bones = [int(bone) for bone in np.flatnonzero(goals.turned_by[ever_seen].any(axis=0))]
    names = [goals.tree.skeleton.names[bone] for bone in bones]
    check_still(armature, names, frames)
    heads = None if moves_root(armature, goals) else _root_heads(armature, goals, frames)
    factors = None if take is None else kept_factors(armature, goals.tree.skeleton.names)
    return _Job(goals, places, bones, heads, object_scale(space), factors, take)


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
        stage = _solve_effectors(job, settings) if job.take is None else _solve_take(job, job.take)
        begins = _SAMPLING_ENDS + share * place
        trees.append((yield from within(begins, begins + share, stage)))
    return tuple(trees)


def _solve_take(job: _Job, settings: TakeSettings) -> Generator[float, None, BakedTree]:
    """The tree for markers; yields the share done."""
    found = yield from solve_tree(job.goals, job.places.points, job.root_heads, job.factors, settings)
    tree = _baked(job, found.solution)
    keyed = found.keyed if settings.gaps == "UNKEYED" else None
    return replace(tree, keyed=keyed, filled=found.take.filled, outliers=found.take.outliers, planted=found.planted)


def _solve_effectors(job: _Job, settings: BakeSettings) -> Generator[float, None, BakedTree]:
    """The tree for effectors' targets; yields the share done."""
    stage = _solve_in_order(job) if settings.start == "PREVIOUS" else _solve_from_rest(job)
    parts = []
    for part, done in stage:
        parts.append(part)
        yield done
    solution = _joined(parts, np.concatenate)
    if settings.mend_jumps and settings.start == "REST":
        for _ in job.places.repair(job.solver, solution, job.root_heads):
            yield 1.0
    return _baked(job, fill_unseen(_others_kept(job, solution), job.goals.turned_by, job.seen))


def _baked(job: _Job, solution: Solution) -> BakedTree:
    """The tree with its poses inside the limits: between two that are there may be one that is not."""
    solution = _others_kept(job, solution)
    names = tuple(solution.skeleton.names[bone] for bone in job.bones)
    legal = legal_pose(solution.skeleton, job.goals.limits, solution.rotations)
    return BakedTree(job.goals, names, replace(solution, rotations=legal), job.scale)


def _solve_from_rest(job: _Job) -> Iterator[tuple[Solution, float]]:
    """The frames in large parts, each frame by itself from rest, with the share done."""
    solver, count = job.solver, len(job.places.points)
    start = job.goals.tree.rotations.copy()
    start[job.bones] = (1.0, 0.0, 0.0, 0.0)
    for first in range(0, count, solver.frames_at_once):
        part = slice(first, first + solver.frames_at_once)
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


def _chosen(armature: bpy.types.Object, trees: Sequence[BakedTree], choice: str) -> tuple[BakedTree, ...]:
    """The trees with only those of their bones that are to get keys; raises BakeError where none is left."""
    if choice == "SOLVED":
        return tuple(trees)
    wanted = {bone.name for bone in armature.pose.bones if _is_selected(bone)}
    chosen = []
    for tree in trees:
        root = tree.goals.tree.skeleton.names[0]
        names = wanted if choice == "SELECTED" else {effector.bone for effector in tree.goals.effectors}
        kept = tuple(bone for bone in tree.bones if bone in names)
        chosen.append(replace(tree, bones=kept, travels=choice == "MAPPED" or root in wanted))
    if not any(tree.bones for tree in chosen):
        what = "selected" if choice == "SELECTED" else "followed by a marker or an effector"
        raise BakeError(f"None of the bones to be keyed is {what}: choose All Solved.")
    return tuple(chosen)


def _is_selected(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is selected; from 5.0 on pose bones know it themselves."""
    holder: Any = bone if hasattr(bone, "select") else bone.bone
    return bool(holder.select)


def _warnings(armature: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """What keeps the rig from showing the keys it has got."""
    if armature.data.pose_position == "REST":
        yield f"{armature.name!r} is shown in its rest position: switch it to pose position to see the motion"
    for bone in bones:
        kinds = armature.pose.bones[bone].constraints
        active = [kind.name for kind in kinds if not kind.mute and kind.influence > 0.0 and not is_own(kind)]
        if active:
            yield f"Bone {bone!r} has constraints that change what was baked: {', '.join(active)}"
