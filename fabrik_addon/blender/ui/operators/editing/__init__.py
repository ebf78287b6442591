"""Operators that change a take over its frames, and that show it."""

from . import holds, trails

CLASSES = (*holds.CLASSES, *trails.CLASSES)
