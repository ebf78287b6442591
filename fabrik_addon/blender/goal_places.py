"""Where the goals of a rig are, now or frame by frame, in the space that its tree of bones is solved in."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Quaternion

from ..core import Solution, Solver
from ..core.arrays import FloatArray
from .effectors import Goals, Pin, Target
from .import_markers import MARKER_NAME
from .loops import Partner
from .sampling import is_plain, is_seen, is_still, sample_frames, sample_matrices, sample_targets


class Places(NamedTuple):
    """Where E effectors are to go, on one frame or on F, in the space of their tree.

    points: ([F,] E, 3), NaN for a marker that is not seen. rotations: ([F,] E, 4) w x y z; None where none counts.
    bends: ([F,] E, 3) what limbs bend toward, NaN where nothing; None where nothing at all.
    """

    points: FloatArray
    rotations: FloatArray | None = None
    bends: FloatArray | None = None

    def solve(self, solver: Solver, start: npt.ArrayLike, start_location: npt.ArrayLike | None) -> Solution:
        """What the solver makes of them."""
        return solver.solve(
            self.points,
            start=start,
            start_location=start_location,
            target_rotations=self.rotations,
            bend_targets=self.bends,
        )

    def repair(self, solver: Solver, solution: Solution, start_locations: npt.ArrayLike | None) -> Iterator[bool]:
        """Solve again, in place, what jumps or failed in F frames; yields after each span."""
        return solver.repair_pops(
            solution, self.points, start_locations, target_rotations=self.rotations, bend_targets=self.bends
        )

    def part(self, frames: slice | int) -> "Places":
        """Those of some of the frames."""
        return Places(*(None if each is None else each[frames] for each in self))


def present_places(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, goals: Goals) -> Places:
    """Where the goals are now; the scene stays on its frame, so that what was moved by hand counts."""
    space = tree_space(rig.evaluated_get(graph), goals)
    armature = np.array(rig.evaluated_get(graph).matrix_world)
    world = np.array([_world_matrix(graph, armature, goal) for goal in goals.targets])
    for goal, matrix in zip(goals.targets, world, strict=True):
        if not isinstance(goal, (Pin, Partner)) and not _is_seen(scene, goal):
            matrix[:3, 3] = np.nan
    bends = np.array([_bend_point(graph, bend) for bend in goals.bends])
    return places_in(space, goals, world[:, :3, 3], world, bends)


def need_evaluation(rig: bpy.types.Object, goals: Sequence[Goals]) -> bool:
    """Whether the scene has to be evaluated frame by frame to know where the goals of trees are."""
    turning = any(_turning(tree) or tree.carrier for tree in goals)
    return turning or not is_still(rig) or not all(is_plain(target) for target in _reached(goals))


def sampled_places(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    goals: Sequence[Goals],
    frames: npt.ArrayLike,
    *,
    recorded: bool = False,
) -> list[tuple[Places, FloatArray]]:
    """Where the goals of each tree are on F frames, and (F, 4, 4) from the space of the tree to the world.

    recorded: the goals are markers, see `sample_targets`.

    Raises TargetError for a target that is not part of the scene.
    """
    armature = sample_matrices(scene, rig, frames)
    points = _sampled(partial(sample_targets, recorded=recorded), scene, _reached(goals), frames)
    turning = [goal for tree in goals for goal in _turning(tree) if not isinstance(goal, (Pin, Partner))]
    carriers = [(rig, tree.carrier) for tree in goals if tree.carrier]
    turned = _sampled(sample_frames, scene, [*turning, *carriers], frames)
    samples = _Samples(armature, points, turned)
    return [samples.places(rig, tree) for tree in goals]


def _reached(goals: Sequence[Goals]) -> list[Target]:
    """The objects and bones whose places count."""
    wanted = [goal for tree in goals for goal in (*tree.targets, *tree.bends)]
    return [goal for goal in wanted if goal is not None and not isinstance(goal, (Pin, Partner))]


class _Samples(NamedTuple):
    """What has been sampled on F frames: (F, 4, 4) of the armature; (F, 3) and (F, 4, 4) by object and bone."""

    armature: FloatArray
    points: dict[Target, FloatArray]
    turned: dict[Target, FloatArray]

    def places(self, rig: bpy.types.Object, goals: Goals) -> tuple[Places, FloatArray]:
        """Those of one tree, and its space."""
        space = self.armature
        if goals.carrier:
            space = self.turned[rig, goals.carrier] @ np.linalg.inv(goals.tree.skeleton.rest[0])
        points = np.stack([self._point(goal) for goal in goals.targets], axis=1)
        world = np.stack([self._world(goal) for goal in goals.targets], axis=1) if _turning(goals) else None
        nothing = np.full((len(space), 3), np.nan)
        bends = np.stack([nothing if bend is None else self.points[bend] for bend in goals.bends], axis=1)
        return places_in(space, goals, points, world, bends), space

    def _point(self, goal: Target | Pin | Partner) -> FloatArray:
        """(F, 3) of a goal."""
        if isinstance(goal, (Pin, Partner)):
            return np.asarray((self.armature @ _own_matrix(goal)[:, 3])[:, :3])
        return self.points[goal]

    def _world(self, goal: Target | Pin | Partner) -> FloatArray:
        """(F, 4, 4) of a goal; its rotation only where that counts."""
        if isinstance(goal, (Pin, Partner)):
            return self.armature @ _own_matrix(goal)
        return self.turned[goal] if goal in self.turned else np.tile(np.eye(4), (len(self.armature), 1, 1))


def _sampled(
    sample: Callable[..., FloatArray], scene: bpy.types.Scene, targets: Sequence[Target], frames: npt.ArrayLike
) -> dict[Target, FloatArray]:
    """What a function samples of targets, each of them once."""
    once = list(dict.fromkeys(targets))
    return dict(zip(once, np.moveaxis(sample(scene, once, frames), 1, 0), strict=True))


def _turning(goals: Goals) -> list[Target | Pin | Partner]:
    """The goals of a tree whose rotation counts."""
    pairs = zip(goals.targets, goals.effectors, strict=True)
    return [goal for goal, effector in pairs if effector.rotation_weight > 0.0]


def joined(parts: Sequence[Places]) -> Places:
    """The places of successive frames as one."""
    columns = zip(*parts, strict=True)
    return Places(*(None if column[0] is None else np.concatenate(column) for column in columns))


def places_in(
    space: FloatArray, goals: Goals, points: FloatArray, world: FloatArray | None, bends: FloatArray
) -> Places:
    """World points ([F,] E, 3), matrices ([F,] E, 4, 4) of goals that turn, and ([F,] E, 3) points to bend toward.

    They come out in a tree's space, which stands at ([F,] 4, 4) in the world.
    """
    into = np.linalg.inv(space)[..., None, :, :]
    rotations = quaternions(into @ world) if world is not None and _turning(goals) else None
    toward = _moved(into, bends) if any(bend is not None for bend in goals.bends) else None
    return Places(_moved(into, points), rotations, toward)


def _moved(matrices: FloatArray, points: FloatArray) -> FloatArray:
    """([F,] E, 3) points moved by ([F,] 1, 4, 4) matrices."""
    return np.asarray((matrices[..., :3, :3] @ points[..., None])[..., 0] + matrices[..., :3, 3])


def quaternions(matrices: FloatArray) -> FloatArray:
    """(..., 4) rotations, w x y z, of (..., 4, 4) matrices with any scale."""
    flat = [Matrix(matrix.tolist()).to_quaternion()[:] for matrix in matrices.reshape(-1, 4, 4)]
    return np.array(flat).reshape(*matrices.shape[:-2], 4)


def tree_space(rig: bpy.types.Object, goals: Goals) -> FloatArray:
    """(4, 4) from the space of a tree to the world, by an evaluated armature as it is now."""
    world = np.array(rig.matrix_world)
    if not goals.carrier:
        return world
    rest = goals.tree.skeleton.rest[0]
    return world @ np.array(rig.pose.bones[goals.carrier].matrix) @ np.linalg.inv(rest)


def _world_matrix(graph: bpy.types.Depsgraph, armature: FloatArray, goal: Target | Pin | Partner) -> FloatArray:
    """(4, 4) of a goal: an object, a bone, or what is in the space of the armature whose matrix is (4, 4)."""
    if isinstance(goal, (Pin, Partner)):
        return armature @ _own_matrix(goal)
    holder, bone = goal
    evaluated = holder.evaluated_get(graph)
    world = evaluated.matrix_world
    return np.array(world @ evaluated.pose.bones[bone].matrix if bone else world)


def _own_matrix(pin: Pin | Partner) -> FloatArray:
    """(4, 4) of a pin in armature space; the place of a loop's other side does not count, but is always seen."""
    if isinstance(pin, Partner):
        return np.eye(4)
    return np.array(Matrix.LocRotScale(pin.location, Quaternion(pin.rotation), None))


def _bend_point(graph: bpy.types.Depsgraph, bend: Target | None) -> Sequence[float]:
    """(3,) world place of what a limb bends toward, NaN for nothing."""
    if bend is None:
        return (np.nan,) * 3
    return _world_matrix(graph, np.eye(4), bend)[:3, 3].tolist()


def _is_seen(scene: bpy.types.Scene, target: Target) -> bool:
    """Whether a target is there on the present frame: imported markers have gaps."""
    holder, bone = target
    return bool(bone) or holder.get(MARKER_NAME) is None or is_seen(target, scene.frame_current_final)
