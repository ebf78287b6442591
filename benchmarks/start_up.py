"""The cost of the extension at Blender's start: importing and registering it, in separate processes."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.tables import Aim, Part, table

ROOT = Path(__file__).parents[1]
PROCESSES = 9


def enable_and_use():
    """Print the seconds that each step takes, by the clock and of the processor; ends the process."""
    import gc

    import bpy  # noqa: F401  Blender has it before it enables anything
    import numpy as np  # noqa: F401

    gc.collect()  # otherwise a collection, which takes longer than the measured work, could happen at any time
    began = _now()
    import fabrik_addon.blender.registration

    imported = _since(began)
    fabrik_addon.register()
    enabled = _since(began)
    began = _now()
    import fabrik_addon.blender.bake.bake
    import fabrik_addon.blender.posing.drag

    print("SECONDS", *imported, *enabled, *_since(began), flush=True)
    fabrik_addon.unregister()
    os._exit(0)


def _now():
    return time.perf_counter(), time.process_time()


def _since(began):
    return [now - then for now, then in zip(_now(), began, strict=True)]


def measure():
    """Medians over processes; the first one has compiled the modules, as Blender does on the first start."""
    with tempfile.TemporaryDirectory() as cache:
        spent = [_enabled(cache) for _ in range(PROCESSES + 1)][1:]
    columns = [1000 * median(seconds) for seconds in zip(*spent, strict=True)]
    imported, enabled, used = columns[:2], columns[2:4], columns[4:]
    registered = [whole - part for whole, part in zip(enabled, imported, strict=True)]
    rows = [
        _row("enabling the extension", enabled),
        _row("- of that, telling Blender of its classes", registered),
        _row("what the first bake or drag loads besides", used),
    ]
    aim = Aim.at_most("Enabling the extension, processor time", 50, enabled[1], "ms")
    return Part(table(f"Start-up, median of {PROCESSES} processes", ("what", "ms", "processor ms"), rows), (aim,))


def _row(what, spent):
    return what, *(f"{milliseconds:.1f}" for milliseconds in spent)


def _enabled(cache):
    """Seconds of wall-clock and of processor time: of importing, of importing and registering, and of later work."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    command = [sys.executable, "-c", "from benchmarks import start_up; start_up.enable_and_use()"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment).stdout
    line = next(line for line in said.splitlines() if line.startswith("SECONDS"))
    return [float(seconds) for seconds in line.split()[1:]]
