"""`python -m fabrik_addon`: the command line."""

import sys

from . import register, unregister

try:
    from .blender.bake.command_line import main
    from .blender.retarget.command_line import COMMAND
except ModuleNotFoundError as missing:
    if missing.name != "bpy":
        raise
    sys.exit("fabrik_bake: this needs Blender as a Python module: pip install bpy")

sys.exit(main(register, unregister, [COMMAND]))
