"""The positions of a rig's targets, now or frame by frame, in the space in which its tree of bones is solved."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Quaternion

from ...core import Solution, Solver
from ...core.arrays import FloatArray, times
from ..rig.spaces import as_array
from .effectors import Pin, Target
from .goals import Goals
from .loops import Partner
from .sampling import is_imported, is_seen, sample_steps


class Places(NamedTuple):
    """Targets of E effectors, on one frame or on F, in the space of their tree.

    points: ([F,] E, 3), NaN for a marker that is not seen. rotations: ([F,] E, 4) w x y z; None if no effector has a
    target rotation. bends: ([F,] E, 3) poles of limbs, NaN for none; None if no limb has one.
    """

    points: FloatArray
    rotations: FloatArray | None = None
    bends: FloatArray | None = None

    def solve(self, solver: Solver, start: npt.ArrayLike, start_location: npt.ArrayLike | None) -> Solution:
        """The solver's result for these targets."""
        return solver.solve(
            self.points,
            start=start,
            start_location=start_location,
            target_rotations=self.rotations,
            bend_targets=self.bends,
        )

    def part(self, frames: slice | int) -> "Places":
        """The targets on some of the frames."""
        return Places(*(None if each is None else each[frames] for each in self))


def present_places(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, goals: Goals) -> Places:
    """The current targets, without a change of frame, so that objects moved by hand are included."""
    space = tree_space(rig.evaluated_get(graph), goals)
    armature = as_array(rig.evaluated_get(graph).matrix_world)
    world = np.array([_world_matrix(graph, armature, goal) for goal in goals.targets])
    for goal, matrix in zip(goals.targets, world, strict=True):
        if isinstance(goal, (Pin, Partner)) or not is_imported(goal):
            continue
        # Imported markers have gaps.
        if not is_seen(goal, scene.frame_current_final):
            matrix[:3, 3] = np.nan
    bends = np.array([_bend_point(graph, bend) for bend in goals.bends])
    return places_in(space, goals, world[:, :3, 3], world, bends)


def sampled_steps(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    goals: Sequence[Goals],
    frames: npt.ArrayLike,
    smooth: Callable[[FloatArray], FloatArray] | None = None,
    *,
    recorded: bool = False,
) -> Generator[float, None, tuple[list[tuple[Places, FloatArray]], FloatArray]]:
    """The targets of each tree on F frames, in small steps; yields the share done.

    smooth: applied to the world positions (F, E, 3) before they are converted to the trees' spaces. recorded: the goals
    are markers, see `sample_targets`. Returns for each tree its targets and (F, 4, 4) from its space to the world, and
    (F, 4, 4) world matrices of the rig. Raises TargetError for a target that is not in the evaluated scene.
    """
    wanted = [goal for tree in goals for goal in (*tree.targets, *tree.bends)]
    reached = _once(goal for goal in wanted if goal is not None and not isinstance(goal, (Pin, Partner)))
    followed = [goal for tree in goals for goal in _turning(tree) if not isinstance(goal, (Pin, Partner))]
    turning = _once([(rig, ""), *followed, *((rig, tree.carrier) for tree in goals if tree.carrier)])
    points, matrices = yield from sample_steps(scene, reached, turning, frames, recorded=recorded)
    points = points if smooth is None else smooth(points)
    samples = _Samples(_by_target(reached, points), _by_target(turning, matrices))
    armature = samples.turned[rig, ""]
    return [samples.places(rig, tree) for tree in goals], armature


def _once(targets: Iterable[Target]) -> list[Target]:
    return list(dict.fromkeys(targets))


def _by_target(targets: Sequence[Target], samples: FloatArray) -> dict[Target, FloatArray]:
    """The samples (F, E, …) by target."""
    return dict(zip(targets, np.moveaxis(samples, 1, 0), strict=True))


class _Samples(NamedTuple):
    """Samples on F frames, (F, 3) and (F, 4, 4) by object and bone; the rig always has matrices."""

    points: dict[Target, FloatArray]
    turned: dict[Target, FloatArray]

    def places(self, rig: bpy.types.Object, goals: Goals) -> tuple[Places, FloatArray]:
        """The targets of one tree, and its space."""
        armature = space = self.turned[rig, ""]
        if goals.carrier:
            space = self.turned[rig, goals.carrier] @ np.linalg.inv(goals.tree.skeleton.rest[0])
        points = np.stack([self._point(armature, goal) for goal in goals.targets], axis=1)
        turning = bool(_turning(goals))
        world = np.stack([self._world(armature, goal) for goal in goals.targets], axis=1) if turning else None
        nothing = np.full((len(space), 3), np.nan)
        bends = np.stack([nothing if bend is None else self.points[bend] for bend in goals.bends], axis=1)
        return places_in(space, goals, points, world, bends), space

    def _point(self, armature: FloatArray, goal: Target | Pin | Partner) -> FloatArray:
        """(F, 3) positions of a goal."""
        if isinstance(goal, (Pin, Partner)):
            return np.asarray((armature @ _own_matrix(goal)[:, 3])[:, :3])
        return self.points[goal]

    def _world(self, armature: FloatArray, goal: Target | Pin | Partner) -> FloatArray:
        """(F, 4, 4) matrices of a goal; the rotation is only valid if the goal has a target rotation."""
        if isinstance(goal, (Pin, Partner)):
            return armature @ _own_matrix(goal)
        return self.turned[goal] if goal in self.turned else np.tile(np.eye(4), (len(armature), 1, 1))


def _turning(goals: Goals) -> list[Target | Pin | Partner]:
    """The goals of a tree that have a target rotation."""
    pairs = zip(goals.targets, goals.effectors, strict=True)
    return [goal for goal, effector in pairs if effector.rotation_weight > 0.0]


def places_in(
    space: FloatArray, goals: Goals, points: FloatArray, world: FloatArray | None, bends: FloatArray
) -> Places:
    """The targets in the space of a tree, which has matrices ([F,] 4, 4) in the world.

    points: ([F,] E, 3). world: ([F,] E, 4, 4) matrices of goals with a target rotation. bends: ([F,] E, 3) poles; all
    in world space.
    """
    stays = space.ndim > 2 and bool((space == space[0]).all())
    into = np.linalg.inv(space[:1] if stays else space)[..., None, :, :]
    rotations = quaternions(into @ world) if world is not None and _turning(goals) else None
    toward = _moved(into, bends) if any(bend is not None for bend in goals.bends) else None
    return Places(_moved(into, points), rotations, toward)


def _moved(matrices: FloatArray, points: FloatArray) -> FloatArray:
    """([F,] E, 3) points transformed by ([F or 1,] 1, 4, 4) matrices."""
    return times(matrices[..., :3, :3], points) + matrices[..., :3, 3]


def quaternions(matrices: FloatArray) -> FloatArray:
    """(..., 4) rotations, w x y z, of (..., 4, 4) matrices with any scale."""
    flat = [Matrix(matrix.tolist()).to_quaternion()[:] for matrix in matrices.reshape(-1, 4, 4)]
    return np.array(flat).reshape(*matrices.shape[:-2], 4)


def tree_space(rig: bpy.types.Object, goals: Goals) -> FloatArray:
    """(4, 4) from the space of a tree to the world, for an evaluated armature in its current state."""
    world = as_array(rig.matrix_world)
    if not goals.carrier:
        return world
    rest = goals.tree.skeleton.rest[0]
    return world @ as_array(rig.pose.bones[goals.carrier].matrix) @ np.linalg.inv(rest)


def _world_matrix(graph: bpy.types.Depsgraph, armature: FloatArray, goal: Target | Pin | Partner) -> FloatArray:
    """(4, 4) world matrix of a goal: an object, a bone, or something in an armature with matrix (4, 4)."""
    if isinstance(goal, (Pin, Partner)):
        return armature @ _own_matrix(goal)
    holder, bone = goal
    evaluated = holder.evaluated_get(graph)
    world = evaluated.matrix_world
    return as_array(world @ evaluated.pose.bones[bone].matrix if bone else world)


def _own_matrix(pin: Pin | Partner) -> FloatArray:
    """(4, 4) of a pin in armature space.

    For the other side of a loop an unused position, which always counts as seen.
    """
    if isinstance(pin, Partner):
        return np.eye(4)
    return as_array(Matrix.LocRotScale(pin.location, Quaternion(pin.rotation), None))


def _bend_point(graph: bpy.types.Depsgraph, bend: Target | None) -> Sequence[float]:
    """(3,) world position of a limb's pole, NaN without one."""
    if bend is None:
        return (np.nan,) * 3
    return _world_matrix(graph, np.eye(4), bend)[:3, 3].tolist()
