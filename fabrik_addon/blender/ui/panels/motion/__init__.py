"""The tab for motion on rigs: its panels are the steps in order."""

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
