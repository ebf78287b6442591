"""Operators that edit and show motion."""

from . import holds, trails

CLASSES = (*holds.CLASSES, *trails.CLASSES)
