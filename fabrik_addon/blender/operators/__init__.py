"""The operators, all of them thin: ask whether they can run, call one function, report."""

from . import bake, drag, effectors, import_markers, limit_preset, limit_tools, limits, pins, posing, solve

CLASSES = (
    *effectors.CLASSES,
    *solve.CLASSES,
    *posing.CLASSES,
    *drag.CLASSES,
    *pins.CLASSES,
    *bake.CLASSES,
    *import_markers.CLASSES,
    *limits.CLASSES,
    *limit_tools.CLASSES,
    *limit_preset.CLASSES,
)
