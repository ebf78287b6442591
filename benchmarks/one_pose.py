"""One pose: compared with Blender's own IK, simple FABRIK in Python and in C, on the same rigs and targets."""

from functools import partial

import bpy
import numpy as np
from support import plain_fabrik

from benchmarks import cases
from benchmarks.compiled import compiled_fabrik
from benchmarks.tables import Aim, Part, interleaved, table

CHAINS = (3, 10, 30, 60, 100)
TARGETS, LIMITED_TARGETS = 60, 20
FRAMES = 2000
REPEATS, LIMITED_REPEATS = 5, 2
ITERATIONS = 500
TOLERANCE = 1e-5
HEADER = ("rig", "solver", "µs a pose", "to 1e-3 %", "to 1e-5 %", "median error, share of length")


def measure():
    """Every rig from rest; a solver's time is its median over interleaved repeats."""
    in_c = compiled_fabrik()
    makers = [*(partial(cases.free_chain, bones) for bones in CHAINS), cases.arm, cases.human, cases.tree]
    rows, found = [], {}
    for make in makers:
        case = make()
        found[case.name] = _measured(case, in_c)
        rows += [(case.name, solver, *result.cells) for solver, result in found[case.name].items()]
    title = f"One pose: {TARGETS} reachable targets a chain, {LIMITED_TARGETS} a limited rig, from rest"
    return Part(f"{table(title, HEADER, rows)}\n{_NOTE}", tuple(_aims(found)))


_NOTE = f"""Blender's IK: one constraint a goal on the whole rig, legacy solver, {ITERATIONS} iterations, its limits the
boxes about ours; the time of one depsgraph update less that of the same update with the constraints muted, which is the
row below it. FABRIK in Python and C: the paper's Algorithm 1 on points, to {TOLERANCE:g} of the length or
{ITERATIONS} sweeps; they know neither limits nor trees. *In arrays*: {FRAMES:,} frames in one call, time of one.
"""


class Result:
    """A solver's time for a pose, and its errors as fractions of the length."""

    def __init__(self, seconds, errors=None):
        self.seconds, self.errors = seconds, errors

    def share(self, tolerance):
        """Percent of the targets that were reached to a tolerance."""
        return 100.0 * float((self.errors <= tolerance).mean())

    @property
    def cells(self):
        time = f"{1e6 * self.seconds:.3g}"
        if self.errors is None:
            return time, "", "", ""
        return time, f"{self.share(1e-3):.0f}", f"{self.share(1e-5):.0f}", f"{np.median(self.errors):.1e}"


def _measured(case, in_c):
    """The results on one rig by solver."""
    rng = np.random.default_rng(3)
    count, repeats = (LIMITED_TARGETS, LIMITED_REPEATS) if case.limits else (TARGETS, REPEATS)
    targets, many = case.targets(rng, count), case.targets(rng, FRAMES)
    blender, solver = BlenderIK(case, targets), case.solver(tolerance=TOLERANCE)
    runs = {
        "Blender's IK": blender.run,
        "Blender's update without it": partial(blender.run, muted=True),
        "this": lambda: [solver.solve(target) for target in targets],
        "this, in arrays": lambda: solver.solve(many),
    }
    if not case.limits:
        runs |= _plain_runs(case, targets, many, in_c)
    return _results(case, interleaved(repeats, runs), blender, runs, targets, many)


def _results(case, seconds, blender, runs, targets, many):
    count = len(targets)
    floor = seconds["Blender's update without it"] / count
    results = {
        "Blender's IK": Result(max(seconds["Blender's IK"] / count - floor, 1e-9), blender.errors / case.size),
        "Blender's update without it": Result(floor),
    }
    errors = np.array([solution.errors.max() for solution in runs["this"]()])
    results["this"] = Result(seconds["this"] / count, errors / case.size)
    arrays = runs["this, in arrays"]().errors.max(axis=1)
    results["this, in arrays"] = Result(seconds["this, in arrays"] / FRAMES, arrays / case.size)
    if "FABRIK in Python" in runs:
        errors = np.linalg.norm(runs["FABRIK in Python"]() - targets[:, 0], axis=1)
        results["FABRIK in Python"] = Result(seconds["FABRIK in Python"] / count, errors / case.size)
    if "FABRIK in C" in runs:
        errors = np.linalg.norm(runs["FABRIK in C"]() - many[:, 0], axis=1)
        results["FABRIK in C"] = Result(seconds["FABRIK in C"] / FRAMES, errors / case.size)
    return results


def _plain_runs(case, targets, many, in_c):
    """Plain FABRIK on the points of a chain: the tips, for the targets in Python, for many frames in C."""
    start = np.vstack([case.skeleton.rest[:, :3, 3], case.points(_rest(case))])
    lengths, tolerance = case.skeleton.lengths, TOLERANCE * case.size
    points, distances = [tuple(point) for point in start.tolist()], lengths.tolist()
    wanted = [tuple(target) for target in targets[:, 0].tolist()]

    def in_python():
        solved = [plain_fabrik.solve(points, distances, target, tolerance, ITERATIONS)[0] for target in wanted]
        return np.array([chain[-1] for chain in solved])

    def in_c_language():
        return in_c(start, lengths, np.ascontiguousarray(many[:, 0]), tolerance, ITERATIONS)[0][:, -1]

    runs = {"FABRIK in Python": in_python}
    return runs | {"FABRIK in C": in_c_language} if in_c else runs


def _rest(case):
    return np.tile([1.0, 0.0, 0.0, 0.0], (len(case.skeleton), 1))


class BlenderIK:
    """Blender's own IK on a rig."""

    def __init__(self, case, targets):
        self.case, self.targets = case, targets
        self.empties, self.constraints = cases.add_blender_ik(case, ITERATIONS)
        self.errors = np.empty(len(targets))

    def run(self, muted=False):
        """Move the goals to each target in turn and let Blender update; records the errors."""
        if self.constraints[0].mute != muted:
            for constraint in self.constraints:
                constraint.mute = muted
            bpy.context.view_layer.update()
        bones = [self.case.armature.pose.bones[end] for end in self.case.ends]
        for row, target in enumerate(self.targets.tolist()):
            for empty, place in zip(self.empties, target, strict=True):
                empty.location = place
            bpy.context.view_layer.update()
            if not muted:
                self.errors[row] = max(
                    (bone.tail - empty.location).length for bone, empty in zip(bones, self.empties, strict=True)
                )


def _aims(found):
    ten = found["chain of 10"]
    blender, ours, arrays = ten["Blender's IK"], ten["this"], ten["this, in arrays"]
    time, error = f"{1e6 * blender.seconds:.3g} µs a pose", f"{np.median(blender.errors):.1e} of the length"
    yield Aim.at_least(
        "Chain of 10, one pose: speed relative to Blender's IK", 1.5, blender.seconds / ours.seconds, other=time
    )
    yield Aim.at_least(
        "Chain of 10, a frame in arrays: speed relative to Blender's IK",
        20,
        blender.seconds / arrays.seconds,
        other=time,
    )
    accuracy = np.median(blender.errors) / max(np.median(ours.errors), 1e-12)
    yield Aim.at_least("Chain of 10: accuracy relative to Blender's IK", 100, accuracy, other=error)
    for bones in (60, 100):
        theirs, chain = found[f"chain of {bones}"]["Blender's IK"], found[f"chain of {bones}"]
        yield Aim.at_least(
            f"Chain of {bones}: targets reached to 1e-3",
            100,
            chain["this"].share(1e-3),
            " %",
            other=f"{theirs.share(1e-3):.0f} % (Blender's IK)",
        )
