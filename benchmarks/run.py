"""`make bench`: everything measured on one machine, as Markdown tables with figures, in docs/bench.

Each part runs in a process of its own and keeps its result in build/bench as it ends. The tables of the parts that are
there are put together as soon as every part has been tried. A part that fails is named; its last result is dropped.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
# The parts in the order of the results, each with its module in this folder and the function that measures it.
PARTS = {
    "one-pose": "one_pose.measure",
    "drag": "drag_step.measure",
    "feel-paths": "feel.measure_paths",
    "feel-play": "feel.measure_play",
    "feel-cost": "feel.measure_cost",
    "feel-out-of-reach": "feel.measure_out_of_reach",
    "feel-balance": "feel.measure_balance",
    "feel-self-collision": "feel.measure_self_collision",
    "edit": "edit.measure",
    "many-frames": "many_frames.measure",
    "natural": "natural.measure_paths",
    "natural-rigs": "natural.measure_other_rigs",
    "natural-lines": "natural.measure_lines",
    "natural-sides": "natural.measure_sides",
    "natural-cost": "natural.measure_cost",
    "natural-hidden": "natural_hidden.measure_hidden",
    "natural-random": "natural_random.measure_random",
    "whole-bake": "whole_bake.measure",
    "bake": "baking.measure_bake",
    "take": "baking.measure_take",
    "gait": "recordings.measure_gait",
    "takes": "takes.measure_takes",
    "take-variants": "takes.measure_variants",
    "marker-sets": "marker_truth.measure_sets",
    "unlabelled": "marker_truth.measure_unlabelled",
    "rest": "marker_truth.measure_rest",
    "extension": "extension.measure",
    "growth": "growth.measure",
    "limits": "limited.measure_families",
    "retarget": "retarget.measure_retarget",
    "retarget-whole": "retarget.measure_retarget_whole",
    "start-up": "start_up.measure",
    "redraw": "redraw.measure",
}
KEPT = ROOT / "build" / "bench"
RESULTS = ROOT / "docs" / "bench" / "results.md"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"or a module; all without: {', '.join(PARTS)}")
    parser.add_argument("--here", action="store_true", help="one part in this process, for a debugger or a profiler")
    arguments = parser.parse_args()
    chosen = [name for asked in arguments.parts or PARTS for name in _named(parser, asked)]
    if arguments.here:
        _measure(chosen[0])
    failed = []
    for name in chosen:
        # One that breaks, or takes Blender down, leaves the others alone.
        if subprocess.run([sys.executable, __file__, "--here", name]).returncode:
            failed.append(name)
            _keep(name, text=f"## {name}\n\nThis part failed.\n", aims=[], seconds=0.0, software="")
    _put_together()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _named(parser, asked):
    """The parts of a name, which is a part's or that of a module with several."""
    found = [asked] if asked in PARTS else [name for name, place in PARTS.items() if place.split(".")[0] == asked]
    return found or parser.error(f"no part {asked!r}; there are {', '.join(PARTS)}")


def function_of(part):
    """What measures a part; it returns Markdown, or a `tables.Part`."""
    module, function = PARTS[part].split(".")
    return getattr(import_module(f"benchmarks.{module}"), function)


def _measure(name):
    """Measure one part, print it and keep it; ends the process."""
    import bpy
    import numpy as np

    import fabrik_addon
    from benchmarks.tables import Part, aims_table

    began = time.monotonic()
    fabrik_addon.register()
    found = function_of(name)()
    part = found if isinstance(found, Part) else Part(found)
    print(part.text, aims_table(part.aims) if part.aims else "", sep="\n", flush=True)
    software = f"Blender {bpy.app.version_string}, Python {platform.python_version()}, numpy {np.__version__}"
    aims = [asdict(aim) for aim in part.aims]
    _keep(name, text=part.text, aims=aims, seconds=time.monotonic() - began, software=software)
    os._exit(0)  # Blender's module is not always able to leave in peace


def _keep(name, **result):
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = {**result, "day": time.strftime("%Y-%m-%d")}
    (KEPT / f"{name}.json").write_text(json.dumps(kept, default=bool), encoding="utf-8")


def _put_together():
    """Write the results where there is one of every part, which may be of several runs."""
    from benchmarks.tables import Aim, aims_table

    paths = [KEPT / f"{name}.json" for name in PARTS]
    missing = [path.stem for path in paths if not path.exists()]
    if missing:
        print(f"{RESULTS.relative_to(ROOT)} is left as it is until there is a result of {', '.join(missing)}")
        return
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    aims = aims_table([Aim(**aim) for part in kept for aim in part["aims"]])
    texts = [f"{part['text']}\n{part['day']}, {part['seconds']:.0f} s\n" for part in kept]
    software = " and ".join(sorted({part["software"] for part in kept if part["software"]}))
    heading = f"""# Measured

`make bench` on {software}; {_processor()}, {os.cpu_count()} cores, {platform.system()}. Comparisons are made within
a part, by medians of repeats that take turns, so that ratios hold where the machine is noisy.
"""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("\n".join([heading, aims, *texts]), encoding="utf-8")


def _processor():
    """The processor's name where the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
