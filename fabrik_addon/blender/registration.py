"""Registers everything with Blender when the extension is enabled, and unregisters it when it is disabled.

Blender waits for this at every start. So the modules that are imported here only declare settings, operators, panels
and handlers. They import numpy and the code that does the work when it is first used, see `OnUse`.
"""

from functools import partial
from typing import Any, Final

import bpy

from .posing import live
from .settings import rig as settings
from .settings.declare import CONTEXT, Pointer
from .settings.in_use import UNSET, keep_overrides
from .ui import entries, operators, panels, translations
from .ui.overlays import handlers as drawing_handlers
from .ui.panels import motion, pose

CLASSES = (*settings.CLASSES, *operators.CLASSES, *panels.CLASSES, *entries.CLASSES)
# The properties that are added to Blender's types: type, name, declaration.
PROPERTIES: Final[tuple[tuple[Any, str, Any], ...]] = (
    (bpy.types.Object, "fabrik", Pointer(type=settings.FabrikRig)),
    (bpy.types.WindowManager, UNSET, Pointer(type=settings.FabrikRig)),
    (bpy.types.Object, pose.STIFFNESS_SLIDER, pose.STIFFNESS),
    (bpy.types.Object, motion.INFLUENCES_OF_LAYERS, motion.INFLUENCES),
    *((bpy.types.Scene, name, switch) for name, switch in drawing_handlers.SWITCHES.items()),
)
# Modules with their own start and stop functions, in the order of their start.
PARTS: Final[tuple[Any, ...]] = (translations, entries, drawing_handlers, live)
# The commands of `blender --command fabrik_…`, and their handles, which are needed to unregister them.
COMMANDS: Final = ("bake", "retarget", "worker")
_COMMANDS: list[object] = []


def register() -> None:
    """Register everything."""
    for cls in CLASSES:
        cls.bl_translation_context = CONTEXT
        bpy.utils.register_class(cls)
    for owner, name, declared in PROPERTIES:
        setattr(owner, name, declared)
    for part in PARTS:
        part.start()
    bpy.app.handlers.save_pre.append(keep_overrides)
    _COMMANDS.extend(bpy.utils.register_cli_command(f"fabrik_{name}", partial(_run, name)) for name in COMMANDS)


def unregister() -> None:
    """Unregister everything, in reverse order."""
    while _COMMANDS:
        bpy.utils.unregister_cli_command(_COMMANDS.pop())
    bpy.app.handlers.save_pre.remove(keep_overrides)
    for part in reversed(PARTS):
        part.stop()
    for owner, name, _declared in reversed(PROPERTIES):
        delattr(owner, name)
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)


def _run(command: str, arguments: list[str]) -> int:
    from .command_line import run_command

    return run_command(arguments, command)
