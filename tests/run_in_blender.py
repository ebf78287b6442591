"""Runs pytest in a Blender with its own Python, and exits with pytest's status."""

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
