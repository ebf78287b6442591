"""`make bench`: measures everything into docs/bench: tables in results.md, and every row in results.csv.

Each part runs in its own process, which writes its result to build/bench. Once every part has a result there, possibly
from several runs, the pages are written. If a part fails, it is named and its result is removed.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import import_module
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
# The questions in the order of the results. Each has parts, which name their module in this folder and its function.
QUESTIONS = {
    "How fast and exact is one pose?": {
        "one-pose": "one_pose.measure",
        "extension": "extension.measure",
        "limits": "limited.measure_families",
    },
    "How long does a step of a drag take?": {
        "drag": "drag_step.measure",
        "natural-cost": "natural.measure_cost",
        "feel-cost": "feel.measure_cost",
    },
    "Does a dragged body move smoothly, and back along the same path?": {
        "natural": "natural.measure_paths",
        "natural-rigs": "natural.measure_other_rigs",
        "natural-random": "natural_random.measure_random",
        "feel-out-of-reach": "feel.measure_out_of_reach",
    },
    "Does the same target give the same pose?": {
        "feel-paths": "feel.measure_paths",
        "feel-play": "feel.measure_play",
        "natural-sides": "natural.measure_sides",
    },
    "Does the body move naturally?": {
        "natural-lines": "natural.measure_lines",
        "natural-hidden": "natural_hidden.measure_hidden",
        "feel-balance": "feel.measure_balance",
        "feel-self-collision": "feel.measure_self_collision",
    },
    "How fast is editing over time?": {"edit": "edit.measure"},
    "How fast are many frames?": {
        "many-frames": "many_frames.measure",
        "whole-bake": "whole_bake.measure",
        "bake": "baking.measure_bake",
        "growth": "growth.measure",
    },
    "How well and how fast are recordings baked?": {
        "take": "baking.measure_take",
        "gait": "recordings.measure_gait",
        "takes": "takes.measure_takes",
        "take-variants": "takes.measure_variants",
    },
    "Are markers matched and calibrated?": {
        "marker-sets": "marker_truth.measure_sets",
        "unlabelled": "marker_truth.measure_unlabelled",
        "rest": "marker_truth.measure_rest",
    },
    "How good is retargeting?": {
        "retarget": "retarget.measure_retarget",
        "retarget-whole": "retarget.measure_retarget_whole",
    },
    "What does the extension cost when it is not used?": {"start-up": "start_up.measure", "redraw": "redraw.measure"},
}
PARTS = {part: function for parts in QUESTIONS.values() for part, function in parts.items()}
KEPT = ROOT / "build" / "bench"
RESULTS = ROOT / "docs" / "bench" / "results.md"
SHORT = 8  # rows of a table that is shown completely, if its part has no aim


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
        # A part that fails, or crashes Blender, does not stop the others.
        if subprocess.run([sys.executable, __file__, "--here", name]).returncode:
            failed.append(name)
            (KEPT / f"{name}.json").unlink(missing_ok=True)
    _put_together()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _named(parser, asked):
    """The parts with a name: one part, or all parts of a module."""
    found = [asked] if asked in PARTS else [name for name, place in PARTS.items() if place.split(".")[0] == asked]
    return found or parser.error(f"no part {asked!r}; there are {', '.join(PARTS)}")


def function_of(part):
    """The function that measures a part; it returns Markdown, or a `tables.Part`."""
    module, function = PARTS[part].split(".")
    return getattr(import_module(f"benchmarks.{module}"), function)


def _measure(name):
    """Measure one part, print it and keep it; ends the process."""
    import bpy
    import numpy as np

    import fabrik_addon
    from benchmarks.tables import Part, aims_table

    began, load = time.monotonic(), os.getloadavg()[0]
    fabrik_addon.register()
    found = function_of(name)()
    part = found if isinstance(found, Part) else Part(found)
    print(part.text, aims_table("Aims", part.aims) if part.aims else "", sep="\n", flush=True)
    blas = np.__config__.CONFIG["Build Dependencies"]["blas"]["name"]
    numpy = f"numpy {np.__version__} (BLAS: {blas})"
    software = f"Blender {bpy.app.version_string}, Python {platform.python_version()}, {numpy}"
    aims = [asdict(aim) for aim in part.aims]
    _keep(name, text=part.text, aims=aims, seconds=time.monotonic() - began, software=software, load=load)
    os._exit(0)  # Blender's module sometimes crashes at exit


def _keep(name, **result):
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = {**result, "day": time.strftime("%Y-%m-%d")}
    (KEPT / f"{name}.json").write_text(json.dumps(kept, default=bool), encoding="utf-8")


def _put_together():
    """Write the results if every part has one."""
    missing = [part for part in PARTS if not (KEPT / f"{part}.json").exists()]
    if missing:
        print(f"{RESULTS.relative_to(ROOT)} is left as it is until there is a result of {', '.join(missing)}")
        return
    kept = {part: json.loads((KEPT / f"{part}.json").read_text(encoding="utf-8")) for part in PARTS}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(results_page(kept), encoding="utf-8")
    with RESULTS.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(all_rows(kept))


def results_page(kept):
    """The page: one table for each question, with missed aims first; below it short tables of parts without an aim."""
    from benchmarks.tables import Aim, aims_table

    software = " and ".join(sorted({part["software"] for part in kept.values()}))
    days = sorted({part["day"] for part in kept.values()})
    loads = [part["load"] for part in kept.values()]
    sections = [
        f"""# Measured

By `make bench`, {" to ".join(dict.fromkeys((days[0], days[-1])))}, with {software};
{_processor()}, {os.cpu_count()} cores, {platform.system()}.

Each table answers one question. A figure in bold does not meet its aim. If an aim has several cases, the table shows
the worst one. Compared times are medians of repeats that take turns. When the parts began, the machine's load was
{min(loads):.1f} to {max(loads):.1f} processes. If it was above {os.cpu_count()}, the times are too long.
[results.csv](results.csv) has every row of every part.
"""
    ]
    for question, parts in QUESTIONS.items():
        aims = [Aim(**aim) for part in parts for aim in kept[part]["aims"]]
        sections.append(aims_table(question, aims))
        for part in parts:
            rows = sum(line.startswith("|") for line in kept[part]["text"].splitlines()) - 2
            if not kept[part]["aims"] and 0 < rows <= SHORT:
                sections.append(kept[part]["text"].replace("## ", "### "))
    return "\n".join(sections)


def all_rows(kept):
    """The part, table, row, column and value of each cell of all tables."""
    from benchmarks.tables import rows_of

    yield "part", "table", "row", "column", "value"
    for part, result in kept.items():
        numbers = count(1)
        for title, row in rows_of(result["text"]):
            number = next(numbers)
            yield from ((part, title, number, column, value) for column, value in row.items())


def _processor():
    """The processor's name, if the system gives it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
