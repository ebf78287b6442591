"""`make bench`: everything measured in one run on one machine, as Markdown tables, kept in build/bench.md."""

import argparse
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main():
    import bpy
    from benchmarks import baking, limited, recordings, versus_blender

    import fabrik_addon

    measures = [*baking.MEASURES, *limited.MEASURES, *recordings.MEASURES, *versus_blender.MEASURES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(name for name, _ in measures)}")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench.md")
    arguments = parser.parse_args()
    fabrik_addon.register()
    try:
        parts = [_machine(bpy.app.version_string)]
        for name, measure in measures:
            if not arguments.names or name in arguments.names:
                parts.append(measure())
                print(parts[-1], flush=True)
    finally:
        fabrik_addon.unregister()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text("\n".join(parts), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # Blender's module is not always able to leave in peace


def _machine(blender):
    return f"Blender {blender}, Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}\n"


if __name__ == "__main__":
    main()
