"""Posing the present frame so that the effectors meet their targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.arrays import FloatArray
from .effectors import Goals, Target, check_effectors, gather_goals, object_scale, world_to_armature
from .import_markers import MARKER_NAME
from .rig import check_editable, check_rig, read_trees, write_pose
from .sampling import sample_targets
from .settings import rig_settings


@dataclass(frozen=True)
class FrameResult:
    """How the effectors of a rig met their targets.

    errors: (E,) world metres, NaN where not seen. met: how many of them are within the solver's tolerance.
    """

    errors: FloatArray
    met: int

    @property
    def line(self) -> str:
        """The result in one line, such as "5 of 5 effectors met, worst 0.2 mm"."""
        unseen = int(np.isnan(self.errors).sum())
        if unseen == len(self.errors):
            return "No target is seen on this frame: the pose is as before"
        hidden = f", {unseen} not seen" if unseen else ""
        seen = len(self.errors) - unseen
        return f"{self.met} of {seen} effectors met, worst {1000.0 * np.nanmax(self.errors):.1f} mm{hidden}"


def solve_frame(context: bpy.types.Context, armature: bpy.types.Object, start: str = "PRESENT") -> FrameResult:
    """Pose the armature for its targets as they are now, from its "PRESENT" pose or from "REST".

    Bones that no enabled effector needs stay as they are. Raises a FabrikError, with the pose as before.
    """
    check_effectors(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    world = np.array(armature.matrix_world)
    results = []
    for goals in gather_goals(armature, read_trees(armature)):
        targets = world_to_armature(_present_targets(context, goals.targets), world)
        results.append(_solve_tree(armature, goals, targets, start))
    errors = np.concatenate([errors for errors, _ in results]) * float(object_scale(world))
    return FrameResult(errors, sum(met for _, met in results))


def _solve_tree(armature: bpy.types.Object, goals: Goals, targets: FloatArray, start: str) -> tuple[FloatArray, int]:
    """Pose one tree; its (E,) errors in armature units, and how many effectors are met."""
    skeleton, free = goals.tree.skeleton, rig_settings(armature).root == "FREE"
    rotations = goals.tree.rotations.copy()
    if start == "REST":
        rotations[goals.bones] = (1.0, 0.0, 0.0, 0.0)
    solver = goals.solver(free_root=free)
    solution = solver.solve(targets, start=rotations, start_location=goals.tree.root_location)
    location = solution.root_location if free else None
    if not np.isnan(targets).any(axis=1).all():
        write_pose(armature, skeleton, solution.rotations, location, bones=goals.bones)
    tolerances = solver.options.tolerance * solver.reaches.tolerance_lengths
    return solution.errors, int((solution.errors <= tolerances).sum())


def _present_targets(context: bpy.types.Context, targets: Sequence[Target]) -> FloatArray:
    """(E, 3) where targets are in world space now, NaN for a marker that is not seen.

    The scene stays on its frame, so that what was moved by hand counts.
    """
    graph = context.evaluated_depsgraph_get()
    points = np.empty((len(targets), 3))
    for row, (target, bone) in zip(points, targets, strict=True):
        evaluated = target.evaluated_get(graph)
        world = evaluated.matrix_world
        row[:] = world @ evaluated.pose.bones[bone].head if bone else world.translation
        if target.get(MARKER_NAME) is not None:
            marker = sample_targets(context.scene, [(target, bone)], [context.scene.frame_current_final])
            row[np.isnan(marker[0, 0])] = np.nan
    return points
