"""Runs pytest inside a Blender that is a program, with a Python of its own, and ends with pytest's status.

    blender -b --factory-startup --python tests/run_in_blender.py -- PACKAGES PYTEST_ARGUMENTS...

PACKAGES is the folder that holds pytest and what else the tests need for that Python; Blender's own packages go before.
"""

import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
packages, *arguments = sys.argv[sys.argv.index("--") + 1 :]
sys.path.append(packages)
os.chdir(Path(__file__).parents[1])

import pytest  # noqa: E402  it is in that folder

status = pytest.main(arguments)
sys.stdout.flush()
sys.exit(status)
