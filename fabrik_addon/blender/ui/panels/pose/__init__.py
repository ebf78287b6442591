"""The tab in which rigs are posed: its panels from top to bottom."""

from . import drag, limits, posture, targets

CLASSES = (*drag.CLASSES, *targets.CLASSES, *posture.CLASSES, *limits.CLASSES)
