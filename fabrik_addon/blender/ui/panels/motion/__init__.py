"""The tab in which motion comes onto rigs: its panels are the steps in their order."""

from . import armature, bake, calibrate, edit, match, report, take

CLASSES = (
    *take.CLASSES,
    *match.CLASSES,
    *calibrate.CLASSES,
    *bake.CLASSES,
    *report.CLASSES,
    *armature.CLASSES,
    *edit.CLASSES,
)
