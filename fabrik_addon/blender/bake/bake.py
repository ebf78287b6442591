"""Bakes moving targets or markers to keyframes on a rig: samples, solves, writes and reports.

The scene is changed only at the end, after everything has succeeded.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Final

import bpy
import numpy as np

from ...core import Effector, Solution
from ...core.arrays import BoolArray, FloatArray, lengths, times
from ...core.edit import EditSolver
from ...core.model.bodies import effector_offset
from ...human.naming_schemes import match
from ...markers.gaps import fill_points, fill_rotations
from ...markers.steps import finish, within
from ...markers.take import TakeSettings, solve_take_steps
from ..capture.takes import take_name
from ..goals.body import collision_of
from ..goals.effectors import check_followed, follows_markers
from ..limits.action import legal_pose
from ..posing import live
from ..rig.armature import check_editable, check_rig
from ..rig.keyframes import check_action, check_not_shared
from ..rig.pose_writer import PoseKeeper
from ..settings.control import solved_bone
from ..settings.selection import selected_bones
from .jobs import BakedTree, BakeError, BakeSettings, Job, sample
from .keys import BakedPoses, check_root_motion, deviation_warnings, write_keys, written_bones
from .report import BakeResult, make_report, make_result


def solve(jobs: Sequence[Job]) -> Generator[float, None, tuple[BakedTree, ...]]:
    """Solve the trees one after the other; yields the share done."""
    trees = []
    for place, job in enumerate(jobs):
        stage = _solve_effectors(job) if job.take is None else _solve_take(job, job.take)
        trees.append((yield from within(place / len(jobs), (place + 1) / len(jobs), stage)))
    return tuple(trees)


def _solve_take(job: Job, settings: TakeSettings) -> Generator[float, None, BakedTree]:
    """Solve a tree for markers; yields the share done."""
    steps = solve_take_steps(job.solver, job.places.points, settings, root_heads=job.root_heads, factors=job.factors)
    found = yield from steps
    tree = _baked(job, found.solution)
    keyed = found.keyed if settings.gaps == "UNKEYED" else None
    stances = () if found.planted is None else found.planted.stances
    return replace(tree, keyed=keyed, filled=found.filled, outliers=found.outliers, stances=stances)


def _solve_effectors(job: Job) -> Generator[float, None, BakedTree]:
    """Solve a tree for the targets of effectors, each frame from rest, in large parts; yields the share done."""
    solver, count, parts = job.solver, len(job.places.points), []
    start = job.problem.tree.rotations.copy()
    start[job.bones] = (1.0, 0.0, 0.0, 0.0)
    for first in range(0, count, solver.frames_at_once):
        part = slice(first, first + solver.frames_at_once)
        heads = None if job.root_heads is None else job.root_heads[part]
        parts.append(job.places.part(part).solve(solver, start, heads))
        yield min(1.0, part.stop / count)
    names = [field.name for field in fields(Solution) if field.name != "skeleton"]
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    solution = replace(parts[0], **joined)
    return _baked(job, fill_unseen(_others_kept(job, solution), job.problem.turned_by, job.seen))


def _baked(job: Job, solution: Solution) -> BakedTree:
    """The solved tree of a job. Clamps rotations to their limits, because interpolated poses may be outside."""
    solution = _others_kept(job, solution)
    names = tuple(solution.skeleton.names[bone] for bone in job.bones)
    legal = legal_pose(solution.skeleton, job.problem.limits, solution.rotations)
    return BakedTree(job.problem, names, replace(solution, rotations=legal), job.scale)


def _others_kept(job: Job, solution: Solution) -> Solution:
    """The solution with bones without keys as they were, because the solver may have bent a straight limb."""
    rotations = np.array(solution.rotations)
    others = np.setdiff1d(np.arange(len(solution.skeleton)), job.bones)
    rotations[:, others] = job.problem.tree.rotations[others]
    return replace(solution, rotations=rotations)


def fill_unseen(solution: Solution, turned_by: BoolArray, seen: BoolArray) -> Solution:
    """The solution with each bone interpolated over the frames on which no target moves it.

    Without this, such bones would jump to their start pose. Targets that are seen are still met, because none of them
    depends on the bones that change.

    solution: F frames, J bones. turned_by: (E, J) whether rotating a bone moves an effector. seen: (F, E) whether a
    target is seen. A bone that no seen target ever moves does not change.
    """
    known = (seen.astype(np.int64) @ turned_by.astype(np.int64)) > 0
    rotations, lengths = np.array(solution.rotations), np.array(solution.lengths)
    for bone in np.flatnonzero(turned_by.any(axis=0)):
        rotations[:, [bone]] = fill_rotations(rotations[:, [bone]], known[:, bone], _RATE)
        lengths[:, [bone]] = fill_points(lengths[:, [bone]], known[:, bone], _RATE)
    location = fill_points(solution.root_location, seen.any(axis=1), _RATE)
    return replace(solution, rotations=rotations, root_location=location, lengths=lengths)


# Frames per second. The time constants for filling gaps refer to this rate.
_RATE: Final = 24.0
# Parts that keep their pose exactly, and parts that keep it as nearly as the surface of the body allows.
_HELD: Final = ("foot",)
_LED: Final = ("hand", "head")
# Share of the body's size. Smaller overlaps, below 0.2 mm for a person, are rounding errors.
_LEAST: Final = 1e-4


def without_self_collisions(armature: bpy.types.Object, tree: BakedTree) -> BakedTree:
    """The tree with self-collisions of a person's body removed. Trees without self-collisions and other rigs stay.

    Feet keep their position and rotation. Hands and head keep theirs up to the surface of the body. Changes are
    smoothed over time.
    """
    skeleton = tree.problem.tree.skeleton
    collision = collision_of(armature, skeleton, always=True)
    if collision is None or not np.allclose(tree.solution.lengths, skeleton.lengths):
        return tree
    ends = {name: role.part for name, role in match(skeleton.names).items() if role.part in (*_HELD, *_LED)}
    effectors = tuple(
        Effector(name, rotation_weight=1.0 if part in _HELD else 0.0, priority=int(part in _LED))
        for name, part in ends.items()
    )
    bones = [bone for bone, name in enumerate(skeleton.names) if name not in tree.problem.held]
    free = tree.travels and tree.problem.free_root
    model = replace(tree.problem, effectors=effectors, bones=bones, free_root=free).edit_model(separate=True)
    rotations, roots = tree.solution.rotations, tree.solution.root_location
    solver = EditSolver(model, rotations, np.broadcast_to(roots, (len(rotations), 3)))
    inside = solver.overlaps > _LEAST * skeleton.size
    if not inside.any():
        return tree
    asked = solver.own_points, np.where(np.isin([*ends.values()], _HELD)[:, None], solver.own_rotations, np.nan)
    found = solver.smoothed(*asked, solver.solve(*asked))
    solution = replace(tree.solution, rotations=found.rotations, root_location=found.roots)
    moved = [
        lengths(times(solution.matrices[:, bone] - tree.solution.matrices[:, bone], np.append(offset, 1.0))[:, :3])
        for bone, offset in (
            (skeleton.index(each.bone), effector_offset(skeleton, each)) for each in tree.problem.effectors
        )
    ]
    # An upper bound: each target is at most this much farther away.
    solution = replace(solution, errors=solution.errors + np.stack(moved, axis=1))
    deepest = 1000.0 * float((solver.overlaps * tree.scale).max())
    note = f"Self-collision: moved limbs out of the body by up to {deepest:.0f} mm on {np.count_nonzero(inside)} frames"
    return replace(tree, solution=solution, notes=(*tree.notes, note))


# The shares of the total time after which stages end, for the progress bar.
_SAMPLING_ENDS: Final = 0.33
_SOLVING_ENDS: Final = 0.9


Steps = Generator[float, None, BakeResult]
# Small steps that return the poses of the trees, and the (F, 4, 4) world matrices of the armature.
FindSteps = Generator[float, None, tuple[tuple[BakedTree, ...], FloatArray]]
Find = Callable[[bpy.types.Context, bpy.types.Object, BakeSettings, dict[str, float]], FindSteps]


def bake(
    context: bpy.types.Context, armature: bpy.types.Object, *, frame_start: int, frame_end: int, **choices: Any
) -> BakeResult:
    """Key the armature's bones so that its effectors follow their targets; the keywords are those of BakeSettings.

    Raises a FabrikError if something can't be baked. The scene is then as before.
    """
    return finish(bake_steps(context, armature, BakeSettings(frame_start, frame_end, **choices)))


def bake_steps(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> Steps:
    """Bake in small steps: yields the share done, returns the result, and may be closed at any time."""
    check_followed(context.scene, armature, settings.source)
    return (yield from keyed_steps(context, armature, settings, _found_steps))


def keyed_steps(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings, find: Find, take: str = ""
) -> Steps:
    """Key the poses that `find` returns, in small steps like `bake_steps`; take: the name of the motion."""
    check_rig(armature)
    check_editable(armature)
    check_action(armature, new=settings.action != "CURRENT")
    if settings.action == "CURRENT":
        check_not_shared(armature)
    seconds: dict[str, float] = {}
    keyed: list[str] = []
    live.pause(armature)
    keeper = PoseKeeper(context.scene, armature)
    try:
        trees, matrices = yield from within(0.0, _SOLVING_ENDS, find(context, armature, settings, seconds))
        if settings.self_collision == "ON":
            with timed(seconds, "self-collision"):
                trees = tuple(without_self_collisions(armature, tree) for tree in trees)
        with timed(seconds, "write"):
            report = make_report(trees, settings.frames)
            trees = _chosen(context, armature, trees, settings.bones)
            name = take or (take_name(armature) if follows_markers(armature, settings.source) else "")
            writing = BakedPoses(context, armature, settings, trees, matrices, name)
            off = yield from within(_SOLVING_ENDS, 1.0, write_keys(writing))
            keyed = [*written_bones(writing)]
            off += deviation_warnings(writing)
    finally:
        keeper.restore(keyed)
        live.resume(armature)
    result = make_result(armature, settings, trees, report, matrices, seconds, take)
    return replace(result, warnings=(*result.warnings, *off))


def _found_steps(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings, seconds: dict[str, float]
) -> FindSteps:
    """Solve the poses that follow markers or the targets of effectors, in small steps."""
    with timed(seconds, "sample"):
        jobs, matrices = yield from within(0.0, _SAMPLING_ENDS, sample(context, armature, settings))
    check_root_motion(armature, settings.root_motion, [job.problem for job in jobs])
    with timed(seconds, "solve"):
        trees = yield from within(_SAMPLING_ENDS, 1.0, solve(jobs))
    return trees, matrices


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Store in `seconds` the time that the block takes, including the pauses of a generator."""
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
        root = tree.problem.tree.skeleton.names[0]
        names = wanted if choice == "SELECTED" else {effector.bone for effector in tree.problem.effectors}
        kept = tuple(bone for bone in tree.bones if bone in names)
        chosen.append(replace(tree, bones=kept, travels=choice == "MAPPED" or root in wanted))
    if not any(tree.bones for tree in chosen):
        what = "is selected" if choice == "SELECTED" else "has a marker, a target or a pin"
        raise BakeError(f"None of the solved bones {what}: choose All Solved")
    return tuple(chosen)
