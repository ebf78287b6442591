"""Posing the present frame so that the effectors meet their targets."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...core import Options, Solution
from ...core.arrays import FloatArray
from ...core.drag import DragPose
from ...core.model.bodies import path_reaches
from ..control.posed_rig import posed_rig
from ..goals.effectors import check_effectors
from ..goals.goals import Goals, gather_goals
from ..goals.places import Places, present_places, tree_space
from ..goals.root import moves_root
from ..rig.armature import Tree, check_editable, check_rig
from ..rig.spaces import length_text, object_scale
from ..rig.stretch import write_stretches
from ..settings.why_not import enabled_effectors
from .locked import solve_around_locks
from .posture_session import session_for, why_short
from .solved import asked_of, began, recall, remember


@dataclass(frozen=True)
class FrameResult:
    """How the effectors of a rig met their targets.

    errors: (E,) world metres, NaN where not seen. met: how many of them are within the solver's tolerance.
    left_alone: sentences on bones on the way that were not turned. why: what keeps the worst of them from its target,
    such as "foot.L is at its limit"; "" if unknown.
    """

    errors: FloatArray
    met: int
    left_alone: tuple[str, ...] = ()
    why: str = ""

    @property
    def line(self) -> str:
        """The result in one line and the scene's units, such as "5 of 5 effectors met, worst 0.2 mm"."""
        unseen = int(np.isnan(self.errors).sum())
        if unseen == len(self.errors):
            return "No target is seen on this frame: the pose was not changed"
        seen = len(self.errors) - unseen
        worst = length_text(float(np.nanmax(self.errors)))
        worst += f": {self.why}" if self.why and self.met < seen else ""
        worst += f", {unseen} not seen" if unseen else ""
        return f"{self.met} of {seen} effectors met, worst {worst}"


def solve_frame(context: bpy.types.Context, armature: bpy.types.Object, start: str = "PRESENT") -> FrameResult:
    """Pose the armature for its targets as they are now, from its "PRESENT" pose or from "REST".

    Bones that no enabled effector needs, and those that nobody could key, stay as they are. Raises a FabrikError, with
    the pose as before.
    """
    check_effectors(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    trees = [goals.pins_first() for goals in gather_goals(armature, posed_rig(armature).trees())]
    before = recall(armature) if start == "PRESENT" else ()
    begins = [_begin(armature, goals, start, again=bool(before)) for goals in trees]
    errors, met, asked, why, worst = [], 0, [], "", 0.0
    for goals, begin in zip(trees, begins, strict=True):
        if goals.carrier:
            # What carries it may have followed bones that were solved just now.
            context.view_layer.update()
        places = present_places(context.evaluated_depsgraph_get(), context.scene, armature, goals)
        asked.append(asked_of(armature, goals, places))
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
        remember(armature, begins, asked)
    return result


def _begin(armature: bpy.types.Object, goals: Goals, start: str, *, again: bool) -> Tree:
    """The pose of a tree that its solved one is to be near; once it has been solved, again the one from before."""
    tree = began(armature, goals.tree) if again else goals.tree
    rotations = goals.tree.rotations.copy()
    rotations[goals.bones] = (1.0, 0.0, 0.0, 0.0) if start == "REST" else tree.rotations[goals.bones]
    location = tree.root_location if moves_root(armature, goals) else goals.tree.root_location
    return replace(tree, rotations=rotations, root_location=location)


def _solve(
    context: bpy.types.Context, armature: bpy.types.Object, goals: Goals, places: Places, begin: Tree, *, stays: bool
) -> tuple[Solution | DragPose, str]:
    """Pose one tree near the pose that it begins in, and say what keeps it from its targets; stays: it is solved."""
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
    """Whether a tree is solved by least mass: bones that stretch, and limbs that bend toward a point, are not."""
    return not goals.slides and places.bends is None


def _solve_by_posture(
    armature: bpy.types.Object, goals: Goals, places: Places, begin: Tree, *, stays: bool
) -> tuple[DragPose, str]:
    """The pose of one tree for its targets, near the pose that the rig prefers, and what keeps it from them.

    As a rule that is the pose in which it begins.
    """
    session = session_for(
        armature,
        goals,
        (begin.rotations, begin.root_location),
        locks=posed_rig(armature).locks(goals.tree.skeleton, goals.bones, begin.rotations),
    )
    asked, present = (places.points, places.rotations), (goals.tree.rotations, goals.tree.root_location)
    found = session.solve_anew(*asked, from_far=True)
    # The answer again, so that it also says why.
    if stays:
        errors = session.misses(*present, *asked)[: len(goals.effectors)]
        found = DragPose(*present, errors, np.full(len(errors), np.nan), 0)
    found = replace(found, errors=np.where(np.isnan(places.points).any(axis=1), np.nan, found.errors))
    names = {each.bone: each.shown_bone for each in enabled_effectors(armature)}
    return found, why_short(session.holding(), {bone: names.get(bone, bone) for bone in goals.pinned})


def solve_tree(
    armature: bpy.types.Object, goals: Goals, places: Places, start: FloatArray, start_location: FloatArray
) -> Solution:
    """The pose of one tree from (J, 4) start rotations and the (3,) start of its root's head; locked channels stay."""
    free = moves_root(armature, goals)

    def solve(tree: Tree, locked: Collection[str], rotations: FloatArray, location: FloatArray) -> Solution:
        solver = goals.around(tree, locked).solver(free_root=free)
        return places.solve(solver, rotations, location)

    locks = posed_rig(armature).locks(goals.tree.skeleton, goals.bones, start)
    return solve_around_locks(solve, goals.tree, start, start_location, locks)


def stretch_factors(goals: Goals, solution: Solution) -> dict[str, float]:
    """By bone that may stretch, what its length is multiplied by in a single pose."""
    skeleton = goals.tree.skeleton
    rows = {name: skeleton.index(name) for name in goals.slides}
    return {name: float(solution.lengths[row] / skeleton.lengths[row]) for name, row in rows.items()}
