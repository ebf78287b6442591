"""Operators that change a take over its frames."""

from . import holds

CLASSES = holds.CLASSES
