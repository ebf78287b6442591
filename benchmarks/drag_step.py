"""One step of a drag in Blender: solve, write the pose, let Blender update."""

import bpy
import numpy as np

from benchmarks import cases
from benchmarks.tables import Aim, Part, clock, table
from fabrik_addon.blender.control.posed_rig import posed_rig

STEPS = 200
REACH = 0.3
STAGES = ("solve", "write", "update", "together")
HEADER = ("rig", "each step from", "stage", "median ms", "99th percentile ms", "goals met to 1e-3")
STARTS = ("the drag's first pose", "the last pose")


def measure():
    """Move one goal in small steps while the others are fixed."""
    rows, aims = [], []
    for make, most in ((cases.human, 2.0), (cases.tree, 5.0)):
        case = make()
        for start in STARTS:
            spent, met = _drag(case, from_last=start == STARTS[1])
            rows += [(case.name, start, stage, *_figures(spent[stage]), "") for stage in STAGES[:-1]]
            rows.append((case.name, start, "together", *_figures(spent["together"]), f"{100 * met:.0f} %"))
            solving = 1000 * np.percentile(spent["solve"], (50, 99))
            what = f"{case.name}, one pose from {start}"
            aims.append(Aim.at_most(f"{what}: median", most, solving[0], "ms"))
            if case.ends == cases.HUMAN_ENDS:
                aims.append(Aim.at_most(f"{what}: 99th percentile", 5.0, solving[1], "ms"))
    title = f"Drag: a goal led along a loop of {REACH} of the rig's reach in {STEPS} steps, the others held"
    return Part(table(title, HEADER, rows), tuple(aims))


def _drag(case, from_last):
    """Seconds of every step by stage, and the share of steps on which every goal is met."""
    solver, first = case.solver(restarts=0), _first_pose(case)
    goals, pose, met = case.points(first), first, []
    spent = {stage: np.empty(STEPS) for stage in STAGES}
    for step, shift in enumerate(_loop(REACH * case.size)):
        wanted = goals + np.where(np.arange(len(goals)) == 1, 1.0, 0.0)[:, None] * shift
        with clock() as solving:
            solution = solver.solve(wanted, start=pose if from_last else first)
        with clock() as writing:
            posed_rig(case.armature).write(bpy.context, case.skeleton, solution.rotations)
        with clock() as updating:
            bpy.context.view_layer.update()
        pose = solution.rotations
        met.append(solution.errors.max() <= 1e-3 * case.size)
        stages = (solving.seconds, writing.seconds, updating.seconds)
        for stage, seconds in zip(STAGES, (*stages, sum(stages)), strict=True):
            spent[stage][step] = seconds
    return spent, np.mean(met)


def _first_pose(case):
    """(J, 4) a pose inside the limits, with bent limbs as an animator would begin from."""
    wanted = case.points(case.poses(np.random.default_rng(5), 1))[0]
    rest = case.points(np.tile([1.0, 0.0, 0.0, 0.0], (len(case.skeleton), 1)))
    return case.solver().solve(0.8 * rest + 0.2 * wanted).rotations


def _loop(reach):
    """(STEPS, 3) shifts along a closed curve that begins and ends at zero."""
    angle = np.linspace(0.0, 2.0 * np.pi, STEPS)
    return reach / 2 * np.stack([np.cos(angle) - 1.0, -np.sin(angle), 0.5 * np.sin(2.0 * angle)], axis=1)


def _figures(seconds):
    return [f"{1000 * figure:.2f}" for figure in np.percentile(seconds, (50, 99))]
