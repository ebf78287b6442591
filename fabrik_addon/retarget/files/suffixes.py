"""Suffixes of armature files read here; Blender's own importers read others."""

from typing import Final

SUFFIXES: Final = (".npz", ".mvnx")
"""Files of poses."""
