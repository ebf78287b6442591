"""Keys in Pose mode. Blender uses neither F nor P there for anything of its own."""

from typing import Any, Final

import bpy

from .operators.drag import FABRIK_OT_drag
from .operators.effectors import FABRIK_OT_pin

KEYMAP: Final = "Pose"
KEYS: Final[tuple[tuple[str, Any], ...]] = ((FABRIK_OT_drag.bl_idname, "F"), (FABRIK_OT_pin.bl_idname, "P"))

# What Blender gives for a key, to be handed back; here only while the extension is on.
_ITEMS: Final[list[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]]] = []


def start() -> None:
    """Listen to the keys from now on, where there is a keyboard."""
    keys = bpy.context.window_manager.keyconfigs.addon
    if keys is None:
        return
    keymap = keys.keymaps.new(KEYMAP, space_type="EMPTY")
    for operator, key in KEYS:
        _ITEMS.append((keymap, keymap.keymap_items.new(operator, key, "PRESS")))


def stop() -> None:
    """Listen no more."""
    while _ITEMS:
        keymap, item = _ITEMS.pop()
        keymap.keymap_items.remove(item)
