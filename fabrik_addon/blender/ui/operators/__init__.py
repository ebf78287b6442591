"""The operators. Each checks whether it can run, calls one function, and reports the result.

They import this function when they call it, because Blender registers all operators at start but runs few of them.
"""

from . import (
    bake,
    calibrate_markers,
    drag,
    editing,
    effectors,
    import_markers,
    limit_tools,
    limits,
    match_markers,
    posing,
    report,
    retargeting,
)

CLASSES = (
    *effectors.CLASSES,
    *posing.CLASSES,
    *drag.CLASSES,
    *editing.CLASSES,
    *bake.CLASSES,
    *retargeting.CLASSES,
    *import_markers.CLASSES,
    *match_markers.CLASSES,
    *calibrate_markers.CLASSES,
    *report.CLASSES,
    *limits.CLASSES,
    *limit_tools.CLASSES,
)
