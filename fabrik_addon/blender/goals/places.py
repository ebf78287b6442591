"""Samples a rig's targets, now or frame by frame, in the space in which its tree of bones is solved."""

import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Depsgraph, FCurve, Object, Scene
from mathutils import Matrix, Quaternion

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray
from ...core.errors import TargetError
from ..rig import keyframes
from ..rig.armature import as_array, world_to_armature
from ..rig.keyframes import bone_path
from ..settings.motion import MARKER_NAME
from .effectors import Goal, Partner, Pin, Target, targets_in
from .problem import RigProblem

# World positions (F, 3) or matrices (F, 4, 4) to fill frame by frame, and their target.
_Column: TypeAlias = tuple[FloatArray, Target]

# Seconds of work between two checks of the Esc key, and the minimum number of frames.
_LOOK_EVERY: Final = 0.1
_LEAST_FRAMES: Final = 4

# A marker is visible between two keys if they are at most this many steps of its recording apart.
_SEEN_STEPS: Final = 1.5
# A frame that is at most this many steps from a key is on the key, because subframes are in single precision.
_ON_KEY: Final = 0.01
# The keys of a recording are usually at most this many frames apart.
_RECORDED_STEP: Final = 1.5
_TRANSFORM_PATHS: Final = ("location", "rotation", "scale", "delta_")


class Samples(NamedTuple):
    """The recording of a marker whose empty has no keys. first: its first frame. locations: (F, 3) float32."""

    first: int
    locations: npt.NDArray[np.float32]

    def at(self, frames: FloatArray) -> FloatArray:
        """(N, 3) the locations on whole frames (N,); NaN if the marker is not visible."""
        rows = np.rint(frames).astype(np.int64) - self.first
        inside = (rows >= 0) & (rows < len(self.locations))
        return np.where(inside[:, None], self.locations[np.where(inside, rows, 0)], np.nan)

    def seen(self) -> BoolArray:
        """(F,) whether the marker is visible."""
        return ~np.isnan(self.locations[:, 0])


# Recordings without keys, by the names of their empties. On the command line, only markers that are kept get keys,
# because keys take six times the memory of numbers.
UNKEYED: Final = dict[str, Samples]()


def sample_steps(
    scene: Scene, targets: Sequence[Target], turning: Sequence[Target], frames: npt.ArrayLike, *, recorded: bool = False
) -> Generator[float, None, tuple[FloatArray, FloatArray]]:
    """(F, E, 3) world positions of E targets, and (F, M, 4, 4) world matrices of M `turning`; yields progress.

    A position is NaN if a recorded marker is not visible. Plain animated empties are read from their curves. For other
    targets (with parents, constraints, drivers, or bones), the scene is evaluated, at most once on each frame. At each
    yield, the scene is on its original frame.

    Args:
        scene: the scene that the targets are in.
        targets: E objects, each with the name of one of its bones, whose head is used, or "" for its own origin.
        turning: M objects, each with the name of one of its bones or "", whose rotations are needed.
        frames: (F,) frames or subframes.
        recorded: the targets are markers, perhaps imported by other add-ons. A marker with keys on nearly every frame
            is not visible on frames without a key.

    Raises:
        TargetError: for a target whose bone does not exist, or that is not part of the evaluated scene.
    """
    times = np.asarray(frames, dtype=np.float64)
    for target in (*targets, *turning):
        holder, bone = target
        if bone and (holder.type != "ARMATURE" or bone not in holder.pose.bones):
            raise TargetError(f"{holder.name!r} has no bone {bone!r}: choose one that it has")
    positions, matrices = np.empty((len(times), len(targets), 3)), np.empty((len(times), len(turning), 4, 4))
    plain = [_is_plain(target) for target in targets]
    still = [is_still(target) for target in turning]
    for place in np.flatnonzero(still):
        matrices[:, place] = _evaluated_matrix(_depsgraph(scene), turning[place])
    columns = [(positions[:, place], targets[place]) for place in np.flatnonzero(np.logical_not(plain))]
    columns += [(matrices[:, place], turning[place]) for place in np.flatnonzero(np.logical_not(still))]
    if columns:
        yield from _evaluated(scene, times, columns)
    for place, target in enumerate(targets):
        if (samples := UNKEYED.get(target[0].name_full)) is not None:
            positions[:, place] = samples.at(times)
            continue
        path = _location_path(target)
        own = [curve for curve in keyframes.curves(target[0]) if curve.data_path == path]
        gaps = bool(own) if is_imported(target) else recorded
        there = _is_there(target, own, times) if gaps else np.ones(len(times), dtype=np.bool_)
        if plain[place]:
            holder, own = target[0], [curve for curve in own if len(curve.keyframe_points)]
            values = keyframes.channel_values(np.array(holder.location), own, times[there])
            positions[there, place] = values + np.array(holder.delta_location)
        positions[~there, place] = np.nan
        yield 1.0
    return positions, matrices


def _evaluated(scene: Scene, frames: FloatArray, columns: Sequence[_Column]) -> Generator[float, None, None]:
    """Evaluate the scene on frames (F,), and fill columns (F, …) from their targets."""
    done = 0
    while done < len(frames):
        first, began = done, time.monotonic()
        frame, subframe = scene.frame_current, scene.frame_subframe
        try:
            while done < len(frames) and (done < first + _LEAST_FRAMES or time.monotonic() < began + _LOOK_EVERY):
                whole = int(np.floor(frames[done]))
                scene.frame_set(whole, subframe=float(frames[done] - whole))
                graph = _depsgraph(scene)
                for column, target in columns:
                    matrix = _evaluated_matrix(graph, target)
                    column[done] = matrix if column.ndim > 2 else matrix.translation
                done += 1
        finally:
            scene.frame_set(frame, subframe=subframe)
        yield done / len(frames)


def _is_there(target: Target, curves: Iterable[FCurve], frames: FloatArray) -> BoolArray:
    """(F,) whether a target with these location curves is visible on frames (F,), by the rules of `sample_steps`."""
    first, *others = [keyframes.keys(curve)[:, 0] for curve in curves] or [np.empty(0)]
    # Sorting is slow. Usually all curves have keys on the same frames.
    same = all(np.array_equal(first, other) for other in others) and bool((np.diff(first) > 0.0).all())
    times = first if same else np.unique(np.concatenate([first, *others]))
    padded = np.concatenate(([-np.inf], times, [np.inf]))
    after = np.searchsorted(times, frames) + 1
    return _is_near(frames, padded[after - 1], padded[after], _recorded_step(target, times))


def _is_plain(target: Target) -> bool:
    """Whether a target is an empty that only keyframes of its location move."""
    holder, bone = target
    if bone or holder.type != "EMPTY" or has_other_drivers(holder):
        return False
    return all(curve.data_path == "location" and is_simple(curve) for curve in keyframes.curves(holder))


def is_simple(curve: FCurve) -> bool:
    """Whether a curve is determined by its keys alone."""
    group = curve.group
    return not (curve.mute or (group is not None and group.mute) or curve.modifiers)


def is_still(target: Target) -> bool:
    """Whether a target is an object that neither keys nor other objects move; its bones may move."""
    holder, bone = target
    if bone or has_other_drivers(holder):
        return False
    return not any(curve.data_path.startswith(_TRANSFORM_PATHS) for curve in keyframes.curves(holder))


def has_other_drivers(holder: Object) -> bool:
    """Whether an object's location depends on more than its own channels and its action's keys."""
    if holder.parent is not None or holder.constraints or holder.rigid_body is not None:
        return True
    animation = holder.animation_data
    if animation is None:
        return False
    mixed = animation.action_influence != 1.0 or animation.action_blend_type != "REPLACE"
    driven = any(curve.data_path.startswith(_TRANSFORM_PATHS) for curve in animation.drivers)
    return bool(mixed or animation.nla_tracks or driven)


def _evaluated_matrix(graph: Depsgraph, target: Target) -> Matrix:
    """The world matrix of an evaluated target; raises TargetError if it is not in the evaluated scene."""
    holder, bone = target
    evaluated = holder.evaluated_get(graph)
    if not evaluated.is_evaluated:
        raise TargetError(f"Object {holder.name!r} is not in the view layer or is disabled: enable it first")
    return evaluated.matrix_world @ evaluated.pose.bones[bone].matrix if bone else evaluated.matrix_world


def _depsgraph(scene: Scene) -> Depsgraph:
    if bpy.context.scene == scene:
        return bpy.context.evaluated_depsgraph_get()
    layer = scene.view_layers[0]
    layer.update()
    return layer.depsgraph


def is_seen(marker: Target, frame: float) -> bool:
    """Whether a marker is visible on a frame, from the keys of its X location; fast enough for drawing."""
    first = (_location_path(marker), 0)
    curve = next((each for each in keyframes.curves(marker[0]) if (each.data_path, each.array_index) == first), None)
    if curve is None:
        return True
    # Find the first key on or after the frame; this reads only a few keys.
    points: Any = curve.keyframe_points
    place = bisect_left(points, frame, key=lambda point: point.co[0])
    before = points[place - 1].co[0] if place else -np.inf
    after = points[place].co[0] if place < len(points) else np.inf
    if after == frame:
        return True
    times = np.empty(0) if is_imported(marker) else keyframes.keys(curve)[:, 0]
    return bool(_is_near(frame, before, after, _recorded_step(marker, times)))


def is_imported(target: Target) -> bool:
    """Whether a target is a marker imported by this extension."""
    return not target[1] and target[0].get(MARKER_NAME) is not None


def _location_path(target: Target) -> str:
    return bone_path(target[1], "location") if target[1] else "location"


def _recorded_step(target: Target, times: FloatArray) -> float:
    """Frames between two samples of a marker: one if it was imported, else measured from its keys `times` (K,).

    Infinite if the keys are farther apart than in a recording, because animation by hand has no gaps.
    """
    if is_imported(target):
        return 1.0
    step = float(np.median(np.diff(times))) if len(times) > 1 else np.inf
    return step if step <= _RECORDED_STEP else np.inf


def _is_near(frame: Any, before: Any, after: Any, step: float) -> Any:
    """(F,) whether each frame (F,) is on a key, or between two keys that are about one step apart."""
    on_key = np.minimum(frame - before, after - frame) <= _ON_KEY * step
    return on_key | (after - before <= _SEEN_STEPS * step)


class SampledTargets(NamedTuple):
    """Targets of E effectors, on one frame or on F, in the space of their tree.

    points: ([F,] E, 3), NaN for a marker that is not visible. rotations: ([F,] E, 4) w x y z; None if no effector has a
    target rotation. bends: ([F,] E, 3) poles, NaN without one; None if no limb has a pole.
    """

    points: FloatArray
    rotations: FloatArray | None = None
    bends: FloatArray | None = None

    def solve(self, solver: Solver, start: npt.ArrayLike, start_location: npt.ArrayLike | None) -> Solution:
        """The solver's result for these targets.

        start: (..., J, 4) local rotations of the start pose. start_location: (..., 3) its root's head; None: at rest.
        """
        return solver.solve(
            self.points,
            start=start,
            start_location=start_location,
            target_rotations=self.rotations,
            bend_targets=self.bends,
        )

    def part(self, frames: slice | int) -> "SampledTargets":
        """The targets on some of the frames."""
        return SampledTargets(*(None if each is None else each[frames] for each in self))


def current_targets(graph: Depsgraph, scene: Scene, rig: Object, problem: RigProblem) -> SampledTargets:
    """The current targets. Does not change the frame, so objects that were moved by hand stay in place."""
    space = tree_space(rig.evaluated_get(graph), problem)
    armature = as_array(rig.evaluated_get(graph).matrix_world)
    world: dict[Goal, FloatArray] = {}
    for goal in filter(None, (*problem.targets, *problem.bends)):
        if isinstance(goal, (Pin, Partner)):
            world[goal] = armature @ _own_matrix(goal)
        else:
            evaluated, bone = goal[0].evaluated_get(graph), goal[1]
            own = evaluated.matrix_world
            world[goal] = as_array(own @ evaluated.pose.bones[bone].matrix if bone else own)
    points = {goal: matrix[:3, 3] for goal, matrix in world.items()}
    for goal in targets_in(world):
        # Imported markers have gaps.
        if is_imported(goal) and not is_seen(goal, scene.frame_current_final):
            points[goal] = np.full(3, np.nan)
    return _in_tree(space, problem, points, world)


def sampled_steps(
    scene: Scene,
    rig: Object,
    problems: Sequence[RigProblem],
    frames: npt.ArrayLike,
    smooth: Callable[[FloatArray], FloatArray] | None = None,
    *,
    recorded: bool = False,
) -> Generator[float, None, tuple[list[tuple[SampledTargets, FloatArray]], FloatArray]]:
    """The targets of each tree on F frames, in small steps; yields progress.

    smooth: a filter for the world positions (F, E, 3), before they are converted to the trees' spaces. recorded: the
    goals are markers, see `sample_steps`. Returns for each tree its targets and its matrices (F, 4, 4) to world
    space, and (F, 4, 4) world matrices of the rig. Raises TargetError for a target that is not in the evaluated scene.
    """
    reached = list(dict.fromkeys(targets_in(goal for tree in problems for goal in (*tree.targets, *tree.bends))))
    pairs = [pair for tree in problems for pair in zip(tree.targets, tree.effectors, strict=True)]
    followed = targets_in(goal for goal, effector in pairs if effector.rotation_weight > 0.0)
    turning = list(dict.fromkeys([(rig, ""), *followed, *((rig, tree.carrier) for tree in problems if tree.carrier)]))
    points, matrices = yield from sample_steps(scene, reached, turning, frames, recorded=recorded)
    points = points if smooth is None else smooth(points)
    # By goal: world positions (F, 3) and world matrices (F, 4, 4).
    seen: dict[Goal, FloatArray] = dict(zip(reached, np.moveaxis(points, 1, 0), strict=True))
    turned: dict[Goal, FloatArray] = dict(zip(turning, np.moveaxis(matrices, 1, 0), strict=True))
    armature, found = turned[rig, ""], []
    for goal, _ in pairs:
        if isinstance(goal, (Pin, Partner)):
            turned[goal] = armature @ _own_matrix(goal)
            seen[goal] = turned[goal][:, :3, 3]
    for tree in problems:
        space = armature
        if tree.carrier:
            space = turned[rig, tree.carrier] @ np.linalg.inv(tree.tree.skeleton.rest[0])
        found.append((_in_tree(space, tree, seen, turned), space))
    return found, armature


def _in_tree(
    space: FloatArray, problem: RigProblem, points: Mapping[Goal, FloatArray], matrices: Mapping[Goal, FloatArray]
) -> SampledTargets:
    """Convert a tree's targets from world positions (..., 3) and world matrices (..., 4, 4) to the tree's space.

    space: (..., 4, 4) matrices from the tree's space to the world. matrices: those of goals with a target rotation.
    """
    nothing, unturned = np.full((*space.shape[:-2], 3), np.nan), np.broadcast_to(np.eye(4), space.shape)
    if space.ndim > 2 and (space == space[0]).all():
        space = space[:1]

    def moved(goals: Sequence[Goal | None]) -> FloatArray:
        return world_to_armature(
            np.stack([nothing if goal is None else points[goal] for goal in goals], axis=-2), space
        )

    rotations = None
    if any(effector.rotation_weight > 0.0 for effector in problem.effectors):
        world = np.stack([matrices.get(goal, unturned) for goal in problem.targets], axis=-3)
        rotations = quaternions(np.linalg.inv(space)[..., None, :, :] @ world)
    bends = moved(problem.bends) if any(bend is not None for bend in problem.bends) else None
    return SampledTargets(moved(problem.targets), rotations, bends)


def quaternions(matrices: FloatArray) -> FloatArray:
    """(..., 4) rotations, w x y z, of (..., 4, 4) matrices with any scale."""
    flat = [Matrix(matrix.tolist()).to_quaternion()[:] for matrix in matrices.reshape(-1, 4, 4)]
    return np.array(flat).reshape(*matrices.shape[:-2], 4)


def tree_space(rig: Object, problem: RigProblem) -> FloatArray:
    """(4, 4) matrix from the space of a tree to the world, for an evaluated armature in its current state."""
    world = as_array(rig.matrix_world)
    if not problem.carrier:
        return world
    return world @ as_array(rig.pose.bones[problem.carrier].matrix) @ np.linalg.inv(problem.tree.skeleton.rest[0])


def _own_matrix(pin: Pin | Partner) -> FloatArray:
    """(4, 4) matrix of a pin in armature space.

    For the other side of a loop, any matrix without NaN will do: it counts as visible, and its position is not used.
    """
    if isinstance(pin, Partner):
        return np.eye(4)
    return as_array(Matrix.LocRotScale(pin.location, Quaternion(pin.rotation), None))
