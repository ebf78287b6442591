"""Solves the current frame for its targets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import bpy
import numpy as np

from ...core import Options, Solution
from ...core.arrays import FloatArray
from ...core.drag import DragPose, DragSolver
from ...core.model.bodies import path_reaches
from ...core.rotations import angle_between
from ..control.posed_rig import posed_rig
from ..goals.effectors import check_effectors
from ..goals.places import SampledTargets, current_targets, tree_space
from ..goals.problem import RigProblem, find_problems
from ..rig.armature import Tree, check_editable, check_rig, freeze
from ..rig.locks import WithLocks
from ..rig.pose_writer import read_channel
from ..rig.posture_masses import masses_of
from ..rig.spaces import length_text, object_scale
from ..rig.stretch import write_stretches
from ..settings.rig import rig_settings
from .stored_pose import kept_pose_key, preferred_pose

_CHANNELS: Final = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "rotation_axis_angle": 4}
# Radians. Smaller errors of locked channels are invisible; solving again for them would take twice as long.
_KEPT: Final = 1e-4


def _channels(rig: bpy.types.Object) -> str:
    """A key for the current pose, from all channels that rotate and move bones."""
    return _told(read_channel(rig, channel, size).tobytes() for channel, size in _CHANNELS.items())


def _told(parts: Iterable[bytes]) -> str:
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


@dataclass(frozen=True)
class FrameResult:
    """The result of solving a frame: errors and reasons.

    errors: (E,) world meters, NaN if a target is not visible. met: the number of targets met within the solver's
    tolerance. left_alone: notes on bones between root and effectors that were not rotated. why: why the worst effector
    misses its target, such as "foot.L is at its limit"; "" if unknown.
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

    Bones that no enabled effector needs, and bones that cannot be keyed, don't change. If a FabrikError is raised, the
    pose is unchanged.
    """
    check_effectors(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    trees = [problem.pins_first() for problem in find_problems(armature)]
    # The request for each tree when the current pose was solved; empty if the pose has changed since.
    answer, *before = rig_settings(armature).solved.split() or [""]
    before = before if start == "PRESENT" and answer == _channels(armature) else []
    begins = [_begin(armature, problem, start, again=bool(before)) for problem in trees]
    errors, met, asked, why, worst = [], 0, [], "", 0.0
    for problem, begin in zip(trees, begins, strict=True):
        if problem.carrier:
            # Parents of the targets may have followed bones that were just solved.
            context.view_layer.update()
        places = current_targets(context.evaluated_depsgraph_get(), context.scene, armature, problem)
        key = repr(depends_on(problem)).encode()
        asked.append(_told([key, *(b"" if each is None else each.tobytes() for each in places)]))
        stays = asked[-1] in before and is_by_posture(problem, places)
        solution, holds = _solve(context, problem, places, begin, stays=stays)
        errors.append(solution.errors * float(object_scale(tree_space(armature, problem))))
        lengths = path_reaches(problem.tree.skeleton, problem.effectors).tolerance_lengths
        met += int(np.asarray(solution.errors <= Options().tolerance * lengths).sum())
        if (farthest := float(np.nan_to_num(errors[-1]).max())) > worst:
            why, worst = holds, farthest
    left_alone = tuple(sentence for problem in trees for sentence in problem.left_alone)
    result = FrameResult(np.concatenate(errors), met, left_alone, why)
    if not np.isnan(result.errors).all():
        kept = rig_settings(armature)
        rows = (row for tree in begins for row in zip(tree.skeleton.names, tree.rotations, strict=True))
        kept.solved_from = dict(rows), {tree.skeleton.names[0]: tree.root_location for tree in begins}
        kept.solved = " ".join((_channels(armature), *asked))
    return result


def _begin(armature: bpy.types.Object, problem: RigProblem, start: str, *, again: bool) -> Tree:
    """The start pose of a tree; if the same request is solved again, the start pose of the first solve."""
    tree = problem.tree
    if again:
        turns, heads = rig_settings(armature).solved_from
        names = tree.skeleton.names
        began = np.array([turns.get(name, own) for name, own in zip(names, tree.rotations, strict=True)])
        tree = replace(tree, rotations=began, root_location=heads.get(names[0], tree.root_location))
    rotations = problem.tree.rotations.copy()
    rotations[problem.bones] = (1.0, 0.0, 0.0, 0.0) if start == "REST" else tree.rotations[problem.bones]
    location = tree.root_location if problem.free_root else problem.tree.root_location
    return replace(tree, rotations=rotations, root_location=location)


def _solve(
    context: bpy.types.Context, problem: RigProblem, places: SampledTargets, begin: Tree, *, stays: bool
) -> tuple[Solution | DragPose, str]:
    """Pose one tree near its start pose; returns why targets were missed. stays: whether the pose is solved already."""
    rig, unseen = problem.rig, np.isnan(places.points).any(axis=1)
    solution: Solution | DragPose
    if is_by_posture(problem, places):
        session = session_for(problem, (begin.rotations, begin.root_location), problem.locks(begin.rotations))
        asked, present = (places.points, places.rotations), (problem.tree.rotations, problem.tree.root_location)
        # If the pose does not change, solve again only to find why targets are missed.
        solution = session.solve_from_preferred(*asked, try_passes=True)
        if stays:
            errors = session.misses(*present, *asked)[: len(problem.effectors)]
            solution = DragPose(*present, errors, np.full(len(errors), np.nan), 0)
        solution = replace(solution, errors=np.where(unseen, np.nan, solution.errors))
        why = problem.why_short(session)
    else:
        solution, why = solve_tree(problem, places, begin.rotations, begin.root_location), ""
        if not unseen.all():
            write_stretches(rig, stretch_factors(problem, solution))
    if not stays and not unseen.all():
        location = solution.root_location if problem.free_root else None
        posed_rig(rig).write(context, problem.tree.skeleton, solution.rotations, location, problem.bones)
    return solution, why


def is_by_posture(problem: RigProblem, places: SampledTargets) -> bool:
    """Whether a tree is solved with the posture term, because it has no poles and no bones that stretch."""
    return not problem.slides and places.bends is None


def session_for(
    problem: RigProblem, start: tuple[FloatArray, FloatArray], locks: Mapping[int, WithLocks] | None = None
) -> DragSolver:
    """A solver that starts in the rig's preferred pose. By default this is `start`: (J, 4) rotations and root (3,)."""
    session = problem.drag_solver(locks=locks)
    preferred = preferred_pose(problem.rig, problem.tree, *start, bones=problem.bones, moves_root=problem.free_root)
    session.prefer(*preferred)
    session.begin(*preferred)
    return session


def depends_on(problem: RigProblem) -> tuple[Any, ...]:
    """A key for everything that a session for a problem depends on, except rest pose, preferred pose and targets."""
    rig = problem.rig
    masses, kept, up = masses_of(rig, problem.tree.skeleton), rig_settings(rig), rig.matrix_world[2][:]
    weighed = tuple(array.tobytes() for array in (masses.shares, masses.centres, masses.factors))
    floor = (kept.floor_height, up) if kept.use_floor else None
    settings = kept_pose_key(rig), kept.balance, kept.use_self_collision, up[:3], floor
    return weighed, settings, problem.effectors, dict(problem.limits), tuple(problem.held), problem.free_root


def solve_tree(problem: RigProblem, places: SampledTargets, start: FloatArray, start_location: FloatArray) -> Solution:
    """Solve one tree from rotations `start` (J, 4) and its root's head (3,), without masses.

    If the result violates locks, it is solved again with those bones fixed.
    """
    solution = places.solve(problem.solver(), start, start_location)
    allowed = {bone: lock(solution.rotations[bone]) for bone, lock in problem.locks(start).items()}
    kept = [bone for bone, turn in allowed.items() if angle_between(turn, solution.rotations[bone]) > _KEPT]
    if not kept:
        return solution
    skeleton = problem.tree.skeleton
    turned = np.array(solution.rotations)
    turned[kept] = [allowed[bone] for bone in kept]
    names = [skeleton.names[bone] for bone in kept]
    frozen = freeze(Tree(skeleton, turned, solution.root_location), names)
    others = places.solve(problem.for_pose(frozen, names).solver(), frozen.rotations, frozen.root_location)
    rotations = np.array(others.rotations)
    rotations[kept] = turned[kept]
    return replace(others, skeleton=skeleton, rotations=rotations)


def stretch_factors(problem: RigProblem, solution: Solution) -> dict[str, float]:
    """The length factors of bones that may stretch, by name, in a single pose."""
    skeleton = problem.tree.skeleton
    rows = {name: skeleton.index(name) for name in problem.slides}
    return {name: float(solution.lengths[row] / skeleton.lengths[row]) for name, row in rows.items()}
