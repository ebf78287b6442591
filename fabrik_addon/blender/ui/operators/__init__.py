"""The operators. Each checks whether it can run, calls one function, and reports the result.

An operator imports this function when it runs, because Blender registers all operators at start but runs few of them.
"""

from . import limits, motion, pose

CLASSES = (*pose.CLASSES, *motion.CLASSES, *limits.CLASSES)
