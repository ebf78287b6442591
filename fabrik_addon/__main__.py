"""`python -m fabrik_addon`: the command line."""

import os
import sys

from .blender.bake.command_line import main

status = main()
sys.stdout.flush()
sys.stderr.flush()
# Blender 4.2 as a Python module crashes while Python ends, once a property with a function of its own was registered.
os._exit(status)
