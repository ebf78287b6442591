"""Access to the operators outside the panels: menus, keys, the drag tool, dropped files, preferences."""

from typing import Any, Final

import bpy
from bpy.types import AddonPreferences, Context, FileHandler, KeyMap, KeyMapItem, Menu, UILayout, WorkSpaceTool

from ..settings.rig import rig_settings
from ..settings.why_not import rig_at_hand, why_no_rig
from .operators.motion import MOTION_SUFFIXES
from .overlays.handlers import draw_goals_switch, draw_limits_switch
from .panels.base import address_of, draw_reach, mail_address
from .translations import ui_text

_POSING: Final = (
    ("fabrik.drag", "fabrik.pin", "fabrik.add_effector"),
    ("fabrik.solve", "fabrik.key_pose", "fabrik.snap_targets", "fabrik.use_control_rig"),
    (
        "fabrik.limit_preset",
        "fabrik.limits_from_ik",
        "fabrik.limits_from_action",
        "fabrik.clamp_pose",
        "fabrik.check_action",
        "fabrik.mirror_limits",
        "fabrik.clear_limit",
    ),
)
_MOTION: Final = (
    ("fabrik.import_markers", "fabrik.match_markers", "fabrik.calibrate_markers", "fabrik.bake", "fabrik.retarget"),
    ("fabrik.add_hold", "fabrik.hold_contacts", "fabrik.work_out_trails"),
)


class FABRIK_MT_menu(Menu):
    """Pose and animate a rig with FABRIK"""

    bl_idname = "FABRIK_MT_menu"
    bl_label = "FABRIK"

    def draw(self, context: Context) -> None:
        posing = _POSING if context.mode == "POSE" else (("fabrik.pose_mode",), *_POSING[1:])
        for index, group in enumerate((*posing, *_MOTION)):
            if index:
                self.layout.separator()
            for operator in group:
                self.layout.operator(operator)


def _draw_entry(self: Menu, context: Context) -> None:
    if not why_no_rig(rig_at_hand(context)):
        self.layout.separator()
        self.layout.menu("FABRIK_MT_menu")


def _draw_import(self: Menu, _context: Context) -> None:
    suffixes = ", ".join(MOTION_SUFFIXES)
    self.layout.operator(
        "fabrik.import_markers", text=ui_text("Motion Capture ({suffixes})", suffixes=suffixes), translate=False
    )


ENTRIES: Final = (
    ("VIEW3D_MT_pose", _draw_entry),
    ("VIEW3D_MT_pose_context_menu", _draw_entry),
    ("VIEW3D_MT_object", _draw_entry),
    ("TOPBAR_MT_file_import", _draw_import),
    ("VIEW3D_PT_overlay_bones", draw_limits_switch),
    # Goals are drawn in Pose mode, and in Object mode to move targets.
    ("VIEW3D_PT_overlay_bones", draw_goals_switch),
    ("VIEW3D_PT_overlay_object", draw_goals_switch),
)

KEYMAP: Final = "Pose"
KEYS: Final[tuple[tuple[str, Any], ...]] = (("fabrik.drag", "F"), ("fabrik.pin", "P"))
# Keymaps that use these keys already. In this one, F is Frame Selected and P is Set Parent.
WITHOUT_KEYS: Final = frozenset({"Industry_Compatible"})

# The keys as created by Blender, to remove them later; stored only while the extension is enabled.
_ITEMS: Final[list[tuple[KeyMap, KeyMapItem]]] = []


def keys_for(keymap: str) -> tuple[tuple[str, Any], ...]:
    """The operators and their keys for one of Blender's keymaps."""
    return () if keymap in WITHOUT_KEYS else KEYS


class FABRIK_WT_drag(WorkSpaceTool):
    """Press on a bone and drag it."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "fabrik.drag_tool"
    bl_label = "FABRIK Drag"
    bl_description = "Drag a bone. The rig follows within its limits, and pinned bones stay in place"
    bl_icon = "ops.armature.extrude_cursor"
    bl_keymap = (("fabrik.drag", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, {"properties": [("pick", True)]}),)

    @staticmethod
    def draw_settings(context: Context, layout: UILayout, _tool: WorkSpaceTool) -> None:
        if why_no_rig(context.object):
            return
        settings = rig_settings(context.object)
        draw_reach(layout, settings.drag)
        layout.prop(settings, "root")


class FABRIK_FH_markers(FileHandler):
    """Imports files of motion capture that are dropped on the 3D viewport"""

    bl_idname = "FABRIK_FH_markers"
    bl_label = "Motion-capture markers"
    bl_import_operator = "fabrik.import_markers"
    bl_file_extensions = ";".join(MOTION_SUFFIXES)

    @classmethod
    def poll_drop(cls, context: Context) -> bool:
        return context.area is not None and context.area.type == "VIEW_3D"


class FabrikPreferences(AddonPreferences):
    """The extension's preferences."""

    bl_idname = __package__.removesuffix(".blender.ui")  # that of the extension

    def draw(self, context: Context) -> None:
        """Draw the keys like Blender's keymap preferences, so that they can be changed."""
        import rna_keymap_ui  # noqa: PLC0415  Blender's own, which only its preferences need

        row, mail = self.layout.row(), mail_address()
        row.operator("wm.url_open", text=ui_text("User Guide"), translate=False, icon="HELP").url = address_of("index")
        report = f"{ui_text('Report a Bug')}: {mail}"
        row.operator("wm.url_open", text=report, translate=False, icon="URL").url = f"mailto:{mail}"
        self.layout.label(text="Keys in Pose Mode", icon="KEYINGSET")
        config: Any = context.window_manager.keyconfigs.user
        box = self.layout.box()
        keymap = config.keymaps.get(KEYMAP)
        items = [] if keymap is None else [item for item in keymap.keymap_items if item.idname in dict(KEYS)]
        for item in items:
            box.context_pointer_set("keymap", keymap)
            rna_keymap_ui.draw_kmi([], config, keymap, item, box, 0)
        if not items:
            box.label(text="This keymap already uses F and P: use the FABRIK Drag tool", icon="INFO")


def start() -> None:
    """Add the menu entries; with windows, also the keys and the tool of the toolbar."""
    for menu, draw in ENTRIES:
        getattr(bpy.types, menu).append(draw)
    if (keys := bpy.context.window_manager.keyconfigs.addon) is not None:
        keymap = keys.keymaps.new(KEYMAP, space_type="EMPTY")
        for operator, key in keys_for(bpy.context.preferences.keymap.active_keyconfig):
            _ITEMS.append((keymap, keymap.keymap_items.new(operator, key, "PRESS")))
    if not bpy.app.background:
        bpy.utils.register_tool(FABRIK_WT_drag, after={"builtin.transform"}, separator=True)


def stop() -> None:
    """Remove everything that `start` has added."""
    if not bpy.app.background:
        bpy.utils.unregister_tool(FABRIK_WT_drag)
    while _ITEMS:
        keymap, item = _ITEMS.pop()
        keymap.keymap_items.remove(item)
    for menu, draw in reversed(ENTRIES):
        getattr(bpy.types, menu).remove(draw)


CLASSES = (FABRIK_MT_menu, FABRIK_FH_markers, FabrikPreferences)
