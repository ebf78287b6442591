"""What the extension costs at Blender's start: importing and registering it, in processes of their own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.tables import Aim, Part, table

ROOT = Path(__file__).parents[2]
PROCESSES = 9
SCRIPT = """
import bpy, numpy, os, sys, time
sys.path.insert(0, sys.argv[1])
began, worked = time.perf_counter(), time.process_time()
import fabrik_addon
fabrik_addon.register()
print("SECONDS", time.perf_counter() - began, time.process_time() - worked, flush=True)
fabrik_addon.unregister()
os._exit(0)
"""


def measure():
    """Medians over processes; the first one has compiled the modules, as Blender does on the first start."""
    with tempfile.TemporaryDirectory() as cache:
        spent = [_enabled(cache) for _ in range(PROCESSES + 1)][1:]
    passed, worked = (1000 * median(seconds) for seconds in zip(*spent, strict=True))
    rows = [("enabling the extension", f"{passed:.1f}", f"{worked:.1f}")]
    aim = Aim.at_most("enabling the extension, processor time", 50, worked, "ms")
    return Part(table(f"Start-up, median of {PROCESSES} processes", ("what", "ms", "processor ms"), rows), (aim,))


def _enabled(cache):
    """Seconds by the clock and of the processor."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    command = [sys.executable, "-c", SCRIPT, str(ROOT)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    line = next(line for line in said.splitlines() if line.startswith("SECONDS"))
    return [float(seconds) for seconds in line.split()[1:]]


MEASURES = [("start-up", measure)]
