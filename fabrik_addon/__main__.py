"""`python -m fabrik_addon`: the command line."""

import sys

from . import register, unregister
from .blender.bake.command_line import main

sys.exit(main(register, unregister))
