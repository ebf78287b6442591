"""The sidebar's two tabs, Pose and Motion. Panels draw and never compute."""

from .motion import CLASSES as MOTION
from .pose import CLASSES as POSE

CLASSES = (*POSE, *MOTION)
