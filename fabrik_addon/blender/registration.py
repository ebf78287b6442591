"""Everything that Blender is told of when the extension is switched on, and told to forget when it is off."""

import bpy
from bpy.props import BoolProperty, PointerProperty

from ..cli import run_command
from . import (
    file_handler,
    goal_overlay,
    keymap,
    limit_panel,
    live,
    marker_overlay,
    marker_panel,
    operators,
    overlay,
    panels,
    settings,
    tool,
)
from .operators.import_markers import menu_entry
from .overrides import keep_overrides

CLASSES = (
    *settings.CLASSES,
    *operators.CLASSES,
    *panels.CLASSES,
    *limit_panel.CLASSES,
    *marker_panel.CLASSES,
    *file_handler.CLASSES,
)
# Goals are there in Pose mode as well as while targets are moved in Object mode.
GOAL_POPOVERS = ("VIEW3D_PT_overlay_bones", "VIEW3D_PT_overlay_object")
# Blender gives a handle that has to be handed back; it is here only while the extension is on.
_COMMANDS: list[object] = []


def register() -> None:
    """Switch everything on."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.Object.fabrik = PointerProperty(  # type: ignore[attr-defined]
        name="FABRIK",
        description="Effectors of this rig and how it is baked",
        type=settings.FabrikRig,
        override={"LIBRARY_OVERRIDABLE"},
    )
    setattr(
        bpy.types.Scene,
        overlay.SWITCH,
        BoolProperty(
            name="Joint Limits",
            description="Show how far the active bone and the selected ones may turn, while posing",
            default=False,
        ),
    )
    setattr(
        bpy.types.Scene,
        goal_overlay.SWITCH,
        BoolProperty(
            name="Goals",
            description="Show targets, pins and bend targets of rigs, and how far their effectors are from them",
            default=True,
        ),
    )
    overlay.HANDLERS.start()
    marker_overlay.HANDLERS.start()
    goal_overlay.HANDLERS.start()
    keymap.start()
    tool.start()
    bpy.types.VIEW3D_PT_overlay_bones.append(overlay.draw_switch)
    for popover in GOAL_POPOVERS:
        getattr(bpy.types, popover).append(goal_overlay.draw_switch)
    bpy.types.TOPBAR_MT_file_import.append(menu_entry)
    bpy.app.handlers.save_pre.append(keep_overrides)
    live.start()
    _COMMANDS.append(bpy.utils.register_cli_command("fabrik_bake", run_command))


def unregister() -> None:
    """Switch everything off, in reverse."""
    bpy.utils.unregister_cli_command(_COMMANDS.pop())
    live.stop()
    bpy.app.handlers.save_pre.remove(keep_overrides)
    bpy.types.TOPBAR_MT_file_import.remove(menu_entry)
    for popover in GOAL_POPOVERS:
        getattr(bpy.types, popover).remove(goal_overlay.draw_switch)
    bpy.types.VIEW3D_PT_overlay_bones.remove(overlay.draw_switch)
    tool.stop()
    keymap.stop()
    goal_overlay.HANDLERS.stop()
    marker_overlay.HANDLERS.stop()
    overlay.HANDLERS.stop()
    delattr(bpy.types.Scene, goal_overlay.SWITCH)
    delattr(bpy.types.Scene, overlay.SWITCH)
    del bpy.types.Object.fabrik  # type: ignore[attr-defined]
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
