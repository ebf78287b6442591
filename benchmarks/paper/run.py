"""`make bench-paper`: the paper's experiments in one run, as Markdown tables and figures in docs/paper/."""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

INTRODUCTION = """# The paper's experiments, repeated

A. Aristidou and J. Lasenby, *FABRIK: A fast, iterative solver for the Inverse Kinematics problem*, Graphical
Models 73 (2011), section 5. Written by `make bench-paper`: everything in one run on one machine{machine}.
Times depend on the machine and on what else it does; compare them within a table. The paper's own are of MATLAB
on a 2.2 GHz Core 2 Duo.

**The chain.** 10 joints, 9 links of 100 mm. It starts slightly bent: on an arc 0.1 rad off its chord at either end.
Targets are 600 mm from its tip, drawn at random: between 0.33 and 0.9 of its reach from the root, or between 1.02 and
1.66 of it. *Reached* is within 1e-3 mm. For targets out of reach, and for Follow-the-Leader always, a method goes on
until no joint moves by more than 1e-3 mm; only the extension lays the chain along the direct line at once.

**The methods.** The extension runs as it is shipped: a few of FABRIK's sweeps, then an exact finish; its iterations
are sweeps and finish steps together. A pose alone is solved with Blender's mathutils, many at once with numpy. All
others are plain numpy, one joint after the other (`tests/support/solvers`). The Jacobian methods measure in links, with
the paper's damping of 1.1, and shorten the error to half a link; the paper does not print its step, and its counts
are of another order. By SVD, damped least squares take the same steps by another way. A figure in brackets is the most
that a target took.

![Distance to one target over iterations and over time](convergence.svg)

![The chain as each method leaves it; the cross is the target, grey the start](poses.svg)

![How far Follow-the-Leader's links are from their lengths](lengths.svg)

![How far a joint moves at each step as the chain follows its target](tracking.svg)

"""

NOTES = """## What to see in it

- The extension takes fewer steps than the paper's FABRIK on all of its targets, near full extension most of all: there
  Algorithm 1's loop needs hundreds of iterations. Out of reach it is one step; the default loop stands beside it.
- Follow-the-Leader is always on its target, but its links are not of their lengths; out of reach they never are again.
- In the hinge plane of Figure 7 a pose reaches its target, but nothing keeps the hinges inside their ranges, and the
  plane has to be known beforehand. A hinge limit needs neither.
- Near full extension a joint moves much farther than the target, as the square root of what is left of the reach. A
  pose that meets its target shows it; a loop that is cut short lags behind and misses by millimeters instead.
- What is solved by itself at each step has no history: the pose depends on the target alone, and a fold is passed in
  one large step. Going on from the step before follows through. A shake is a joint that turns back and at once back
  again, by a tenth of the target's largest step. Within reach there is next to none; beyond it, where the targets of
  the Y and of the hand pull against each other, there is some. The targets of the Y that are within reach of their own
  arms are not always within reach together.
- Table 2's joints are not determined by their targets: an elbow may swivel about the line from shoulder to wrist.
  Limits narrow that down, and a start that is near the truth does too: on the walk and the recording, which stay near
  their first pose, the Jacobian methods' small steps end nearest to it. With limits the paper's way, clamped in both
  passes, is often stuck far from its targets; the extension meets them.
- The dance swings over the whole of its limits, the paper's was a recording: compare methods, not motions.
- As in the paper, nothing keeps a body from passing through itself.
"""


def main():
    _find_blender()
    from benchmarks.paper import convergence, hinge_plane, humanoid, limited_chain, plots, table1, tracking

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "paper")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    courses, followed = convergence.courses(), tracking.follow_all()
    plots.draw_convergence(courses, output / "convergence.svg")
    plots.draw_poses(courses, output / "poses.svg")
    plots.draw_lengths(output / "lengths.svg")
    plots.draw_tracks(tracking.step_ratios(followed), output / "tracking.svg")
    parts = [INTRODUCTION.format(machine=_machine())]
    for measure in (
        table1.measure_table,
        table1.measure_starts,
        lambda: convergence.distances_table(courses),
        convergence.lengths_table,
        limited_chain.measure,
        hinge_plane.measure,
        tracking.measure_snake,
        lambda: tracking.tracking_table(followed),
        humanoid.measure,
    ):
        began = time.process_time()
        parts.append(measure() + "\n")
        print(parts[-1], f"{time.process_time() - began:.1f} s of processor time\n", sep="", flush=True)
    (output / "results.md").write_text("".join([*parts, NOTES]), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # Blender's module sometimes crashes at exit


def _find_blender():
    """Find Blender's module, since it has mathutils, which solves single poses; arrays do that slowly."""
    try:
        import bpy  # noqa: F401
    except ImportError:
        print("No Blender here: single poses are solved with arrays.")


def _machine():
    return f" (Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()})"


if __name__ == "__main__":
    main()
