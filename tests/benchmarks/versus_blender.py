"""Beside Blender's own IK: the same chains, the same limits, the same targets, in one run."""

from math import radians

import bpy
import numpy as np
from benchmarks.tables import clock, table
from support import scenes
from support.rigs import points_of

from fabrik_addon.blender.rig import read_trees
from fabrik_addon.core import Effector, Hinge, Options, Solver, forward_kinematics

TARGETS = 200
ITERATIONS = 500
CHAINS = {
    "10 bones, free": (10, None),
    "10 bones, hinges ±60°": (10, (-60.0, 60.0)),
    "10 bones, hinges 0…90°": (10, (0.0, 90.0)),
}


def measure_chains():
    """Time of one pose and share reached, unlimited and limited."""
    rows = [row for name, (bones, hinge) in CHAINS.items() for row in _rows(name, bones, hinge)]
    header = ("chain", "solver", "µs a pose", "reached to 1e-3 %", "to 1e-5 %", "median error mm")
    return table(f"Beside Blender's IK ({ITERATIONS} iterations), {TARGETS} reachable targets from rest", header, rows)


def _rows(name, bones, hinge):
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    rows = [(f"b{i}", f"b{i - 1}" if i else "", (0, 0, 0.09 * i), (0, 0, 0.09 * (i + 1))) for i in range(bones)]
    rig = scenes.make_rig(rows)
    skeleton = read_trees(rig)[0].skeleton
    limits = {} if hinge is None else {bone: Hinge("X", *map(radians, hinge)) for bone in skeleton.names}
    targets = _targets(skeleton, limits)
    reach = float(skeleton.lengths.sum())
    yield name, "Blender's IK", *_figures(*_blender(rig, targets, hinge), reach)
    solver = Solver(skeleton, [Effector(skeleton.names[-1])], limits=limits, options=Options(tolerance=1e-6))
    yield name, "FABRIK, one pose", *_figures(*_one_by_one(solver, targets), reach)
    yield name, "FABRIK, all frames at once", *_figures(*_together(solver, targets), reach)


def _targets(skeleton, limits):
    """Targets that random poses inside the limits reach."""
    rng = np.random.default_rng(3)
    pose = np.tile([1.0, 0, 0, 0], (TARGETS, len(skeleton), 1))
    for index in range(len(skeleton)):
        low, high = (-0.8, 0.8) if not limits else (limits[f"b{index}"].low, limits[f"b{index}"].high)
        half = rng.uniform(low, high, TARGETS) / 2
        axis = np.array([1.0, 0, 0]) if limits else _unit(rng.normal(size=(TARGETS, 3)))
        pose[:, index, 0], pose[:, index, 1:] = np.cos(half), np.sin(half)[:, None] * axis
    return points_of(skeleton, forward_kinematics(skeleton, pose), [Effector(skeleton.names[-1])])


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _blender(rig, targets, hinge):
    """Seconds a pose, less what the update costs without the constraint, and the errors."""
    target = scenes.empty_at((0, 0, 0))
    constraint = rig.pose.bones[-1].constraints.new("IK")
    constraint.target, constraint.iterations = target, ITERATIONS
    if hinge is not None:
        for bone in rig.pose.bones:
            bone.lock_ik_y = bone.lock_ik_z = True
            bone.use_ik_limit_x = True
            bone.ik_min_x, bone.ik_max_x = map(radians, hinge)
    with_ik, errors = _updates(rig, target, targets)
    constraint.mute = True
    without, _ = _updates(rig, target, targets)
    return with_ik - without, errors


def _updates(rig, target, targets):
    errors, spent = [], 0.0
    for point in targets[:, 0]:
        target.location = point
        with clock() as c:
            bpy.context.view_layer.update()
        spent += c.seconds
        errors.append(np.linalg.norm(np.array(rig.pose.bones[-1].tail) - point))
    return spent / len(targets), np.array(errors)


def _one_by_one(solver, targets):
    solver.solve(targets[0])
    with clock() as c:
        errors = [solver.solve(target).errors[0] for target in targets]
    return c.seconds / len(targets), np.array(errors)


def _together(solver, targets):
    with clock() as c:
        errors = solver.solve(targets).errors[:, 0]
    return c.seconds / len(targets), errors


def _figures(seconds, errors, reach):
    shares = [f"{100 * (errors <= share * reach).mean():.1f}" for share in (1e-3, 1e-5)]
    return f"{1e6 * seconds:.0f}", *shares, f"{1000 * np.median(errors):.5f}"


MEASURES = [("blender-ik", measure_chains)]
