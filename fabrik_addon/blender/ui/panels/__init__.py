"""The sidebar's two tabs, Pose and Motion. Panels only draw and don't compute anything."""

from .motion import CLASSES as MOTION
from .pose import CLASSES as POSE

CLASSES = (*POSE, *MOTION)
