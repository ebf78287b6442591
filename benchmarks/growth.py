"""How time and memory grow with bones, goals and frames: slopes in a table, curves in a figure."""

import tracemalloc

import numpy as np
from support.families import ball, chain
from support.rigs import from_joints, points_of

from benchmarks import cases
from benchmarks.figures import Curve, growth_figure
from benchmarks.tables import Aim, Part, seconds_of, table
from fabrik_addon.core import Effector, Options, Solver, forward_kinematics

BONES = (3, 10, 30, 100, 300)
GOALS = (1, 2, 5, 10, 20)
FRAMES = (1, 10, 100, 1000, 10_000, 100_000)
FRAMES_EACH = 1000
CHUNK = 2000
REPEATS = 2
# Slopes are measured from these sizes on, because constant costs are too large below them.
_SLOPE_FROM = {"bones": 30, "goals": 5, "frames": 10_000}


def measure():
    """Targets within reach; time is the least of some repeats, memory the peak of a solve's allocations."""
    curves = [*_by_bones(), *_by_goals(), *_by_frames()]
    picture = growth_figure(curves)
    rows = [_row(curve) for curve in curves]
    header = ("what grows", "rig", "from … to", "time", "slope of time", "memory beside the result", "slope of memory")
    text = f"{table('Growth', header, rows)}\n{_NOTE}\n![Time and memory against size]({picture})\n"
    return Part(text, tuple(_aims(curves)))


_NOTE = f"""Slopes are of the logarithms, over the upper part of the range: 1 is linear, 0 is flat. Bones and goals:
{FRAMES_EACH:,} frames in one call. Frames are solved {CHUNK:,} at a time, so that memory stops growing there.
"""


def _by_bones():
    free, limited = Curve("bones", "chain"), Curve("bones", "chain of balls of 30°")
    for bones in BONES:
        skeleton = chain([0.1] * bones)
        _measure(free, bones, skeleton, (skeleton.names[-1],), {}, FRAMES_EACH)
        limits = {name: ball(30, (-30, 30)) for name in skeleton.names}
        _measure(limited, bones, skeleton, (skeleton.names[-1],), limits, FRAMES_EACH // 5)
    return free, limited


def _by_goals():
    """A trunk of 20 bones. For each goal, an arm of three bones hangs from one of them."""
    curve = Curve("goals", "trunk of 20 with arms of 3")
    rows = [(f"t{i}", i - 1, (0, 0, 0.1 * i), (0, 0, 0.1 * (i + 1))) for i in range(20)]
    for goals in GOALS:
        own, ends = list(rows), []
        for goal in range(goals):
            bone, side = 19 - goal * 20 // goals, 1 - 2 * (goal % 2)
            for part in range(3):
                parent = bone if part == 0 else len(own) - 1
                z = 0.1 * (bone + 1)
                own.append(
                    (f"a{goal}{part}", parent, (side * 0.1 * part, 0, z), (side * 0.1 * (part + 1), 0.02 * part, z))
                )
            ends.append(own[-1][0])
        _measure(curve, goals, from_joints(own), tuple(ends), {}, FRAMES_EACH)
    return (curve,)


def _by_frames():
    curve = Curve("frames", "chain of 10")
    skeleton = chain([0.1] * 10)
    for frames in FRAMES:
        _measure(curve, frames, skeleton, (skeleton.names[-1],), {}, frames)
    return (curve,)


def _measure(curve, size, skeleton, ends, limits, frames):
    """Add a point to a curve: seconds per frame, and bytes in addition to the result's own."""
    effectors = [Effector(end) for end in ends]
    solver = Solver(skeleton, effectors, limits=limits, options=Options(chunk=CHUNK, tolerance=1e-3))
    case = cases.Case("", None, skeleton, limits, ends)
    poses = case.poses(np.random.default_rng(size), min(frames, 1000))
    few = points_of(skeleton, forward_kinematics(skeleton, poses), effectors)
    targets = np.tile(few, (-(-frames // len(few)), 1, 1))[:frames]
    solver.solve(targets[:1])
    seconds = min(seconds_of(lambda: solver.solve(targets)) for _ in range(REPEATS))
    tracemalloc.start()
    solution = solver.solve(targets)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = sum(getattr(solution, name).nbytes for name in solution.FRAME_ARRAYS)
    each = 1 if curve.what == "frames" else frames
    curve.add(size, seconds / each, max(peak - kept, 1))


def _row(curve):
    time = f"{1e6 * curve.seconds[0]:.3g} … {1e6 * curve.seconds[-1]:.3g} µs"
    memory = f"{curve.memory[0] / 1e6:.1f} … {curve.memory[-1] / 1e6:.1f} MB"
    sizes = f"{curve.sizes[0]:,} … {curve.sizes[-1]:,}"
    slopes = curve.slopes(_SLOPE_FROM[curve.what])
    return curve.what, curve.rig, sizes, time, f"{slopes[0]:.2f}", memory, f"{slopes[1]:.2f}"


def _aims(curves):
    for curve in curves:
        time, memory = curve.slopes(_SLOPE_FROM[curve.what])
        yield Aim.at_most(
            "Time against size: slope on logarithmic axes", 1.15, time, "", case=f"{curve.what}, {curve.rig}"
        )
        if curve.what == "frames":
            yield Aim.at_most(
                "Memory in addition to the result, against frames: slope on logarithmic axes", 0.1, memory, ""
            )
