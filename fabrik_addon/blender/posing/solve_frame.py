"""Poses the current frame by its targets."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, TypeAlias

import bpy
import numpy as np

from ...core import Options, Solution
from ...core.arrays import FloatArray
from ...core.drag import DragPose
from ...core.model.bodies import path_reaches
from ...core.rotations import angle_between
from ..control.posed_rig import posed_rig
from ..goals.effectors import check_effectors
from ..goals.goals import Goals, gather_goals, moves_root
from ..goals.places import Places, present_places, tree_space
from ..rig.armature import Tree, check_editable, check_rig, freeze
from ..rig.locks import WithLocks
from ..rig.pose_writer import read_channel
from ..rig.spaces import length_text, object_scale
from ..rig.stretch import write_stretches
from ..settings.rig import rig_settings
from ..settings.why_not import enabled_effectors
from .posture_session import depends_on, session_for, why_short
from .stored_pose import read_stored, store_trees

_CHANNELS: Final = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "rotation_axis_angle": 4}
# Radians: smaller errors of locked channels are not visible, and solving again for them would double the time.
_KEPT: Final = 1e-4
# A function that solves one pose of a tree in which some bones may not rotate, from (J, 4) local rotations and the
# root's head (3,).
Solve: TypeAlias = Callable[[Tree, Collection[str], FloatArray, FloatArray], Solution]


def _channels(rig: bpy.types.Object) -> str:
    """A key for the current pose, from all channels that rotate and move bones."""
    return _told(read_channel(rig, channel, size).tobytes() for channel, size in _CHANNELS.items())


def _told(parts: Iterable[bytes]) -> str:
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


def solve_around_locks(
    solve: Solve, tree: Tree, start: FloatArray, start_location: FloatArray, locks: Mapping[int, WithLocks]
) -> Solution:
    """The pose of a tree, solved again with the bones fixed whose locks the first solve violated.

    start: (J, 4) local rotations. start_location: (3,) the root's head, armature space. locks: by index in the
    skeleton.
    """
    solution = solve(tree, (), start, start_location)
    allowed = {bone: lock(solution.rotations[bone]) for bone, lock in locks.items()}
    kept = [bone for bone, turn in allowed.items() if angle_between(turn, solution.rotations[bone]) > _KEPT]
    if not kept:
        return solution
    turned = np.array(solution.rotations)
    turned[kept] = [allowed[bone] for bone in kept]
    names = [tree.skeleton.names[bone] for bone in kept]
    frozen = freeze(Tree(tree.skeleton, turned, solution.root_location), names)
    others = solve(frozen, names, frozen.rotations, frozen.root_location)
    rotations = np.array(others.rotations)
    rotations[kept] = turned[kept]
    return replace(others, skeleton=tree.skeleton, rotations=rotations)


@dataclass(frozen=True)
class FrameResult:
    """How well the effectors of a rig met their targets.

    errors: (E,) world meters, NaN if not seen. met: how many of them are within the solver's tolerance. left_alone:
    notes on bones between root and effectors that were not rotated. why: what keeps the worst effector from its target,
    such as "foot.L is at its limit"; "" if unknown.
    """

    errors: FloatArray
    met: int
    left_alone: tuple[str, ...] = ()
    why: str = ""

    @property
    def line(self) -> str:
        """The result in one line and the scene's units, such as "5 of 5 targets met, worst 0.2 mm"."""
        unseen = int(np.isnan(self.errors).sum())
        if unseen == len(self.errors):
            return "No target is seen on this frame: the pose was not changed"
        seen = len(self.errors) - unseen
        worst = length_text(float(np.nanmax(self.errors)))
        worst += f": {self.why}" if self.why and self.met < seen else ""
        worst += f", {unseen} not seen" if unseen else ""
        return f"{self.met} of {seen} targets met, worst {worst}"


def solve_frame(context: bpy.types.Context, armature: bpy.types.Object, start: str = "PRESENT") -> FrameResult:
    """Pose the armature for its current targets, from its "PRESENT" pose or from "REST".

    Bones that no enabled effector needs, and those that cannot be keyed, do not change. Raises a FabrikError, with the
    pose unchanged.
    """
    check_effectors(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    trees = [goals.pins_first() for goals in gather_goals(armature)]
    # What was asked of each tree when the current pose was solved; nothing if it is another pose.
    answer, *before = rig_settings(armature).solved.split() or [""]
    before = before if start == "PRESENT" and answer == _channels(armature) else []
    begins = [_begin(armature, goals, start, again=bool(before)) for goals in trees]
    errors, met, asked, why, worst = [], 0, [], "", 0.0
    for goals, begin in zip(trees, begins, strict=True):
        if goals.carrier:
            # Parents of the targets may have followed bones that were just solved.
            context.view_layer.update()
        places = present_places(context.evaluated_depsgraph_get(), context.scene, armature, goals)
        key = repr(depends_on(armature, goals)).encode()
        asked.append(_told([key, *(b"" if each is None else each.tobytes() for each in places)]))
        stays = asked[-1] in before and is_by_posture(goals, places)
        solution, holds = _solve(context, armature, goals, places, begin, stays=stays)
        errors.append(solution.errors * float(object_scale(tree_space(armature, goals))))
        lengths = path_reaches(goals.tree.skeleton, goals.effectors).tolerance_lengths
        met += int(np.asarray(solution.errors <= Options().tolerance * lengths).sum())
        if (farthest := float(np.nan_to_num(errors[-1]).max())) > worst:
            why, worst = holds, farthest
    left_alone = tuple(sentence for goals in trees for sentence in goals.left_alone)
    result = FrameResult(np.concatenate(errors), met, left_alone, why)
    if not np.isnan(result.errors).all():
        kept = rig_settings(armature)
        store_trees(armature, kept.solved_from, begins)
        kept.solved = " ".join((_channels(armature), *asked))
    return result


def _begin(armature: bpy.types.Object, goals: Goals, start: str, *, again: bool) -> Tree:
    """The preferred pose of a tree; if it is solved again, the one of the first solve."""
    tree = goals.tree
    if again:
        began = read_stored(armature, rig_settings(armature).solved_from, tree)
        tree = replace(tree, rotations=began[0], root_location=began[1])
    rotations = goals.tree.rotations.copy()
    rotations[goals.bones] = (1.0, 0.0, 0.0, 0.0) if start == "REST" else tree.rotations[goals.bones]
    location = tree.root_location if moves_root(armature, goals) else goals.tree.root_location
    return replace(tree, rotations=rotations, root_location=location)


def _solve(
    context: bpy.types.Context, armature: bpy.types.Object, goals: Goals, places: Places, begin: Tree, *, stays: bool
) -> tuple[Solution | DragPose, str]:
    """Pose one tree near its start pose, and return what keeps it from its targets; stays: it is already solved."""
    if not is_by_posture(goals, places):
        solution: Solution | DragPose = solve_tree(armature, goals, places, begin.rotations, begin.root_location)
        why = ""
    else:
        solution, why = _solve_by_posture(armature, goals, places, begin, stays=stays)
    if not stays and not np.isnan(places.points).any(axis=1).all():
        if isinstance(solution, Solution):
            write_stretches(armature, stretch_factors(goals, solution))
        location = solution.root_location if moves_root(armature, goals) else None
        posed_rig(armature).write(context, goals.tree.skeleton, solution.rotations, location, goals.bones)
    return solution, why


def is_by_posture(goals: Goals, places: Places) -> bool:
    """Whether a tree is solved with least mass moved: without bones that stretch, and without poles."""
    return not goals.slides and places.bends is None


def _solve_by_posture(
    armature: bpy.types.Object, goals: Goals, places: Places, begin: Tree, *, stays: bool
) -> tuple[DragPose, str]:
    """The pose of one tree for its targets, near the pose that the rig prefers, and what keeps it from them.

    By default the preferred pose is the start pose.
    """
    session = session_for(
        armature,
        goals,
        (begin.rotations, begin.root_location),
        locks=posed_rig(armature).locks(goals.tree.skeleton, goals.bones, begin.rotations),
    )
    asked, present = (places.points, places.rotations), (goals.tree.rotations, goals.tree.root_location)
    found = session.solve_anew(*asked, from_far=True)
    # Solve again, only to find what keeps targets from being met.
    if stays:
        errors = session.misses(*present, *asked)[: len(goals.effectors)]
        found = DragPose(*present, errors, np.full(len(errors), np.nan), 0)
    found = replace(found, errors=np.where(np.isnan(places.points).any(axis=1), np.nan, found.errors))
    names = {each.bone: each.shown_bone for each in enabled_effectors(armature)}
    return found, why_short(session.holding(), {bone: names.get(bone, bone) for bone in goals.pinned})


def solve_tree(
    armature: bpy.types.Object, goals: Goals, places: Places, start: FloatArray, start_location: FloatArray
) -> Solution:
    """The pose of one tree from start rotations (J, 4) and its root's head (3,); locked channels do not change."""
    free = moves_root(armature, goals)

    def solve(tree: Tree, locked: Collection[str], rotations: FloatArray, location: FloatArray) -> Solution:
        solver = goals.around(tree, locked).solver(free_root=free)
        return places.solve(solver, rotations, location)

    locks = posed_rig(armature).locks(goals.tree.skeleton, goals.bones, start)
    return solve_around_locks(solve, goals.tree, start, start_location, locks)


def stretch_factors(goals: Goals, solution: Solution) -> dict[str, float]:
    """By bone that may stretch, the factor on its length in a single pose."""
    skeleton = goals.tree.skeleton
    rows = {name: skeleton.index(name) for name in goals.slides}
    return {name: float(solution.lengths[row] / skeleton.lengths[row]) for name, row in rows.items()}
