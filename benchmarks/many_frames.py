"""Many frames in one call: compared with scalar C and simple Python on the same targets."""

import numpy as np
from support import plain_fabrik

from benchmarks import cases
from benchmarks.compiled import compiled_fabrik
from benchmarks.tables import Aim, Part, clock, interleaved, table
from fabrik_addon.core import Status

FRAMES = 10_000
FRAMES_IN_PYTHON = 500
REPEATS = 5
TOLERANCE = 1e-5
MOST_SWEEPS = 1000


def measure():
    """A chain against plain FABRIK on points, and the sample person inside its limits."""
    chain, chain_aims = _chain()
    person, person_aims = _person()
    return Part(f"{chain}\n{person}", (*chain_aims, *person_aims))


def _chain():
    """10 bones with targets throughout their reach; only our time includes rotations."""
    case, in_c = cases.free_chain(10), compiled_fabrik()
    targets = _in_reach(np.random.default_rng(1), case)
    start = np.vstack([case.skeleton.rest[:, :3, 3], case.points(_rest(case))])
    solver, tolerance = case.solver(tolerance=TOLERANCE), TOLERANCE * case.size
    points, lengths = [tuple(point) for point in start.tolist()], case.skeleton.lengths
    few = [tuple(target) for target in targets[:FRAMES_IN_PYTHON, 0].tolist()]

    def in_python():
        for target in few:
            plain_fabrik.solve(points, lengths.tolist(), target, tolerance, MOST_SWEEPS)

    flat = np.ascontiguousarray(targets[:, 0])
    runs = {"this, rotations included": lambda: solver.solve(targets), "FABRIK in Python": in_python}
    if in_c:
        runs["FABRIK in C, -O3"] = lambda: in_c(start, lengths, flat, tolerance, MOST_SWEEPS)
    seconds = interleaved(REPEATS, runs)
    frame = {name: spent / (FRAMES_IN_PYTHON if "Python" in name else FRAMES) for name, spent in seconds.items()}
    ours = frame["this, rotations included"]
    rows = [(name, f"{1e6 * spent:.2f}", f"{spent / ours:.2f}") for name, spent in frame.items()]
    title = f"Many frames: chain of 10 × {FRAMES:,}, targets at 20…95 % of its reach, to {TOLERANCE:g} of it"
    what = f"Chain of 10 × {FRAMES:,} frames"
    aims = []
    for name, least in (("FABRIK in Python", 20), ("FABRIK in C, -O3", 1.5)):
        if name in frame:
            other = f"{1e6 * frame[name]:.3g} µs a frame"
            aims.append(Aim.at_least(f"{what}: speed relative to {name}", least, frame[name] / ours, other=other))
    return table(title, ("solver", "µs a frame", "times ours"), rows), aims


def _person():
    """Smooth motion inside the limits, and the same with some goals out of reach."""
    case = cases.human()
    solver = case.solver()
    inside = case.motion(np.random.default_rng(2), FRAMES, every=100)
    beyond = inside.copy()
    beyond[::10, 1] = case.skeleton.rest[0, :3, 3] + 1.2 * (inside[::10, 1] - case.skeleton.rest[0, :3, 3])
    rows, spent = [], []
    for name, targets in (("all within reach", inside), ("one hand in ten frames 20 % farther out", beyond)):
        with clock() as c:
            solution = solver.solve(targets)
        spent.append(1000 * c.seconds / FRAMES)
        rows.append((name, f"{spent[-1]:.3f}", f"{solution.iterations.mean():.1f}", _ends(solution.status)))
    title = f"Many frames: {case.name} × {FRAMES:,}, smooth motion, every frame by itself from rest"
    aim = Aim.at_most(f"{case.name} × {FRAMES:,} frames in reach: time per frame", 0.3, spent[0], "ms")
    return table(title, ("targets", "ms a frame", "sweeps and steps", "ended"), rows), [aim]


def _ends(status):
    """The number of frames of each status."""
    shares = {kind.name: 100 * (status == kind).mean() for kind in Status}
    return ", ".join(f"{name} {share:.1f} %" for name, share in shares.items() if share)


def _in_reach(rng, case):
    """(F, 1, 3) targets all around the root."""
    directions = rng.normal(size=(FRAMES, 1, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return directions * rng.uniform(0.2, 0.95, (FRAMES, 1, 1)) * case.size


def _rest(case):
    return np.tile([1.0, 0.0, 0.0, 0.0], (len(case.skeleton), 1))
