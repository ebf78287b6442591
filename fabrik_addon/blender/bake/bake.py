"""Bakes moving targets or markers to keyframes on a rig: samples, solves, writes and reports.

The scene is changed only at the end, after everything has succeeded.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, Final

import bpy
import numpy as np
from bpy.types import Action, Context, Object, Scene

from ...core import Effector, Solution, Solver, Status
from ...core.arrays import BoolArray, FloatArray, IntArray, lengths, times
from ...core.channels import needed_keys, to_channels
from ...core.edit import without_overlaps
from ...core.errors import FabrikError
from ...core.kernel.joint_limits import legal_pose
from ...core.model.effector import effector_offset
from ...human.naming_schemes import match
from ...markers.doubts import listed, posture_doubts, result_doubts
from ...markers.feet import Stance
from ...markers.gaps import fill_points, fill_rotations
from ...markers.report import Report, csv_text, rotations_line
from ...markers.signals import low_pass
from ...markers.solving.course import FilledSpan
from ...markers.steps import finish, within
from ...markers.take import TakeSettings, solve_take_steps
from ..capture.matching import matching_doubts_of, of_take, recorded_range, scene_rate, why_another_speed
from ..control.posed_rig import posed_rig
from ..control.writer import TakeChannels
from ..goals.body import collision_of
from ..goals.effectors import check_followed, followed, follows_markers
from ..goals.places import UNKEYED, SampledTargets, has_other_drivers, sampled_steps
from ..goals.problem import RigProblem, find_problems
from ..limits.editing import is_own
from ..posing import live
from ..rig import keyframes
from ..rig.armature import RigError, check_rig, object_scale, property_name, root_location_channel, root_place
from ..rig.pose_writer import PoseKeeper, unlocked
from ..settings.control import solved_bone
from ..settings.limit_properties import NUMBERS, read_extra
from ..settings.motion import OPTIONS, BakeOptions, KeyOptions, MarkerOptions
from ..settings.rig import rig_settings, take_name
from ..settings.selection import selected_bones
from ..settings.why_not import mapped_markers

# A channel that changes by less than this (armature units for locations, a factor for scales) counts as unchanged.
_STILL: Final = 1e-4
# Frames per second. The time constants for filling gaps refer to this rate.
_RATE: Final = 24.0
# Parts that keep their pose exactly, and parts that keep it as closely as the surface of the body allows.
_HELD: Final = ("foot",)
_LED: Final = ("hand", "head")
# The cap of the force on hands and heads whose limbs are moved out of the body, as a fraction of that on dragged bones.
# With more, the trunk moves away from hands.
_LEADS: Final = 0.03
# The fractions of the total time after which stages end, for the progress bar. Solving ends early if poses are written
# by controls.
_SAMPLING_ENDS: Final = 0.33
_SOLVING_ENDS: Final = 0.9
_SOLVING_FOR_CONTROLS_ENDS: Final = 0.1
# If the trees of a rig have different statuses on a frame, the frame gets the one that comes first here.
_WORST_FIRST: Final = (Status.STALLED, Status.UNREACHABLE, Status.LIMITED, Status.FITTED, Status.SOLVED, Status.UNSEEN)


class BakeError(FabrikError):
    """A bake is impossible; the message gives the reason."""


class BakeSettings(KeyOptions, BakeOptions, MarkerOptions):
    """The settings of a bake: frames, options, and the name of a new action ("" to derive it from the rig).

    is_shown: whether a new action is assigned to the rig. If not, only saved files assign it, which halves the memory.

    `KeyOptions`, `BakeOptions` and `MarkerOptions` describe the options: words in capitals, angles in radians,
    distances in world meters, rates in Hz. Raises BakeError for an empty range, unknown options or choices, and invalid
    numbers.
    """

    def __init__(
        self, frame_start: int, frame_end: int, *, action_name: str = "", is_shown: bool = True, **options: Any
    ) -> None:
        self.frame_start, self.frame_end, self.action_name = frame_start, frame_end, action_name
        self.is_shown = is_shown
        if frame_end < frame_start:
            raise BakeError(f"The last frame ({frame_end}) is before the first ({frame_start}): choose a later one")
        if unknown := options.keys() - OPTIONS.keys():
            raise BakeError(f"A bake has no option {min(unknown)!r}: choose from {', '.join(OPTIONS)}")
        for name, declared in OPTIONS.items():
            words = declared.keywords
            choices = [identifier for identifier, *_ in words.get("items", ())]
            value = options.get(name, choices[0] if choices else words.get("default", False))
            if choices and value not in choices:
                raise BakeError(f"{name} is {value!r}: it must be one of {', '.join(choices)}")
            if "min" in words and not words["min"] <= value < inf:
                raise BakeError(f"{name} is {value}: it must be {words['min']:g} or more")
            setattr(self, name, value)

    @property
    def frames(self) -> IntArray:
        """(F,) the frames that get keys."""
        return np.arange(self.frame_start, self.frame_end + 1, self.step, dtype=np.int64)


@dataclass(frozen=True)
class BakedTree:
    """The result of a bake for one tree of bones.

    Attributes:
        problem: the bones, the effectors and their targets.
        bones: names of the bones that got keys.
        solution: the poses to write, on F frames in the space of the tree. `make_report` converts its errors.
        scale: (F,) world meters per unit of that space.
        keyed: (F, J) whether a bone gets a key on a frame; None if all do.
        travels: whether the location of a free root gets keys.
        filled: spans without markers for a bone, and the methods by which they were filled.
        outliers: (F, E) whether a visible marker was rejected; None if outliers are not rejected.
        stances: spans on which planted feet were prevented from sliding.
        turned_off: for each bone with a source, (F,) radians by which its rotation differs from that of the source.
        notes: short lines about the methods that found the poses.
        doubts: reasons why the poses may be wrong, as sentences.
    """

    problem: RigProblem
    bones: tuple[str, ...]
    solution: Solution
    scale: FloatArray = field(repr=False)
    keyed: BoolArray | None = field(default=None, repr=False)
    travels: bool = True
    filled: tuple[FilledSpan, ...] = ()
    outliers: BoolArray | None = field(default=None, repr=False)
    stances: tuple[Stance, ...] = field(default=(), repr=False)
    turned_off: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def moves_root(self) -> bool:
        """Whether the location of the root bone gets keys."""
        return self.travels and self.problem.free_root


@dataclass(frozen=True)
class BakeResult:
    """The result of a bake.

    Attributes:
        report: the error of each effector, in world meters, the notes and the doubts.
        frames: (F,) the frames with keys.
        trees: the result for each tree of bones.
        timings: seconds for "sample", "solve" and "write".
        figures: lines about the reference pose, gaps and feet.
        take: the name of the recording or the source; "" for effectors, or for markers that were selected one by one.
    """

    report: Report
    frames: IntArray
    trees: tuple[BakedTree, ...]
    timings: dict[str, float]
    figures: tuple[str, ...] = ()
    take: str = ""

    @property
    def lines(self) -> tuple[str, str, str]:
        """The result in short lines: bones and frames, errors, and the worst frame."""
        total, wrong = self.report.total, self.report.outliers
        left_out = 0 if wrong is None else int(wrong.sum())
        met = f"RMS {1000.0 * total.rms:.1f} mm, worst {1000.0 * total.max:.1f} mm"
        if left_out:
            met = f"RMS {1000.0 * total.rms:.1f} mm, worst {1000.0 * total.max:.1f} mm, {left_out} samples left out"
        bones = sum(len(tree.bones) for tree in self.trees)
        return (
            f"{bones} bones, {len(self.frames)} frames{of_take(self.take)}",
            met,
            f"{total.worst_marker}, frame {total.worst_frame}",
        )

    @property
    def line(self) -> str:
        """The result in one line."""
        (what, met, _), total = self.lines, self.report.total
        return f"{what}: {met} ({total.worst_marker}, frame {total.worst_frame})"


Steps = Generator[float, None, BakeResult]
# A generator of small steps, which returns the baked trees and the (F, 4, 4) world matrices of the armature.
FindSteps = Generator[float, None, tuple[tuple[BakedTree, ...], FloatArray]]
Find = Callable[[Context, Object, BakeSettings, dict[str, float]], FindSteps]


def bake(context: Context, armature: Object, *, frame_start: int, frame_end: int, **choices: Any) -> BakeResult:
    """Key the armature's bones so that its effectors follow their targets; the keywords are those of BakeSettings.

    Raises a FabrikError if something can't be baked. The scene is then as before.
    """
    return finish(bake_steps(context, armature, BakeSettings(frame_start, frame_end, **choices)))


def bake_steps(context: Context, armature: Object, settings: BakeSettings, notes: Sequence[str] = ()) -> Steps:
    """Bake in small steps: yields progress, returns the result, and may be closed at any time.

    notes: about the recording, for the report.
    """
    check_followed(context.scene, armature, settings.source)
    return (yield from keyed_steps(context, armature, settings, _found_steps, notes=notes))


def keyed_steps(
    context: Context,
    armature: Object,
    settings: BakeSettings,
    find: Find,
    take: str = "",
    notes: Sequence[str] = (),
    doubts: Sequence[str] = (),
) -> Steps:
    """Key the poses that `find` returns, in small steps like `bake_steps`.

    take: the name of the motion. notes, doubts: about the motion's file, for the report.
    """
    check_rig(armature)
    keyframes.check_action(armature, new=settings.action != "CURRENT")
    if settings.action == "CURRENT":
        keyframes.check_not_shared(armature)
    seconds: dict[str, float] = {}
    by_markers = not take and follows_markers(armature, settings.source)
    take = take_name(armature) if by_markers else take
    if (take or by_markers) and np.linalg.det(np.array(armature.matrix_world)) < 0.0:
        raise BakeError(f"Object {armature.name!r} is mirrored by a negative scale: apply its scale first")
    live.pause(armature)
    try:
        with PoseKeeper(context.scene, armature) as keeper:
            solved = _SOLVING_ENDS if posed_rig(armature).by_channels else _SOLVING_FOR_CONTROLS_ENDS
            trees, matrices = yield from within(0.0, solved, find(context, armature, settings, seconds))
            if settings.self_collision == "ON":
                with timed(seconds, "self-collision"):
                    trees = tuple(without_self_collisions(armature, tree) for tree in trees)
            with timed(seconds, "write"):
                report = make_report(trees, settings.frames)
                trees = _chosen(context, armature, trees, settings.bones)
                steps = write_keys(context, armature, settings, trees, matrices, take)
                keeper.keyed, of_keys, wrong_keys = yield from within(solved, 1.0, steps)
    finally:
        live.resume(armature)
    report = replace(report, notes=(*notes, *of_keys), doubts=(*doubts, *report.doubts, *wrong_keys))
    return make_result(armature, settings, trees, report, matrices, seconds, take, by_markers=by_markers)


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Store in `seconds` the time that the block takes, including the pauses of a generator."""
    began = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - began


def _chosen(context: Context, armature: Object, trees: Sequence[BakedTree], choice: str) -> tuple[BakedTree, ...]:
    """The trees with only the bones that get keys; raises BakeError if there are none."""
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


def preview_range(scene: Scene) -> tuple[int, int] | None:
    """The first and the last frame of the scene's preview range; None if it is off."""
    return (scene.frame_preview_start, scene.frame_preview_end) if scene.use_preview_range else None


def chosen_range(scene: Scene, rig: Object, source: str) -> tuple[int, int]:
    """The first and the last frame to bake; `source` as in `follows_markers`.

    These are the preview range, if the scene has one, else the frames of the markers, else the scene's range.
    """
    if (preview := preview_range(scene)) is not None:
        return preview
    if follows_markers(rig, source):
        return recorded_range(scene, ((marker.target, marker.target_bone) for marker in mapped_markers(rig)))
    return scene.frame_start, scene.frame_end


def check_still(armature: Object, bones: Sequence[str], frames: IntArray | FloatArray, place: str = "") -> None:
    """Raise RigError, naming the bone, if the location or scale of a solved bone changes on frames (F,).

    The solver needs constant bone lengths. The location of a root, or of the bone `place` that moves the rig, may
    change, because it belongs to the pose.
    """
    by_path = keyframes.curves_by_path(keyframes.curves(armature))
    for bone in bones:
        pose_bone = armature.pose.bones[bone]
        slides = pose_bone.parent is not None and not pose_bone.bone.use_connect and bone != place
        for channel in ("location", "scale") if slides else ("scale",):
            for curve in by_path.get(pose_bone.path_from_id(channel), ()):
                stretches = channel == "scale" and curve.array_index == 1 and read_extra(armature, [bone], "slide")
                if not stretches and np.ptp(keyframes.values_at(curve, frames)) > _STILL:
                    raise RigError(
                        f"Bone {bone!r} has an animated {channel} in frames {frames[0]:g}-{frames[-1]:g}, "
                        "but only rotations can be baked: remove those keys first"
                    )


def _found_steps(context: Context, armature: Object, settings: BakeSettings, seconds: dict[str, float]) -> FindSteps:
    """Solve the poses that follow markers or the targets of effectors, in small steps."""
    scene, frames, by_markers = context.scene, settings.frames, follows_markers(armature, settings.source)
    rate = scene_rate(scene) / settings.step
    with timed(seconds, "sample"):
        # Bones that are not solved keep the pose that they have on the first frame.
        if armature.animation_data is not None and scene.frame_current_final != settings.frame_start:
            scene.frame_set(settings.frame_start)
        else:
            context.view_layer.update()
        problems = find_problems(armature, followed(armature, settings.source), baked=True)
        smooth = partial(low_pass, rate=rate, cutoff=settings.low_pass) if by_markers else None
        steps = sampled_steps(scene, armature, problems, frames, smooth, recorded=by_markers)
        sampled, matrices = yield from within(0.0, _SAMPLING_ENDS, steps)
    # For markers, single precision is exact enough, and takes half the memory.
    kind = np.float32 if by_markers else np.float64
    pairs = [
        (problem, places._replace(points=places.points.astype(kind, copy=False)), space)
        for problem, (places, space) in zip(problems, sampled, strict=True)
        if not np.isnan(places.points).any(axis=-1).all()
    ]
    # The sampled positions replace the recordings.
    del sampled
    UNKEYED.clear()
    if not pairs:
        raise BakeError(f"No marker is seen in frames {frames[0]}-{frames[-1]}: choose others")
    check_root_motion(armature, settings.root_motion, [problem for problem, *_ in pairs])
    take = None
    if by_markers:
        up, meter = int(np.argmax(np.abs(matrices[0, 2, :3]))), 1.0 / float(object_scale(matrices[0]))
        robust, plant_feet = settings.robust, settings.plant_feet == "ON"
        take = TakeSettings(rate, settings.gaps, robust, steady=robust, plant_feet=plant_feet, up=up, meter=meter)
    trees, stages = [], np.linspace(_SAMPLING_ENDS, 1.0, len(pairs) + 1).tolist()
    with timed(seconds, "solve"):
        for (problem, places, space), begins, ends in zip(pairs, stages[:-1], stages[1:], strict=True):
            solving = _solve(problem, places, frames, take, object_scale(space))
            trees.append((yield from within(begins, ends, solving)))
    return tuple(trees), matrices


def _solve(
    problem: RigProblem, places: SampledTargets, frames: IntArray, take: TakeSettings | None, scale: FloatArray
) -> Generator[float, None, BakedTree]:
    """Solve a tree on F frames; yields progress.

    places: the positions of the targets, NaN if not visible. take: settings for markers; None for effectors. scale: as
    in `BakedTree`.
    """
    tree, armature, names = problem.tree, problem.rig, problem.tree.skeleton.names
    seen = ~np.isnan(places.points).any(axis=-1)
    turned = problem.turned_by[seen.any(axis=0)].any(axis=0)
    keyed = tuple(names[bone] for bone in np.flatnonzero(turned))
    heads = None if problem.free_root else np.tile(tree.root_location, (len(frames), 1))
    if problem.posed.by_channels:
        check_still(armature, keyed, frames)
        # A root with a parent stays at the same position in its parent's space.
        if heads is not None and not problem.carrier:
            root = armature.pose.bones[names[0]]
            current = root_location_channel(root, tree.root_location)
            own = keyframes.curves_by_path(keyframes.curves(armature)).get(root.path_from_id("location"), ())
            heads = root_place(root, keyframes.channel_values(current, own, frames))
    solver, more = problem.solver(), dict[str, Any]()
    if take is None:
        solution = yield from _solve_effectors(problem, places, solver, heads, turned)
    else:
        person_lengths, factors = rig_settings(armature).capture.factors, None
        if len(person_lengths):
            factors = np.array([getattr(person_lengths.get(name), "factor", 1.0) for name in names])
        found = yield from solve_take_steps(solver, places.points, take, root_heads=heads, factors=factors)
        solution = found.solution
        more = {"filled": found.filled, "outliers": found.outliers, "stances": found.stances}
        more["keyed"] = found.keyed if take.gaps == "UNKEYED" else None
    # The solver may have bent a straight limb that gets no keys.
    rotations = np.where(turned[:, None], solution.rotations, tree.rotations)
    # Interpolated poses may be outside their limits.
    legal = legal_pose(solution.skeleton, problem.limits, rotations).astype(places.points.dtype, copy=False)
    return BakedTree(problem, keyed, replace(solution, rotations=legal), scale, **more)


def _solve_effectors(
    problem: RigProblem, places: SampledTargets, solver: Solver, heads: FloatArray | None, turned: BoolArray
) -> Generator[float, None, Solution]:
    """Solve a tree for the targets of effectors, each frame from rest, in large parts; yields progress.

    Bones are interpolated over the frames on which no target moves them. Otherwise they would jump to their start pose.
    Visible targets are still met, because these bones do not move their effectors.

    heads: (F, 3) the head of a pinned root; None if it is free. turned: (J,) whether targets move a bone.
    """
    count, parts, turned_by = len(places.points), [], problem.turned_by
    start = np.where(turned[:, None], (1.0, 0.0, 0.0, 0.0), problem.tree.rotations)
    for first in range(0, count, solver.frames_at_once):
        part = slice(first, first + solver.frames_at_once)
        parts.append(places.part(part).solve(solver, start, None if heads is None else heads[part]))
        yield min(1.0, part.stop / count)
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Solution.FRAME_ARRAYS}
    seen = ~np.isnan(places.points).any(axis=-1)
    known = (seen.astype(np.int64) @ turned_by.astype(np.int64)) > 0
    for bone in np.flatnonzero(turned_by.any(axis=0) & ~known.all(axis=0)):
        for name, fill in (("rotations", fill_rotations), ("lengths", fill_points)):
            joined[name][:, [bone]] = fill(joined[name][:, [bone]], known[:, bone], _RATE)
    joined["root_location"] = fill_points(joined["root_location"], seen.any(axis=1), _RATE)
    return replace(parts[0], **joined)


def without_self_collisions(armature: Object, tree: BakedTree) -> BakedTree:
    """The tree with self-collisions of a person's body removed; unchanged if there are none, and for other rigs.

    Feet keep their position and rotation. Hands and head keep theirs as closely as the surface of the body allows.
    Changes are smoothed over time.
    """
    skeleton = tree.problem.tree.skeleton
    collision = collision_of(armature, skeleton, always=True)
    if collision is None or not np.allclose(tree.solution.lengths, skeleton.lengths):
        return tree
    ends = {name: role.part for name, role in match(skeleton.names).items() if role.part in (*_HELD, *_LED)}
    effectors = tuple(
        Effector(name, rotation_weight=1.0) if part in _HELD else Effector(name, weight=_LEADS, priority=1)
        for name, part in ends.items()
    )
    bones = [bone for bone, name in enumerate(skeleton.names) if name not in tree.problem.held]
    free = tree.travels and tree.problem.free_root
    problem = replace(tree.problem, effectors=effectors, bones=bones, free_root=free)
    rotations = tree.solution.rotations
    roots = np.broadcast_to(tree.solution.root_location, (len(rotations), 3))
    model, drag = problem.edit_model(separate=True), problem.drag_solver(separate=True)
    rotations, roots, overlaps = without_overlaps(model, drag, rotations, roots)
    if not overlaps.any():
        return tree
    solution = replace(tree.solution, rotations=rotations, root_location=roots)
    moved = [
        lengths(times(solution.matrices[:, bone] - tree.solution.matrices[:, bone], np.append(offset, 1.0))[:, :3])
        for bone, offset in (
            (skeleton.index(each.bone), effector_offset(skeleton, each)) for each in tree.problem.effectors
        )
    ]
    # An upper bound: the distance of each target grows by at most this.
    solution = replace(solution, errors=solution.errors + np.stack(moved, axis=1))
    deepest, count = 1000.0 * float((overlaps * tree.scale).max()), np.count_nonzero(overlaps)
    note = f"Self-collision: moved limbs out of the body by up to {deepest:.0f} mm on {count} frames"
    return replace(tree, solution=solution, notes=(*tree.notes, note))


def check_root_motion(armature: Object, root_motion: str, trees: Sequence[RigProblem]) -> None:
    """Raise BakeError if an armature's object can't get the motion of its root."""
    if root_motion == "BONE" or not any(problem.free_root for problem in trees):
        return
    if len(trees) > 1:
        raise BakeError(
            f"{armature.name!r} has several roots, so its motion can't be moved to the object: set Root Motion "
            "to Root Bone"
        )
    if root_motion == "OBJECT" and has_other_drivers(armature):
        raise BakeError(
            f"{armature.name!r} is moved by a parent, constraint, driver or NLA strip: set Root Motion to Root Bone"
        )


# A tree, the locations of the object (F, 3) or None if the root bone is keyed instead, and the channels to key.
_Made = tuple[BakedTree, FloatArray | None, TakeChannels]


def write_keys(
    context: Context,
    armature: Object,
    settings: BakeSettings,
    trees: Sequence[BakedTree],
    matrices: FloatArray,
    take: str,
) -> Generator[float, None, tuple[set[str], list[str], list[str]]]:
    """Key the solved bones; returns the bones with keys, notes about limbs that left IK, and doubts about the keys.

    The steps place the IK controls of limbs. Nothing is written before the last step. matrices: (F, 4, 4) world
    matrices of the armature. take: the name of the motion, or "".
    """
    posed = trees[0].problem.posed
    made: list[_Made] = []
    for index, tree in enumerate(trees):
        heads, of_object = _object_motion(armature, settings, tree, matrices)
        poses = tree.solution.rotations, heads
        steps = posed.channels(context, tree.problem.tree.skeleton, poses, tree.bones, moves_root=tree.moves_root)
        channels = yield from within(index / len(trees), (index + 1) / len(trees), steps)
        made.append((tree, of_object, channels))
    name = settings.action_name or take or f"{armature.name} FABRIK"
    if settings.action == "NLA":
        action = keyframes.new_strip_action(armature, name)
    elif settings.action == "NEW":
        # Curves that the bake replaces are not copied from the current action.
        slides = {bone for tree in trees for bone in tree.bones if bone in tree.problem.slides}
        paths = {armature.pose.bones[bone].path_from_id("scale") for bone in slides}
        paths |= {"location" for _, of_object, _ in made if of_object is not None}
        for tree in trees:
            paths |= posed.written(tree.problem.tree.skeleton, tree.bones, moves_root=tree.moves_root)
        action = keyframes.new_action(armature, name, without=paths)
    else:
        action = keyframes.current_or_new_action(armature, name)
    keyed = _write_curves(armature, settings, action, made, matrices)
    locked = [group for group, is_locked in keyed.items() if is_locked]
    if settings.action == "NLA":
        keyframes.add_strip(armature, action)
    doubts = [f"Locked curves of action {action.name!r} were not changed: {', '.join(locked)}"] if locked else []
    notes = [sentence for *_, channels in made for sentence in channels.left]
    # Bones differ from the solved pose if keys are reduced, or if only some bones get keys.
    if settings.key_angle == 0.0 and settings.bones == "SOLVED" and settings.root_motion == "BONE":
        doubts += [sentence for tree in trees for sentence in posed.off(context, tree.solution, settings.frames)]
    if not settings.is_shown and settings.action == "NEW" and posed.by_channels and armature.library is None:
        keyframes.set_aside([armature])
        keyed.clear()
    return {*keyed}, notes, doubts


def _write_curves(
    armature: Object, settings: BakeSettings, action: Action, made: Sequence[_Made], matrices: FloatArray
) -> dict[str, bool]:
    """Write the keys of trees: of bones or controls, the root or the object, and IK/FK switches.

    Returns the bones with keys, and whether curves are locked. matrices: (F, 4, 4) world matrices of the armature.
    """
    frames, tolerance, keyed = settings.frames, settings.key_angle, dict[str, bool]()

    def write(path: str, group: str, values: FloatArray, rows: IntArray, only: Sequence[int] | None = None) -> None:
        is_locked = keyframes.write_curves(action, armature, path, frames[rows], values[rows], group, components=only)
        keyed[group] = is_locked or keyed.get(group, False)

    def kept(values: FloatArray, distance: float) -> IntArray:
        return needed_keys(values, distance) if tolerance > 0.0 else np.arange(len(values))

    for tree, of_object, channels in made:
        skeleton, bones = tree.problem.tree.skeleton, armature.pose.bones
        if of_object is not None:
            size = float(skeleton.lengths[0] * object_scale(matrices[0]))
            write("location", "Object Transforms", of_object, kept(of_object, tolerance * size))
        for holder, turned in channels.rotations.items():
            bone = channels.bodies.get(holder, "")
            if bone in tree.bones or settings.bones == "SOLVED":
                row = skeleton.index(bone) if bone else 0
                rows = np.arange(len(turned)) if tree.keyed is None else np.flatnonzero(tree.keyed[:, row])
                mode = bones[holder].rotation_mode
                channel, values = property_name(mode), to_channels(mode, turned)
                free = unlocked(bones[holder], channel)
                if tolerance > 0.0 and len(rows):
                    rows = rows[needed_keys(values[rows], tolerance, mode)]
                if len(rows) and free:
                    write(bones[holder].path_from_id(channel), holder, values, rows, free)
            if holder in tree.problem.slides:
                row = skeleton.index(holder)
                factors = np.ones((len(frames), 3))
                factors[:, 1] = tree.solution.lengths[:, row] / skeleton.lengths[row]
                write(bones[holder].path_from_id("scale"), holder, factors, kept(factors, tolerance), (1,))
        for holder, locations in channels.locations.items():
            if free := unlocked(bones[holder], "location"):
                rows = kept(locations, tolerance * float(bones[holder].bone.length))
                write(bones[holder].path_from_id("location"), holder, locations, rows, free)
        for path, value in channels.switches.items():
            # Keys on both ends replace all keys between them.
            write(path, keyframes.bone_in_path(path), np.full((len(frames), 1), value), np.unique([0, len(frames) - 1]))
            # Switches must not be interpolated between two keys.
            keyframes.make_steps(keyframes.channels_of(action, armature).fcurves.find(path))
    return keyed


def _object_motion(
    armature: Object, settings: BakeSettings, tree: BakedTree, matrices: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """(F, 3) root heads, and (F, 3) locations of the object if it gets the motion of the root."""
    heads = tree.solution.root_location
    if settings.root_motion == "BONE" or not tree.moves_root:
        return heads, None
    rest = armature.data.bones[tree.problem.tree.skeleton.names[0]].head_local
    axes = matrices[:, :3, :3]
    shift = times(axes, heads - np.array(rest))
    if settings.root_motion == "IN_PLACE":
        shift[:, 2] = 0.0
    heads = heads - times(np.linalg.inv(axes), shift)
    moved = matrices[:, :3, 3] - np.array(armature.delta_location) + shift
    return heads, moved if settings.root_motion == "OBJECT" else None


def make_report(trees: Sequence[BakedTree], frames: IntArray) -> Report:
    """The errors of the effectors or markers of all trees, in world meters, on frames (F,).

    Call it once: to save memory, it converts the errors of the trees in place.
    """
    errors = [np.multiply(tree.scale[:, None], tree.solution.errors, out=tree.solution.errors) for tree in trees]
    status = np.stack([tree.solution.status for tree in trees])
    rank = np.array([_WORST_FIRST.index(each) for each in sorted(Status)])
    worst = [_WORST_FIRST[place] for place in rank[status].min(axis=0).tolist()]
    return Report(
        errors[0] if len(errors) == 1 else np.concatenate(errors, axis=1),
        [name for tree in trees for name in tree.problem.names],
        frames.tolist(),
        worst,
        filled=[
            replace(span, first=int(frames[span.first]), last=int(frames[span.last]))
            for tree in trees
            for span in tree.filled
        ],
        limits={
            tree.solution.skeleton.names[bone]: 100.0 * share
            for tree in trees
            for bone, share in enumerate(tree.solution.binding.mean(axis=0).tolist())
            if share
        },
        outliers=np.concatenate(
            [np.zeros(tree.solution.errors.shape, bool) if tree.outliers is None else tree.outliers for tree in trees],
            axis=1,
        ),
        doubts=[doubt for tree in trees for doubt in tree.doubts],
        rotations={bone: off for tree in trees for bone, off in tree.turned_off.items()},
    )


def make_result(
    armature: Object,
    settings: BakeSettings,
    trees: tuple[BakedTree, ...],
    report: Report,
    matrices: FloatArray,
    seconds: dict[str, float],
    take: str,
    *,
    by_markers: bool,
) -> BakeResult:
    """Make the result of a bake, and store the part that the sidebar shows with the rig.

    A note reports an omission, a correction or a choice. A doubt gives a reason why the result may be wrong, so it
    counts for `--strict`.

    matrices: (F, 4, 4) world matrices of the armature. take: the name of the motion. by_markers: whether the motion is
    from markers.
    """
    keyed = [bone for tree in trees for bone in tree.bones]
    left = (sentence for tree in trees for sentence in tree.problem.left_alone)
    speed = why_another_speed(bpy.context.scene, armature) if by_markers else ""
    posed = trees[0].problem.posed
    wanted = followed(armature, settings.source) if by_markers or not take else ()
    doubts = [*report.doubts, *filter(None, [speed]), *_not_shown(settings, trees, keyed, wanted)]
    doubts += animated_limits(armature, keyed, settings.frames)
    own = (note for tree in trees for note in tree.notes)
    figures = (*own, *take_figures(trees, 1.0 / float(object_scale(matrices[0]))), *rotations_line(report))
    if by_markers:
        size = max(tree.problem.tree.skeleton.size * float(np.median(tree.scale)) for tree in trees)
        # Bones that constraints move, among the bones with markers and their parents.
        bones = armature.pose.bones
        carrying = [bones[marker.bone] for marker in mapped_markers(armature) if marker.bone in bones]
        chains = {each.name for bone in carrying for each in (bone, *bone.parent_recursive)}
        moved = sorted(chains & posed.owned.keys(), key=bones.find)
        unseen = {row.name for row in report.per_marker() if row.coverage == 0.0}
        results = result_doubts(report, size, {bone.name for bone in carrying}, moved)
        doubts = [*matching_doubts_of(armature, unseen), *results, *doubts]
    if by_markers or take:
        doubts += [doubt for tree in trees for doubt in posture_doubts(tree.solution, matrices)]
    report = replace(report, notes=(*left, *report.notes), doubts=tuple(doubts))
    result = BakeResult(report, settings.frames, trees, seconds, figures, take)
    capture = rig_settings(armature).capture
    capture.last_result, capture.doubts = "\n".join((*result.lines, *figures)), "\n".join(report.doubts)
    if by_markers or take:
        # The report of a retarget lists bones. A marker may have the same name as a bone.
        for row in report.per_marker() if by_markers else ():
            if (entry := capture.markers.get(row.name)) is not None:
                entry.error, entry.worst = (-1.0, 0.0) if np.isnan(row.rms) else (row.rms, row.max)
                entry.worst_frame, entry.coverage = row.worst_frame or 0, row.coverage
        capture.worst_frame = report.total.worst_frame or 0
        text = capture.report or bpy.data.texts.new(f"{take or armature.name} FABRIK report.csv")
        text.clear()
        text.write(csv_text(report))
        capture.report = text
    if by_markers:
        keyframes.point_to_action(capture, armature)
    return result


def take_figures(trees: Sequence[BakedTree], meter: float) -> Iterator[str]:
    """Short lines about gaps and feet; meter: armature units per meter."""
    if spans := [span for tree in trees for span in tree.filled]:
        longest = max(spans, key=lambda span: span.count)
        yield f"Gaps: {len(spans)}, longest {longest.count} frames ({longest.bone})"
    if stances := [stance for tree in trees for stance in tree.stances]:
        before = max(stance.drift_before for stance in stances) / meter
        after = max(stance.drift_after for stance in stances) / meter
        yield (
            f"Foot contacts: {len(stances)}, drift up to {1000 * before:.1f} mm before planting, "
            f"{1000 * after:.1f} mm after"
        )


def _not_shown(
    settings: BakeSettings, trees: Sequence[BakedTree], keyed: Sequence[str], wanted: Sequence[Any]
) -> Iterator[str]:
    """Reasons why the rig does not show the motion, as sentences: rest position, constraints, locks, stretched time.

    keyed: the bones with keys. wanted: all effectors or markers to follow; none for a retarget.
    """
    armature, by_channels = trees[0].problem.rig, trees[0].problem.posed.by_channels
    if armature.data.pose_position == "REST":
        yield f"{armature.name!r} is in rest position: switch it to pose position"
    for bone in keyed if by_channels else ():
        kinds = armature.pose.bones[bone].constraints
        active = [kind.name for kind in kinds if not kind.mute and kind.influence > 0.0 and not is_own(kind)]
        if active:
            yield f"Bone {bone!r} has constraints that change the baked motion: {', '.join(active)}"
    used = {name for tree in trees for name in tree.problem.names}
    if left_out := [each.name for each in wanted if each.name not in used]:
        yield f"Not used, because they are never seen or no bone can move them: {listed(left_out)}"
    for tree in trees:
        moved, bones = np.ptp(tree.solution.root_location, axis=0).max() > _STILL, armature.pose.bones
        place = tree.problem.posed.place(tree.solution.skeleton.names[0])
        if moved and settings.root_motion != "OBJECT" and place in bones and any(bones[place].lock_location):
            yield f"Bone {place!r} does not follow the motion, because its location is locked: unlock it"
    render = bpy.context.scene.render
    if render.frame_map_old != render.frame_map_new:
        yield "Time Stretching in the scene's output settings changes the speed of the motion: set Old and New to 100"


def animated_limits(armature: Object, bones: Sequence[str], frames: IntArray) -> Iterator[str]:
    """A warning for each bone whose limit is driven, or animated on frames (F,)."""
    drivers = getattr(armature.animation_data, "drivers", ())
    animated: dict[tuple[str, str], None] = {}
    for curve in (*keyframes.curves(armature), *drivers):
        name = curve.data_path.rpartition('["')[2].removesuffix('"]')
        if name not in NUMBERS or (bone := keyframes.bone_in_path(curve.data_path)) not in bones:
            continue
        if curve.driver is not None or (not curve.mute and np.ptp(keyframes.values_at(curve, frames)) > _STILL):
            animated[bone, name] = None
    for bone, name in animated:
        yield f"Bone {bone!r} has an animated limit ({name}): its values on frame {frames[0]} were used"
