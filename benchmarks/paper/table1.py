"""Table 1: iterations and time on the 10-joint chain, for targets within and beyond its reach."""

from dataclasses import dataclass

import numpy as np
from support.solvers.loop import iterate, met, still

from benchmarks.paper import chain
from benchmarks.tables import best_of, clock, table
from fabrik_addon.core import Status

TARGETS = 20
MOST = 3000
OURS = "FABRIK, this extension"

# Iterations and seconds for reachable and for unreachable targets (the paper's Table 1).
PAPER = {
    "FABRIK, Algorithm 1": (15.461, 0.01328, 67.564, 0.06207),
    "CCD": (26.308, 0.12356, 390.135, 3.92869),
    "Jacobian transpose": (1311.190, 12.98947, 6549.000, 33.90473),
    "Jacobian DLS": (998.648, 10.48051, 2881.667, 14.87918),
    "Jacobian SVD-DLS": (808.797, 9.29652, 2808.452, 15.97591),
    "Follow-the-Leader": (21.125, 0.02045, 22.325, 0.02526),
    "Triangulation": (1.000, 0.05747, 1.000, 0.06993),
}


@dataclass(frozen=True)
class Figures:
    """A method's averages, and the largest remaining error and change of a link's length."""

    iterations: float
    most_iterations: int
    ms: float
    miss: float
    stretch: float

    @property
    def ms_per_iteration(self):
        return self.ms / self.iterations


def targets(within_reach, count=TARGETS, seed=1):
    """(count, 3) points 600 mm from the tip of the slightly bent chain, within its reach or beyond it."""
    tip = chain.joints(chain.slightly_bent())[-1]
    low, high = (0.33, 0.9) if within_reach else (1.02, 1.66)
    return chain.targets_away(np.random.default_rng(seed), tip, count, low, high)


def measure(name, wanted, within_reach, start=None):
    """A comparison method on targets (N, 3): to within 1e-3 mm, or until no joint moves by more than that.

    Follow-the-Leader always meets its target; it continues until its joints are at rest. Triangulation takes one step.
    """
    start = chain.slightly_bent() if start is None else start
    rests = not within_reach or name == "Follow-the-Leader"
    is_done = still(chain.TOLERANCE) if rests else met(chain.TOLERANCE)
    runs = [chain.start_method(name, start, target) for target in wanted]
    traces = [iterate(run, is_done, 1 if name == "Triangulation" else MOST) for run in runs]
    counts = [trace.iterations for trace in traces]
    return Figures(
        np.mean(counts),
        max(counts),
        1000.0 * np.mean([trace.seconds[-1] for trace in traces]),
        max(trace.errors[-1] for trace in traces),
        max(getattr(run, "stretch", 0.0) for run in runs),
    )


def measure_ours(wanted, start=None):
    """The shipped solver on targets (N, 3), one after the other."""
    solver, start = chain.shipped(), chain.slightly_bent() if start is None else start
    with clock() as c:
        solutions = [solver.solve(target[None], start=start) for target in wanted]
    counts = [int(solution.iterations) for solution in solutions]
    misses = [solution.errors.max() for solution in solutions if solution.status == Status.SOLVED]
    return Figures(np.mean(counts), max(counts), 1000.0 * c.seconds / len(wanted), max(misses, default=np.nan), 0.0)


def ms_at_once(wanted, frames=2000):
    """Milliseconds per target when the shipped solver gets all targets together."""
    solver, many = chain.shipped(), np.resize(wanted, (frames, 3))[:, None]
    return 1000.0 * best_of(3, lambda: solver.solve(many, start=chain.slightly_bent())) / frames


def measure_table():
    """The table for both kinds of targets, with the paper's figures for comparison."""
    within, beyond = targets(True), targets(False)
    rows = [_row(name, measure(name, within, True), measure(name, beyond, False)) for name in chain.METHODS]
    header = (
        "method",
        "iterations in reach (max)",
        "the paper",
        "ms",
        "the paper, ms",
        "ms per iteration",
        "iterations out of reach",
        "the paper",
        "ms",
        "the paper, ms",
    )
    return table(
        f"Table 1: the chain of 10 joints, {TARGETS} targets in reach and {TARGETS} out of reach",
        header,
        [_our_row(within, beyond), *rows],
    )


def _our_row(within, beyond):
    reached, pointing = measure_ours(within), measure_ours(beyond)
    return (
        f"**{OURS}**",
        f"**{reached.iterations:.2f}** ({reached.most_iterations})",
        "15.46",
        f"{reached.ms:.2f}; of 2,000 at once {ms_at_once(within):.4f}",
        "13.3",
        f"{reached.ms_per_iteration:.3f}",
        f"**{pointing.iterations:.0f}**",
        "1 (direct line)",
        f"{pointing.ms:.2f}; of 2,000 at once {ms_at_once(beyond):.4f}",
        "0.2",
    )


def _row(name, reached, beyond):
    iterations, seconds, iterations_beyond, seconds_beyond = PAPER[name]
    return (
        name,
        f"{reached.iterations:.2f} ({reached.most_iterations})",
        f"{iterations:.2f}",
        f"{reached.ms:.2f}",
        f"{1000 * seconds:.1f}",
        f"{reached.ms_per_iteration:.3f}",
        f"{beyond.iterations:.1f}",
        f"{iterations_beyond:.1f}",
        f"{beyond.ms:.2f}",
        f"{1000 * seconds_beyond:.1f}",
    )


def measure_starts():
    """How the iterations depend on the chain's start and the distance of the targets."""
    rows = []
    for name, start in (
        ("slightly bent", chain.slightly_bent()),
        ("crumpled", chain.crumpled(np.random.default_rng(3))),
    ):
        tip = chain.joints(start)[-1]
        for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 0.999), (1.001, 1.05), (1.05, 2.0)):
            wanted = _some_targets(tip, low, high)
            plain, ours = measure("FABRIK, Algorithm 1", wanted, high < 1.0, start), measure_ours(wanted, start)
            rows.append(
                (
                    name,
                    f"{low:g} to {high:g}",
                    f"{plain.iterations:.1f} ({plain.most_iterations})",
                    f"{ours.iterations:.1f} ({ours.most_iterations})",
                )
            )
    header = ("start", "distance of the target from the root / reach", "Algorithm 1's loop (max)", f"{OURS} (max)")
    return table("Iterations by start pose and distance, 20 targets each", header, rows)


def _some_targets(tip, low, high, count=20):
    """(count, 3) targets 600 mm from the tip, between two fractions of the reach; at any distance if there are none."""
    rng = np.random.default_rng(5)
    nearest, farthest = abs(chain.AWAY - np.linalg.norm(tip)), chain.AWAY + np.linalg.norm(tip)
    if nearest < 0.98 * high * chain.REACH and farthest > 1.02 * low * chain.REACH:
        return chain.targets_away(rng, tip, count, low, high)
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * chain.REACH * rng.uniform(low, high, (count, 1))
