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

A. Aristidou and J. Lasenby, *FABRIK: A fast, iterative solver for the Inverse Kinematics problem*, Graphical Models
73 (2011), section 5. `make bench-paper` wrote this page in one run on one machine{machine}. Times depend on the
machine and its load, so compare them only within a table. The paper's times were measured with MATLAB on a 2.2 GHz
Core 2 Duo.

**The chain.** It has 10 joints and 9 links of 100 mm. It starts slightly bent, on an arc that leaves its chord by 0.1
rad at both ends. The targets are random points, 600 mm from its tip: either in reach (0.33 to 0.9 of the reach from
the root) or out of reach (1.02 to 1.66). A target is *reached* if the error is at most 1e-3 mm. For targets out of
reach, a method runs until no joint moves by more than 1e-3 mm; the extension lays the chain along the direct line in
one step. Follow-the-Leader always runs until then.

**The methods.** The extension runs as shipped: a few FABRIK sweeps, then an exact finish. Its iterations are sweeps
and finish steps together. A single pose is solved with Blender's mathutils, many poses with numpy. All other methods
are plain numpy, one joint after the other (`tests/support/solvers`). The Jacobian methods use one link as the unit of
length and the paper's damping of 1.1, and limit the error of a step to half a link. The paper does not give its step
length, and its iteration counts are an order of magnitude higher. DLS and SVD-DLS take the same steps and differ only
in how they compute them. Numbers in brackets are the maximum over all targets.

![Distance to one target over iterations and over time](convergence.svg)

![The final pose of each method; the cross is the target, the gray chain is the start](poses.svg)

![The errors of the link lengths with Follow-the-Leader](lengths.svg)

![The distance that a joint moves in each step while the chain follows its target](tracking.svg)

"""

NOTES = """## What the tables show

- The extension takes fewer steps than the paper's FABRIK on all targets. The difference is largest near full
  extension, where the loop of Algorithm 1 needs hundreds of iterations. A target out of reach takes one step.
- Follow-the-Leader always reaches its target, but its links change their lengths. If the target is out of reach, they
  never regain them.
- In the hinge plane of Figure 7, a pose reaches its target, but hinges leave their ranges, and the plane must be
  known beforehand. Hinge limits avoid both problems.
- Near full extension, a joint moves much farther than the target: by about the square root of the remaining reach.
  Exact poses show this. A loop that is stopped early lags behind and misses by millimeters instead.
- If each step is solved from rest, the pose depends only on the target, and a fold of the chain is passed in one
  large step. If each step starts from the previous one, the motion is continuous.
- A joint *shakes* if it reverses its direction twice in a row, by at least a tenth of the largest step of the target.
  In reach, there is almost no shaking. Out of reach the hand shakes, because its targets pull in different directions.
  Targets of the Y that each arm could reach alone can't always be reached together.
- Table 2's joints are not determined by their targets: an elbow can rotate about the line from shoulder to wrist.
  Limits reduce this freedom, and so does a start pose close to the real one. The walk and the recording stay near
  their first pose, so the small steps of the Jacobian methods come closest there. The paper clamps limits in both
  passes. This often gets stuck far from the targets; the extension reaches them.
- The dance uses the whole range of its limits, but the paper used a recording. So compare methods, not motions.
- As in the paper, nothing keeps a body from intersecting itself.
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
    """Find Blender's module, which has mathutils. Single poses are solved much faster with it than with arrays."""
    try:
        import bpy  # noqa: F401
    except ImportError:
        print("No Blender here: single poses are solved with arrays.")


def _machine():
    return f" (Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()})"


if __name__ == "__main__":
    main()
