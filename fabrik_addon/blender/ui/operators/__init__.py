"""The operators, all of them thin: check whether they can run, call one function, report.

They import the code that they call inside functions, since Blender registers all operators at start and runs few of
them.
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
