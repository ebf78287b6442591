"""Which files of armatures can be read, by the ends of their names; Blender's own importers read others."""

from typing import Final

SUFFIXES: Final = (".npz", ".mvnx")
"""Files of poses."""
