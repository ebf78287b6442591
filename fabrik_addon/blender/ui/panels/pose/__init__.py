"""The tab for posing rigs: its panels from top to bottom."""

from . import control_rig, drag, limits, posture, targets

CLASSES = (*drag.CLASSES, *targets.CLASSES, *posture.CLASSES, *control_rig.CLASSES, *limits.CLASSES)
