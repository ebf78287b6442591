"""The menus Pose > FABRIK and Object > FABRIK, and context menus; search (F3) finds operators in them."""

from typing import Final

import bpy
from bpy.types import Context, Menu

from ..settings.why_not import rig_at_hand, why_no_rig
from .operators import limits
from .operators.bake import FABRIK_OT_bake
from .operators.drag import FABRIK_OT_drag
from .operators.edit_motion import FABRIK_OT_add_hold, FABRIK_OT_hold_contacts, FABRIK_OT_work_out_trails
from .operators.effectors import FABRIK_OT_add_effector, FABRIK_OT_pin
from .operators.markers import (
    MOTION_SUFFIXES,
    FABRIK_OT_calibrate_markers,
    FABRIK_OT_import_markers,
    FABRIK_OT_match_markers,
)
from .operators.posing import (
    FABRIK_OT_key_pose,
    FABRIK_OT_pose_mode,
    FABRIK_OT_snap_targets,
    FABRIK_OT_solve,
    FABRIK_OT_use_control_rig,
)
from .operators.retarget import FABRIK_OT_retarget
from .translations import said

_POSING: Final = (
    (FABRIK_OT_drag, FABRIK_OT_pin, FABRIK_OT_add_effector),
    (FABRIK_OT_solve, FABRIK_OT_key_pose, FABRIK_OT_snap_targets, FABRIK_OT_use_control_rig),
    (
        limits.FABRIK_OT_limit_preset,
        limits.FABRIK_OT_limits_from_ik,
        limits.FABRIK_OT_limits_from_action,
        limits.FABRIK_OT_clamp_pose,
        limits.FABRIK_OT_check_action,
        limits.FABRIK_OT_mirror_limits,
        limits.FABRIK_OT_clear_limit,
    ),
)
_MOTION: Final = (
    (
        FABRIK_OT_import_markers,
        FABRIK_OT_match_markers,
        FABRIK_OT_calibrate_markers,
        FABRIK_OT_bake,
        FABRIK_OT_retarget,
    ),
    (FABRIK_OT_add_hold, FABRIK_OT_hold_contacts, FABRIK_OT_work_out_trails),
)


class FABRIK_MT_menu(Menu):
    """Pose and animate a rig with FABRIK"""

    bl_idname = "FABRIK_MT_menu"
    bl_label = "FABRIK"

    def draw(self, context: Context) -> None:
        """Draw the operators for the current mode, and those for motion."""
        posing = _POSING if context.mode == "POSE" else ((FABRIK_OT_pose_mode,), *_POSING[1:])
        for place, group in enumerate((*posing, *_MOTION)):
            if place:
                self.layout.separator()
            for operator in group:
                self.layout.operator(operator.bl_idname)


def _draw_entry(self: Menu, context: Context) -> None:
    """Draw the entry in Blender's menus if there is a rig."""
    if not why_no_rig(rig_at_hand(context)):
        self.layout.separator()
        self.layout.menu(FABRIK_MT_menu.bl_idname)


def _draw_import(self: Menu, _context: Context) -> None:
    """Draw the entry in File > Import."""
    suffixes = ", ".join(MOTION_SUFFIXES)
    self.layout.operator(
        FABRIK_OT_import_markers.bl_idname, text=said("Motion Capture ({suffixes})", suffixes=suffixes), translate=False
    )


ENTRIES: Final = (
    ("VIEW3D_MT_pose", _draw_entry),
    ("VIEW3D_MT_pose_context_menu", _draw_entry),
    ("VIEW3D_MT_object", _draw_entry),
    ("TOPBAR_MT_file_import", _draw_import),
)


def start() -> None:
    """Add the entries to Blender's menus."""
    for menu, draw in ENTRIES:
        getattr(bpy.types, menu).append(draw)


def stop() -> None:
    """Remove the entries."""
    for menu, draw in ENTRIES:
        getattr(bpy.types, menu).remove(draw)


CLASSES = (FABRIK_MT_menu,)
