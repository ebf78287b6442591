"""`make bench`: everything measured in one run on one machine, as Markdown tables with figures, in docs/bench."""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main():
    import fabrik_addon
    from benchmarks import (
        baking,
        drag_step,
        edit,
        extension,
        growth,
        limited,
        many_frames,
        marker_truth,
        natural,
        natural_hidden,
        natural_random,
        one_pose,
        recordings,
        redraw,
        retarget,
        start_up,
        takes,
        whole_bake,
    )
    from benchmarks.tables import Part, aims_table

    modules = (
        one_pose,
        drag_step,
        edit,
        many_frames,
        natural,
        natural_hidden,
        natural_random,
        whole_bake,
        baking,
        recordings,
        takes,
        marker_truth,
        extension,
        growth,
        limited,
        retarget,
        start_up,
        redraw,
    )
    measures = [measure for module in modules for measure in module.MEASURES]
    arguments = _arguments([name for name, _ in measures])
    began, parts = time.monotonic(), []
    fabrik_addon.register()
    try:
        for name, measure in measures:
            if not arguments.names or name in arguments.names:
                found = measure()
                parts.append(found if isinstance(found, Part) else Part(found))
                print(parts[-1].text, flush=True)
    finally:
        fabrik_addon.unregister()
    aims = aims_table([aim for part in parts for aim in part.aims])
    text = "\n".join([_heading(time.monotonic() - began), aims, *(part.text for part in parts)])
    print(aims)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text, encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # Blender's module is not always able to leave in peace


def _arguments(names):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(names)}")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "bench" / "results.md")
    return parser.parse_args()


def _heading(seconds):
    import bpy
    import numpy as np

    software = f"Blender {bpy.app.version_string}, Python {platform.python_version()}, numpy {np.__version__}"
    return f"""# Measured

`make bench` on {software}; {_processor()}, {os.cpu_count()} cores, {platform.system()}. The whole run took
{seconds / 60:.1f} minutes. Every comparison is made within the run, by medians of repeats that take turns, so that
ratios hold where the machine is noisy.
"""


def _processor():
    """The processor's name where the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
