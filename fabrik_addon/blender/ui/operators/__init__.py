"""The operators. Each checks whether it can run, calls one function, and reports the result.

An operator imports this function when it runs, because Blender registers all operators at start but runs few of them.
"""

from . import bake, drag, edit_motion, limits, markers, posing

CLASSES = (
    *posing.CLASSES,
    *drag.CLASSES,
    *edit_motion.CLASSES,
    *bake.CLASSES,
    *markers.CLASSES,
    *limits.CLASSES,
)
